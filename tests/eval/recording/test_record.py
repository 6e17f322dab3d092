"""Recordings go on, stop in time, keep what is finished, and replay."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

pq = pytest.importorskip("pyarrow.parquet")

from eval.recording.folder import STATE, Folder, size_of, starts
from eval.recording.lerobot import LeRobotFiles
from eval.recording.record import Enough, _record
from eval.recording.tape import episode_from, plain
from rearrange.command_line.cli import main
from rearrange.command_line.composition.options import RecordOptions
from rearrange.home.apartments.episodes import Episode, Handoff, Marker
from rearrange.home.errors import UserError
from tests.eval.recording.fake import VECTORS, files, prepared, recorded

PLAIN = {"episodes": 20, "successes_only": True, "agent": "fake", "format": "lerobot", "workers": 1, "max_gb": 1.0}


def run(path: Path, made, command=(("seed", 0),), most=1e9, **plain) -> int:
    """Record as the command does, in this process."""
    folder = Folder(path, files(path, VECTORS), dict(command), {}, most)
    try:
        return _record(folder, made, RecordOptions(**PLAIN | plain))
    finally:
        folder.close()


def kept(path: Path) -> list[int]:
    """Numbers of the attempts in a data set, in order."""
    return [start["attempt"] for start in starts(path)]


def loadable(path: Path) -> int:
    """Episodes of a data set whose files fit one another."""
    info = json.loads((path / "meta/info.json").read_text())
    index = np.concatenate([pq.read_table(file)["index"].to_numpy() for file in sorted(path.glob("data/*/*.parquet"))])
    rows = sum(pq.read_table(file).num_rows for file in path.glob("meta/episodes/*/*.parquet"))
    assert np.array_equal(index, np.arange(info["total_frames"])) and rows == info["total_episodes"] == len(kept(path))
    return rows


def test_successes_are_kept_in_order_until_there_are_enough(tmp_path, capsys):
    assert run(tmp_path / "out", prepared()) == 0
    assert kept(tmp_path / "out") == [n for n in range(100) if n % 3 != 2][:20] and loadable(tmp_path / "out") == 20
    said = capsys.readouterr().out
    assert "20 of 20 episodes" in said and "fell" in said and "20/20 100%" in said
    assert run(tmp_path / "out", prepared()) == 0 and "nothing is left to do" in capsys.readouterr().out


def test_all_are_kept_and_marked_where_asked_for(tmp_path):
    run(tmp_path / "out", prepared(), successes_only=False)
    assert kept(tmp_path / "out") == list(range(20))
    assert [start["success"] for start in starts(tmp_path / "out")] == [n % 3 != 2 for n in range(20)]


def test_what_is_finished_at_ctrl_c_can_be_loaded_and_the_same_command_goes_on(tmp_path, capsys):
    path = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        run(path, prepared(stop_at=13))
    assert kept(path) == [n for n in range(13) if n % 3 != 2] and loadable(path) == 9
    with pytest.raises(UserError, match="seed=0, now 1"):
        run(path, prepared(), command=(("seed", 1),))
    assert "interrupted; the same command goes on" in capsys.readouterr().out
    assert run(path, prepared()) == 0 and loadable(path) == 20
    assert kept(path) == [n for n in range(100) if n % 3 != 2][:20]


def test_episodes_that_come_out_of_order_are_put_in_order(tmp_path):
    from eval.recording.record import _Order

    path = tmp_path / "out"
    folder = Folder(path, files(path, VECTORS), {}, {}, 1e9)
    order = _Order(folder, 4, True)
    for number in (1, 4, 0, 3):
        order.take(recorded(number, 3, features=VECTORS))
    assert [attempt.number for attempt in folder.tried] == [0, 1]  # 2 is missing
    with pytest.raises(Enough):
        order.rest()
    folder.write()
    folder.close()
    assert kept(path) == [0, 1, 3, 4]


def test_files_of_a_write_that_was_killed_are_removed(tmp_path):
    path = tmp_path / "out"
    run(path, prepared(), episodes=16)
    shutil.copy(path / "data/chunk-000/file-000.parquet", path / "data/chunk-000/file-001.parquet")
    shutil.copy(path / "meta/episodes/chunk-000/file-000.parquet", path / "meta/episodes/chunk-000/file-001.parquet")
    (path / "meta/info.json").unlink()
    run(path, prepared(), episodes=20)
    assert loadable(path) == 20


def test_a_write_that_fails_leaves_what_was_there(tmp_path, monkeypatch, capsys):
    path = tmp_path / "out"
    write = LeRobotFiles._episodes

    def full(self, number, *rest):
        if number == 1:
            raise OSError(28, "No space left on device", str(path))
        return write(self, number, *rest)

    monkeypatch.setattr(LeRobotFiles, "_episodes", full)
    assert run(path, prepared()) == 1 and loadable(path) == 16
    assert "No space left on device. Make room, and repeat the command." in capsys.readouterr().err
    monkeypatch.undo()
    assert run(path, prepared()) == 0 and loadable(path) == 20


def test_it_is_never_larger_than_it_may_be(tmp_path, capsys):
    path = tmp_path / "out"
    assert run(path, prepared(), most=2.5e6, episodes=1000) == 0
    assert 0 < loadable(path) < 1000 and size_of(path) <= 2.5e6
    assert "max_gb" in capsys.readouterr().out


def test_a_folder_with_something_else_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="no recording.*notes.txt"):
        run(tmp_path, prepared())
    assert not (tmp_path / STATE).exists()


def test_an_episode_is_kept_to_the_last_digit():
    episode = Episode("a", "train/3", ("013_apple",), ((0.1, 1 / 3, 0.2, 1.0, 0.0, 0.0, 0.0),), {0: (1 / 7,) * 7},
                      ("sofa",), ("table",), {"drawer_1": 0.1}, (Marker("handle", "fridge", "door", (0.1, 0.2, 0.3)),),
                      {0: "apple"}, (0.5, 1 / 3, 2.0), Handoff("pick", 0))
    assert episode_from(json.loads(json.dumps(plain(episode)))) == episode


def test_the_command_records_episodes_that_replay_state_by_state(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["record", "skill=pick", "episodes=2", "image_size=8", "workers=1", "out=demonstrations"]
    assert main(words) == 0, capsys.readouterr().err
    assert loadable(tmp_path / "demonstrations") == 2
    assert main(["record", "replay=demonstrations", "workers=1"]) == 0
    assert "2 of 2 episodes went again as recorded" in capsys.readouterr().out
    assert main([*words[:-1], "seed=1", "out=demonstrations"]) == 2 and "another command" in capsys.readouterr().err
    file = next((tmp_path / "demonstrations" / "data").rglob("*.parquet"))  # a replay that differs is told
    table = pq.read_table(file)
    actions = np.array(table["action"].to_pylist(), np.float32)
    actions[5] *= -1
    import pyarrow as pa

    changed = pa.FixedSizeListArray.from_arrays(pa.array(actions.reshape(-1)), actions.shape[1])
    pq.write_table(table.set_column(table.column_names.index("action"), "action", changed), file)
    assert main(["record", "replay=demonstrations", "workers=1"]) == 1
    assert "episode 0: " in (said := capsys.readouterr().out) and "1 of 2 episodes went again" in said


def test_the_environment_of_a_recorded_scenario_is_made_again():
    """From what `rearrange record hab=` writes of it."""
    from eval.recording.replay import environment
    from rearrange.home.settings import presets
    from rearrange.home.settings.yaml_files import plain_yaml

    scenario = json.loads(json.dumps(plain_yaml(presets.CONFIGS / "hab" / "set_table.yaml")))
    env = environment({"scenario": scenario, "env": {"split": "val", "observations": ["rgb"]}})
    assert env.config.name == "set_table" and env.home.split == "val"


def test_a_scenario_replays_by_its_actions_alone(tmp_path):
    """Of an expert's plan, from where it begins; what skills see and measure on the way is not in a frame."""
    from eval.recording.replay import again
    from eval.recording.scenario_episodes import RecordingEnv, ScenarioJob
    from eval.scenario.evaluate import Job, Slot, make_agents, make_executor, step_all
    from eval.scenario.skill_sources import Source
    from planner.rules import Rules
    from planner.scenarios import load_scenario

    scenario = load_scenario("tidy_house")
    skills = {name: Source("expert") for name in ("navigate", "pick", "place")}
    job = ScenarioJob(Job(scenario, "expert", {"split": "val"}, skills, Rules(), 1), image_size=8)
    executor = make_executor(job.eval, lambda *args: RecordingEnv(job, *args))
    agents = make_agents(job.eval, [executor])
    slot = Slot(0, executor, agents, job.eval)
    slot.next(iter([0]))
    env = executor.env
    for _ in range(150):
        step_all([slot], agents)
    tape = env.tape.recorded(0, {"seed": env.start_seed, "episode": plain(env.episode)}, env.task, False, None,
                             env.last_seen)
    assert len(tape.task.split()) > 5 and tape.steps == 150
    assert np.abs(np.diff(tape.columns["action"][:, 8:10], axis=0)).sum() > 0
    from planner.scenario_env import ScenarioEnv
    from rearrange.env.home_env import HomeSettings

    plain_env = ScenarioEnv(scenario, HomeSettings("val", 0))
    start = {"episode_index": 0, **json.loads(json.dumps(tape.start))}
    assert again(plain_env, start, tape.columns).frame is None

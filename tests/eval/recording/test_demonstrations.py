"""`rearrange train demos=`: a recording is cloned, PPO goes on from there, and what does not fit is one sentence."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest

pytest.importorskip("pyarrow")

from eval.recording.demonstrations import Recording
from eval.recording.features import features_of, names_of_action
from eval.recording.folder import STATE as STATE_FILE
from eval.recording.folder import Folder
from eval.recording.lerobot import LeRobotFiles
from eval.recording.minari import MinariFiles
from eval.recording.tape import Tape
from rearrange.command_line.cli import main
from rearrange.home.errors import UserError
from rearrange.home.robot.fetch import FETCH
from rearrange.home.settings.environment import HomeSettings
from rearrange.home.simulation.observations import space_of
from skills.pick import PickConfig

ACTION = (("arm", slice(0, 7)), ("grip", slice(7, 8)), ("base", slice(8, 10)))
KEYS = PickConfig().observation_keys


def env(keys=KEYS, depth_size: int = 0, action=ACTION) -> SimpleNamespace:
    """The spaces of an environment of Pick."""
    size = action[-1][1].stop
    return SimpleNamespace(observation_space=gymnasium.spaces.Dict(space_of(keys, depth_size, FETCH)),
                           sim=SimpleNamespace(robot=FETCH), home=HomeSettings(), action_parts=list(action),
                           action_space=gymnasium.spaces.Box(-1, 1, (size,), np.float32))


def write(path: Path, episodes: int = 6, of=LeRobotFiles, depth_size: int = 8, frames: int = 12,
          failed: tuple[int, ...] = (3,)) -> Path:
    """A recording of Pick that shows the same action at all times: 0.3 for the arm, 1 for all else."""
    shown = env(depth_size=depth_size)
    features = features_of(shown.observation_space, names_of_action(FETCH, shown.action_parts))
    folder = Folder(path, of(path, features, 30), {"format": "minari" if of.raw else "lerobot"},
                    {"skill": "pick", "env": {"base_speed_m_s": 2.5, "split": "test"}}, 1e9)
    rng = np.random.default_rng(0)
    action = np.array([0.3] * 7 + [1.0] * 3, np.float32)
    for number in range(episodes):
        tape = Tape(features, 30, of.raw)
        for frame in range(frames + number):
            last, won = frame == frames + number - 1, number not in failed
            seen = {key: rng.random(box.shape, np.float32) for key, box in shown.observation_space.spaces.items()}
            tape.frame(seen, action, 1.0, last, False, last and won)
        folder.add(tape.recorded(number, {"seed": number, "episode": {}}, "pick", won, None, seen), keep=True)
    folder.write()
    folder.close()
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return write(tmp_path_factory.mktemp("recording") / "pick")


def test_each_format_gives_the_policy_what_it_sees_in_the_places_that_it_knows(folder, tmp_path):
    for keys, depth in ((KEYS, 0), (KEYS, 8), (("joint", "obj_start"), 0)):
        found = [Recording(path, "pick", env(keys, depth)) for path
                 in (folder, write(tmp_path / f"{len(keys)}_{depth}", of=MinariFiles))]
        for shown in found:
            assert shown.lengths == [12, 13, 14, 16, 17] and shown.left_out == 1  # those that succeeded
            one = shown.episode(3)
            shapes = {key: box.shape for key, box in env(keys, depth).observation_space.items()}
            assert {key: value.shape[1:] for key, value in one.obs.items()} == shapes
            assert one.action.shape == (16, 10) and one.reward.tolist() == [1.0] * 16
        ours, theirs = (shown.episode(3).obs for shown in found)
        assert all(ours[key] == pytest.approx(theirs[key], abs=1e-5) for key in ours)
    assert Recording(folder, "pick", env(), 2).lengths == [12, 13]
    joint = Recording(folder, "pick", env()).episode(0).obs["joint"]
    rng, spaces = np.random.default_rng(0), env(depth_size=8).observation_space.spaces
    assert np.array_equal(joint[0], {key: rng.random(box.shape, np.float32) for key, box in spaces.items()}["joint"])


@pytest.mark.parametrize("wrong, said", [
    (dict(task="place"), "shows pick, and place is to be learned"),
    (dict(env=env(depth_size=16)),
     r"images.depth of shape \(8, 8, 1\), and the policy sees \(16, 16, 1\): choose policy.image_size=8"),
    (dict(env=env((*KEYS, "joint_vel"))), "does not show joint_vel"),
    (dict(env=env(action=ACTION[:2])), "shows actions of 10 numbers .*and the policy commands 8"),
    (dict(most=7), "demos_episodes=7, and .* has 5 that succeeded"),
])
def test_what_does_not_fit_is_one_sentence(folder, wrong, said):
    with pytest.raises(UserError, match=said):
        Recording(**{"folder": folder, "task": "pick", "env": env()} | wrong)


def test_what_is_damaged_is_one_sentence(tmp_path):
    with pytest.raises(UserError, match="is no recording of rearrange"):
        Recording(tmp_path, "pick", env())
    path = write(tmp_path / "a", episodes=2)
    file = path / "data/chunk-000/file-000.parquet"
    content = file.read_bytes()
    for damage, said in ((content[: len(content) // 2], "file-000.parquet is damaged"), (b"", "is damaged")):
        file.write_bytes(damage)
        with pytest.raises(UserError, match=said):
            Recording(path, "pick", env())
    file.write_bytes(content)
    (path / "meta/info.json").write_text("[]")
    with pytest.raises(UserError, match="info.json is damaged or missing"):
        Recording(path, "pick", env())
    none = write(tmp_path / "b", episodes=1, failed=(0,))
    with pytest.raises(UserError, match="no episode that succeeded"):
        Recording(none, "pick", env())
    state = json.loads((none / STATE_FILE).read_text())
    (none / STATE_FILE).write_text(json.dumps(state | {"attempts": [], "files": 0}))
    with pytest.raises(UserError, match="has no episode yet"):
        Recording(none, "pick", env())


def test_the_command_clones_goes_on_with_ppo_and_is_evaluated(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["train", "skill=pick", "experiment=debug", "sim.num_layouts=2", "torch_threads=1", f"demos={folder}",
             "demos_steps=384", "log_every_s=0.001", "steps=448"]
    assert main([*words, "name=a"]) == 0
    said = capsys.readouterr().out
    assert "clones 5 episodes of" in said and "without 1 that did not succeed; from step 384 on, PPO in homes" in said
    assert "note: base_speed_m_s=2.5 there, 1.0 here" in said
    run = tmp_path / "outputs/train/pick/a"
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    cloned = [row for row in rows if "learn/cloning_loss" in row]
    after = [row for row in rows if "learn/kl" in row]
    assert cloned and after and cloned[-1]["step"] >= 384 and after[0]["step"] > cloned[-1]["step"]
    assert after[-1]["step"] >= 448
    assert cloned[-1]["learn/action_error"] < cloned[0]["learn/action_error"]
    assert main(["eval", "skill=pick", f"checkpoint={run}", "episodes=1", "workers=1", "sim.num_layouts=2",
                 "name=e"]) == 0
    for wrong, why in ((["demos=nowhere"], "is no recording"), (["demos_steps=449"], "exceeds steps=448"),
                       (["demos=null"], "needs demos="), (["trainer.rollout_steps=4", "ppo.mini_batches=1"],
                                                          "has 17 steps, and a rollout 8 (trainer.num_envs"),
                       (["deterministic=true"], "leave demos_steps=")):
        assert main([*(word for word in words if word.split("=")[0] != wrong[0].split("=")[0]), *wrong, "name=b"]) == 2
        error = capsys.readouterr().err
        assert why in error and error.count("\n") <= 1 and not (tmp_path / "outputs/train/pick/b").exists(), error
    only = [word for word in words if not word.startswith(("demos_steps", "steps"))]
    assert main([*only, "steps=256", "name=only"]) == 0 and "action error" in capsys.readouterr().out

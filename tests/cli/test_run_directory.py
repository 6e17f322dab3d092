"""A run directory is complete, never overwritten, and continued only as it was, or by force."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from rearrange.command_line.runs import run_directory
from tests.e2e.front_door import somebody_works_in

PICK = Path("outputs/train/pick")


def stop(config, run):
    raise KeyboardInterrupt


def test_it_holds_settings_code_and_result(front_door):
    assert front_door("train skill=pick seed=4 name=one")[0] == 0
    run = PICK / "one"
    assert OmegaConf.load(run / "config.yaml").seed == 4
    assert list(OmegaConf.load(run / "overrides.yaml")) == ["skill=pick", "seed=4", "name=one"]
    log = (run / "log.txt").read_text()
    assert "rearrange train skill=pick seed=4 name=one" in log.splitlines()[0] and "working" in log
    assert '"finished"' in (run / "status.json").read_text() and "0.75" in (run / "status.json").read_text()
    if (Path(__file__).parents[2] / ".git").exists():
        assert (run / "git.txt").read_text().split() and (run / "git.diff").exists()


def test_a_file_system_whose_clock_differs_is_told(front_door, monkeypatch):
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + 300.0)
    status, out, _ = front_door("train skill=pick name=one")
    assert status == 0 and f"the clock of the file system of {PICK / 'one'} is 300 s behind that of " in out


def test_names_are_times_unless_given_and_latest_points_at_the_newest(front_door):
    front_door("train skill=pick")
    front_door("train skill=pick")
    front_door("train skill=pick name=last")
    assert len([p for p in PICK.iterdir() if not p.is_symlink()]) == 3
    assert os.readlink(PICK / "latest") == "last"


def test_two_runs_that_begin_in_the_same_moment_both_get_a_directory(front_door, work):
    def begin_another(config, run):
        other = run_directory.Run(run.path, run.settings)  # it has looked before this one was there
        other.create()
        assert other.path.name == run.path.name + "-2" and (other.path / "config.yaml").exists()

    work.behave = begin_another
    assert front_door("train skill=pick")[0] == 0
    assert len([p for p in PICK.iterdir() if not p.is_symlink()]) == 2


@pytest.mark.parametrize("command", ["train", "eval"])
def test_an_existing_directory_is_left_alone(front_door, work, command):
    front_door(f"{command} skill=pick name=one")
    kept = Path(f"outputs/{command}/pick/one/config.yaml")
    before = kept.stat().st_mtime_ns, kept.read_text()
    status, _, err = front_door(f"{command} skill=pick seed=9 name=one")
    assert status == 2 and len(work.calls) == 1
    assert "name=" in err and ("resume=true" in err) == (command == "train")
    assert (kept.stat().st_mtime_ns, kept.read_text()) == before


def test_resume_continues_the_named_run_or_the_newest(front_door, work):
    work.behave = stop
    front_door("train skill=pick seed=5 ppo.clip=0.3 name=a")
    front_door("train skill=pick seed=6 name=b")
    for line, name, seed in (
        ("resume=true", "b", 6),
        ("skill=pick name=a resume=true", "a", 5),
        ("name=a resume=true", "a", 5),
    ):
        assert front_door(f"train {line}")[0] == 130
        _, config, run = work.calls[-1]
        assert run.resumed and run.path == PICK / name and config.seed == seed
    assert config.ppo.clip == 0.3
    assert OmegaConf.load(PICK / "a" / "config.yaml").resume is False


def test_a_changed_setting_needs_force(front_door, work):
    work.behave = stop
    front_door("train skill=pick seed=5 name=a")
    status, _, err = front_door("train name=a resume=true seed=6 ppo=paper")
    assert status == 2 and len(work.calls) == 1
    assert "seed: 5 -> 6" in err and "ppo.learning_rate: 0.0007 -> 0.00025" in err and "resume=force" in err
    assert front_door("train name=a resume=force seed=6")[0] == 130
    assert work.calls[-1][1].seed == 6
    work.behave = lambda config, run: {}
    assert front_door("train name=a resume=true")[0] == 0, "the forced setting has become the run's own"
    assert work.calls[-1][1].seed == 6


def test_settings_of_a_run_outlive_changed_defaults(front_door, work, monkeypatch):
    from rearrange.command_line.composition import options

    work.behave = stop
    monkeypatch.setattr(options, "has_nvidia_device", lambda: False)
    front_door("train skill=pick name=a")
    monkeypatch.setattr(options, "has_nvidia_device", lambda: True)
    assert front_door("train name=a resume=true")[0] == 130
    assert work.calls[-1][1].policy.encoder == "light"


def test_a_finished_run_says_how_to_go_on(front_door, work):
    front_door("train skill=pick name=a steps=100")
    status, _, err = front_door("train name=a resume=true")
    assert status == 2 and "steps=" in err and "resume=force" in err
    assert front_door("train name=a resume=force steps=200")[0] == 0
    assert work.calls[-1][1].steps == 200


def test_no_permission_is_one_sentence_and_writes_nothing(front_door, work, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    status, _, err = front_door("train skill=pick output=file")
    assert status == 2 and "not a directory" in err
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write anywhere
    status, _, err = front_door("train skill=pick")
    assert status == 2 and "no permission" in err and "output=" in err
    assert not work.calls and [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_place_that_turns_out_unwritable_is_one_sentence(front_door):
    if not os.path.isdir("/proc/self"):
        pytest.skip("needs /proc")
    status, _, err = front_door("train skill=pick output=/proc/x")
    assert status == 2 and "cannot write to /proc/x" in err and len(err.splitlines()) == 1


@pytest.mark.parametrize("file, content", [
    ("overrides.yaml", None), ("overrides.yaml", "a: ["), ("overrides.yaml", "a: 1"), ("overrides.yaml", "- [1]"),
    ("config.yaml", ""), ("config.yaml", "- a"), ("config.yaml", "a: 1"), ("config.yaml", "\x00"),
])
@pytest.mark.parametrize("resume", ["true", "force"])
def test_damage_is_one_sentence_that_says_what_to_do(front_door, work, file, content, resume):
    work.behave = stop
    front_door("train skill=pick name=a")
    path = PICK / "a" / file
    path.unlink() if content is None else path.write_text(content)
    status, _, err = front_door(f"train skill=pick name=a resume={resume} steps=1024")
    assert status == 2 and len(err.splitlines()) == 1 and file in err and "under another name=" in err


@pytest.mark.parametrize("text", ["[]", "null", "{}", "{", '{"status": "finished"}', '{"status": 3, "result": {}}',
                                  '{"status": "finished", "result": null}',
                                  '{"status": "finished", "result": {"success": "high"}}'])
def test_an_odd_status_is_unknown_and_breaks_nothing(front_door, work, text):
    work.behave = stop
    front_door("train skill=pick name=a")
    (PICK / "a" / "status.json").write_text(text)
    status, out, _ = front_door("list")
    assert status == 0 and "train/pick/a" in out
    assert front_door("train skill=pick name=a resume=true")[0] == 130


def test_a_run_that_saved_nothing_is_not_finished(front_door, work):
    front_door("train skill=pick name=a steps=100")
    (checkpoint,) = (PICK / "a" / "checkpoints").iterdir()
    checkpoint.unlink()
    assert front_door("train name=a resume=true")[0] == 0


def test_the_status_is_written_where_only_what_is_there_can_be_replaced(front_door, work, monkeypatch):
    """A full disk takes no new file, and nothing that is longer, however many digits the clock shows."""
    monkeypatch.setattr(run_directory.time, "time", lambda: 2e9)

    def full(config, run):
        monkeypatch.setattr(run_directory.time, "time", lambda: 2e9 + 1 / 3)

        def refuse(path, text):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(run_directory, "write_whole", refuse)
        raise OSError(errno.ENOSPC, "No space left on device")

    work.behave = full
    assert front_door("train skill=pick name=a")[0] == 1
    assert run_directory.read_status(PICK / "a")["status"] == "failed"


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    file = tmp_path / "a.json"
    file.write_text("before")
    def half(path, text, **_):
        path.write_bytes(text[:2].encode())
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", half)
        with pytest.raises(OSError):
            run_directory.write_whole(file, "after")
    assert file.read_text() == "before" and list(tmp_path.iterdir()) == [file]
    run_directory.write_whole(file, os.fsdecode(b"\xc3\xbc \xff"))
    assert file.read_bytes() == b"\xc3\xbc \xff"


def test_a_damaged_run_is_told_by_name(front_door, work):
    work.behave = stop
    front_door("train skill=pick name=a")
    (PICK / "a" / "config.yaml").write_text("seed: [")
    status, _, err = front_door("train name=a resume=true")
    assert status == 2 and "config.yaml" in err and len(err.splitlines()) == 1


def test_a_directory_in_which_a_process_works_is_refused_and_read(front_door, work):
    work.behave = stop
    for name in ("a", "b"):
        front_door(f"train skill=pick name={name}")
    (PICK / "b" / "status.json").write_text('{"status": "running", "result": {}}')
    before = len(work.calls)
    with somebody_works_in(PICK / "b") as pid:
        for line in ("name=b", "name=b resume=true", "name=b resume=force seed=3", "-m seed=0 name=b resume=true"):
            line = line.replace("-m seed=0 name=b", "-m name=b,c")
            status, _, err = front_door(f"train skill=pick {line}")
            assert status == 2 and len(err.splitlines()) == 1 and len(work.calls) == before
            assert f"{PICK}/b is in use by process {pid} on " in err
            assert "Wait for it, stop it, or choose another name=" in err
        assert "running" in next(line for line in front_door("list")[1].splitlines() if "pick/b" in line)
        assert front_door("train skill=pick resume=true")[0] == 130, "without a name, what is running is passed over"
        assert work.calls[-1][2].path == PICK / "a"
    assert "died" in next(line for line in front_door("list")[1].splitlines() if "pick/b" in line)
    assert front_door("train skill=pick name=b resume=true")[0] == 130


def test_all_runs_at_work_leave_nothing_to_resume(front_door, work):
    work.behave = stop
    front_door("train skill=pick name=a")
    with somebody_works_in(PICK / "a") as pid:
        status, _, err = front_door("train resume=true")
    assert status == 2 and f"in use by process {pid}" in err


def test_a_directory_that_is_taken_at_the_last_moment_is_left_alone(front_door, work):
    work.behave = stop
    front_door("train skill=pick name=a")
    status = (PICK / "a" / "status.json").read_text()
    make = run_directory.Run.create

    def create(run):
        with somebody_works_in(run.path):
            make(run)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_directory.Run, "create", create)
        code, _, err = front_door("train name=a resume=true")
    assert code == 2 and "in use" in err and (PICK / "a" / "status.json").read_text() == status


def test_what_a_killed_process_left_half_written_is_removed(front_door, work):
    work.behave = stop
    front_door("train skill=pick name=a")
    left = [PICK / "a" / name
            for name in ("config.yaml.12.part", "metrics.csv.part", "videos/.episode_0000.12.partial.mp4")]
    for file in left:
        file.touch()
    front_door("train name=a resume=true")
    assert not any(file.exists() for file in left)

    def ends_a_process_that_films(config, run):
        left[-1].touch()
        raise KeyboardInterrupt

    work.behave = ends_a_process_that_films
    front_door("train name=a resume=true")
    assert not left[-1].exists()


def older(run: Path, lacks: tuple[str, ...] = (), had: tuple[str, ...] = (), typed: tuple[str, ...] = ()) -> None:
    """Make a run one of another version: without some settings, and with some that are gone."""
    config = OmegaConf.load(run / "config.yaml")
    for key in lacks:
        parent, _, last = key.rpartition(".")
        (OmegaConf.select(config, parent) if parent else config).pop(last)
    for key in had:
        OmegaConf.update(config, key, 3, force_add=True)
    OmegaConf.save(config, run / "config.yaml")
    words = list(OmegaConf.load(run / "overrides.yaml"))
    OmegaConf.save(OmegaConf.create([*words, *typed]), run / "overrides.yaml")


def test_a_run_of_an_older_version_goes_on_with_the_defaults_of_what_it_lacks(front_door, work):
    work.behave = stop
    front_door("train skill=pick seed=5 ppo=paper name=a")
    lacks = ("ppo.imitation_coef", "trainer.overlap", "whole_task", "deterministic", "checkpoint")
    older(PICK / "a", lacks, had=("ppo.momentum", "skill.colour"), typed=("ppo.momentum=3",))
    status, out, _ = front_door("train name=a resume=true")
    config = work.calls[-1][1]
    assert status == 130 and config.seed == 5 and config.ppo.learning_rate == 0.00025
    assert config.deterministic is False and config.whole_task.max_steps == 1000 and not hasattr(config.ppo, "momentum")
    assert "ppo.momentum, skill.colour: no longer a setting" in out
    saved = OmegaConf.load(PICK / "a" / "config.yaml")
    assert saved.trainer.overlap == config.collect.overlap and "momentum" not in saved.ppo
    older(PICK / "a", lacks)
    assert "trainer.overlap: False -> True" in front_door("train name=a resume=true trainer.overlap=true")[2]
    assert front_door("train name=a resume=force trainer.overlap=true")[0] == 130 and work.calls[-1][1].collect.overlap


def test_a_run_of_version_0_2_in_habitat_goes_on(front_door, work):
    """Its config.yaml calls the URDF sim.robot, null where that is the usual one."""
    work.behave = stop
    for name, urdf in (("a", "null"), ("b", "mine.urdf")):
        front_door(f"train skill=pick sim=habitat sim.scene_dataset=x.json name={name}")
        path = PICK / name / "config.yaml"
        lines = [line for line in path.read_text().splitlines() if not line.startswith(("  robot", "  hand"))]
        path.write_text("\n".join(each + f"\n  robot: {urdf}" * (each == "sim:") for each in lines) + "\n")
        assert front_door(f"train name={name} resume=true")[0] == 130
        sim = work.calls[-1][1].sim
        assert (sim.robot, sim.robot_urdf) == ("fetch", None if urdf == "null" else urdf)


def test_a_robot_that_has_to_be_typed_is_not_imported_by_a_run(front_door, work):
    work.behave = stop
    front_door("train skill=pick name=a")
    path = PICK / "a" / "config.yaml"
    path.write_text(path.read_text().replace("  robot: fetch", "  robot: nowhere.at_all:ROBOT"))
    status, _, error = front_door("train name=a resume=force steps=64")
    assert status == 2 and "which is imported only where you type it: add sim.robot=nowhere.at_all:ROBOT" in error


def test_settings_of_another_choice_do_not_stay(front_door, work):
    work.behave = stop
    front_door("train skill=pick name=a logger=wandb")
    assert front_door("train name=a resume=force logger=tensorboard")[0] == 130
    assert "wandb: null" in (PICK / "a" / "config.yaml").read_text()


@pytest.mark.parametrize("text, said", [("steps: banana", "steps=banana is not allowed"),
                                        ("ppo: 3", "ppo is not a group"), ("seed: -1", "seed=-1 is not allowed")])
def test_a_setting_that_cannot_be_is_told_by_its_file(front_door, work, text, said):
    work.behave = stop
    front_door("train skill=pick name=a")
    config = OmegaConf.load(PICK / "a" / "config.yaml")
    config.pop(text.split(":")[0])
    (PICK / "a" / "config.yaml").write_text(OmegaConf.to_yaml(config) + text + "\n")
    status, _, err = front_door("train name=a resume=true")
    assert status == 2 and "config.yaml cannot be read" in err and said in err and len(err.splitlines()) == 1


def test_values_that_are_made_from_others_are_saved_as_values(front_door, work):
    work.behave = stop
    assert front_door(["train", "skill=pick", "seed=7", "name=${seed}"])[0] == 130
    assert OmegaConf.to_container(OmegaConf.load(PICK / "7" / "config.yaml"), resolve=False)["name"] == "7"
    for words in (["name=7"], ["name=${seed}", "seed=7"], []):
        assert front_door(["train", "skill=pick", "resume=true", *words])[0] == 130
        assert work.calls[-1][2].path == PICK / "7" and work.calls[-1][1].seed == 7

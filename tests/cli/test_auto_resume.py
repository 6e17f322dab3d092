"""The same command again is a continuation where resume=auto, or a scheduler's restart, says so."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from rearrange.command_line.composition import auto_resume
from rearrange.command_line.runs.run_directory import read_status
from tests.e2e.front_door import somebody_works_in

PICK = Path("outputs/train/pick")
LINE = "train skill=pick seed=5 ppo.clip=0.3 name=a"


def stop(config, run):
    raise KeyboardInterrupt


@pytest.fixture(params=["resume=auto", "SLURM_RESTART_COUNT", "TORCHELASTIC_RESTART_COUNT"])
def again(request, monkeypatch):
    """The line of the second start, and of all that follow."""
    if "=" in request.param:
        return f"{LINE} {request.param}"
    monkeypatch.setenv(request.param, "1")
    return LINE


def test_auto_begins_a_run_that_is_not_there(front_door, work):
    assert front_door(f"{LINE} resume=auto")[0] == 0
    assert not work.calls[0][2].resumed


def test_auto_goes_on_with_the_named_run_and_ends_at_once_when_it_is_finished(front_door, work, again):
    work.behave = stop
    assert front_door(LINE)[0] == 130
    assert front_door(again)[0] == 130
    _, config, run = work.calls[-1]
    assert run.resumed and run.path == PICK / "a" and config.seed == 5 and config.ppo.clip == 0.3
    work.behave = lambda config, run: {}
    assert front_door(again)[0] == 0 and len(work.calls) == 3
    status, out, err = front_door(again)
    assert status == 0 and len(work.calls) == 3 and not err
    assert out == (f"{PICK / 'a'} is finished: nothing is left to do. To train further, raise steps= and write "
                   "resume=force.\n")


def test_changed_settings_are_refused_in_one_sentence(front_door, work, again):
    front_door(LINE)
    status, out, err = front_door(again.replace("seed=5", "seed=6"))
    assert status == 2 and len(work.calls) == 1 and not out
    assert "seed: 5 -> 6" in err and "resume=force" in err and err.count("\n") == 1


def test_a_run_that_may_be_started_again_needs_a_name(front_door, work, again):
    status, _, err = front_door(again.replace("name=a", ""))
    assert status == 2 and "name=" in err and err.count("\n") == 1 and not PICK.exists()


@pytest.mark.parametrize(
    "left", [[], ["lock"], ["lock", "checkpoints"], ["lock", "checkpoints", "videos", "config.yaml.12.part"]])
def test_a_directory_in_whose_making_a_process_was_killed_is_begun_again(front_door, work, again, left):
    (PICK / "a").mkdir(parents=True)
    for name in left:
        (PICK / "a" / name).touch() if "." in name or name == "lock" else (PICK / "a" / name).mkdir()
    assert front_door(again)[0] == 0
    assert (PICK / "a" / "status.json").exists() and not list((PICK / "a").glob("*.part"))


def test_what_is_no_run_is_left_alone(front_door, work, again):
    (PICK / "a").mkdir(parents=True)
    (PICK / "a" / "thesis.tex").write_text("")
    status, _, err = front_door(again)
    assert status == 2 and "is not a run" in err and [p.name for p in (PICK / "a").iterdir()] == ["thesis.tex"]


def test_who_wants_a_new_run_gets_none_of_the_old(front_door, work, monkeypatch):
    monkeypatch.setenv("SLURM_RESTART_COUNT", "3")
    assert front_door(f"{LINE} resume=false")[0] == 0
    status, _, err = front_door(f"{LINE} resume=false")
    assert status == 2 and "exists already" in err


def test_a_first_start_is_none_again(front_door, monkeypatch):
    for count in ("0", "", "many"):
        monkeypatch.setenv("SLURM_RESTART_COUNT", count)
        assert not auto_resume.restarted()


@pytest.mark.parametrize("environment, name, resume", [
    ({}, "a", False),
    ({"TORCHELASTIC_MAX_RESTARTS": "3", "GROUP_WORLD_SIZE": "1", "TORCHELASTIC_RESTART_COUNT": "0"}, "a", False),
    ({"TORCHELASTIC_MAX_RESTARTS": "0", "GROUP_WORLD_SIZE": "2", "TORCHELASTIC_RESTART_COUNT": "0"}, "a", False),
    ({"TORCHELASTIC_MAX_RESTARTS": "3", "GROUP_WORLD_SIZE": "2", "TORCHELASTIC_RESTART_COUNT": "0"}, "a", "auto"),
    ({"TORCHELASTIC_MAX_RESTARTS": "3", "GROUP_WORLD_SIZE": "2", "TORCHELASTIC_RESTART_COUNT": "0"}, None, False),
    ({"TORCHELASTIC_MAX_RESTARTS": "3", "GROUP_WORLD_SIZE": "1", "TORCHELASTIC_RESTART_COUNT": "1"}, None, "auto"),
])
def test_when_auto_is_the_default(environment, name, resume):
    assert auto_resume.resume_as(["skill=pick"], False, name, environment) == resume
    assert auto_resume.resume_as(["skill=pick", "resume=false"], False, name, environment) is False


def test_a_restart_waits_for_its_forerunner_and_then_says_whose_the_run_is(front_door, work, again, monkeypatch):
    work.behave = stop
    front_door(LINE)
    with somebody_works_in(PICK / "a") as process:
        monkeypatch.setattr(auto_resume, "LOCK_WAIT_S", 0.5)
        status, out, err = front_door(again)
    assert status == 2 and len(work.calls) == 1
    assert f"is in use by process {process} on " in out and "waiting for its end" in out
    assert f"is in use by process {process} on " in err and err.count("\n") == 1


def test_a_restart_goes_on_as_soon_as_its_forerunner_has_ended(front_door, work, again, monkeypatch):
    work.behave = stop
    front_door(LINE)
    forerunner = somebody_works_in(PICK / "a")
    forerunner.__enter__()
    naps = []

    def nap(seconds):
        naps.append(seconds)
        if len(naps) == 3:
            forerunner.__exit__(None, None, None)

    monkeypatch.setattr(auto_resume.time, "sleep", nap)
    assert front_door(again)[0] == 130 and work.calls[-1][2].resumed and len(naps) >= 3


def test_ranks_that_do_not_write_agree_with_the_first(front_door, work, again, monkeypatch):
    work.behave = stop
    front_door(LINE)
    for name, value in {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}.items():
        monkeypatch.setenv(name, value)
    with somebody_works_in(PICK / "a"):  # the first rank, which has begun already
        assert front_door(again)[0] == 130
    _, config, run = work.calls[-1]
    assert run.silent and run.resumed and config.ppo.clip == 0.3
    (PICK / "a" / "status.json").write_text('{"status": "finished", "result": {}}')
    (PICK / "a" / "checkpoints" / "step_000000000001.pt").touch()
    assert front_door(again) == (0, "", "") and len(work.calls) == 2


@pytest.fixture
def scontrol(tmp_path, monkeypatch):
    """A SLURM job, and in place of scontrol a program that notes its words; `scontrol.fails()` makes it refuse."""
    program, noted = tmp_path / "bin" / "scontrol", tmp_path / "noted"

    class Scontrol:
        def write(self, lines: str) -> None:
            program.parent.mkdir(exist_ok=True)
            program.write_text(f"#!/bin/sh\necho \"$@\" >> {noted}\n{lines}\n")
            program.chmod(0o755)

        def fails(self) -> None:
            self.write("echo 'slurm_update error: Requested operation is presently disabled' >&2; exit 1")

        def calls(self) -> list[str]:
            return noted.read_text().splitlines() if noted.exists() else []

    made = Scontrol()
    made.write("")
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_JOB_ID", "42")
    return made


def warn(config, run):
    os.kill(os.getpid(), signal.SIGUSR1)
    threading.Event().wait()  # the handler ends this


@pytest.mark.parametrize(
    "signum, status", [(signal.SIGUSR1, 75), (signal.SIGUSR2, 75), (signal.SIGXCPU, 75), (signal.SIGTERM, 130),
                       (signal.SIGINT, 130), (signal.SIGQUIT, 130), (signal.SIGALRM, 130), (signal.SIGRTMIN + 3, 130)])
def test_a_schedulers_warning_stops_with_a_status_of_its_own(front_door, work, scontrol, signum, status):
    # a job in a shell's background ignores it
    signal.signal(signum, signal.SIG_DFL) if signum == signal.SIGQUIT else None
    work.behave = lambda config, run: os.kill(os.getpid(), signum) or threading.Event().wait()
    assert front_door(f"{LINE} requeue=true")[0] == status
    assert read_status(PICK / "a")["status"] == "stopped"
    assert scontrol.calls() == (["requeue 42"] if status == 75 else []), "who ends a job does not want it again"


ARRAY = {"SLURM_ARRAY_JOB_ID": "1240", "SLURM_ARRAY_TASK_ID": "3"}
COMPONENTS = {"SLURM_JOB_ID_HET_GROUP_0": "50", "SLURM_JOB_ID_HET_GROUP_1": "51"}


@pytest.mark.parametrize("environment, asked", [
    ({"SLURM_JOB_ID": "1240", **ARRAY}, "1240_3"),
    ({"SLURM_JOB_ID": "1240", **ARRAY, "SLURM_ARRAY_TASK_ID": "0"}, "1240_0"),
    ({"SLURM_JOB_ID": "1243", **ARRAY}, "1243"),  # a number of the task's own, or of a job submitted from within a task
    ({"SLURM_JOB_ID": "50", **COMPONENTS}, "50"), ({"SLURM_JOB_ID": "51", **COMPONENTS}, "50"),  # the first is requeued
    ({"SLURM_JOB_ID": "60", **COMPONENTS}, "60"), ({"SLURM_JOB_ID": "60", "SLURM_STEP_ID": "2"}, "60")])
def test_slurm_is_asked_for_this_job_alone(front_door, work, scontrol, monkeypatch, environment, asked):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    work.behave = warn
    status, out, _ = front_door(f"{LINE} requeue=true")
    assert status == 75 and scontrol.calls() == [
        f"requeue {asked}"] and f"asked SLURM to start job {asked} again" in out


def test_what_slurm_answers_is_told(front_door, work, scontrol):
    work.behave = warn
    status, out, _ = front_door(f"{LINE} requeue=true")
    assert status == 75 and "asked SLURM to start job 42 again" in out
    scontrol.fails()
    status, out, _ = front_door(f"{LINE} requeue=true resume=auto")
    assert status == 75
    assert "'scontrol requeue 42' did not work (slurm_update error: Requested operation is presently disabled)" in out
    assert len(scontrol.calls()) == 2


def test_of_several_ranks_the_first_asks(front_door, work, scontrol, monkeypatch):
    for name, value in {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}.items():
        monkeypatch.setenv(name, value)
    work.behave = warn
    assert front_door(f"{LINE} requeue=true")[0] == 75 and not scontrol.calls()


def test_without_a_job_there_is_none_to_start_again(front_door, work, monkeypatch):
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    status, _, err = front_door(f"{LINE} requeue=true")
    assert status == 2 and "SLURM_JOB_ID" in err and err.count("\n") == 1 and not work.calls

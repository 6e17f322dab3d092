"""What attackers did to runs, command by command: nothing is lost, and nobody is misled."""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from tests.e2e.front_door import (
    TINY,
    checkpoint_steps,
    environment,
    finish,
    rearrange,
    session_members,
    start,
    status,
    steps_logged,
    succeed,
    wait_until,
)
from tests.small_disk import fill, free

ENDLESS = ("steps=1000000", "checkpoint_every_s=0.2")
PICK = Path("outputs/train/pick")


def shell(directory: Path, line: str) -> subprocess.Popen:
    """Start a line of bash, in which `rearrange` is the command; its status is that of the first failure in a pipe."""
    command = f"rearrange() {{ {shlex.quote(sys.executable)} -P -m rearrange \"$@\"; }}; set -o pipefail; {line}"
    return subprocess.Popen(["bash", "-c", command], cwd=directory, env=environment(directory), stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, start_new_session=True)


def words(*settings: str) -> str:
    return shlex.join(("train", *TINY, *settings))


@pytest.fixture
def training(tmp_path):
    """`training(*settings)`: a training that goes on until it is stopped, and its directory, once it has a
    checkpoint.
    """
    begun = []

    def begin(*settings: str, run: Path = tmp_path / PICK / "liv", launched: str = "name=liv"):
        process = start(tmp_path, "train", *TINY, *ENDLESS, launched, *settings)
        begun.append(process)
        wait_until(lambda: any(run.glob("checkpoints/*.pt")) and len(steps_logged(run)) > 0, process)
        return process, run

    yield begin
    for process in begun:
        process.kill()
        process.communicate()


def test_a_running_training_is_left_alone_and_a_killed_one_goes_on(tmp_path, training):
    process, run = training()
    for line in ("name=liv", "name=liv resume=true", "name=liv resume=force seed=9", "resume=true"):
        done = rearrange(tmp_path, "train", "skill=pick", *line.split())
        assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
        assert f"pick/liv is in use by process {process.pid} on " in done.stderr and "stop it" in done.stderr
    assert re.search(r"train/pick/liv +running", succeed(tmp_path, "list"))
    process.kill()
    process.wait()
    assert status(run) == "running" and re.search(r"train/pick/liv +died", succeed(tmp_path, "list"))
    assert not list(run.rglob("*.abandoned"))
    (run / "checkpoints/step_000000999999.partial").touch()
    last = checkpoint_steps_of(run)
    piped = shell(tmp_path, "rearrange train name=liv resume=true | tee log")
    wait_until(lambda: checkpoint_steps_of(run) > last, piped)
    os.killpg(piped.pid, signal.SIGINT)  # Ctrl-C reaches tee, too
    done = finish(piped)
    assert done.returncode == 130 and status(run) == "stopped" and "Traceback" not in done.stderr, done.stderr
    assert "stopped by SIGINT" in (run / "log.txt").read_text()  # whether tee or the training ends first
    assert checkpoint_steps(run), "and no partial file"


def checkpoint_steps_of(run: Path) -> int:
    """The step of the newest checkpoint of a run that may be writing one."""
    return max(int(file.stem.removeprefix("step_")) for file in run.glob("checkpoints/*.pt"))


@pytest.mark.parametrize("screen, lost", [("| head -1", 1), ("> /dev/full", 1), (">&- 2>&-", 0)])
def test_a_training_does_without_its_screen(tmp_path, screen, lost):
    done = finish(shell(tmp_path, f"rearrange {words('steps=256', 'name=a')} {screen}"))
    run = tmp_path / PICK / "a"
    assert done.returncode == 0 and status(run) == "finished" and checkpoint_steps(run)[-1] == 256, done.stderr
    log = (run / "log.txt").read_text()
    assert "done: 256 steps" in log and log.count("standard output cannot be written") == lost
    assert done.stderr.count("standard output cannot be written") == lost and done.stderr.count("\n") == lost


@pytest.mark.parametrize("line, code, said",
                         [("rearrange train --help | head -1", 0, ""),
                          ("rearrange train --help > /dev/full", 1, "rearrange: standard output cannot be written: No "
                           "space left on device.\n"), ("rearrange --help >&-", 0, "")])
def test_an_answer_that_cannot_be_shown(tmp_path, line, code, said):
    done = finish(shell(tmp_path, line))
    assert (done.returncode, done.stderr) == (code, said)


def test_a_full_disk_says_what_is_saved_and_what_is_lost(tmp_path, training, small_disk):
    run = small_disk / "train/pick/liv"
    process, _ = training(f"output={small_disk}", run=run)
    fill(small_disk)
    while "checkpoint of step" not in (line := process.stderr.readline()):
        assert line, "it ended before a checkpoint could not be written"
    process.send_signal(signal.SIGTERM)
    done = finish(process)
    reached = int(re.search(r"stopped by SIGTERM after ([\d,]+) steps", done.stdout)[1].replace(",", ""))
    newest = max(run.glob("checkpoints/*.pt"))
    assert done.returncode == 130 and status(run) == "stopped", done.stderr
    lost = reached - checkpoint_steps_of(run)
    assert lost > 0 and f"the newest is {newest}, and the {lost:,} steps after it are lost" in done.stdout

    again = ("train", "skill=pick", "name=liv", f"output={small_disk}", "resume=force",
             f"steps={checkpoint_steps_of(run) + 64}")
    refused = rearrange(tmp_path, *again)
    assert refused.returncode == 2 and "No space left on device. Make room" in refused.stderr
    assert "Traceback" not in refused.stderr
    free(small_disk)
    fill(small_disk, leave=newest.stat().st_size // 2)  # enough for all but a checkpoint
    done = rearrange(tmp_path, *again)
    assert done.returncode == 1 and status(run) == "failed", done.stderr
    assert f"the newest is {newest}, and the 64 steps after it are lost. Make room" in done.stderr.splitlines()[-1]
    free(small_disk)
    assert "done:" in succeed(tmp_path, *again)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGKILL])
def test_a_sweep_takes_its_job_with_it(tmp_path, training, signum):
    run = tmp_path / PICK / "seed-0"
    process, _ = training("seed=0,1", run=run, launched="-m")
    os.kill(process.pid, signum)
    done = finish(process)
    wait_until(lambda: not session_members(process.pid), start(tmp_path, "doctor", "--help"))
    assert status(run) == "stopped" and "stopped by " + ("SIGINT" if signum == signal.SIGINT
                                                         else "SIGTERM") in done.stdout
    assert checkpoint_steps(run)[-1] >= steps_logged(run)[-1] and "Traceback" not in done.stderr
    assert not (tmp_path / PICK / "seed-1").exists()
    assert done.returncode == (130 if signum == signal.SIGINT else -9)


def test_a_run_of_an_older_version_goes_on(tmp_path):
    assert finish(shell(tmp_path, f"rearrange {words('seed=7', 'steps=64')} 'name=${{seed}}'")).returncode == 0
    run = tmp_path / PICK / "7"
    config = OmegaConf.load(run / "config.yaml")
    for key in ("torch_threads", "checkpoint", "whole_task"):
        del config[key]
    del config.trainer["overlap"], config.ppo["imitation_coef"]
    config.ppo["momentum"] = 0.5
    OmegaConf.save(config, run / "config.yaml")
    out = succeed(tmp_path, "train", "resume=force", "steps=128")
    assert "done: 128 steps" in out and "ppo.momentum: no longer a setting" in out and checkpoint_steps(run)[-1] == 128


def test_an_interrupted_evaluation_keeps_what_it_has_finished(tmp_path):
    process = start(tmp_path, "eval", "skill=pick", "agent=zero", "episodes=5000", "workers=2", "name=cut")
    run = tmp_path / "outputs/eval/pick/cut"
    wait_until(lambda: (run / "log.txt").exists() and "  success " in (run / "log.txt").read_text(), process)
    os.killpg(process.pid, signal.SIGINT)
    done = finish(process)
    figures = json.loads((run / "metrics.json").read_text())
    with open(run / "episodes.csv", newline="") as file:
        indices = [int(row["index"]) for row in csv.DictReader(file)]
    assert done.returncode == 130 and status(run) == "stopped" and not session_members(process.pid), done.stderr
    assert 0 < figures["episodes"] == len(set(indices)) == len(indices) < 5000 and figures["interrupted"] is True
    assert f"interrupted: {len(indices)} of 5000 episodes were finished" in done.stdout
    assert json.loads((run / "status.json").read_text())["result"]["episodes"] == len(indices)
    succeed(tmp_path, "report")
    assert f"stopped, only {len(indices)} of 5000 episodes" in next(tmp_path.rglob("*.html")).read_text()

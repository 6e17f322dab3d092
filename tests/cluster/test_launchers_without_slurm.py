"""Sweeps in several processes at once: Ctrl-C saves all of them, the same command goes on, and a warning is a new
start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e import front_door
from tests.e2e.front_door import TINY, checkpoint_steps, environment, finish, status, steps_logged, wait_until
from tests.waiting import until

SWEEP = ("train", "-m", *TINY, "steps=800", "seed=0,1", "name=two", "objective=step")


def start(directory: Path, *words: str) -> subprocess.Popen:
    """A process that is not forked from another: joblib looks for the program that it came from."""
    return subprocess.Popen([sys.executable, "-P", "-m", "rearrange", *words], cwd=directory,
                            env=environment(directory), text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


def nobody_is_left(process: subprocess.Popen) -> None:
    """Of its session; who tracks resources for it ends a moment later."""
    until(lambda: not front_door.session_members(process.pid), "the last process of its session to end")


def test_ctrl_c_saves_all_jobs_and_another_launcher_goes_on_with_them(tmp_path):
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
    pytest.importorskip("hydra_plugins.hydra_submitit_launcher")
    runs = [tmp_path / f"outputs/train/pick/two_seed-{seed}" for seed in (0, 1)]
    process = start(tmp_path, *SWEEP, "hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
    wait_until(lambda: all(steps_logged(run) for run in runs), process, 240.0)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: this process and those of joblib
    stopped = finish(process, 300.0)
    assert stopped.returncode == 130 and "Traceback" not in stopped.stderr, stopped.stderr
    assert [status(run) for run in runs] == ["stopped",
                                             "stopped"] and all(checkpoint_steps(run)[-1] < 800 for run in runs)
    assert "stopped by" in (tmp_path / "outputs/sweeps/train_two/pick_two_seed-0.txt").read_text()
    nobody_is_left(process)

    done = finish(start(tmp_path, *SWEEP, "resume=true", "hydra/launcher=submitit_local"), 300.0)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [status(run) for run in runs] == ["finished", "finished"] and "best step " in done.stdout
    for run in runs:
        assert steps_logged(run) == sorted(set(steps_logged(run))) and 800 <= checkpoint_steps(run)[-1] < 864
    nobody_is_left(process)

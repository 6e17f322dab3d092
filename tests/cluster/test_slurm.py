"""Training under a real SLURM: two nodes, one policy."""

from __future__ import annotations

import shlex
from pathlib import Path

from tests.cluster.slurm import Slurm
from tests.e2e.front_door import TINY, checkpoint_steps, status, steps_logged

TWO = (*TINY, "trainer.rollout_steps=16")


def script(folder: Path, *lines: str, options: str = "") -> Path:
    """A batch script in a folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "job.sh"
    path.write_text("\n".join(["#!/bin/bash", *filter(None, [options]), *lines, ""]))
    return path


def train(*words: str, srun: str = "") -> str:
    return shlex.join([*srun.split(), "python", "-P", "-m", "rearrange", "train", *words])


def output(folder: Path, number: str) -> str:
    return (folder / f"slurm-{number}.out").read_text()


def test_srun_trains_one_policy_on_two_nodes(slurm: Slurm, tmp_path):
    done = slurm.run("srun", "-N2", "-n2", "--kill-on-bad-exit=1", "python", "-P", "-m", "rearrange", "train", *TWO, "steps=128",
                     "name=two", timeout_s=300.0, directory=tmp_path)
    run = tmp_path / "outputs/train/pick/two"
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("done: 128 steps") == 1 and "Traceback" not in done.stderr
    assert status(run) == "finished" and checkpoint_steps(run) == [128]


def test_a_plain_script_survives_a_requeue(slurm: Slurm, tmp_path):
    """Saved on SIGTERM, started again by SLURM, gone on with; a third start has nothing to do."""
    run = tmp_path / "outputs/train/pick/one"
    command = train(*TWO, "steps=4000", "name=one", srun="srun --kill-on-bad-exit=1")
    number = slurm.submit(script(tmp_path, command, options="#SBATCH --requeue --open-mode=append -N2 -n2"))
    slurm.wait(lambda: bool(steps_logged(run)), 240.0, "the first metrics")
    assert slurm.run("scontrol", "requeue", number).returncode == 0
    slurm.start_again(number)
    job = slurm.wait_for_end(number)
    told = output(tmp_path, number)
    assert job["JobState"] == "COMPLETED" and job["Restarts"] == "1", told[-3000:]
    assert told.count("stopped by SIGTERM") == 1 and told.count(f"continues {run.relative_to(tmp_path)}") == 1
    assert status(run) == "finished" and 4000 <= checkpoint_steps(run)[-1] < 4064
    assert steps_logged(run) == sorted(set(steps_logged(run)))
    again = slurm.run("bash", "-c", train(*TWO, "steps=4000", "name=one"), directory=tmp_path, SLURM_RESTART_COUNT="2")
    assert again.returncode == 0 and "nothing is left to do" in again.stdout


def test_a_warning_before_the_time_limit_is_a_requeue(slurm: Slurm, tmp_path):
    """#SBATCH --signal, which SLURM sends to all tasks: saved, asked for once, gone on with."""
    run = tmp_path / "outputs/train/pick/one"
    command = train(*TWO, "steps=4000", "name=one", "requeue=true", srun="srun")
    number = slurm.submit(script(tmp_path, command, options="#SBATCH --requeue --open-mode=append -N2 -n2 --time=5 --signal=USR1@30"))
    slurm.wait(lambda: bool(steps_logged(run)), 240.0, "the first metrics")
    # The time limit itself is a matter of minutes, and checked every 30 s: the same signal, sent now.
    assert slurm.run("scancel", "--signal=USR1", number).returncode == 0
    slurm.start_again(number)
    assert status(run) == "stopped"
    job = slurm.wait_for_end(number)
    told = output(tmp_path, number)
    assert job["JobState"] == "COMPLETED" and job["Restarts"] == "1", told[-3000:]
    assert told.count("stopped by SIGUSR1") == 1 and told.count(f"asked SLURM to start job {number} again") == 1
    assert "User defined signal" not in told and status(run) == "finished" and 4000 <= checkpoint_steps(run)[-1] < 4064

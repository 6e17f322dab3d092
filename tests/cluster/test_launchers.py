"""Sweeps and `reproduce` whose jobs are SLURM's, by Hydra's submitit launcher."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.slurm import Slurm
from tests.e2e.front_door import TINY, checkpoint_steps, finish, status, steps_logged, wait_until
from tests.waiting import until

pytest.importorskip("hydra_plugins.hydra_submitit_launcher", reason="pip install 'rearrange[cluster]'")

ON_SLURM = ("hydra/launcher=submitit_slurm", "hydra.launcher.timeout_min=20")
SWEEP = ("train", "-m", *TINY, "seed=0,1", "name=two", *ON_SLURM)


def start(slurm: Slurm, folder: Path, *words: str) -> subprocess.Popen:
    """`rearrange <words>`, as on a login node."""
    return subprocess.Popen([sys.executable, "-P", "-m", "rearrange", *words], cwd=folder, env=slurm.environment(),
                            text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


def queued(slurm: Slurm) -> list[str]:
    """Jobs that wait or run."""
    return slurm.run("squeue", "-h", "-o", "%A").stdout.split()


def told(folder: Path) -> str:
    return "\n".join(path.read_text() for path in folder.rglob("*_log.out"))


def test_jobs_of_a_sweep_are_slurms_and_a_warning_requeues_them(slurm: Slurm, tmp_path):
    """Two jobs of two ranks each."""
    process = start(slurm, tmp_path, *SWEEP, "steps=1500", "objective=step", "hydra.launcher.tasks_per_node=2")
    runs = [tmp_path / f"outputs/train/pick/two_seed-{seed}" for seed in (0, 1)]
    wait_until(lambda: any(steps_logged(run) for run in runs), process, 240.0)
    run = next(run for run in runs if steps_logged(run))
    for job in queued(slurm):
        slurm.run("scancel", "--signal=USR2", job)
    wait_until(lambda: status(run) == "stopped", process, 60.0)

    def ended() -> bool:
        for job in queued(slurm):
            if slurm.job(job).get("JobState") == "PENDING":
                slurm.run("scontrol", "update", f"JobId={job}", "StartTime=now")
        return process.poll() is not None

    until(ended, "the sweep to end", 240.0)
    done = finish(process)
    logs = told(tmp_path)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:] + logs[-3000:]
    assert [status(run) for run in runs] == ["finished", "finished"] and "best step 1," in done.stdout
    assert all(1500 <= checkpoint_steps(run)[-1] < 1800
               for run in runs) and "stopped by SIGUSR2" in (run / "log.txt").read_text()
    again = finish(start(slurm, tmp_path, *SWEEP, "steps=1500"))
    assert again.returncode == 0 and "2 jobs, 2 finished before" in again.stdout and not queued(slurm)


def test_ctrl_c_cancels_all_jobs_and_the_same_sweep_goes_on(slurm: Slurm, tmp_path):
    process = start(slurm, tmp_path, *SWEEP, "steps=100000")
    runs = [tmp_path / f"outputs/train/pick/two_seed-{seed}" for seed in (0, 1)]
    wait_until(lambda: all(steps_logged(run) for run in runs), process, 240.0)
    process.send_signal(signal.SIGINT)
    stopped = finish(process)
    assert stopped.returncode == 130
    assert [status(run) for run in runs] == ["stopped", "stopped"], stopped.stdout + stopped.stderr
    slurm.wait(lambda: not queued(slurm), 60.0, "the jobs to leave the queue")


def test_a_partition_that_is_not_there_is_one_sentence(slurm: Slurm, tmp_path):
    done = finish(start(slurm, tmp_path, *SWEEP, "hydra.launcher.partition=gpu"))
    assert done.returncode == 2
    assert done.stderr.strip().splitlines()[-1].startswith("rearrange train: " "hydra/launcher=submitit_slurm: ")
    assert "nvalid partition" in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "outputs/train").exists()


def test_reproduce_runs_each_job_once_what_it_needs_is_finished(slurm: Slurm, tmp_path):
    words = ("reproduce", "preset=smoke", "scenarios=[tidy_house]", "agents=[tp_srl_nonav,random]", "pretrained=false",
             "steps=512",
             "episodes=1", *ON_SLURM)
    process = start(slurm, tmp_path, *words)
    runs = {name: tmp_path / f"outputs/train/{name}/reproduce_smoke" for name in ("pick", "place")}
    wait_until(lambda: any(steps_logged(run) for run in runs.values()), process, 240.0)
    process.kill()  # its jobs are SLURM's, and go on
    process.communicate()
    slurm.wait(lambda: not queued(slurm), 240.0, "the jobs to end")
    assert [status(run) for run in runs.values()] == ["finished", "finished"]
    before = {run: (run / "log.txt").read_text() for run in runs.values()}
    done = finish(start(slurm, tmp_path, *words), 300.0)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:] + told(tmp_path)[-3000:]
    assert {run: (run / "log.txt").read_text() for run in runs.values()} == before, "finished parts are not run again"
    assert (tmp_path / "outputs/reproduce/reproduce_smoke/report.html").exists()

"""rearrange train on several ranks: torchrun, SLURM's variables, and one voice for all."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from tests.e2e import warm
from tests.e2e.front_door import TINY, checkpoint_steps, environment, finish, status, steps_logged, succeed, wait_until
from tests.e2e.warm import forked

TWO = (*TINY, "trainer.rollout_steps=16")


def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def torchrun_words(*options: str) -> list[str]:
    return ["--nproc-per-node=2", f"--master-port={port()}", *options]


def ranks_of(agent: subprocess.Popen, run: Path) -> list[int]:
    """The processes that torchrun has started, the first rank first: it holds the run."""
    first = json.loads((run / "lock").read_text())["pid"]
    children = Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text().split()
    return [first, *(int(child) for child in children if int(child) != first
                     and Path(f"/proc/{child}/comm").read_text().strip() != warm.NAME)]


def saved(run: Path) -> list[str]:
    """The checkpoints of a run that is under way, which may be writing another."""
    return sorted(path.name for path in (run / "checkpoints").glob("step_*.pt"))


def test_torchruns_restarts_go_on_after_kill_9_of_either_rank_and_one_process_goes_on_with_the_run(tmp_path):
    run = tmp_path / "outputs/train/pick/two"
    rank = (sys.executable, "-P", "-m", "rearrange", "train", *TWO, "policy=light", "steps=1600",
            "checkpoint_every_s=0.2", "name=two")  # with the image: slow enough to be killed twice
    agent = forked([*torchrun_words("--max-restarts=3", "--no-python"), *rank], tmp_path, environment(tmp_path),
                   "torch.distributed.run")
    for victim in (1, 0):
        before = saved(run)
        wait_until(lambda: saved(run) != before, agent, 240.0)
        os.kill(ranks_of(agent, run)[victim], signal.SIGKILL)
    done = finish(agent, 300.0)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("continues outputs/train/pick/two") == 2 and done.stdout.count("done: 1,6") == 1
    reached = checkpoint_steps(run)[-1]
    assert status(run) == "finished" and 1600 <= reached < 1600 + 64  # one rollout of two ranks
    assert steps_logged(run) == sorted(set(steps_logged(run)))
    out = succeed(tmp_path, "train", "skill=pick", "name=two", "resume=force", f"steps={reached + 64}")
    assert f"done: {reached + 64:,} steps" in out and checkpoint_steps(run)[-1] == reached + 64


def test_a_mistake_is_told_once(tmp_path):
    """Of torchrun's own processes, which nobody has forked."""
    command = [sys.executable, "-m", "torch.distributed.run", *torchrun_words(), "-m", "rearrange", "train", *TWO]
    done = subprocess.run([*command, "ppo.clip=-1"], cwd=tmp_path, env=environment(tmp_path), capture_output=True,
                          text=True, timeout=300.0)
    assert done.returncode != 0 and done.stderr.count("ppo.clip=-1 is not allowed") == 1
    assert not (tmp_path / "outputs").exists()


def test_slurms_ranks_end_together_when_one_is_killed(tmp_path):
    """Two tasks as srun starts them; kill -9 of the second."""
    run, shared = tmp_path / "outputs/train/pick/slurm", environment(tmp_path)
    slurm = {"SLURM_JOB_ID": str(port()), "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2",
             "SLURM_STEP_TASKS_PER_NODE": "2", "SLURM_STEP_NODELIST": "localhost", "MASTER_PORT": str(port())}
    first, second = (forked(["train", *TWO, "steps=1000000", "name=slurm"], tmp_path,
                            shared | slurm | {"SLURM_PROCID": str(r), "SLURM_LOCALID": str(r)}) for r in (0, 1))
    wait_until(lambda: bool(steps_logged(run)), first, 240.0)
    second.send_signal(signal.SIGKILL)
    done = finish(first, 60.0)
    finish(second)
    assert done.returncode == 1
    assert done.stderr.count(f"rank 1 ({socket.gethostname()}, pid {second.pid}) died") == 1, done.stderr
    assert "name=slurm resume=true" in done.stderr and "Traceback" not in done.stderr
    assert status(run) == "failed" and checkpoint_steps(run)

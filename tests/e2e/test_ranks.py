"""rearrange train on several ranks: torchrun, SLURM's variables, and one voice for all."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from tests.e2e.front_door import TINY, checkpoint_steps, environment, finish, status, steps_logged, succeed, wait_until
from tests.e2e.warm import Forked

TWO = (*TINY, "trainer.rollout_steps=16")


def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start_torchrun(directory, *words: str, options: tuple[str, ...] = ()) -> subprocess.Popen:
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", f"--master-port={port()}", *options,
               "-m", "rearrange", *words]
    return subprocess.Popen(command, cwd=directory, env=environment(directory), stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, start_new_session=True)


def torchrun(directory, *words: str) -> subprocess.CompletedProcess:
    return finish(start_torchrun(directory, *words), 300.0)


def ranks_of(agent: subprocess.Popen) -> list[int]:
    """The processes that torchrun has started, the first rank first."""
    children = Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text().split()
    return sorted(map(int, children), key=lambda pid: b"\0RANK=1\0" in Path(f"/proc/{pid}/environ").read_bytes())


def saved(run: Path) -> list[str]:
    """The checkpoints of a run that is under way, which may be writing another."""
    return sorted(path.name for path in (run / "checkpoints").glob("step_*.pt"))


def test_torchruns_restarts_go_on_after_kill_9_of_either_rank_and_one_process_goes_on_with_the_run(tmp_path):
    run = tmp_path / "outputs/train/pick/two"
    agent = start_torchrun(tmp_path, "train", *TWO, "steps=3200", "checkpoint_every_s=0.5", "name=two",
                           options=("--max-restarts=3",))
    for victim in (1, 0):
        before = saved(run)
        wait_until(lambda: saved(run) != before, agent, 240.0)
        os.kill(ranks_of(agent)[victim], signal.SIGKILL)
    done = finish(agent, 300.0)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("continues outputs/train/pick/two") == 2 and done.stdout.count("done: 3,2") == 1
    reached = checkpoint_steps(run)[-1]
    assert status(run) == "finished" and 3200 <= reached < 3200 + 64  # one rollout of two ranks
    assert steps_logged(run) == sorted(set(steps_logged(run)))
    out = succeed(tmp_path, "train", "skill=pick", "name=two", "resume=force", f"steps={reached + 64}")
    assert f"done: {reached + 64:,} steps" in out and checkpoint_steps(run)[-1] == reached + 64


def test_a_mistake_is_told_once(tmp_path):
    done = torchrun(tmp_path, "train", *TWO, "ppo.clip=-1")
    assert done.returncode != 0 and done.stderr.count("ppo.clip=-1 is not allowed") == 1
    assert not (tmp_path / "outputs").exists()


def test_slurms_ranks_end_together_when_one_is_killed(tmp_path):
    """Two tasks as srun starts them; kill -9 of the second."""
    run, shared = tmp_path / "outputs/train/pick/slurm", environment(tmp_path)
    slurm = {"SLURM_JOB_ID": str(port()), "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2",
             "SLURM_STEP_TASKS_PER_NODE": "2", "SLURM_STEP_NODELIST": "localhost", "MASTER_PORT": str(port())}
    first, second = (Forked(["train", *TWO, "steps=1000000", "name=slurm"], tmp_path,
                            shared | slurm | {"SLURM_PROCID": str(r), "SLURM_LOCALID": str(r)}) for r in (0, 1))
    wait_until(lambda: bool(steps_logged(run)), first, 240.0)
    second.send_signal(signal.SIGKILL)
    done = finish(first, 60.0)
    finish(second)
    assert done.returncode == 1
    assert done.stderr.count(f"rank 1 ({socket.gethostname()}, pid {second.pid}) died") == 1, done.stderr
    assert "name=slurm resume=true" in done.stderr and "Traceback" not in done.stderr
    assert status(run) == "failed" and checkpoint_steps(run)

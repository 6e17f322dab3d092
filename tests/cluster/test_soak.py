"""Ten minutes of one training on two nodes, hit 30 times at random moments: all steps are made, and nothing is damaged
or left.

    pytest -m slow -s tests/cluster/test_soak.py      REARRANGE_SOAK_SEED=1: other moments
"""

# all timed: a soak: it does harm at random moments and prints what that costs
from __future__ import annotations

import csv
import json
import os
import random
import signal
import time
from pathlib import Path

import pytest
import torch

from tests.cluster.slurm import NODES, OVER, Slurm, documented_script
from tests.e2e.front_door import TINY, checkpoint_steps, status, steps_logged

TRAINING_S, FAULTS, CHECKPOINT_EVERY_S = 600.0, 30, 10.0
WORDS = (*TINY, "trainer.rollout_steps=16", f"checkpoint_every_s={CHECKPOINT_EVERY_S}")
MAKES_SAVE = ("requeue", "USR1", "scancel")  # the others kill


class Soak:
    """The job, whichever number it has by now."""

    def __init__(self, slurm: Slurm, folder: Path, steps: int):
        self.slurm, self.folder, self.run = slurm, folder, folder / "outputs/train/pick/soak"
        self.words = (*WORDS, f"steps={steps}", "name=soak")
        self.starts = 0
        self.submit()

    def submit(self) -> None:
        done = self.slurm.run("sbatch", "--parsable", "train.sh", *self.words, directory=self.folder)
        assert done.returncode == 0, done.stderr
        self.number = done.stdout.strip()
        self.starts += 1

    def running(self) -> bool:
        """Bring the job to run, as its owner would: submitted again once it is over. False when it is done."""
        while (state := self.slurm.job(self.number).get("JobState")) != "RUNNING":
            if state == "COMPLETED":
                return False
            if state in OVER:
                self.submit()
            elif state == "PENDING":
                self.slurm.run("scontrol", "update", f"JobId={self.number}", "StartTime=now")
                self.slurm.run("scontrol", "update", f"NodeName={','.join(NODES)}", "State=RESUME")
            time.sleep(0.5)
        return True

    def processes(self, *parts: str) -> list[int]:
        """Those of the job in whose command line all parts stand."""
        ours, found = f"SLURM_JOB_ID={self.number}".encode(), []
        for pid in self.slurm.steps():
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
                is_ours = ours in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                if is_ours and all(part in words for part in parts):
                    found.append(pid)
            except OSError:
                continue
        return found

    def hit(self, kind: str, chance: random.Random) -> None:
        if kind == "requeue":
            self.slurm.run("scontrol", "requeue", self.number)
        elif kind == "USR1":
            self.slurm.run("scancel", "--signal=USR1", self.number)
        elif kind == "scancel":
            self.slurm.run("scancel", self.number)
        elif kind == "slurmd":
            node = chance.choice(NODES)
            self.slurm.daemons[node].kill()
            self.slurm.daemons[node].wait()
            time.sleep(chance.uniform(0.0, 3.0))
            self.slurm.start_node(node)
        else:
            parts = {"rank": ("-m\0rearrange\0train",), "shell": ("slurm_script",)}[kind]
            for pid in (found := self.processes(*parts)) and [chance.choice(found)]:
                os.kill(pid, signal.SIGKILL)


@pytest.mark.slow
def test_soak(slurm: Slurm, tmp_path):
    seed = int(os.environ.get("REARRANGE_SOAK_SEED", "0"))
    chance = random.Random(seed)
    (tmp_path / "train.sh").write_text(documented_script())
    steps = int(TRAINING_S * _pace(slurm, tmp_path))
    soak = Soak(slurm, tmp_path, steps)
    run, faults = soak.run, [kind for kind in ("requeue", "rank", "shell", "slurmd", "USR1", "scancel")
                             for _ in range(FAULTS // 6)]
    chance.shuffle(faults)
    began, longest_lost_s = time.monotonic(), 0.0
    for number, kind in enumerate(faults, 1):
        assert soak.running(), f"all {steps} steps are done after {number - 1} faults"
        rows_before, started = len(_rows(run)), time.monotonic()
        until = started + chance.uniform(0.0, 2 * TRAINING_S / FAULTS)
        first_row_at = None
        while time.monotonic() < until and soak.slurm.job(soak.number).get("JobState") == "RUNNING":
            if first_row_at is None and len(_rows(run)) > rows_before:
                first_row_at = time.time()
            time.sleep(0.2)
        if kind in ("rank", "shell") and first_row_at is not None:
            saved_at = max((file.stat().st_mtime for file in (run / "checkpoints").glob("step_*.pt")), default=0.0)
            longest_lost_s = max(longest_lost_s, time.time() - max(saved_at, first_row_at))
        reached = _rows(run)[-1:] or [0]
        print(f"{time.monotonic() - began:5.0f} s  fault {number:2}: {kind:8} at step {reached[0]:,} of {steps:,}, job "
              f"{soak.number}",
              flush=True)
        soak.hit(kind, chance)
    while soak.running():
        time.sleep(1.0)
    took_s = time.monotonic() - began
    told = "\n".join(path.read_text(errors="replace") for path in tmp_path.glob("slurm-*.out"))
    print(f"seed {seed}: {steps:,} steps in {took_s:.0f} s, {FAULTS} faults, {soak.starts} submissions, "
          f"{told.count('continues outputs')} continuations; longest time since a checkpoint when a process was "
          f"killed: {longest_lost_s:.1f} s")
    assert status(run) == "finished" and steps <= checkpoint_steps(run)[-1] < steps + 64
    assert "Traceback" not in told, told[-5000:]
    logged = steps_logged(run)
    assert logged == sorted(set(logged)) and logged[-1] == checkpoint_steps(run)[-1]
    assert longest_lost_s < CHECKPOINT_EVERY_S + 2 * max(64 / _pace_of(logged, took_s), 5.0)
    _nothing_is_damaged(run)
    slurm.wait(lambda: not _left(slurm), 30.0, "the processes of all jobs to end")


def _left(slurm: Slurm) -> list[str]:
    """Command lines of what jobs have started, and is still there."""
    found = []
    for pid in slurm.steps():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if not words.startswith(("slurmctld", "slurmstepd")):  # SLURM has processes of its own beside its daemons
            found.append(words)
    return found


def _pace(slurm: Slurm, folder: Path) -> float:
    """Steps a second that this machine trains, starting and stopping included."""
    began = time.monotonic()
    done = slurm.run("srun", "-N2", "-n2", "python", "-P", "-m", "rearrange", "train", *WORDS, "steps=4000",
                     "name=pace",
                     timeout_s=600.0, directory=folder)
    assert done.returncode == 0, done.stderr
    return 0.5 * 4000 / (time.monotonic() - began)  # half of the time goes by in starting again


def _pace_of(logged: list[int], seconds: float) -> float:
    return logged[-1] / seconds


def _rows(run: Path) -> list[int]:
    """The steps logged so far; while a row is being cut off, those before it."""
    try:
        return steps_logged(run)
    except (OSError, ValueError, KeyError):
        return []


def _nothing_is_damaged(run: Path) -> None:
    for file in (run / "checkpoints").iterdir():
        assert torch.load(file, map_location="cpu", weights_only=True)["policy"]
    for line in (run / "metrics.jsonl").read_text().splitlines():
        json.loads(line)
    with open(run / "metrics.csv", newline="") as file:
        rows = list(csv.reader(file))
    assert len({len(row) for row in rows}) == 1 and len(rows) == len(steps_logged(run)) + 1
    assert not list(run.glob("*.part")) and json.loads((run / "status.json").read_text())["status"] == "finished"

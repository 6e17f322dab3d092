"""What preemption gives back when one of two nodes is slow, or sleeps: the figures of docs/findings/two_nodes.md.

    python -m tests.cluster.slow_node [repeats]

Two nodes of a SLURM on this machine, one rank on each, gloo between them; environments that sleep. Measured beside the model of
`rearrange bench scaling`.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from eval.bench import scaling
from eval.bench.collection_model import RULES, Workload, variable
from eval.bench.synthetic_env import PRESETS
from tests.cluster.slurm import Slurm

COST = PRESETS["none"]  # 20 ms a step, on all alike
SETTINGS = {"time_scale": 1.0, "measured_envs": 4, "measured_steps": 16, "learn_s": 0.5, "updates": 6}
SLOWER, SLEEP_S = 30.0, 20.0
RANK = ("export RANK=$SLURM_PROCID WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + SLURM_JOB_ID)); "
        "exec python -P -m eval.bench.engine_job {file}")


def srun(slurm: Slurm, folder: Path, rule: str, sleeps: bool = False, **more: object) -> float:
    """Steps/s of two ranks on two nodes."""
    file = scaling.write_job(COST, SETTINGS, 2, rule, 0, folder, **more)
    sleeper = threading.Thread(target=_sleep, args=(slurm, folder), daemon=True)
    if sleeps:
        sleeper.start()
    done = slurm.run("srun", "-N2", "-n2", "bash", "-c", RANK.format(file=file), timeout_s=900.0, directory=folder)
    assert done.returncode == 0, done.stderr[-3000:]
    return scaling.pace(folder, 2)


def _sleep(slurm: Slurm, folder: Path) -> None:
    """Stop all processes of the second node for a while, once it has begun to learn."""
    while len(list((folder / "traces" / "1").glob("*.trace"))) < SETTINGS["measured_envs"]:
        time.sleep(0.1)
    time.sleep(6.0)
    found = [pid for pid in slurm.steps() if _is_on_second(pid)]
    for act in (signal.SIGSTOP, signal.SIGCONT):
        for pid in found:
            os.kill(pid, act)
        time.sleep(SLEEP_S)


def _is_on_second(pid: int) -> bool:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        return b"SLURM_PROCID=1" in environment and b"python" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def modelled(rule: str, slower: float) -> float:
    """The same in the model, without the latency of a real machine."""
    work = Workload(COST, 2, SETTINGS["measured_envs"], SETTINGS["measured_steps"], SETTINGS["learn_s"], latency_s=1e-6)
    times = work.step_times(0, 12)
    times[1] *= slower
    return variable(work, RULES[rule], times)[0]


def main(repeats: int) -> None:
    with tempfile.TemporaryDirectory() as root, Slurm(Path(root) / "slurm") as slurm:
        cells = [("none", 1.0), *((rule, SLOWER) for rule in ("none", "ddppo", "ver"))]
        found: dict[tuple[str, float], list[float]] = {cell: [] for cell in cells}
        for repeat in range(repeats):
            for rule, slower in cells:
                more = {"slow_ranks": {"1": slower}} if slower > 1 else {}
                found[rule, slower].append(srun(slurm, _folder(root, f"{rule}_{slower:.0f}_{repeat}"), rule, **more))
        alike = statistics.median(found["none", 1.0])
        print("rule, second node slower by: steps/s beside two nodes alike, measured (least .. most); in the model")
        for (rule, slower), values in found.items():
            measured = [value / alike for value in values]
            print(f"{rule:6} {slower:3.0f}   {statistics.median(measured):.3f} ({min(measured):.3f} .. {max(measured):.3f})   "
                  f"{modelled(rule, slower) / modelled('none', 1.0):.3f}")
        for rule in ("none", "ver"):
            folder = _folder(root, f"sleep_{rule}")
            srun(slurm, folder, rule, sleeps=True, updates=40)
            ends = [update["end_s"] for update in json.loads((folder / "result.json").read_text())["updates"]]
            gaps = np.diff(ends)
            print(f"{rule:6} asleep for {SLEEP_S:.0f} s: the longest update took {gaps.max():.1f} s, {(gaps.max() - np.median(gaps)) / SLEEP_S:.2f} "
                  f"of the sleep longer than the median of {np.median(gaps):.2f} s; {len(ends)} of 40 updates were made")


def _folder(root: str, name: str) -> Path:
    path = Path(root) / name
    path.mkdir()
    return path


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)

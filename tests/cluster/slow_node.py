"""What preemption gives back when one of two nodes is slow, or sleeps: the figures of docs/findings/two_nodes.md.

    python -m tests.cluster.slow_node [all | slow | asleep] [repeats]

Two nodes of a SLURM on this machine, one rank on each, gloo between them; environments that sleep. Measured beside the
model of `python -m benchmarks.scaling`.
"""

# all timed: a measurement of a node that is slowed on purpose, started by hand
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

from benchmarks import scaling
from benchmarks.collection_model import RULES, Workload, variable
from benchmarks.step_trace import ROW
from benchmarks.synthetic_env import PRESETS
from tests.cluster.slurm import Slurm

COST = PRESETS["none"]  # 20 ms a step, on all alike
SETTINGS = {"time_scale": 1.0, "measured_envs": 4, "measured_steps": 16, "learn_s": 0.5, "updates": 6}
SLOWER, SLEEP_S = 30.0, 20.0
RANK = ("export RANK=$SLURM_PROCID WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 "
        "MASTER_PORT=$((20000 + SLURM_JOB_ID)); exec python -P -m benchmarks.engine_job {file}")


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
    """Stop all processes of the second node for a while, once its environments have taken some steps of several
    rollouts."""
    while min((_steps(file) for file in (folder / "traces" / "1").glob("*.trace")),
              default=0) < 4 * SETTINGS["measured_steps"]:
        time.sleep(0.1)
    found = [pid for pid in slurm.steps() if _is_on_second(pid)]
    for act in (signal.SIGSTOP, signal.SIGCONT):
        for pid in found:
            os.kill(pid, act)
        time.sleep(SLEEP_S)


def _steps(trace: Path) -> int:
    return int((np.fromfile(trace, ROW)["end_s"] > 0).sum())


def _is_on_second(pid: int) -> bool:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        return b"SLURM_PROCID=1" in environment and b"python" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def modelled(rule: str, slower: float, learn_s: float, latency_s: float) -> float:
    """Steps/s in the model of `python -m benchmarks.scaling`."""
    work = Workload(COST, 2, SETTINGS["measured_envs"], SETTINGS["measured_steps"], learn_s, latency_s)
    times = work.step_times(0, 12)
    times[1] += (slower - 1) * (times[1] - latency_s)
    return variable(work, RULES[rule], times)[0]


def calibrated(folder: Path) -> tuple[float, float]:
    """Seconds of learning per rollout, and of latency per step, of two nodes that are alike: what the model cannot
    know."""
    made = json.loads((folder / "figures.json").read_text())
    seconds = made["seconds"] / SETTINGS["updates"] - made["learn_s"]
    return made["learn_s"], seconds / SETTINGS["measured_steps"] - COST.mean_s


def slow(slurm: Slurm, root: Path, repeats: int) -> None:
    cells = [("none", 1.0), *((rule, SLOWER) for rule in ("none", "ddppo", "ver"))]
    found: dict[tuple[str, float], list[float]] = {cell: [] for cell in cells}
    parts = []
    for repeat in range(repeats):
        for rule, slower in cells:
            folder = _folder(root, f"{rule}_{slower:.0f}_{repeat}")
            found[rule,
                  slower].append(srun(slurm, folder, rule, **({"slow_ranks": {"1": slower}} if slower > 1 else {})))
            if slower == 1:
                parts.append(calibrated(folder))
    learn_s, latency_s = (statistics.median(values) for values in zip(*parts, strict=True))
    alike = statistics.median(found["none", 1.0])
    print(f"learning {learn_s:.2f} s a rollout, latency {1000 * latency_s:.0f} ms a step")
    print("rule, second node slower by: steps/s beside two nodes alike, measured (least .. most); in the model")
    for (rule, slower), values in found.items():
        measured = [value / alike for value in values]
        model = modelled(rule, slower, learn_s, latency_s) / modelled("none", 1.0, learn_s, latency_s)
        print(f"{rule:6} {slower:3.0f}   {statistics.median(measured):.3f} ({min(measured):.3f} .. "
              f"{max(measured):.3f})   {model:.3f}",
              flush=True)


def asleep(slurm: Slurm, root: Path) -> None:
    for rule in ("none", "ver"):
        folder = _folder(root, f"sleep_{rule}")
        srun(slurm, folder, rule, sleeps=True, updates=40)
        gaps = np.diff([update["end_s"] for update in json.loads((folder / "result.json").read_text())["updates"]])
        print(f"{rule:6} asleep for {SLEEP_S:.0f} s: an update took {gaps.max():.1f} s instead of "
              f"{np.median(gaps):.2f} s, longer by {(gaps.max() - np.median(gaps)) / SLEEP_S:.2f} of the sleep; all "
              f"{len(gaps) + 1} updates were made", flush=True)


def main(what: str, repeats: int) -> None:
    with tempfile.TemporaryDirectory() as root, Slurm(Path(root) / "slurm") as slurm:
        if what in ("all", "slow"):
            slow(slurm, Path(root), repeats)
        if what in ("all", "asleep"):
            asleep(slurm, Path(root))


def _folder(root: Path, name: str) -> Path:
    path = root / name
    path.mkdir()
    return path


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "all", int(sys.argv[2]) if len(sys.argv) > 2 else 3)

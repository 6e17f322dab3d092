"""Training on EnvPool's environments, which step N at once in C++: the engine beside Stable-Baselines3's PPO and Sample
Factory 2.

All have the same environments, network (two layers of 64 for the policy, two for the value), N, T, epochs and
mini-batches, and normalise observations and returns. Each run is a process of its own, one after another, in each
repeat all of them once; what is measured begins with the end of the first update.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import run as run_as_command
from eval.bench.peer_process import run_job
from rearrange.home.errors import UserError

if TYPE_CHECKING:
    from benchmarks.settings import Batched
    from rearrange.command_line.runs.run_directory import Run

NAMES = {"ours": "rearrange", "asynchronous": "rearrange, asynchronous", "sb3": "SB3 PPO", "sample_factory": "Sample "
         "Factory 2"}
# trainer -> its packages
NEEDS = {"ours": ("envpool",), "asynchronous": ("envpool",), "sb3": ("envpool", "stable_baselines3")}


def check(settings: Batched) -> None:
    """Refuse trainers whose packages are missing."""
    from importlib.util import find_spec

    for name, package in ((name, package) for name in settings.trainers for package in NEEDS[name]):
        if find_spec(package) is None:
            raise UserError(f"trainers={name} needs the package {package}: pip install 'rearrange[envpool,peers]'.")
    if settings.num_envs < 2:
        raise UserError(f"num_envs={settings.num_envs} is no batch; give at least 2.")
    rollout = settings.num_envs * settings.rollout_steps
    if rollout % settings.mini_batches:
        raise UserError(f"mini_batches={settings.mini_batches} does not divide the {rollout} steps of a "
                        "rollout, num_envs x rollout_steps.")
    if (peer := settings.sample_factory) is not None:
        done = subprocess.run([peer, "-c", "import sample_factory, envpool"],
                              capture_output=True) if Path(peer).is_file() else None
        if done is None or done.returncode:
            raise UserError(f"sample_factory={peer} is no Python interpreter with sample-factory and envpool: "
                            "install them there with pip install sample-factory envpool 'numpy<2' "
                            "(docs/benchmarks.md).")


def run_bench(settings: Batched, run: Run) -> dict[str, float]:
    """Run every trainer on every task `repeats` times, print the table, write runs.jsonl and bench.json."""
    file, runs = run.path / "runs.jsonl", []
    for job in jobs(settings):
        made = job | run_job(_command(job, settings), job, run.path / "trainers.txt")
        runs.append(made)
        with open(file, "a", encoding="utf-8") as out:
            out.write(json.dumps(made) + "\n")
        run.say(f"{job['task']:24} {job['trainer']:15} {made['steps'] / made['wall_s']:7,.0f} steps/s   "
                f"{1e6 * made['cpu_s'] / made['steps']:6,.1f} us of processor/step")
    for line in table(runs):
        run.say(line)
    run.say(f"runs: {file}")
    figures = {f"{task}/{trainer}/steps_per_s": sum(values) / len(values)
               for (task, trainer), values in _speeds(runs).items()}
    (run.path / "bench.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    return figures


def jobs(settings: Batched) -> list[dict[str, Any]]:
    """All runs, repeat by repeat."""
    trainers = [*settings.trainers, *(["sample_factory"] if settings.sample_factory else [])]
    same = {key: getattr(settings, key) for key in ("num_envs", "rollout_steps", "epochs", "mini_batches", "seconds")}
    return [{"task": task, "trainer": trainer, "seed": settings.seed + repeat, **same}
            for repeat in range(settings.repeats) for task in settings.tasks for trainer in trainers]


def table(runs: list[dict[str, Any]]) -> list[str]:
    """Steps/s with their interval and processor time per step, as Markdown; ratios to the first trainer within each
    repeat.
    """
    from eval.intervals import bootstrap

    lines = ["| task | trainer | steps/s | times the first | us of processor per step | n |",
             "|---|---|---|---|---|---|"]
    speeds = _speeds(runs)
    for (task, trainer), values in speeds.items():
        first = next(speeds[key] for key in speeds if key[0] == task)
        ratios = [value / other for value, other in zip(values, first)]
        (low, high), (least, most) = bootstrap(values), bootstrap(ratios)
        cost = [1e6 * each["cpu_s"] / each["steps"] for each in runs
                if (each["task"], each["trainer"]) == (task, trainer)]
        lines.append(f"| {task} | {NAMES[trainer]} | {sum(values) / len(values):,.0f} ({low:,.0f} .. {high:,.0f}) "
                     f"| {sum(ratios) / len(ratios):.2f} ({least:.2f} .. {most:.2f}) | {sum(cost) / len(cost):.1f} "
                     f"| {len(values)} |")
    return lines


def _speeds(runs: list[dict[str, Any]]) -> dict[tuple[str, str], list[float]]:
    found: dict[tuple[str, str], list[float]] = {}
    for each in runs:
        found.setdefault((each["task"], each["trainer"]), []).append(each["steps"] / each["wall_s"])
    return found


def _command(job: dict[str, Any], settings: Batched) -> list[str]:
    if job["trainer"] == "sample_factory":
        return [settings.sample_factory, str(Path(__file__).parent / "batched_sample_factory.py")]
    return [sys.executable, "-P", "-m", "benchmarks.batched_run"]


if __name__ == "__main__":
    sys.exit(run_as_command("batched"))

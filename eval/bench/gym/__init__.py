"""The engine with its defaults beside other trainers, on standard environments: return per step of experience, and its
cost.

Every trainer has one setting for all tasks. Each run is a process of its own, one after another on one thread, seed by
seed, so that all meet the same machine; a finished run is a line of `runs.jsonl`, and is not run again.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval.bench.gym import table
from eval.bench.gym.tasks import TASKS
from eval.bench.peer_process import run_job
from rearrange.home.errors import UserError

if TYPE_CHECKING:
    from rearrange.command_line.composition.bench_settings import Gym
    from rearrange.command_line.runs.run_directory import Run

# Trainer -> the package that it needs.
NEEDS = {"sb3": "stable_baselines3", "cleanrl": "stable_baselines3", "recurrent": "sb3_contrib"}


def check(settings: Gym) -> None:
    """Refuse tasks whose packages are missing, and a file that holds something else."""
    from importlib.util import find_spec

    for name in settings.trainers:
        if name in NEEDS and find_spec(NEEDS[name]) is None:
            raise UserError(f"trainers={name} needs the package {NEEDS[name]}: pip install 'rearrange[peers]'.")
    if settings.runs and Path(settings.runs).exists():
        read(Path(settings.runs))


def run_bench(settings: Gym, run: Run) -> dict[str, float]:
    """Make all runs that are not there yet, print and write the table, and, with matplotlib, curves.png."""
    file = Path(settings.runs or run.path / "runs.jsonl")
    done = {_name(each) for each in read(file)} if file.exists() else set()
    for job in jobs(settings):
        if _name(job) not in done:
            made = run_job([sys.executable, "-P", "-m", "eval.bench.gym.one_run"], job)
            with open(file, "a", encoding="utf-8") as out:
                out.write(json.dumps(made) + "\n")
            run.say(f"{job['task']:24} {job['trainer']:10} seed {job['seed']}   return {made['curve'][-1][1]:9.1f}   "
                    f"{job['steps'] / made['wall_s']:7,.0f} steps/s   {1e6 * made['cpu_s'] / job['steps']:6,.0f} us "
                    "of processor/step")
    wanted = {_name(job) for job in jobs(settings)}
    runs = [each for each in read(file) if _name(each) in wanted]
    for line in table.as_text(runs):
        run.say(line)
    table.draw(runs, run.path / "curves.png")
    run.say(f"runs: {file}")
    return table.figures(runs)


def jobs(settings: Gym) -> list[dict[str, Any]]:
    """All runs, seed by seed."""
    return [{"task": task, "trainer": trainer, "seed": seed, "steps": settings.steps or TASKS[task].steps}
            for seed in range(settings.seed, settings.seed + settings.seeds)
            for task in settings.tasks for trainer in settings.trainers if _fits(trainer, task)]


def _fits(trainer: str, task: str) -> bool:
    """RecurrentPPO is for tasks that need memory, the trainers without memory are for the others; ours is for all."""
    return trainer == "ours" or (trainer == "recurrent") == TASKS[task].memory


def read(file: Path) -> list[dict[str, Any]]:
    """The finished runs of a file. UserError for another kind of file."""
    try:
        runs = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        assert all({"task", "trainer", "seed", "steps", "curve", "wall_s", "cpu_s"} <= set(each) for each in runs)
    except (OSError, ValueError, TypeError, AssertionError) as error:
        raise UserError(f"runs={file} is no file of runs of bench gym ({type(error).__name__}): give "
                        "another name.") from None
    return runs


def _name(job: dict[str, Any]) -> tuple:
    return job["task"], job["trainer"], job["seed"], job["steps"]

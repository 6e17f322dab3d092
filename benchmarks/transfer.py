"""Does what was learnt in the embedded home work in Habitat? Every skill in both simulators, on the same episodes.

Homes, or scenes of a data set, episodes, start poses' draws and the agents' random numbers are the same; contacts,
motors, friction and renderer are not. Beside success the table says how episodes that differ ended: that is where to
look.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from benchmarks import run as run_as_command
from benchmarks.habitat import of_homes
from eval import evaluate as evaluation
from eval.bench.navigation_habitat import check as check_habitat
from eval.intervals import wilson
from eval.task_from_settings import sim_settings
from eval.trained_policy import settings_of
from rearrange.home.errors import UserError
from skills import SKILLS, pretrained

if TYPE_CHECKING:
    from benchmarks.settings import Transfer
    from eval.evaluate import EpisodeResult
    from rearrange.command_line.runs.run_directory import Run

NAMES = ("mujoco", "habitat")
AGENTS = {"pretrained": "policy", "expert": "expert", "random": "random"}


def check(settings: Transfer) -> None:
    """Refuses, before anything is run, what cannot be compared."""
    for skill in settings.skills:
        if skill not in SKILLS:
            raise UserError(f"skills={skill} is not one of {', '.join(SKILLS)}.")
    check_habitat(settings)


def run_bench(settings: Transfer, run: Run) -> dict[str, float]:
    """`python -m benchmarks.transfer`: print a row per skill and keep them in bench.json; returns the success rates."""
    from trainer.logs.progress import counting

    rows: dict[str, dict[str, Any]] = {}
    for skill in settings.skills or _known(settings.agent):
        results = {}
        for name in NAMES:
            job = _job(settings, skill, name)
            with counting(settings.episodes, f"{skill} in {name}") as progress:
                results[name] = evaluation.evaluate(job, settings.workers, progress)
        rows[skill] = compare(results["mujoco"], results["habitat"])
        for line in table(skill, rows[skill]):
            run.say(line)
        (run.path / "bench.json").write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    run.say(f"figures: {run.path / 'bench.json'}")
    return {f"{skill}/{name}": row[name]["success"] for skill, row in rows.items() for name in NAMES}


def _known(agent: str) -> list[str]:
    return [name for name in SKILLS if agent != "pretrained" or name in pretrained.names()]


def _job(settings: Transfer, skill: str, name: str) -> evaluation.Job:
    """The evaluation of a skill in one of the simulators, with the settings its policy was trained with."""
    sim = sim_settings(settings.sim)
    env: dict[str, Any] = {"depth_size": 0}
    checkpoint = None
    if settings.agent == "pretrained":
        from trainer.checkpoint import load_checkpoint

        checkpoint = str(pretrained.path(skill))
        env = settings_of(load_checkpoint(checkpoint)["meta"])
    env |= {"split": settings.split, "num_layouts": sim["num_layouts"], "sim": name}
    env |= {key: sim[key] for key in of_homes(sim, name) if sim.get(key) is not None}
    return evaluation.Job(skill, env, AGENTS[settings.agent], checkpoint, settings.episodes, settings.seed)


def compare(ours: Sequence[EpisodeResult], theirs: Sequence[EpisodeResult]) -> dict[str, Any]:
    """The figures of one skill from the same episodes in the embedded home and in Habitat."""
    both = list(zip(ours, theirs, strict=True))
    lost = Counter(b.failure for a, b in both if a.success and not b.success)
    won = Counter(a.failure for a, b in both if b.success and not a.success)
    return {name: _figures(results) for name, results in zip(NAMES, (ours, theirs))} | {
        "episodes": len(both), "only_mujoco": sum(lost.values()), "only_habitat": sum(won.values()),
        "ends_in_habitat_of_what_mujoco_solves": dict(lost.most_common()),
        "ends_in_mujoco_of_what_habitat_solves": dict(won.most_common())}


def _figures(results: Sequence[EpisodeResult]) -> dict[str, Any]:
    wins, n = sum(result.success for result in results), len(results)
    steps = [result.steps for result in results if result.success]
    return {
        "success": wins / n, "interval_95": list(wilson(wins, n)),
        "failures": dict(Counter(result.failure for result in results if not result.success).most_common()),
        "mean_steps_of_successes": sum(steps) / len(steps) if steps else None,
        "mean_arm_force_n": sum(result.measures["arm_force_n"] for result in results) / n}


def table(skill: str, row: dict[str, Any]) -> list[str]:
    """A skill as lines to print."""
    lines = []
    for name in NAMES:
        figures = row[name]
        low, high = figures["interval_95"]
        steps = figures["mean_steps_of_successes"]
        failures = ", ".join(f"{reason} {count}" for reason, count in figures["failures"].items())
        lines.append(f"{skill:14} {name:8} {figures['success']:6.1%} ({low:.1%} .. {high:.1%}, {row['episodes']})  "
                     f" steps {'-' if steps is None else round(steps)}   force {figures['mean_arm_force_n']:.0f} N "
                     f"  {failures}")
    lost = ", ".join(f"{end} {count}" for end, count in row["ends_in_habitat_of_what_mujoco_solves"].items())
    lines.append(f"{'':14} solved in mujoco only: {row['only_mujoco']} ({lost or '-'}); in habitat only: "
                 f"{row['only_habitat']}")
    return lines


if __name__ == "__main__":
    sys.exit(run_as_command("transfer"))

"""The figures of a scenario's evaluation, what is printed of them, and the files that they are kept in."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from eval import began_solved
from eval.intervals import wilson
from eval.scenario.evaluate import EpisodeResult, Job, StepResult
from eval.summary_table import say, titled
from planner.scenario import PROBLEMS
from planner.scenarios import load_scenario, scenarios
from rearrange.command_line.runs.run_directory import write_whole
from rearrange.home.settings.environment import HOME_SETTINGS, HomeSettings
from rearrange.home.simulation.simulator_interface import STEP_S
from skills import SKILLS

if TYPE_CHECKING:
    from rearrange.command_line.runs.run_directory import Run

# Settings that do not change the task.
_SAME_TASK = ("split", "depth_size", "render_mode", "gpu_device", "observations", "camera_size")
DISTANCES_M = (0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, math.inf)  # limits of the rows of `by_distance`


def changed(job: Job) -> list[str]:
    """How the task differs from that of the package's scenario, as it is typed: `hab.clutter=0`,
    `sim.episodes=my.json`."""
    words, ours = [], job.scenario
    if ours.name in scenarios():
        known = load_scenario(ours.name)
        now, then = ({**asdict(each.scenario), "max_steps": each.max_steps} for each in (ours, known))
        words = [f"hab.{name}={_typed(value)}" for name, value in now.items() if value != then[name]]
        words += [f"hab.problem={ours.problem}"] if ours.problem.parent != PROBLEMS else []
    homes = {name: getattr(HomeSettings, name) for name in HOME_SETTINGS if name not in _SAME_TASK}
    return words + [f"{'sim' if name == 'sim' else f'sim.{name}'}={_typed(job.env[name])}"
                    for name, usual in homes.items() if job.env.get(name, usual) != usual]


def _typed(value: Any) -> str:
    return f"[{','.join(map(str, value))}]" if isinstance(value, (list, tuple)) else str(value)


COUNTED = ("objects_at_goal", "objects_on_floor", "disturbed_objects")
STANDING = ("objects_upright", "objects_at_rest")


def summary(job: Job, results: Sequence[EpisodeResult]) -> dict[str, Any]:
    """The figures of the episodes that did not begin solved. Means of no episodes are None."""
    results, solved = began_solved.apart(results)
    n, mean, share = len(results), began_solved.mean, began_solved.share
    wins, near, stable = (sum(bool(r.metrics[key]) for r in results)
                          for key in ("success", "success_15cm", "success_stable"))
    stages = np.array([result.stages() for result in results]).reshape(n, -1)
    ends = Counter(f"{r.ended_in}: {r.reason}" for r in results if not r.success)
    steps = [result.steps for result in results]
    return {
        "scenario": job.scenario.name, "agent": job.agent, "split": job.env.get("split"), "seed": job.seed,
        "deterministic": job.deterministic,
        "skills": {skill: source.checkpoint or source.kind for skill, source in job.skills.items()},
        "limited_skills": [skill for skill, source in job.skills.items() if skill in SKILLS and source.kind == "policy"
                           and "base" not in source.make(skill).action_parts],
        "run_by": {skill: source.kind for skill, source in job.skills.items()},
        "problem": job.scenario.problem.stem, "protocol": job.protocol, "beyond_paper": job.rules.beyond_paper,
        "changed": changed(job),
        "episodes": n, **began_solved.figures(solved, []),
        "success": share(wins, n), "success_interval_95": list(wilson(wins, n)) if n else None,
        "success_015": share(near, n), "success_015_interval_95": list(wilson(near, n)) if n else None,
        "success_stable": share(stable, n), "success_stable_interval_95": list(wilson(stable, n)) if n else None,
        "goal_share": mean([result.metrics["goal_share"] for result in results]),
        "interactions": [
            {"name": f"{'place' if i % 2 else 'pick'} {i // 2 + 1}", "success": int(k) / n,
             "interval_95": list(wilson(int(k), n))}
            for i, k in enumerate(stages.sum(0) if n else ())
        ],
        "ends": {end: times / n for end, times in ends.most_common()},
        "handoff": handoffs([step for result in results for step in result.plan]),
        "by_distance": by_distance([step for result in results for step in result.plan]),
        "mean_steps": mean(steps), "mean_simulated_s": mean([each * STEP_S for each in steps]),
        "mean_steps_of_successes": mean([r.steps for r in results if r.success]),
        "mean_recoveries": mean([result.recoveries for result in results]),
        **{f"mean_{key}": mean([result.metrics[key] for result in results])
           for key in (*COUNTED, *STANDING, "driven_m", "hand_path_m")},
        "mean_skill_steps": _means((step.skill, step.steps) for r in results
                                   for step in r.plan if step.ended != "not begun"),
    }


def handoffs(steps: Sequence[StepResult]) -> dict[str, dict[str, float]]:
    """How far navigate left the robot from where each skill starts in training: means, by the skill that came next."""
    known = [step for step in steps if step.handed_to and step.distance_m is not None]
    distance = _means((step.handed_to, step.distance_m) for step in known)
    angle = _means((step.handed_to, step.angle_rad) for step in known)
    counts = Counter(step.handed_to for step in known)
    return {skill: {"n": counts[skill], "distance_m": distance[skill], "angle_rad": angle[skill]} for skill in distance}


def by_distance(steps: Sequence[StepResult]) -> dict[str, list[dict[str, float]]]:
    """How often Pick and Place had their effect, by the distance of the base when they began.

    The distance is from the object, or from its goal.
    """
    rows: dict[str, list[dict[str, float]]] = {}
    for skill in ("pick", "place"):
        begun = [step for step in steps if step.skill == skill and step.from_m is not None
                 and step.ended != "not begun"]
        for low, high in itertools.pairwise(DISTANCES_M):
            held = [bool(step.effects_hold) for step in begun if low <= step.from_m < high]
            if held:
                rows.setdefault(skill, []).append({"from_m": low, "n": len(held), "success": sum(held) / len(held),
                                                   "interval_95": list(wilson(sum(held), len(held)))})
    return rows


def _means(pairs: Any) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for key, value in pairs:
        values.setdefault(key, []).append(value)
    return {key: float(np.mean(all_of)) for key, all_of in values.items()}


def write(directory: Path, job: Job, figures: Mapping[str, Any], results: Sequence[EpisodeResult],
          videos: Mapping[int, str]) -> None:
    """metrics.json, episodes.csv and plan.txt."""
    text = io.StringIO()
    table = csv.writer(text)
    names = [row["name"].replace(" ", "_") for row in figures["interactions"]]
    table.writerow(["index", "episode_id", "scene", "began_solved", "success", "success_015", "stage", "ended_in",
                    "reason", "steps", "simulated_s", "video", *COUNTED, "recoveries", "handoff_m",
                    "handoff_rad", "arm_force_n", *STANDING, "success_stable", "goal_share", "driven_m", "hand_path_m",
                    *names])
    for result in results:
        stages, metrics = result.stages(), result.metrics
        far, turned = ([getattr(step, name) for step in result.plan if getattr(step, name) is not None]
                       for name in ("distance_m", "angle_rad"))
        table.writerow([
            result.index, result.episode_id, result.scene, int(result.began_solved), int(result.success),
            int(metrics["success_15cm"]), sum(stages),
            result.ended_in or "", result.reason or "", result.steps, f"{result.steps * STEP_S:.2f}",
            videos.get(result.index, ""),
            *(int(metrics[key]) for key in COUNTED), result.recoveries,
            f"{np.mean(far):.4f}" if far else "", f"{np.mean(turned):.4f}" if turned else "",
            f"{metrics['arm_force_n']:.5g}", *(int(metrics[key]) for key in (*STANDING, "success_stable")),
            *(f"{metrics[key]:.4g}" for key in ("goal_share", "driven_m", "hand_path_m")),
            *map(int, stages[:len(names)]),
        ])
    write_whole(directory / "plan.txt", "\n\n".join(plan_text(result) for result in results) + "\n")
    write_whole(directory / "episodes.csv", text.getvalue())
    # metrics.json comes last: with it, the directory is whole.
    write_whole(directory / "metrics.json", json.dumps(figures, indent=2) + "\n")


def plan_text(result: EpisodeResult) -> str:
    """The plan of an episode in words, with how each step went."""
    outcome = "success" if result.success else f"{result.ended_in}: {result.reason}"
    outcome = f"began solved, {outcome}" if result.began_solved else outcome
    lines = [f"episode {result.index}   {result.episode_id}   {result.scene}   {outcome} after {result.steps} steps"]
    width = max((len(step.words) for step in result.plan), default=0)
    for number, step in enumerate(result.plan, 1):
        began = "" if step.from_m is None else f" from {step.from_m:.1f} m"
        went = step.ended if step.ended == "not begun" else f"{step.steps} steps{began}, {step.ended.replace('_', ' ')}"
        if step.distance_m is not None:
            went += f", {step.distance_m:.2f} m and {step.angle_rad:.2f} rad from the start of the next skill"
        if step.effects_hold is False:
            went += ", without its effect"
        lines.append(f"  {number:>2}  {step.words:<{width}}  {went}")
    return "\n".join(lines)


def table_lines(figures: Mapping[str, Any]) -> list[str]:
    """The figures as lines of text: the interactions of Figure 6, then the whole task."""
    n = figures["episodes"]
    rules = ", ".join([figures["protocol"], *figures["changed"]])
    title = f"{figures['scenario']}   agent {figures['agent']}   planner {rules}   split {figures['split']}   n = {n}"
    if not n:
        return titled(title, [], figures)
    rows = [(f"{row['name']}, once", _share(row["success"], row["interval_95"])) for row in figures["interactions"]]
    rows += [("whole task", _share(figures["success"], figures["success_interval_95"])),
             ("  within 0.15 m", _share(figures["success_015"], figures["success_015_interval_95"])),
             ("  all upright and at rest", _share(figures["success_stable"], figures["success_stable_interval_95"])),
             ("share of the goal", f"{figures['goal_share']:>6.1%}   of its facts at the end, mean"),
             ("moved", f"base {figures['mean_driven_m']:.1f} m   hand {figures['mean_hand_path_m']:.1f} m"),
             ("steps", f"{figures['mean_steps']:.0f}   simulated {figures['mean_simulated_s']:.0f} s"),
             ("others disturbed", f"{figures['mean_disturbed_objects']:.2f} objects an episode by more than 5 cm"),
             *((f"ended in {end}", f"{share:.1%}") for end, share in figures["ends"].items()),
             *((f"handoff to {skill}", f"{row['distance_m']:.2f} m   {row['angle_rad']:.2f} rad   n = {row['n']}")
               for skill, row in figures["handoff"].items())]
    # Such distances occur without Navigate, mostly.
    if any(row["from_m"] >= 2.0 for of_skill in figures["by_distance"].values() for row in of_skill):
        rows += [(f"{skill} from {row['from_m']:.0f} m on", f"{_share(row['success'], row['interval_95'])}   n "
                  f"= {row['n']}") for skill, of_skill in figures["by_distance"].items() for row in of_skill]
    return titled(title, rows, figures)


def _share(value: float, interval: Sequence[float]) -> str:
    return f"{value:>6.1%}   95 % interval {interval[0]:.1%} .. {interval[1]:.1%}"


def print_table(figures: Mapping[str, Any], run: Run) -> None:
    """Print the table, keep it in the run's log, and say where everything is."""
    say(table_lines(figures), figures, run, "metrics.json", "episodes.csv", "plan.txt")

"""Each manipulation of a scenario by itself: what a skill reaches from the states that experts leave.

The experts do the whole task, and the state in which each of their manipulations begins is kept. The evaluated skills
act from there, one at a time, with the time limit and the success of the skill. Episodes in which the experts repeated
something do not count.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from eval import began_solved
from eval import evaluate as alone
from eval.intervals import wilson
from eval.scenario import evaluate as hab
from eval.scenario.substitution import EXPERT
from rearrange.command_line.runs.run_directory import write_whole
from rearrange.home.apartments.episodes import Episode, write_episodes
from rearrange.home.errors import CannotStart
from rearrange.home.text_table import columns

if TYPE_CHECKING:
    from rearrange.command_line.runs.run_directory import Run

FILE = "subtasks.json"


def measure(job: hab.Job, run: Run, workers: int | None, counting: Callable[..., Any]) -> None:
    """Evaluate every sub-task, print them as a table, and keep them in subtasks.json beside the episode files."""
    chain = replace(job, skills=dict.fromkeys(job.skills, EXPERT), handoffs=True)
    with counting(job.episodes, "experts", log=run.log) as progress:
        chains = hab.evaluate(chain, workers, progress)
    folder = run.path / "subtasks"
    folder.mkdir(exist_ok=True)
    chains, _ = began_solved.apart(chains)
    whole, rows = [result for result in chains if not repeats(result)], {}
    write_whole(run.path / FILE, "{}\n")
    for name, episodes in beginnings(whole).items():
        file = folder / f"{name.replace(' ', '_')}.json.gz"
        write_episodes(file, episodes)
        skill = episodes[0].handoff.skill
        with counting(len(episodes), name, log=run.log) as progress:
            rows[name] = {"skill": skill, **_figures(_job(job, skill, str(file), len(episodes)), workers, progress)}
        write_whole(run.path / FILE, json.dumps(rows, indent=2) + "\n")
    why = [f"left out: {alone.NOT_STARTED}"] if any(row["left_out"] for row in rows.values()) else []
    for line in ["", *table(rows), *why,
                 f"counted: {len(whole)} of {len(chains)} episodes, those in which the experts repeated nothing", ""]:
        run.say(line)
    run.say(f"table     {run.path / FILE}")


def beginnings(results: Sequence[hab.EpisodeResult]) -> dict[str, list[Episode]]:
    """The states in which sub-tasks begin, by name in the order of the plan: "open fridge", "pick 2" (the second
    goal)."""
    found: dict[str, list[Episode]] = {}
    for result in results:
        for episode in result.handoffs:
            found.setdefault(_name(episode), []).append(episode)
    return found


def repeats(result: hab.EpisodeResult) -> bool:
    """Something was done twice."""
    return len({(episode.handoff.skill, episode.handoff.about) for episode in result.handoffs}) < len(result.handoffs)


def table(rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """One line a sub-task, with its 95 % interval and the states that do not count; at the end the mean success."""
    lines = [("sub-task, from where experts leave", "success", "n", "left out", "began solved")]
    for name, row in rows.items():
        solved = row.get("began_solved", 0)
        success = "all began solved" if solved else "none can be started"
        if row["episodes"]:
            low, high = row["success_interval_95"]
            success = f"{row['success']:.1%} ({low:.1%} .. {high:.1%})"
        lines.append((name, success, str(row["episodes"]), str(row["left_out"]), str(solved)))
    measured = [row["success"] for row in rows.values() if row["episodes"]]
    if measured:
        lines.append(("mean", f"{sum(measured) / len(measured):.1%}", "", "", ""))
    return columns(lines)


def _figures(job: alone.Job, workers: int | None, progress: Callable[[int, int], None]) -> dict[str, Any]:
    """Figures of one sub-task: states tried, left out, begun solved; success of the others, where there were any."""
    try:
        results = alone.evaluate(job, workers, progress)
    except CannotStart:
        return {"episodes": 0, "left_out": job.episodes, "began_solved": 0}
    counted, solved = began_solved.apart(results)
    n, wins = len(counted), sum(result.success for result in counted)
    row = {"episodes": n, "left_out": job.episodes - len(results), "began_solved": len(solved)}
    return row | ({"success": wins / n, "success_interval_95": list(wilson(wins, n))} if n else {})


def _name(episode: Episode) -> str:
    skill, about = episode.handoff.skill, episode.handoff.about
    words = skill.replace("_", " ")
    return f"{words} {list(episode.targets).index(about) + 1}" if about in episode.targets else words


def _job(job: hab.Job, skill: str, file: str, episodes: int) -> alone.Job:
    source = job.skills[skill]
    agent = source.word if source.kind == "own" else source.kind
    env = {**source.config, **job.env, **source.shared, "depth_size": source.image_size, "episodes": file}
    if source.seen:
        env |= {"observations": source.seen, "camera_size": source.camera_size}
    mean = job.deterministic or job.rules.actions in ("mean", "mean_first")
    return alone.Job(skill, env, agent, source.checkpoint, episodes, job.seed, mean, network=source.network,
                     remote=source.remote)

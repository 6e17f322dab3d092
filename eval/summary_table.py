"""The table that an evaluation prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eval import began_solved
from eval.evaluate import missing
from eval.path_figures import path_lines

if TYPE_CHECKING:
    from rearrange.command_line.runs.run_directory import Run


def table_lines(figures: dict[str, Any]) -> list[str]:
    """The figures of `eval.evaluate.summary` as lines of text."""
    n = figures["episodes"]
    title = f"{figures.get('nav') or figures['skill']}   agent {figures['agent']}   split {figures['split']}   {figures['protocol']}"
    apart = began_solved.lines(figures)
    if not n:
        return [title, "-" * len(title), *apart]
    low, high = figures["success_interval_95"]
    rows = [
        ("success", f"{figures['success']:.1%}   95 % interval {low:.1%} .. {high:.1%}   n = {n}"),
        ("steps", f"{figures['mean_steps']:.1f}" + (f"   of successes {figures['mean_steps_of_successes']:.1f}"
                                                     if figures["mean_steps_of_successes"] is not None else "")),
        ("reward", f"{figures['mean_reward']:.2f}"),
    ]
    rows += [(f"failed: {reason}", f"{share:.1%}") for reason, share in figures["failures"].items()]
    rows += [(name, f"{value:.4g}") for name, value in figures["measures"].items()]
    rows += path_lines(figures)
    width = max(len(name) for name, _ in rows)
    return [title, "-" * len(title), *(f"{name:<{width}}   {text}" for name, text in rows), *apart]


def print_table(figures: dict[str, Any], run: Run) -> None:
    """Print the table, keep it in the run's log, and say where everything is."""
    run.say("")
    for line in [*table_lines(figures), "", *missing(figures)]:
        run.say(line)
    run.say(f"metrics   {run.path / 'metrics.json'}, {run.path / 'episodes.csv'}")
    videos = sorted(run.videos.glob("*.mp4"))
    if videos:
        run.say(f"videos    {run.videos} ({len(videos)})")

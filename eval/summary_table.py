"""The tables that evaluations print, of skills and navigation tasks here, of scenarios in `eval.scenario.figures`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval import began_solved
from eval.evaluate import missing
from eval.path_figures import path_lines
from rearrange.home.text_table import columns
from skills import pretrained

if TYPE_CHECKING:
    from rearrange.command_line.runs.run_directory import Run


def table_lines(figures: Mapping[str, Any]) -> list[str]:
    """The figures of `eval.evaluate.summary` as lines of text."""
    task, n = figures.get("nav") or figures["skill"], figures["episodes"]
    agent = acting(figures["agent"], figures["checkpoint"])
    title = f"{task}   agent {agent}   split {figures['split']}   {figures['protocol']}"
    if not n:
        return titled(title, [], figures)
    low, high = figures["success_interval_95"]
    steps = f"{figures['mean_steps']:.1f}"
    if figures["mean_steps_of_successes"] is not None:
        steps += f"   of successes {figures['mean_steps_of_successes']:.1f}"
    rows = [("success", f"{figures['success']:.1%}   95 % interval {low:.1%} .. {high:.1%}   n = {n}"),
            *_at_end(figures), ("steps", steps), ("reward", f"{figures['mean_reward']:.2f}")]
    rows += [(f"failed: {reason}", f"{share:.1%}") for reason, share in figures["failures"].items()]
    rows += [(name, f"{value:.4g}") for name, value in figures["measures"].items()]
    return titled(title, rows + path_lines(figures), figures)


def acting(agent: str, checkpoint: str | Path | None) -> str:
    """The word of agent= that means who acted: `pretrained` where that was the policy of the package."""
    of_package = checkpoint is not None and Path(checkpoint).parent == pretrained.FOLDER
    return "pretrained" if agent == "policy" and of_package else agent


def _at_end(figures: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Of episodes that went on after their success, how many still had it at their end."""
    if figures.get("success_at_end") is None:
        return []
    low, high = figures["success_at_end_interval_95"]
    return [("  at the end", f"{figures['success_at_end']:.1%}   95 % interval {low:.1%} .. {high:.1%}")]


def titled(title: str, rows: Sequence[tuple[str, str]], figures: Mapping[str, Any]) -> list[str]:
    """A table below its title; at the end how many episodes began solved."""
    return [title, "-" * len(title), *(columns(rows) if rows else []), *began_solved.lines(figures)]


def print_table(figures: dict[str, Any], run: Run) -> None:
    """Print the table, keep it in the run's log, and say where everything is."""
    say(table_lines(figures), figures, run, "metrics.json", "episodes.csv")


def say(lines: Sequence[str], figures: Mapping[str, Any], run: Run, *files: str) -> None:
    """Print the lines of a table, and where the files and videos of the run are."""
    for line in ["", *lines, "", *missing(figures)]:
        run.say(line)
    run.say(f"metrics   {', '.join(str(run.path / file) for file in files)}")
    if videos := sorted(run.videos.glob("*.mp4")):
        run.say(f"videos    {run.videos} ({len(videos)})")

"""What each learned skill costs a scenario: the same episodes with experts, one learned skill, and all but one.

A row says what would be won if nothing else were learned, or if that skill were perfect: where to train next.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from eval.scenario import evaluate as hab
from eval.scenario import figures as hab_figures
from eval.scenario.skill_sources import Source
from rearrange.command_line.runs.run_directory import write_whole
from rearrange.home.text_table import columns

if TYPE_CHECKING:
    from rearrange.command_line.runs.run_directory import Run

EXPERT = Source("expert")
FILE = "substitution.json"


def variants(skills: Mapping[str, Source], needed: Collection[str]) -> Iterator[tuple[str, dict[str, Source]]]:
    """Name and sources of each way to run a scenario: experts only, each skill alone, all but one.

    skills: what runs each skill. Those that experts run, and those that no plan needs, are left alone.
    """
    own = [name for name, source in skills.items() if source.kind != "expert" and name in needed]
    experts = dict.fromkeys(skills, EXPERT)
    yield "experts only", experts
    for name in own:
        yield f"{name} alone", experts | {name: skills[name]}
    for name in own if len(own) > 2 else []:  # of two, one alone is all but the other
        yield f"all but {name}", dict(skills) | {name: EXPERT}


def substitute(job: hab.Job, all_learned: Mapping[str, Any], run: Run, workers: int | None,
               counting: Callable[..., Any]) -> None:
    """Evaluate every variant of a job, print them as a table, and keep them in substitution.json after each.

    all_learned: the figures of the job itself.
    """
    rows: dict[str, Mapping[str, Any]] = {}
    for name, skills in variants(job.skills, job.needed):
        made = replace(job, skills=skills, handoffs=False)
        with counting(job.episodes, name, log=run.log) as progress:
            rows[name] = hab_figures.summary(made, hab.evaluate(made, workers, progress))
        _write(run, rows)
    rows["all learned"] = all_learned
    _write(run, rows)
    for line in ["", *table(rows), ""]:
        run.say(line)
    run.say(f"table     {run.path / FILE}")


def table(rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """One line a variant: success within 0.15 m and 0.30 m with 95 % intervals, steps, and the most frequent end."""
    lines = [("what is learned", "within 0.15 m", "within 0.30 m", "steps", "most often ended by")]
    for name, figures in rows.items():
        ends = next(iter(figures["ends"].items()), None)
        lines.append((name, _share(figures, "success_015"), _share(figures, "success"), f"{figures['mean_steps']:.0f}",
                      f"{ends[0]} {ends[1]:.0%}" if ends else "-"))
    return columns(lines)


def _share(figures: Mapping[str, Any], key: str) -> str:
    low, high = figures[f"{key}_interval_95"]
    return f"{figures[key]:.0%} ({low:.0%} .. {high:.0%})"


def _write(run: Run, rows: Mapping[str, Any]) -> None:
    write_whole(run.path / FILE, json.dumps(rows, indent=2) + "\n")

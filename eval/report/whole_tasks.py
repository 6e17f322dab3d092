"""Whole tasks by protocol (docs/planner.md): plans with trained skills beside what others published."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from eval.report.paper import PUBLISHED
from eval.report.run_names import labels
from eval.report.runs import Evaluation
from eval.report.sections import grouped, interval_of, measured, number, section, share, table

KEPT = ("scenario", "problem", "protocol", "changed", "deterministic", "split", "seed", "episodes", "success",
        "success_interval_95", "success_015", "success_015_interval_95", "mean_steps", "mean_disturbed_objects")
HEAD = ("scenario", "protocol", "homes", "n", "within 0.15 m", "within 0.30 m", "steps",
        "objects disturbed", *(each.system for each in PUBLISHED))
NOTES = (
    "Protocols: paper has no recovery, and the coordinates of the beginning of the episode; honest plans again, with "
    "what the robot's "
    "body and head camera tell it; noisy is honest with a detector that errs, misses and confuses; oracle plans again "
    "on the simulator's state.",
    "Success of the whole task, with objects within 0.15 m and within 0.30 m of their goals, and Wilson's 95 % "
    "intervals. Steps and other "
    "objects that were moved by more than 5 cm: means of an episode.",
    "What differs: the published figures are from Habitat, with other homes, objects, policies and rules, and serve as "
    "orientation only.",
    *(f"{each.system}: {each.conditions} ({each.source})." for each in PUBLISHED),
)


def rows(figures: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of the evaluations (contents of metrics.json) that count, with what others published."""
    return [{**{key: each.get(key) for key in KEPT},
             "published": {other.system: other.success.get(str(each["scenario"])) for other in PUBLISHED}}
            for each in figures if counts(each)]


def counts(figures: Mapping[str, Any]) -> bool:
    """Whether it is a whole evaluation of a plan with trained skills, by rules that are told."""
    return bool(figures.get("agent") == "tp_srl" and figures.get("protocol") and not figures.get("interrupted"))


def scenario(row: Mapping[str, Any]) -> str:
    """The name of a scenario; Set Table has two goals."""
    ends = {"set_table": ", drawer and fridge closed again", "set_table_paper": ", drawer and fridge left open"}
    return str(row["scenario"]).replace("_", " ").capitalize() + ends.get(str(row["problem"]), "")


def rules(row: Mapping[str, Any]) -> str:
    """The protocol of a row, and what makes it differ from others of that name."""
    return ", ".join([str(row["protocol"]), *(row["changed"] or ()),
                      *(["mean actions"] if row["deterministic"] else [])])


def cells(row: Mapping[str, Any]) -> list[str]:
    """A row as plain text, in the order of HEAD."""
    return [scenario(row), rules(row), str(row["split"] or ""), str(row["episodes"]), _share(row, "success_015"),
            _share(row, "success"), number(row["mean_steps"]), number(row["mean_disturbed_objects"], 2),
            *map(_published, row["published"].values())]


def whole_tasks(found: list[Evaluation]) -> str:
    """The section of a report; nothing where no plan with trained skills is in it."""
    made = []
    counted = [run for runs in grouped(found, lambda run: run.what).values() for run in runs if run.is_scenario
               and counts(run.figures)]
    for runs in grouped(counted, lambda run: (run.what, run.protocol)).values():
        for run, label, row in zip(runs, labels(runs), rows(run.figures for run in runs), strict=True):
            name, protocol, homes, n, _, _, *others = map(escape, cells(row))
            made.append([f"{name} <small>{escape(label)}</small>", protocol, homes, n,
                         measured(run.figures, "success_015"), measured(run.figures, "success"), *others])
    notes = "".join(f"<li>{escape(note)}</li>" for note in NOTES)
    return section("protocols", "Whole tasks by protocol",
                   f"{table(list(HEAD), made, 'numbers tasks')}<ul>{notes}</ul>" if made else "")


def _share(row: Mapping[str, Any], key: str) -> str:
    if (value := row[key]) is None:
        return ""
    low, high = interval_of(row, value, row[f"{key}_interval_95"])
    return f"{share(value)} ({100 * low:.1f} .. {100 * high:.1f})"


def _published(value: float | None) -> str:
    return "" if value is None else share(value)

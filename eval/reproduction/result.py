"""What `rearrange reproduce` leaves: figure6.md beside the paper's figures, whole_tasks.md and report.html."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from eval.report import page as report_page
from eval.report import whole_tasks
from eval.report.paper import DIFFERENCES, IN_WORDS, PUBLISHED, Beside, beside
from eval.report.sections import number, share
from eval.reproduction.jobs import PAPER, Plan, Policy
from rearrange.command_line.composition.options import ReproduceOptions
from rearrange.command_line.runs.run_directory import read_status, saved_config
from rearrange.home.files import read_json
from skills import pretrained

VIDEO_MB = 100.0
FIGURE_6, WHOLE_TASKS = "Figure 6 of the VER paper", "Whole tasks by protocol"


def write(folder: Path, plan: Plan, evaluations: list[Path], options: ReproduceOptions) -> list[str]:
    """Write the files that there are figures for; lines for people."""
    figures = [read_json(path / "metrics.json") for path in evaluations]
    texts: dict[str, list[list[str]]] = {}
    if by_paper := [each for each in figures if each.get("protocol", PAPER) == PAPER]:
        texts["figure6.md"] = [*_head(FIGURE_6, options), *figure_6(by_paper), *_policies(plan)]
    if rows := whole_tasks.rows(figures):
        lines = [tuple(whole_tasks.cells(row)) for row in rows]
        texts["whole_tasks.md"] = [*_head(WHOLE_TASKS, options), _table(whole_tasks.HEAD, lines),
                                   [f"- {note}" for note in whole_tasks.NOTES], *([] if by_paper else _policies(plan))]
        (folder / "whole_tasks.json").write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    said = []
    for name, blocks in texts.items():
        text = "\n\n".join("\n".join(block) for block in blocks) + "\n"
        (folder / name).write_text(text, encoding="utf-8")
        said += ["", *text.splitlines()]
    trained = [Path(policy.source) for policy in plan.policies.values() if policy.source != "pretrained"]
    runs = [*evaluations, *(path for path in trained if (path / "metrics.csv").exists())]
    made = report_page.make([str(path) for path in runs], folder / "report.html", Path(options.output),
                            FIGURE_6 if by_paper else WHOLE_TASKS, VIDEO_MB, options.note)
    return [*said, "", *(f"table     {folder / name}" for name in texts), f"report    {made.path}"]


def _head(title: str, options: ReproduceOptions) -> list[list[str]]:
    return [[f"# {title}"], *([[f"**{options.note}**"]] if options.note else [])]


def figure_6(figures: list[dict[str, Any]]) -> list[list[str]]:
    """What was measured by the paper's rules, as blocks of text."""
    blocks: list[list[str]] = []
    rows = [_beside(row) for row in beside(figures)]
    if rows:
        head = ("scenario", "after", "agent", "paper", "here (95 % interval, n)", "in the paper")
        blocks += [["## Beside the paper"], _table(head, rows),
                   [*IN_WORDS, "Only what the paper's text states is in this table; nothing is read off its figure."],
                   ["Where the settings differ:"], [f"- {text}" for text in DIFFERENCES]]
    if scenarios := [name
                     for name in dict.fromkeys(each["scenario"] for each in figures) if name in PUBLISHED[0].success]:
        rows = [(each.system, *(share(each.success[name]) for name in scenarios), each.conditions, each.source)
                for each in PUBLISHED]
        blocks += [["## Whole tasks of others"],
                   _table(("system", *map(_words, scenarios), "conditions", "source"), rows)]
    for scenario in dict.fromkeys(each["scenario"] for each in figures):
        made = [each for each in figures if each["scenario"] == scenario]
        names = [row["name"] for row in made[0]["interactions"]]
        blocks += [[f"## {_words(scenario)}"],
                   _table(("success after", *names, "whole task", "within 0.15 m", "steps", "objects disturbed", "n"),
                          [(each["agent"], *(share(row["success"]) for row in each["interactions"]),
                            f"{share(each['success'])} ({_interval(each['success_interval_95'])})",
                            share(each["success_015"]), number(each["mean_steps"]),
                            number(each.get("mean_disturbed_objects"), 2), str(each["episodes"])) for each in made])]
    return blocks


def _policies(plan: Plan) -> list[list[str]]:
    rows = [(name, _origin(name, policy)) for name, policy in plan.policies.items()]
    return [["## Policies"], _table(("for", "policy"), rows)] if rows else []


def _origin(name: str, policy: Policy) -> str:
    """Where a policy comes from, and how long it was trained."""
    if policy.source == "pretrained":
        return f"comes with the package: {pretrained.steps(pretrained.card(name)):,} steps"
    run = Path(policy.source)
    status = read_status(run)["status"] if (run / "config.yaml").exists() else "not started"
    return f"{run}: " + (f"{saved_config(run)['steps']:,} steps" if status == "finished" else f"training {status}")


def _beside(row: Beside) -> tuple[str, ...]:
    """A row of the table of the paper's figures."""
    stated, here = row.stated, "not measured"
    if row.measured is not None:
        here = f"{share(row.measured)} ({_interval(row.interval)}, {row.episodes})"
    return (_words(stated.scenario), stated.after, stated.agent, share(stated.success), here, stated.words)


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *rows)]


def _words(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _interval(interval: Any) -> str:
    return f"{100 * interval[0]:.0f} .. {100 * interval[1]:.0f}"

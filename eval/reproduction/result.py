"""What `rearrange reproduce` leaves: figure6.md with the paper's figures beside the measured ones, and report.html."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eval.report import page as report_page
from eval.report.paper import DIFFERENCES, IN_WORDS, PUBLISHED, Beside, beside
from eval.reproduction.jobs import Plan, Policy
from rearrange.files import read_json
from rearrange.runs.run_directory import read_status, saved_config
from skills import pretrained

VIDEO_MB = 100.0


def write(folder: Path, plan: Plan, evaluations: list[Path], plain: dict[str, Any]) -> list[str]:
    """Write both files; lines for people."""
    figures = [read_json(path / "metrics.json") for path in evaluations]
    text = markdown(plan, figures, plain)
    (folder / "figure6.md").write_text(text, encoding="utf-8")
    trained = [Path(policy.source) for policy in plan.policies.values() if policy.source != "pretrained"]
    runs = [*evaluations, *(path for path in trained if (path / "metrics.csv").exists())]
    made = report_page.make([str(path) for path in runs], folder / "report.html", Path(plain["output"]),
                            "Figure 6 of the VER paper", VIDEO_MB, plain["note"])
    return ["", *text.splitlines(), "", f"table     {folder / 'figure6.md'}", f"report    {made.path}"]


def markdown(plan: Plan, figures: list[dict[str, Any]], plain: dict[str, Any]) -> str:
    """All of it as one page of text."""
    blocks = [["# Figure 6 of the VER paper"], *([[f"**{plain['note']}**"]] if plain["note"] else [])]
    rows = [_beside(row) for row in beside(figures)]
    if rows:
        head = ("scenario", "after", "agent", "paper", "here (95 % interval, n)", "in the paper")
        blocks += [["## Beside the paper"], _table(head, rows),
                   [*IN_WORDS, "Only what the paper's text states is in this table; nothing is read off its figure."],
                   ["Where the settings differ:"], [f"- {text}" for text in DIFFERENCES]]
    if scenarios := [name for name in dict.fromkeys(each["scenario"] for each in figures) if name in PUBLISHED[0].success]:
        rows = [(each.system, *(_percent(each.success[name]) for name in scenarios), each.conditions, each.source) for each in PUBLISHED]
        blocks += [["## Whole tasks of others"], _table(("system", *map(_words, scenarios), "conditions", "source"), rows)]
    for scenario in dict.fromkeys(each["scenario"] for each in figures):
        made = [each for each in figures if each["scenario"] == scenario]
        names = [row["name"] for row in made[0]["interactions"]]
        blocks += [[f"## {_words(scenario)}"], _table(("success after", *names, "whole task", "within 0.15 m", "n"), [
            (each["agent"], *(_percent(row["success"]) for row in each["interactions"]),
             f"{_percent(each['success'])} ({_interval(each['success_interval_95'])})", _percent(each["success_015"]),
             str(each["episodes"])) for each in made
        ])]
    if plan.policies:
        rows = [(name, _origin(name, policy)) for name, policy in plan.policies.items()]
        blocks += [["## Policies"], _table(("for", "policy"), rows)]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _origin(name: str, policy: Policy) -> str:
    """Where a policy comes from, and how long it was trained."""
    if policy.source == "pretrained":
        return f"comes with the package: {pretrained.steps(pretrained.card(name)):,} steps"
    run = Path(policy.source)
    status = read_status(run)["status"] if (run / "config.yaml").exists() else "not started"
    return f"{run}: " + (f"{saved_config(run).steps:,} steps" if status == "finished" else f"training {status}")


def _beside(row: Beside) -> tuple[str, ...]:
    """A row of the table of the paper's figures."""
    stated, here = row.stated, "not measured"
    if row.measured is not None:
        here = f"{_percent(row.measured)} ({_interval(row.interval)}, {row.episodes})"
    return (_words(stated.scenario), stated.after, stated.agent, _percent(stated.success), here, stated.words)


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *rows)]


def _words(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _percent(value: float) -> str:
    return f"{100 * value:.1f}".removesuffix(".0") + " %"


def _interval(interval: Any) -> str:
    return f"{100 * interval[0]:.0f} .. {100 * interval[1]:.0f}"

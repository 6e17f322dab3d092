"""`skill=all`, `hab=all`: the same command for every skill or scenario, one after another, with one table at the end.

Each is a process and a run directory of its own, called alike. A figure that all have stands in the table;
the rest is in each run's own files, and all of it in `<output>/<command>/all/<name>.json`.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from rearrange.command_line import launcher_words
from rearrange.command_line.composition import options
from rearrange.command_line.composition import parse_overrides as front
from rearrange.command_line.runs.launching import Job, launching
from rearrange.command_line.runs.names import checked_name
from rearrange.command_line.runs.run_directory import folder_of
from rearrange.home.errors import UserError
from rearrange.home.text_table import columns
from trainer.faults import signals


def run(command: str, words: list[str], group: str = "skill") -> int:
    """Run `command` for each choice of `group`; 0 if all went well, that of a job that was stopped, else 1. Every one
    is checked before the first. """
    if command != "eval":
        raise UserError(f"{group}=all is for eval; {command} takes one {group}: {', '.join(options.choices(group))}.")
    words, hydras = launcher_words.split(words)
    jobs, name = plan(command, words, group)
    saved = next(iter(jobs.values()))[1].parent.parent / ("all" if group == "skill"
                                                          else "all_scenarios") / f"{name}.json"
    with launching(hydras, saved.parents[2] / "sweeps" / f"{command}_{name}") as launched:
        launched.run([Job(tuple(job), path) for job, path in jobs.values()])
        codes = {choice: launched.codes[path] for choice, (_, path) in jobs.items() if path in launched.codes}
        stopped = launched.stopped()
    figures = {choice: made for choice, (_, path) in jobs.items() if choice in codes and (made := _figures(path))}
    print("\n" + "\n".join([*table(jobs, codes, figures, group), *interaction_lines(figures)]))
    if figures:
        saved.parent.mkdir(parents=True, exist_ok=True)
        saved.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
        print(f"\nmetrics   {saved}")
    return stopped or signals.exit_of_all(codes.values())


def plan(command: str, words: list[str], group: str = "skill") -> tuple[dict[str, tuple[list[str], Path]], str]:
    """For each choice its words and its directory, checked; and the name that the directories share."""
    others = [word for word in words if word != f"{group}=all" and not word.startswith("name=")]
    if twice := next((word for word in others if word.startswith(("skill=", "hab="))), None):
        raise UserError(f"{group}=all and {twice} are both given: leave one of them out.")
    given = next((word.partition("=")[2] for word in reversed(words) if word.startswith("name=")), None)
    name = checked_name(given) if given and given != "null" else time.strftime("all_%Y-%m-%d_%H-%M-%S")
    jobs = {}
    for choice in options.ours(group):
        job = [f"{group}={choice}", *others, f"name={name}"]
        made = front.compose(command, job)
        front.require(made)
        path = folder_of(made.config, command) / name
        if path.exists():
            raise UserError(f"{path} exists already. Choose another name=.")
        if group == "hab":  # their checks take seconds, their evaluations minutes
            from eval.scenario.command import make_job

            make_job(options.options_of(made))
        jobs[choice] = ([command, *job], path)
    return jobs, name


def table(jobs: dict[str, Any], codes: dict[str, int], figures: dict[str, dict[str, Any]],
          group: str = "skill") -> list[str]:
    """One line per skill or scenario: success with its interval, n, steps, and the reasons of failures."""
    rows = [
        ("scenario" if group == "hab" else group, "success", "95 % interval", "n", "steps", "protocol", "failed by")]
    for choice in jobs:
        state = ("not started" if choice not in codes else "" if codes[choice] == 0 else "stopped"
                 if codes[choice] in signals.BEFORE_THE_END else "failed: see above")
        if choice not in figures:
            rows.append((choice, state, "", "", "", "", ""))
            continue
        made = figures[choice]
        low, high = made["success_interval_95"] or (None, None)
        why = made["ends"] if "ends" in made else made["failures"]
        reasons = ", ".join(f"{reason} {share:.1%}" for reason, share in why.items()) or "-"
        n = f"{made['episodes']} of {made['episodes_asked']}" if made.get("interrupted") else str(made["episodes"])
        apart = f"{made['began_solved']} began solved" if made.get("began_solved") else ""
        rule = ", ".join([str(made.get("protocol") or ""), *made.get("changed", ())])
        if not made["episodes"]:
            rows.append((choice, "", "", "0", "", rule, "; ".join(filter(None, [state, apart]))))
            continue
        rows.append((choice, f"{made['success']:.1%}", f"{low:.1%} .. {high:.1%}", n, f"{made['mean_steps']:.0f}", rule,
                     "; ".join(filter(None, [state, reasons, apart]))))
    return columns(rows)


def interaction_lines(figures: dict[str, dict[str, Any]]) -> list[str]:
    """Success after each interaction, a row for each scenario, as in Figure 6 of the paper; nothing for skills."""
    measured = {name: made["interactions"] for name, made in figures.items() if "interactions" in made}
    if not measured:
        return []
    longest = max(measured.values(), key=len)
    rows = [("after", *(row["name"] for row in longest))]
    rows += [(name, *(f"{row['success']:.0%}" for row in interactions), *[""] * (len(longest) - len(interactions)))
             for name, interactions in measured.items()]
    return ["", *columns(rows)]


def _figures(path: Path) -> dict[str, Any] | None:
    """Of a run that began; None where it has none."""
    try:
        return json.loads((path / "metrics.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None

"""`skill=all`: the same command for every skill, one after another, with one table at the end.

Each skill is a process and a run directory of its own, called alike. A figure that every skill has stands in the table;
the rest is in each run's own files, and all of it in `<output>/<command>/all/<name>.json`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rearrange import keys, sweep
from rearrange import settings as front
from rearrange.errors import UserError
from rearrange.run_directory import checked_name, folder_of

WORD = "skill=all"


def run(command: str, words: list[str], launch: Callable[[list[str]], int] | None = None) -> int:
    """Run `command` for each skill; 0 if all went well, 130 if stopped, else 1. Every one is checked before the first."""
    if command != "eval":
        raise UserError(f"{WORD} is for eval; {command} takes one skill: {', '.join(keys.choices('skill'))}.")
    jobs, name = plan(command, words)
    codes: dict[str, int] = {}
    for number, (skill, (job, _)) in enumerate(jobs.items(), 1):
        print(f"\n[{number}/{len(jobs)}] rearrange {' '.join(job)}", flush=True)
        codes[skill] = (launch or sweep.launch_process)(job)
        if codes[skill] == 130:
            break
    figures = {skill: _figures(path) for skill, (_, path) in jobs.items() if codes.get(skill) == 0}
    print("\n" + "\n".join(table(jobs, codes, figures)))
    if figures:
        saved = next(iter(jobs.values()))[1].parent.parent / "all" / f"{name}.json"
        saved.parent.mkdir(parents=True, exist_ok=True)
        saved.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
        print(f"\nmetrics   {saved}")
    return 130 if 130 in codes.values() else 1 if any(codes.values()) else 0


def plan(command: str, words: list[str]) -> tuple[dict[str, tuple[list[str], Path]], str]:
    """For each skill its words and its directory, checked; and the name that the directories share."""
    others = [word for word in words if word != WORD and not word.startswith("name=")]
    given = next((word.partition("=")[2] for word in reversed(words) if word.startswith("name=")), None)
    name = checked_name(given) if given and given != "null" else time.strftime("all_%Y-%m-%d_%H-%M-%S")
    jobs = {}
    for skill in keys.choices("skill"):
        job = [f"skill={skill}", *others, f"name={name}"]
        path = folder_of(front.compose(command, job).config, command) / name
        if path.exists():
            raise UserError(f"{path} exists already. Choose another name=.")
        jobs[skill] = ([command, *job], path)
    return jobs, name


def table(jobs: dict[str, Any], codes: dict[str, int], figures: dict[str, dict[str, Any]]) -> list[str]:
    """One line per skill: success with its interval, n, steps, and the reasons of failures."""
    rows = [("skill", "success", "95 % interval", "n", "steps", "failed by")]
    for skill in jobs:
        if skill not in figures:
            state = "not started" if skill not in codes else "stopped" if codes[skill] == 130 else "failed: see above"
            rows.append((skill, state, "", "", "", ""))
            continue
        made = figures[skill]
        low, high = made["success_interval_95"]
        reasons = ", ".join(f"{reason} {share:.1%}" for reason, share in made["failures"].items()) or "-"
        rows.append((skill, f"{made['success']:.1%}", f"{low:.1%} .. {high:.1%}", str(made["episodes"]),
                     f"{made['mean_steps']:.0f}", reasons))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _figures(path: Path) -> dict[str, Any]:
    return json.loads((path / "metrics.json").read_text(encoding="utf-8"))

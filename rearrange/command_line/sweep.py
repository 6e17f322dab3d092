"""`-m`: one run per combination of comma-separated values, one after another, with a table at the end.

Each job is a process of its own (`python -m rearrange ...`) in its own directory, named by what is swept. A sweep that
is typed again skips jobs that are finished; with `resume=true` it also continues those that were stopped.
`skill=all` is the sweep over all skills.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rearrange.composition import options
from rearrange.composition import compose as front
from rearrange.errors import UserError
from rearrange.runs.processes import launch_process
from rearrange.runs.names import checked_name
from rearrange.composition.restart import AUTO, resume_as
from rearrange.composition.run_plan import changes
from rearrange.runs.run_directory import folder_of, has_checkpoints, read_status, refuse_if_held
from trainer.faults import signals

_SHOWN = ("step", "episodes", "success", "return", "mean_steps")  # of a run's results, in the table
Launch = Callable[[list[str]], int]  # runs `rearrange <words>`; returns its exit status


@dataclass(frozen=True)
class Job:
    """One run of a sweep."""

    words: tuple[str, ...]  # command and settings
    swept: dict[str, str]
    path: Path
    done: bool  # finished before, with the same settings


def run(command: str, words: list[str], launch: Launch | None = None) -> int:
    """Run all jobs; 0 if each one is finished, that of a job that was stopped, else 1. Every job is checked before the first starts."""
    jobs = plan(command, words)
    print(f"sweep: {len(jobs)} jobs, {sum(job.done for job in jobs)} finished before", flush=True)
    codes: dict[Path, int] = {}
    for number, job in enumerate(jobs, 1):
        if job.done:
            continue
        print(f"\n[{number}/{len(jobs)}] rearrange {' '.join(job.words)}", flush=True)
        codes[job.path] = (launch or launch_process)(list(job.words))
        print("\n" + table(jobs, codes), flush=True)
        if codes[job.path] in signals.BEFORE_THE_END:
            break
    if not codes:
        print("\n" + table(jobs, codes))
    return signals.exit_of_all(codes.values())


def all_skills(words: list[str]) -> list[str]:
    """`skill=all` spelled out. The runs are called `all` unless a name is given."""
    every = "skill=" + ",".join(options.choices("skill"))
    named = any(word.split("=")[0] == "name" for word in words)
    return [every if word == "skill=all" else word for word in words] + ([] if named else ["name=all"])


def plan(command: str, words: list[str]) -> list[Job]:
    """The jobs, each of them checked as if it were run alone."""
    fixed = [word for word in words if not front.is_swept(command, word)]
    combinations = front.expand(command, words)
    if not combinations or combinations == [{}]:
        raise UserError("-m runs a sweep, and no setting has several values; for example: seed=0,1,2.")
    jobs = [_job(command, fixed, swept) for swept in combinations]
    twice = {job.path for job in jobs if [other.path for other in jobs].count(job.path) > 1}
    if twice:
        raise UserError(f"two jobs of the sweep would use {min(twice)}; leave name= out of it, or sweep over it alone.")
    return jobs


def _job(command: str, fixed: list[str], swept: dict[str, str]) -> Job:
    words = fixed + [f"{key}={value}" for key, value in swept.items()]
    typed = front.compose(command, words)
    front.require(typed)
    name = checked_name(_name(typed.config.name, {k: v for k, v in swept.items() if k not in ("skill", "name")}))
    words = [word for word in words if word.split("=")[0] not in ("name", "resume")] + [f"name={name}"]
    path = folder_of(typed.config, command) / name
    resume = resume_as(fixed, typed.config.resume) if "resume" in typed.config else False
    again = (f"resume={'auto' if resume == AUTO else 'true'}",)
    if not path.exists() or resume == AUTO and not (path / "config.yaml").exists():
        return Job((command, *words, *(again if resume == AUTO else ())), swept, path, done=False)
    if not (path / "config.yaml").exists():
        raise UserError(f"{path} exists already and is not a run. Choose another name=.")
    if changed := changes(path, typed):
        shown = "; ".join(f"{key}: {old} -> {new}" for key, (old, new) in changed.items())
        raise UserError(f"{path} exists already with other settings ({shown}). Give this sweep a name= of its own.")
    done = read_status(path)["status"] == "finished" and _has_result(command, path)
    if resume != AUTO:  # which waits
        refuse_if_held(path)
    if not done and not resume:
        on = "Continue the sweep with resume=true" if "resume" in typed.config else "Remove it, to repeat this job"
        raise UserError(f"{path} exists already and is not finished. {on}, or choose another name=.")
    return Job((command, *words) + (() if done else again), swept, path, done)


def _has_result(command: str, path: Path) -> bool:
    """Whether what a finished job leaves is still there."""
    return {"train": has_checkpoints(path), "eval": (path / "metrics.json").is_file()}.get(command, True)


def _name(base: str | None, swept: dict[str, str]) -> str:
    """`<base>_seed-0_clip-0.2`: what is swept, by the last part of each key."""
    parts = [
        f"{key.split('.')[-1]}-{''.join(c if c.isalnum() or c in '.-+_' else '-' for c in value)}"
        for key, value in swept.items()
    ]
    return "_".join(([base] if base else []) + parts) or "sweep"


def table(jobs: list[Job], codes: dict[Path, int]) -> str:
    """One line per job: what was swept, how it ended, its figures, its directory."""
    rows = []
    for job in jobs:
        saved = read_status(job.path)
        if job.done:
            state = "finished before"
        elif job.path not in codes:
            state = "not started"
        else:
            state = signals.outcome(codes[job.path])
        results = {key.split("/")[-1]: value for key, value in saved["result"].items()}
        shown = [key for key in _SHOWN if key in results] or list(results)[:4]
        figures = "  ".join(f"{key} {_number(results[key])}" for key in shown)
        rows.append([" ".join(f"{key}={value}" for key, value in job.swept.items()), state, figures, str(job.path)])
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1e4 or value == round(value) else f"{value:,.3g}"

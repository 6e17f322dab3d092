"""The jobs of a sweep: each one checked as if it were run alone, what became of it, and the table of all."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rearrange.command_line.composition import parse_overrides as front
from rearrange.command_line.composition import swept as sweeps
from rearrange.command_line.composition.auto_resume import AUTO, resume_as
from rearrange.command_line.composition.plan_run import changes
from rearrange.command_line.runs import launching as launchers
from rearrange.command_line.runs.names import checked_name
from rearrange.command_line.runs.run_directory import folder_of, has_checkpoints, read_status, refuse_if_held
from rearrange.home.errors import UserError
from rearrange.home.text_table import columns
from trainer.faults import signals

_SHOWN = ("step", "episodes", "success", "return", "mean_steps")  # of a run's results, in the table


@dataclass(frozen=True)
class Job(launchers.Job):
    """One run of a sweep."""

    swept: dict[str, str]
    done: bool  # finished before, with the same settings
    refused: str = ""  # why it was not begun: not every mistake is found before a sweeper asks
    task: str = ""  # the word that chooses it


class Taken(UserError):
    """The directory of a job is that of something else, or must be asked for with resume=true."""


def plan(command: str, words: list[str], one: bool = False) -> list[Job]:
    """The jobs, each of them checked as if it were run alone; `one`: a single one is a sweep, too."""
    fixed = sweeps.fixed(command, words)
    combinations = sweeps.expand(command, words)
    if not combinations or combinations == [{}] and not one:
        raise UserError("-m runs a sweep, and no setting has several values; for example: seed=0,1,2.")
    jobs = [job_of(command, fixed, swept) for swept in combinations]
    if twice := [path for path, times in Counter(job.path for job in jobs).items() if times > 1]:
        raise two_jobs(min(twice))
    return jobs


def two_jobs(path: Path) -> UserError:
    """The mistake of a sweep of which two jobs have one directory."""
    return UserError(f"two jobs of the sweep would use {path}; leave name= out of it, or sweep over it alone.")


def check_ends(command: str, words: list[str], sweeper: sweeps.Sweeper) -> list[sweeps.Swept]:
    """The keys that a sweeper chooses values for, once their values, or some that stand for all of them, are
    checked."""
    fixed = sweeps.fixed(command, words)
    swept = [sweeps.read(command, word, sweeper) for word in words if word not in fixed]
    if not swept:
        raise UserError("no setting has several values; for example: ppo.clip=interval(0.1,0.3).")
    for each in sweeps.checked_combinations(swept):
        front.require(front.compose(command, fixed + [f"{key}={value}" for key, value in each.items()]))
    return swept


def job_of(command: str, fixed: list[str], swept: dict[str, str], named: bool = False) -> Job:
    """The job of some values, called after them unless it is `named` already. UserError where its settings are
    refused, Taken where its directory is."""
    words = fixed + [f"{key}={value}" for key, value in swept.items()]
    typed = front.compose(command, words)
    front.require(typed)
    told = {} if named else {k: v for k, v in swept.items() if k not in ("skill", "name")}
    name = checked_name(_name(typed.value("name"), told))
    words = [word for word in words if word.split("=")[0] not in ("name", "resume")]
    words += [f"name={sweeps.as_typed(name)}"]
    path = folder_of(typed.config, command) / name
    task = next((f"{group}={typed.choices[group]}" for group in ("skill", "nav", "hab") if group in typed.choices), "")
    resume = resume_as(fixed, typed.value("resume")) if "resume" in typed.config else False
    again = (f"resume={'auto' if resume == AUTO else 'true'}",)
    if not path.exists() or resume == AUTO and not (path / "config.yaml").exists():
        return Job((command, *words, *(again if resume == AUTO else ())), path, swept, done=False, task=task)
    if not (path / "config.yaml").exists():
        raise Taken(f"{path} exists already and is not a run. Choose another name=.")
    if changed := changes(path, typed):
        shown = "; ".join(f"{key}: {old} -> {new}" for key, (old, new) in changed.items())
        raise Taken(f"{path} exists already with other settings ({shown}). Give this sweep a name= of its own.")
    done = read_status(path)["status"] == "finished" and _has_result(command, path)
    if resume != AUTO:  # which waits
        refuse_if_held(path)
    if not done and not resume:
        on = "Continue the sweep with resume=true" if "resume" in typed.config else "Remove it, to repeat this job"
        raise Taken(f"{path} exists already and is not finished. {on}, or choose another name=.")
    return Job((command, *words) + (() if done else again), path, swept, done, task=task)


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


def table(jobs: Sequence[Job], codes: dict[Path, int]) -> str:
    """One line per job: what was swept, how it ended, its figures, its directory."""
    rows = []
    for job in jobs:
        if job.done:
            state = "finished before"
        elif job.path not in codes:
            state = "running" if read_status(job.path)["status"] == "running" else "not started"
        else:
            state = signals.outcome(codes[job.path])
        results = _results(job)
        shown = [key for key in _SHOWN if key in results] or list(results)[:4]
        figures = "  ".join(f"{key} {_number(results[key])}" for key in shown)
        rows.append((" ".join(f"{key}={value}" for key, value in job.swept.items()), state, figures,
                     job.refused or str(job.path)))
    return "\n".join(columns(rows)) if rows else "no jobs"


def _results(job: Job) -> dict[str, float]:
    """The figures of a run, by the last part of their names."""
    return {key.split("/")[-1]: value for key, value in read_status(job.path)["result"].items()}


def figure(job: Job, objective: str | None) -> float | None:
    """The figure that is to be the best; None where a run does not have it."""
    value = _results(job).get(objective.split("/")[-1]) if objective else None
    return value if value is not None and math.isfinite(value) else None


def best_of(jobs: Sequence[Job], objective: str | None, minimise: bool) -> list[str]:
    """The best finished job in a line, and how its policy is evaluated in another; no lines without an objective."""
    made = [(value, job) for job in jobs
            if (value := figure(job, objective)) is not None and read_status(job.path)["status"] == "finished"]
    if not made:
        return [f"best {objective}: no job has it"] if objective else []
    value, job = (min if minimise else max)(made, key=lambda pair: pair[0])
    words = " ".join(f"{key}={value}" for key, value in job.swept.items())
    again = shlex.join(["rearrange", "eval", job.task, f"checkpoint={sweeps.as_typed(str(job.path))}"])
    trained = [f"next: {again}"] if job.words[:1] == ("train",) else []
    return [f"best {objective} {_number(value)}: {words}   {job.path}", *trained]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1e4 or value == round(value) else f"{value:,.3g}"

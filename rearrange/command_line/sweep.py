"""`-m`: one run per combination of values, by Hydra's sweepers and launchers, with a table at the end.

`hydra/sweeper=` says which jobs there are: basic takes all combinations of the values, optuna looks for the best.
`hydra/launcher=` says where they run. Each job is a process of its own (`python -m rearrange ...`) in its own directory, named by what
is swept. A sweep that is typed again skips jobs that are finished; with `resume=true` it also continues those that were stopped.
`skill=all` is the sweep over all skills.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher
from omegaconf import DictConfig, OmegaConf

from rearrange.command_line import launcher_words, sweepers
from rearrange.composition import compose as front
from rearrange.composition import options
from rearrange.composition import swept as sweeps
from rearrange.composition.restart import AUTO, resume_as
from rearrange.composition.run_plan import changes
from rearrange.errors import UserError
from rearrange.launchers import launching as launchers
from rearrange.runs.names import checked_name
from rearrange.runs.run_directory import folder_of, has_checkpoints, read_status, refuse_if_held
from rearrange.runs.text_table import columns
from trainer.faults import signals

_SHOWN = ("step", "episodes", "success", "return", "mean_steps")  # of a run's results, in the table


@dataclass(frozen=True)
class Job(launchers.Job):
    """One run of a sweep."""

    swept: dict[str, str]
    done: bool  # finished before, with the same settings
    refused: str = ""  # why it was not begun: what a sweeper asked for may be wrong in a way that no check before has found


class Taken(UserError):
    """The directory of a job is that of something else, or must be asked for with resume=true."""


class Stopped(Exception):
    """The sweep was stopped: its sweeper shall ask for no more."""


def run(command: str, words: list[str]) -> int:
    """Run all jobs; 0 if each one is finished, that of a job that was stopped, else 1. Every job is checked before the first starts,
    and of those that a sweeper makes from results, what they may be."""
    words, hydras, objective, sweeper, settings = _read(command, words)
    jobs, swept = [], []
    if sweeper.is_basic:
        jobs = plan(command, words, one=bool(hydras))
        said = f"{len(jobs):,} jobs, {sum(job.done for job in jobs):,} finished before"
    elif not objective:
        raise UserError(f"hydra/sweeper={sweeper.name} looks for the best value of a figure: add objective=, for example "
                        "objective=success.")
    else:
        swept = check_ends(command, words, sweeper)
        most = sweepers.most_jobs(settings, swept, sweeper)
        said = f"jobs as hydra/sweeper={sweeper.name} asks for them" + (f", {most:,} at most" if most else "")
    sweepers.rehearse(settings, sweeper, [each.asked for each in swept])
    print(f"sweep: {said}", flush=True)
    fixed = [word for word in words if not sweeps.is_swept(command, word)]
    with launchers.launching(hydras, _folder(command, words)) as launched:
        between = Between(launched, command, fixed, jobs, objective)
        broken = _ask(launched.config, between, sweeper, [each.asked for each in swept])
        if between.refused and all(job.refused for job in between.jobs):
            raise UserError(next(iter(between.refused.values())))
        if between.untold:
            print("\n" + table(between.jobs, between.codes))
        if failed := sum(code not in (0, *signals.BEFORE_THE_END) for code in between.codes.values()):
            print(f"\n{failed} of {len(between.jobs)} jobs failed")
        direction = str(OmegaConf.select(settings, "hydra.sweeper.direction"))
        if best := _best(between.jobs, objective, minimise="minimize" in direction):
            print(f"\nbest {best}")
        return launched.stopped() or signals.exit_of_all(between.codes.values()) or int(broken)


def _read(command: str, words: list[str]) -> tuple[list[str], list[str], str | None, sweeps.Sweeper, DictConfig]:
    """What is typed after `-m`: settings, Hydra's words, the objective, the sweeper, and Hydra's settings."""
    words, hydras = launcher_words.split(words)
    words, objective = _objective(words)
    params, hydras = sweepers.params(hydras)
    words = sweeps.last_of_each(params + words)
    settings = sweepers.checked(hydras)
    return words, hydras, objective, sweepers.chosen(settings), settings


def shown(command: str, words: list[str]) -> list[tuple[str, front.Settings]]:
    """The settings of every job, each with a line about it; of a sweeper that chooses, those of the first values."""
    words, _, _, sweeper, _ = _read(command, words)
    fixed = [word for word in words if not sweeps.is_swept(command, word)]
    if sweeper.is_basic:
        combinations = sweeps.expand(command, words)
        lines = [f"job {number} of {len(combinations)}: " for number in range(1, len(combinations) + 1)]
    else:
        swept = check_ends(command, words, sweeper)
        combinations = [{each.key: each.values[0] for each in swept}]
        lines = [f"hydra/sweeper={sweeper.name} chooses {', '.join(each.asked for each in swept)}; here "]
    typed = [[f"{key}={value}" for key, value in each.items()] for each in combinations]
    return [(line + " ".join(each) if each else "", front.compose(command, fixed + each))
            for line, each in zip(lines, typed, strict=True)]


def _ask(config: DictConfig, between: Between, sweeper: sweeps.Sweeper, asked: list[str]) -> bool:
    """Let Hydra's sweeper ask for its jobs; whether it broke off. Of combinations of values it gets the numbers, since values may
    be any text."""
    made = sweepers.make(config, between)
    try:
        if sweeper.is_basic:
            asked = [f"job={','.join(str(number) for number, _ in enumerate(between.jobs))}"]
        made.sweep(asked)
    except Stopped:
        pass
    except UserError:
        raise
    except Exception as error:  # whatever a sweeper or its storage raises
        if sweeper.is_basic:
            raise
        if not between.jobs:
            raise UserError(f"hydra/sweeper={sweeper.name}: {sweepers.line(error)}.") from error
        if between.values or not isinstance(error, ValueError):  # else no job has the figure: nothing can be the best
            print(f"warning: hydra/sweeper={sweeper.name} asks for no more jobs: {sweepers.line(error)}.", flush=True)
            return True
    return False


class Between(Launcher):
    """Between a sweeper and the launcher: makes runs of what is swept, checks them, leaves out finished ones, and tells the sweeper
    their figures. A job that is asked for twice runs once."""

    def __init__(self, launched: launchers.Launching, command: str, fixed: list[str], jobs: list[Job], objective: str | None):
        self.launched, self.command, self.fixed, self.jobs, self.objective = launched, command, fixed, jobs, objective
        self.planned, self.untold = bool(jobs), True
        self.values = 0  # figures that were told
        self.asked: dict[tuple[str, ...], Job] = {}
        self.refused: dict[Path, str] = {}
        rate = OmegaConf.select(launched.config, "hydra.sweeper.max_failure_rate")
        self.most_failed = 1.0 if jobs or rate is None else rate  # of those that a sweeper asks for together

    @property
    def codes(self) -> dict[Path, int]:
        """run directory -> exit status; 2 of a job that was refused."""
        return self.launched.codes | dict.fromkeys(self.refused, 2)

    def setup(self, **_: Any) -> None:
        """Nothing: it is ready."""

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        if self.planned:
            batch = self.jobs[initial_job_idx:initial_job_idx + len(job_overrides)]
        else:
            batch = [self._made(tuple(words)) for words in job_overrides]
        new = {job.path: job for job in batch if not job.done and not job.refused and job.path not in self.launched.codes}
        if new:
            self.launched.run(list(new.values()), self._tell)
        if self.launched.stopped() or (not self.launched.several_at_once
                                       and set(self.launched.codes.values()) & set(signals.BEFORE_THE_END)):
            raise Stopped
        told = [self._told(job) for job in batch]
        if batch and (rate := sum(made.return_value is None for made in told) / len(told)) > self.most_failed:
            print(f"hydra.sweeper.max_failure_rate={self.most_failed:g}: {rate:.0%} of the last jobs have no {self.objective}, "
                  "and no more are started", flush=True)
            raise Stopped
        return told

    def _made(self, words: tuple[str, ...]) -> Job:
        """The job that a sweeper asks for; one that cannot be run is refused, and the others go on."""
        if words not in self.asked:
            swept = dict(word.split("=", 1) for word in words)
            try:
                job = _job(self.command, self.fixed, swept)
                if any(job.path == other.path for other in self.jobs):
                    raise UserError(f"two jobs of the sweep would use {job.path}; leave name= out of it, or sweep over it alone.")
            except Taken as error:
                if not self.launched.codes:  # it is another sweep's name
                    raise
                job = self._refused(swept, error)
            except UserError as error:
                job = self._refused(swept, error)
            self.asked[words] = job
            self.jobs.append(job)
        return self.asked[words]

    def _refused(self, swept: dict[str, str], error: UserError) -> Job:
        print(f"warning: {' '.join(f'{key}={value}' for key, value in swept.items())}: {error}", flush=True)
        path = Path(self.launched.config.hydra.sweep.dir) / "refused" / str(len(self.refused))  # where nothing is
        self.refused[path] = str(error)
        return Job((), path, swept, done=False, refused=str(error))

    def _tell(self) -> None:
        if self.launched.several_at_once:
            print(f"{len(self.launched.codes)} ended", flush=True)
        else:
            print("\n" + table(self.jobs, self.codes), flush=True)
        self.untold = self.launched.several_at_once

    def _told(self, job: Job) -> JobReturn:
        made = JobReturn(overrides=job.words, status=JobStatus.COMPLETED)
        made.return_value = value = _figure(job, self.objective) if job.done or self.launched.codes.get(job.path) == 0 else None
        self.values += value is not None
        return made


def _objective(words: list[str]) -> tuple[list[str], str | None]:
    """The words without `objective=`, and what it names."""
    named = [word.partition("=")[2] for word in words if word.startswith(f"{launcher_words.OBJECTIVE}=")]
    return [word for word in words if not word.startswith(f"{launcher_words.OBJECTIVE}=")], named[-1] if named else None


def _folder(command: str, words: list[str]) -> Path:
    """Where launchers and sweepers keep their files."""
    single = [word for word in words if not sweeps.is_swept(command, word)]
    config = front.compose(command, [word for word in single if word.split("=")[0] in ("output", "name")]).config
    name = checked_name(config.name) if config.name else time.strftime("%Y-%m-%d_%H-%M-%S")
    return Path(config.output) / "sweeps" / f"{command}_{name}"


def all_skills(words: list[str]) -> list[str]:
    """`skill=all` spelled out. The runs are called `all` unless a name is given."""
    every = "skill=" + ",".join(options.choices("skill"))
    named = any(word.split("=")[0] == "name" for word in words)
    return [every if word == "skill=all" else word for word in words] + ([] if named else ["name=all"])


def plan(command: str, words: list[str], one: bool = False) -> list[Job]:
    """The jobs, each of them checked as if it were run alone; `one`: a single one is a sweep, too."""
    fixed = [word for word in words if not sweeps.is_swept(command, word)]
    combinations = sweeps.expand(command, words)
    if not combinations or combinations == [{}] and not one:
        raise UserError("-m runs a sweep, and no setting has several values; for example: seed=0,1,2.")
    jobs = [_job(command, fixed, swept) for swept in combinations]
    twice = {job.path for job in jobs if [other.path for other in jobs].count(job.path) > 1}
    if twice:
        raise UserError(f"two jobs of the sweep would use {min(twice)}; leave name= out of it, or sweep over it alone.")
    return jobs


def check_ends(command: str, words: list[str], sweeper: sweeps.Sweeper) -> list[sweeps.Swept]:
    """What a sweeper may choose, checked: of each key every value, or those that stand for all, beside those of the others."""
    fixed = [word for word in words if not sweeps.is_swept(command, word)]
    swept = [sweeps.read(command, word, sweeper) for word in words if word not in fixed]
    if not swept:
        raise UserError("no setting has several values; for example: ppo.clip=interval(0.1,0.3).")
    for each in sweeps.checked_combinations(swept):
        front.require(front.compose(command, fixed + [f"{key}={value}" for key, value in each.items()]))
    return swept


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
        return Job((command, *words, *(again if resume == AUTO else ())), path, swept, done=False)
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
    return Job((command, *words) + (() if done else again), path, swept, done)


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
        rows.append((" ".join(f"{key}={value}" for key, value in job.swept.items()), state, figures, job.refused or str(job.path)))
    return "\n".join(columns(rows)) if rows else "no jobs"


def _results(job: Job) -> dict[str, float]:
    """The figures of a run, by the last part of their names."""
    return {key.split("/")[-1]: value for key, value in read_status(job.path)["result"].items()}


def _figure(job: Job, objective: str | None) -> float | None:
    """The figure that is to be the best; None where a run does not have it."""
    value = _results(job).get(objective.split("/")[-1]) if objective else None
    return value if value is not None and math.isfinite(value) else None


def _best(jobs: Sequence[Job], objective: str | None, minimise: bool) -> str | None:
    """The best finished job, in a line."""
    made = [(value, job) for job in jobs if (value := _figure(job, objective)) is not None and read_status(job.path)["status"] == "finished"]
    if not made:
        return f"{objective}: no job has it" if objective else None
    value, job = (min if minimise else max)(made, key=lambda pair: pair[0])
    return f"{objective} {_number(value)}: {' '.join(f'{key}={value}' for key, value in job.swept.items())}   {job.path}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1e4 or value == round(value) else f"{value:,.3g}"

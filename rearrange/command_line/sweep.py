"""`-m`: one run per combination of values, by Hydra's sweepers and launchers, with a table at the end.

`hydra/sweeper=` says which jobs there are: basic takes all combinations of the values, optuna looks for the best.
`hydra/launcher=` says where they run. Each job is a process of its own (`python -m rearrange ...`) in its own
directory, named by what is swept. A sweep that is typed again skips jobs that are finished; with `resume=true` it
also continues those that were stopped. `skill=all` is the sweep over all skills. """

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher
from omegaconf import DictConfig, OmegaConf

from rearrange.command_line import launcher_words, population, sweepers
from rearrange.command_line.composition import options
from rearrange.command_line.composition import parse_overrides as front
from rearrange.command_line.composition import swept as sweeps
from rearrange.command_line.runs import launching as launchers
from rearrange.command_line.runs.names import checked_name
from rearrange.command_line.sweep_jobs import Job, Taken, best_of, check_ends, figure, job_of, plan, table, two_jobs
from rearrange.home.errors import UserError
from trainer.faults import signals


class Stopped(Exception):
    """The sweep was stopped: its sweeper shall ask for no more."""


def run(command: str, words: list[str]) -> int:
    """Run all jobs. Gives 0 if each one is finished, the status of a job that was stopped, or else 1. Every job is
    checked before the first starts; where a sweeper chooses, the values that it may choose are."""
    words, hydras, objective, sweeper, settings = _read(command, words)
    jobs, swept = [], []
    if sweeper.is_basic:
        jobs = plan(command, words, one=bool(hydras))
        said = f"{len(jobs):,} jobs, {sum(job.done for job in jobs):,} finished before"
    elif not objective:
        raise UserError(f"hydra/sweeper={sweeper.name} looks for the best value of a figure: add objective=, for "
                        "example objective=success.")
    else:
        swept = check_ends(command, words, sweeper)
        most = sweepers.most_jobs(settings, swept, sweeper)
        said = f"jobs as hydra/sweeper={sweeper.name} asks for them" + (f", {most:,} at most" if most else "")
    fixed = sweeps.fixed(command, words)
    plan_of_all = None
    if sweeper.is_population:
        plan_of_all = population.plan_of(settings.hydra.sweeper, command, fixed, swept)
        said = plan_of_all.said(settings.hydra.sweeper)
    sweepers.rehearse(settings, sweeper, [each.asked for each in swept], plan_of_all)
    print(f"sweep: {said}", flush=True)
    with launchers.launching(hydras, _folder(command, words)) as launched:
        between = Between(launched, command, fixed, jobs, objective, named=sweeper.is_population)
        broken = _ask(launched.config, between, sweeper, [each.asked for each in swept], plan_of_all)
        if between.refused and all(job.refused for job in between.jobs):
            raise UserError(next(iter(between.refused.values())))
        if between.untold:
            print("\n" + table(between.jobs, between.codes))
        if failed := sum(code not in (0, *signals.BEFORE_THE_END) for code in between.codes.values()):
            print(f"\n{failed} of {len(between.jobs)} jobs failed")
        direction = str(OmegaConf.select(settings, "hydra.sweeper.direction"))
        if best := best_of(between.jobs, objective, minimise="minimize" in direction):
            print("\n" + "\n".join(best))
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
    fixed = sweeps.fixed(command, words)
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


def _ask(config: DictConfig, between: Between, sweeper: sweeps.Sweeper, asked: list[str],
         plan_of_all: population.Plan | None) -> bool:
    """Let Hydra's sweeper ask for its jobs. Gives whether it broke off. The basic sweeper gets the numbers of the
    jobs, since their values may be any text."""
    made = sweepers.make(config, between, plan_of_all)
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
    """Stands between a sweeper and the launcher: makes a job of each combination that the sweeper asks for, checks
    it, leaves out finished ones, and tells the sweeper their figures. A job that is asked for twice runs once."""

    def __init__(self, launched: launchers.Launching, command: str, fixed: list[str], jobs: list[Job],
                 objective: str | None, named: bool = False):
        """`named`: the words of a job say its name, the steps and the weights that it begins with (population.py)."""
        self.named = named
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
        new = {job.path: job for job in batch if not job.done and not job.refused
               and job.path not in self.launched.codes}
        if new:
            self.launched.run(list(new.values()), self._tell)
        if self.launched.stopped() or (not self.launched.several_at_once
                                       and set(self.launched.codes.values()) & set(signals.BEFORE_THE_END)):
            raise Stopped
        told = [self._told(job) for job in batch]
        if batch and (rate := sum(made.return_value is None for made in told) / len(told)) > self.most_failed:
            print(f"hydra.sweeper.max_failure_rate={self.most_failed:g}: {rate:.0%} of the last jobs have no "
                  f"{self.objective}, and no more are started", flush=True)
            raise Stopped
        return told

    def _made(self, words: tuple[str, ...]) -> Job:
        """The job that a sweeper asks for; one that cannot be run is refused, and the others go on."""
        if words not in self.asked:
            fixed, swept = population.words_of_run(self.fixed, words) if self.named else (
                self.fixed, dict(word.split("=", 1) for word in words))
            try:
                job = job_of(self.command, fixed, swept, self.named)
                if any(job.path == other.path for other in self.jobs):
                    raise two_jobs(job.path)
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
        made.return_value = value = figure(
            job, self.objective) if job.done or self.launched.codes.get(job.path) == 0 else None
        self.values += value is not None
        return made


def _objective(words: list[str]) -> tuple[list[str], str | None]:
    """The words without `objective=`, and what it names."""
    named = [word.partition("=")[2] for word in words if word.startswith(f"{launcher_words.OBJECTIVE}=")]
    return [word for word in words if not word.startswith(f"{launcher_words.OBJECTIVE}=")], named[-1] if named else None


def _folder(command: str, words: list[str]) -> Path:
    """Where launchers and sweepers keep their files."""
    single = sweeps.fixed(command, words)
    made = front.compose(command, [word for word in single if word.split("=")[0] in ("output", "name")])
    name = checked_name(made.value("name")) if made.value("name") else time.strftime("%Y-%m-%d_%H-%M-%S")
    return Path(made.value("output")) / "sweeps" / f"{command}_{name}"


def all_skills(words: list[str]) -> list[str]:
    """`skill=all` spelled out. The runs are called `all` unless a name is given."""
    every = "skill=" + ",".join(options.ours("skill"))
    named = any(word.split("=")[0] == "name" for word in words)
    return [every if word == "skill=all" else word for word in words] + ([] if named else ["name=all"])

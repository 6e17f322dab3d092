"""Commands, each with a run directory of its own, given to the launcher of Hydra that `hydra/launcher=` names.

    with launching(words, folder) as launched:
        launched.run(jobs)

`basic` runs one after another on this screen. The others run several at once, and what they print is in files in
`folder`, which this process holds meanwhile (trainer/checkpoints/owner.py): jobs on this machine end, saved, once
nobody holds it any more. Jobs of SLURM outlive this process, unless it is stopped by a signal: then they are cancelled,
and save, too.
"""

from __future__ import annotations

import importlib
import os
import secrets
import shlex
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue

from hydra._internal.callbacks import Callbacks
from hydra.core.plugins import Plugins
from hydra.core.utils import JobStatus
from hydra.types import HydraContext
from omegaconf import DictConfig, open_dict

from rearrange.command_line.runs import job as one_job
from rearrange.command_line.runs.hydra_settings import Words, composed
from rearrange.command_line.runs.run_directory import hold, read_status
from rearrange.command_line.runs.stopping import on_signal
from rearrange.home.errors import UserError
from trainer.checkpoints import owner
from trainer.faults import signals

SAVING_S = 90.0  # for cancelled jobs of SLURM to save and end: more than its KillWait
# environment: a job that is submitted from within another one would inherit it
OF_THIS_JOB = ("SLURM_ARRAY_", "SLURM_RESTART_COUNT")


@dataclass(frozen=True)
class Job:
    """One command: its words, and the directory of its run."""

    words: tuple[str, ...]
    path: Path

    def line(self) -> str:
        """What a person would type."""
        return shlex.join(["rearrange", *self.words])


@dataclass
class Launching:
    """A launcher, as long as it is used. `codes`: run directory -> exit status, of what has ended."""

    config: DictConfig
    stopped: Callable[[], int | None]  # the exit status of the signal that stopped all of it
    codes: dict[Path, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """basic, joblib, submitit_local, submitit_slurm ..."""
        return _name(self.config)

    @property
    def several_at_once(self) -> bool:
        return self.name != "basic"

    def run(self, jobs: Sequence[Job], told: Callable[[], None] = lambda: None,
            needs: Mapping[Path, Sequence[Path]] = {}) -> None:
        """Run jobs, each as soon as those whose directories it needs are finished. `told` is called whenever one has
        ended, of which one that fails does not end the others, and one that was stopped here does."""
        if not jobs:
            return
        ours = {job.path for job in jobs}
        if not self.several_at_once:
            for job in jobs:
                if any(code in signals.BEFORE_THE_END for code in self.codes.values()):
                    break
                if all(self.codes.get(path) == 0 for path in needs.get(job.path, ()) if path in ours):
                    print(f"\n[{jobs.index(job) + 1}/{len(jobs)}] {job.line()}", flush=True)
                    self._launch([job])
                    told()
            return
        for number, job in enumerate(jobs, 1):
            print(f"[{number}/{len(jobs)}] {job.line()}")
        print(f"hydra/launcher={self.name} runs them; what they print: {self.config.hydra.sweep.dir}", flush=True)
        if self.name.startswith("submitit") or any(needs.get(job.path) for job in jobs):
            self._run_graph(list(jobs), needs, told)
        else:
            try:
                self._launch(jobs)
            except RuntimeError as error:  # one of joblib's processes was killed, and joblib has ended the others
                print(f"warning: {_last_line(error)}", flush=True)
                self.codes |= {job.path: 1 for job in jobs if job.path not in self.codes}
            told()

    def _launch(self, jobs: Sequence[Job], config: DictConfig | None = None, first: int = 0) -> None:
        """Give jobs to a launcher of Hydra's, and wait for them."""
        config = config or self.config
        launcher = Plugins.instance().instantiate_launcher(hydra_context=context(config), task_function=one_job.work,
                                                           config=config)
        for job, made in zip(jobs, launcher.launch([[str(job.path), *job.words] for job in jobs], first), strict=True):
            if made.status is not JobStatus.COMPLETED:
                print(f"warning: {job.line()}: {made._return_value}", flush=True)
            if (code := made._return_value if made.status is JobStatus.COMPLETED else 1) is not None:
                self.codes[job.path] = code

    def _run_graph(self, waiting: list[Job], needs: Mapping[Path, Sequence[Path]], told: Callable[[], None]) -> None:
        """A thread for each job that runs: a launcher waits for all that it was given, and submitit's tells nothing of
        the others where one is lost with its node."""
        number = {job.path: index for index, job in enumerate(waiting)}
        config, most = self._one_each()
        running: set[Path] = set()
        lost: set[Path] = set()
        ended: SimpleQueue[tuple[Job, Exception | None]] = SimpleQueue()
        mistake: Exception | None = None

        def launch(job: Job) -> None:
            try:
                self._launch([job], config, number[job.path])
                ended.put((job, None))
            except Exception as error:  # whatever the launcher raises
                ended.put((job, error))

        deadline = None
        while waiting or running:
            for job in list(waiting):
                lacking = [path for path in needs.get(job.path, ()) if path in number and self.codes.get(path) != 0]
                if mistake or self.stopped() or any(path in self.codes or path in lost for path in lacking):
                    waiting.remove(job)
                    lost.add(job.path)
                elif not lacking and len(running) < most:
                    waiting.remove(job)
                    running.add(job.path)
                    threading.Thread(target=launch, args=(job,), daemon=True).start()
            try:
                job, error = ended.get(timeout=0.5)
            except Empty:
                if self.stopped() and _is_slurms(self.config):  # which tells nobody of jobs that were cancelled
                    deadline = deadline or time.monotonic() + SAVING_S
                    if time.monotonic() > deadline or not any(owner.is_held(path) for path in running):
                        break
                continue
            running.discard(job.path)
            if error:
                mistake = mistake or _mistake(error)
                if not self.stopped():
                    self.codes[job.path] = 1
                if not (self.stopped() or mistake):
                    print(f"warning: {job.line()}: {_last_line(error)}", flush=True)
            if job.path not in self.codes:
                lost.add(job.path)
            if not mistake:
                told()
        for path in running:  # of SLURM, cancelled
            if (status := read_status(path)["status"]) in ("finished", "stopped"):
                self.codes[path] = 0 if status == "finished" else signals.STOPPED
        if mistake:
            raise UserError(f"hydra/launcher={self.name}: {_last_line(mistake)}.") from mistake

    def _one_each(self) -> tuple[DictConfig, int]:
        """A configuration for launchers of one job each, and how many of them may work at once."""
        if self.name != "joblib":
            return self.config, int(self.config.hydra.launcher.get("array_parallelism") or 1_000_000)
        config, jobs = self.config.copy(), int(self.config.hydra.launcher.n_jobs)
        config.hydra.launcher.n_jobs = 1
        return config, jobs if jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + jobs)


def check(words: Sequence[str]) -> None:
    """One sentence for a mistake in Hydra's words."""
    composed(words, Path("nowhere"), "nothing")


def context(config: DictConfig) -> HydraContext:
    """What Hydra's plugins are set up with."""
    return HydraContext(Words(), Callbacks(config))


@contextmanager
def launching(words: Sequence[str], folder: Path) -> Iterator[Launching]:
    """The launcher that Hydra's `words` ask for; `folder`, where launchers keep their files, is held meanwhile. One
    sentence for a mistake, and nothing written."""
    title = f"rearrange-{secrets.token_hex(3)}"  # by which jobs of SLURM are found again
    config = composed(words, folder, title)
    if _is_slurms(config) and title not in config.hydra.launcher.name:
        config.hydra.launcher.name += title.removeprefix("rearrange")
    with open_dict(config):
        config.follow = None if _name(config) in ("basic", "submitit_slurm") else str(folder.absolute())
        config.output = str(folder.absolute()) if _name(config) not in ("basic", "submitit_local",
                                                                        "submitit_slurm") else None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        own = hold(folder)
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror}. Choose another place with output=.") from error

    def stop() -> None:
        print("stopping: the jobs save and end", flush=True)
        own.release()
        if _is_slurms(config):
            subprocess.run(["scancel", "--me", f"--name={config.hydra.launcher.name}"], capture_output=True,
                           check=False)

    with own, _without(OF_THIS_JOB if _is_slurms(config) else ()):
        if _name(config) == "basic":  # whose commands are told by who waits for them
            yield Launching(config, lambda: None)
            return
        if _name(config) == "joblib":
            importlib.import_module("joblib.externals.loky.backend.resource_tracker")
        with on_signal(stop) as stopped:
            yield Launching(config, stopped)


@contextmanager
def _without(prefixes: tuple[str, ...]) -> Iterator[None]:
    """Meanwhile no environment variable begins with one of these."""
    taken = {key: os.environ.pop(key) for key in list(os.environ) if key.startswith(prefixes)}
    try:
        yield
    finally:
        os.environ |= taken


def _name(config: DictConfig) -> str:
    return str(config.hydra.runtime.choices["hydra/launcher"])


def _is_slurms(config: DictConfig) -> bool:
    return _name(config) == "submitit_slurm"


def _mistake(error: Exception) -> Exception | None:
    """The error, if it is of the launcher's settings: then no other job could be started either."""
    return error if isinstance(error,
                               ValueError) or str(error).lstrip().startswith(("sbatch:", "Could not detect")) else None


def _last_line(error: Exception) -> str:
    """An error in a line: what is behind it stands at its end."""
    return (str(error).strip().splitlines() or [type(error).__name__])[-1].strip().rstrip(".")

"""The training loop: collect, learn, log, save. The file to read first."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Iterator

import numpy as np
import torch

from trainer import checkpoint, owner
from trainer.collect import Cancelled, Collector
from trainer.config import TrainConfig
from trainer.nonfinite import NonFinite, write_dump
from trainer.experience import Alternating, Overlapping
from trainer.learner import Learner, plain
from trainer.logs.logger import MetricsLogger
from trainer.policy import Policy, observation_shapes
from trainer.ranks.ranks import Ranks
from trainer.ranks.ranks import join as ranks_of_this_run
from trainer.logs.training_log import Observer, Record, Report
from trainer.logs.run_files import recording
from trainer.rollout import Rollout
from trainer.sizes import action_numbers, check_memory
from trainer.threads import LearnThreads
from trainer.signals import STOPPING

__all__ = ["TrainResult", "train"]


@dataclass
class TrainResult:
    """How a run ended."""

    policy: Policy
    steps: int
    reason: str  # "complete", or the name of the signal that stopped it
    checkpoint: Path | None  # the newest that there is
    history: list[dict[str, float]] = field(repr=False, default_factory=list)  # logged metrics, each with "step"
    unsaved_steps: int = 0  # which are not in that checkpoint, because it could not be written


def train(make_env: Callable[[], Any], config: TrainConfig = TrainConfig(), run_dir: str | os.PathLike | None = None,
          resume_from: str | os.PathLike | None = None, observers: tuple[Observer, ...] = (),
          meta: dict[str, Any] | None = None, start_from: str | os.PathLike | None = None, progress: bool = True) -> TrainResult:
    """Train a policy with VER and PPO on any Gymnasium environment.

    make_env: zero-argument callable that gives one environment, in the worker processes; `trainer.spaces` says which spaces it
    may have. run_dir: checkpoints go to `run_dir/checkpoints`, metrics to `run_dir` (`trainer.logs.logger`), and progress is shown unless
    `progress` is False; without it nothing is written or shown. resume_from: a checkpoint to continue. observers: called with
    (step, metrics) about every `config.log_every_s`; a MetricsLogger among them takes the place of the run's own metrics and
    progress. meta: plain values kept in the checkpoints. start_from: a checkpoint whose policy a new run begins with; the steps,
    the optimiser and the schedule begin anew.

    Started by torchrun or srun, this process is one of several ranks that learn one policy (trainer/ranks/ranks.py).

    SIGINT, SIGTERM, SIGHUP and a scheduler's SIGUSR1, SIGUSR2 and SIGXCPU finish the update under way, save and return; where that
    takes longer than `config.stop_within_s`, the rollout under way is lost. A second one stops at once.
    Raises ValueError for a setting that cannot work, WorkerError when an environment worker fails, NonFiniteLoss when the
    policy diverges, RankError when another rank died or failed; the last good checkpoint is on disk in each case.
    """
    config.check()
    with ranks_of_this_run(config.device) as ranks:
        return _train(make_env, config, run_dir, resume_from, observers, meta or {}, start_from, progress, ranks)


def _train(make_env: Callable[[], Any], config: TrainConfig, run_dir: str | os.PathLike | None,
           resume_from: str | os.PathLike | None, observers: tuple[Observer, ...], meta: dict[str, Any],
           start_from: str | os.PathLike | None, progress: bool, ranks: Ranks) -> TrainResult:
    config, device = config.for_ranks(ranks.local_size), _device(config.device, ranks.local_rank)
    meta = plain(meta)
    first = ranks.rank == 0  # reads and writes; the others are told
    with ExitStack() as stack:
        if first and run_dir is not None:
            stack.enter_context(_own(Path(run_dir), resume_from))
        content = ranks.from_first(
            checkpoint.load_checkpoint(resume_from, to_continue=True) if first and resume_from is not None else None)
        start = ranks.from_first(checkpoint.load_checkpoint(start_from) if first and start_from is not None else None)
        began_with = checkpoint.newest(Path(resume_from)) if content and first else None
        done = content["counters"]["steps"] if content else 0
        saved = _saved_by(ranks, content, config.collect.num_envs) if config.deterministic else None
        # A resumed run sees new episodes, unless it is to be the same as one without a break.
        worker_seed = int(np.random.SeedSequence([config.seed, 0 if config.deterministic else done]).generate_state(1)[0])
        threads = stack.enter_context(LearnThreads(config.torch_threads))
        collector = stack.enter_context(Collector(make_env, config.collect, worker_seed, device, ranks.rank, config.deterministic,
                                                  saved and saved["collector"]))
        stop = stack.enter_context(_stop_on_signal(late=collector.cancel, within_s=config.stop_within_s))
        ranks.on_death(collector.cancel)
        check_memory(config, observation_shapes(collector.observation_space), action_numbers(collector.action_space))
        learner = Learner(config, collector, device, ranks)
        with checkpoint.using(resume_from or start_from or ""):
            if content:
                learner.restore(content)
            elif start:
                learner.begin_with(start)
            collector.begin_states(learner.policy, saved and saved["collector"])
        collector.preemption = ranks.preemption(config)
        rollout = Rollout(config.collect.num_envs, config.steps_per_rollout, observation_shapes(learner.spaces[0]),
                          learner.policy.action_size, len(learner.policy.choices), learner.policy.state_size, device,
                          batches=2 if config.collect.overlap else 1)
        if saved:
            with checkpoint.using(resume_from or ""):
                rollout.restore(saved["rollout"])
        experience = (Overlapping(collector, rollout, learner.policy, saved) if config.collect.overlap
                      else Alternating(collector, rollout))
        stack.callback(experience.close)
        run_dir = ranks.from_first(Path(run_dir) if run_dir is not None else None)
        if made_from := collector.environments.made_from:
            meta = {"gymnasium": made_from} | meta
        if first and run_dir is not None and not any(isinstance(observer, MetricsLogger) for observer in observers):
            observers = *stack.enter_context(recording(run_dir, config, done, shown=progress)), *observers
        record = Record(learner, experience, config, run_dir if first else None, observers if first else (), meta,
                        content.get("window", ()) if content else (), began_with)
        ended, broken_off, learned_from = None, False, 0
        try:
            try:
                while learner.steps < config.steps and not ended:
                    collected = experience.next(learner.policy, learner.updates, config.steps - learner.steps)
                    with threads.learning():
                        learned = learner.update(rollout, collected)
                    learned_from += collected.steps
                    everyone = ranks.gather(Report.of(collected, learner.learn_s, stop.signal, record.save_is_due()))
                    if collector.preemption:
                        collector.preemption.prepare(everyone)
                    record.after_update(everyone, learned)
                    ended = next((report.signal for report in everyone if report.signal), None)
                record.save()
            except Cancelled:
                if not stop.signal or ranks.size > 1:
                    raise
                ended, broken_off = stop.signal, True
                if not config.deterministic:  # whose checkpoints are of between two rollouts
                    record.save()
            if ended and (broken_off or not config.deterministic):  # else what was collected meanwhile is in the checkpoint
                experience.close()
                record.tell_lost(rollout.total - learned_from)
        except NonFinite as error:
            record.save_quietly(rollout.total - learned_from)
            raise _with_dump(error, run_dir, learner, rollout) from error
        except BaseException as error:
            record.save_quietly(rollout.total - learned_from)
            if not stop.signal or not ranks.may_be_ended_by_others(error):
                raise
            ended = stop.signal  # one rank had no time left for its rollout, and the others cannot go on without it
            ranks.leave_early(f"rank {ranks.rank} was stopped by {ended}")
        reason = "complete" if learner.steps >= config.steps else ended
        return TrainResult(learner.policy, learner.steps, reason, record.saved, list(record.history), record.unsaved_steps)


def _own(run_dir: Path, resume_from: str | os.PathLike | None) -> owner.Hold:
    """This process's own directory, as long as it trains. ValueError if checkpoints cannot be written there, if they would be mixed
    with those of another run, or if another process works there."""
    folder = run_dir / "checkpoints"
    resumed = None if resume_from is None else checkpoint.newest(Path(resume_from)).resolve()
    if checkpoint.list_checkpoints(folder) and (resumed is None or resumed.parent != folder.resolve()):
        raise ValueError(f"{run_dir} has checkpoints of another run: continue it with resume_from={str(run_dir)!r}, "
                         "or choose another run_dir.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        own = owner.hold(run_dir)
    except OSError as error:
        raise ValueError(f"checkpoints cannot be written to {folder}: {error.strerror}.") from error
    checkpoint.remove_partial(folder)
    return own


def _saved_by(ranks: Ranks, content: dict[str, Any] | None, num_envs: int) -> dict[str, Any] | None:
    """What this rank saved of its environments and experience in a deterministic run."""
    if content is None:
        return None
    saved = content.get("ranks", [])
    if len(saved) != ranks.size or "collector" not in saved[ranks.rank]:
        raise checkpoint.CheckpointError(
            f"this checkpoint cannot be continued with deterministic=true: it was written by {max(1, len(saved))} rank(s) "
            f"{'with' if saved and 'collector' in saved[0] else 'without'} deterministic=true, this run has {ranks.size}.")
    mine = saved[ranks.rank]
    if len(mine["collector"]["starts"]) != num_envs:
        raise checkpoint.CheckpointError(
            f"this checkpoint cannot be continued with deterministic=true and {num_envs} environments: "
            f"it has {len(mine['collector']['starts'])} of them (trainer.num_envs).")
    return mine


def _with_dump(error: NonFinite, run_dir: Path | None, learner: Learner, rollout: Rollout) -> NonFinite:
    """The error, with the name of the file that reproduces it; of its own kind."""
    if run_dir is None or learner.batch is None:
        return type(error)(f"{error}; the learner is as it was after update {learner.updates}.")
    try:
        path = write_dump(run_dir, learner, rollout, error)
    except (OSError, RuntimeError) as problem:
        return type(error)(f"{error}; a dump of it could not be written ({problem}).")
    return type(error)(f"{error} in update {learner.updates + 1}; python -m trainer.nonfinite {path} repeats it.")


def _device(name: str, local_rank: int) -> torch.device:
    """The device that `name` means; several ranks of one machine take one GPU each."""
    try:
        device = torch.device("cuda" if name == "auto" else name)
    except RuntimeError as error:
        raise ValueError(f"device={name} is none that torch knows: write auto, cpu, cuda or cuda:0.") from error
    if device.type != "cuda":
        return device
    if not torch.cuda.is_available():
        if name == "auto":
            return torch.device("cpu")
        raise ValueError(f"device={name}: torch finds no CUDA device here; write device=auto or device=cpu.")
    return device if device.index is not None else torch.device("cuda", local_rank % torch.cuda.device_count())


class _Stop:
    signal: str | None = None


@contextmanager
def _stop_on_signal(late: Callable[[], None], within_s: float) -> Iterator[_Stop]:
    """Turn the first signal of STOPPING into a request to stop after the update; the second acts at once. `late` is called when the
    update is still not there after `within_s`."""
    stop = _Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    previous: dict[signal.Signals, Any] = {}

    timer = threading.Timer(within_s, late)
    timer.daemon = True

    def request(signum: int, frame: Any) -> None:
        stop.signal = signal.Signals(signum).name
        timer.start()
        for s, handler in previous.items():
            signal.signal(s, signal.default_int_handler if s == signal.SIGINT else handler)

    for s in STOPPING:
        if s != signal.SIGHUP or signal.getsignal(s) != signal.SIG_IGN:  # nohup
            previous[s] = signal.signal(s, request)
    try:
        yield stop
    finally:
        timer.cancel()
        for s, handler in previous.items():
            signal.signal(s, handler)

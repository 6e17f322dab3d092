"""The training loop: collect, learn, log, save; and below it, how the parts of a run are made. The file to read
first."""

from __future__ import annotations

import logging
import os
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from trainer import callbacks as moments
from trainer import checkpoint
from trainer.callbacks import Callbacks, TrainingLog
from trainer.checkpoints import owner
from trainer.checkpoints.files import plain
from trainer.checkpoints.saving import Evaluations, Saver
from trainer.cloning.demonstrations import Demonstrated, Demonstrations
from trainer.collect import Collector
from trainer.config import TrainConfig
from trainer.evaluation import Evaluator
from trainer.experience import Alternating, Asynchronous, Experience, Overlapping
from trainer.faults.stopping import Stop, orderly_end, stop_on_signal
from trainer.learner import Learner, RankReport
from trainer.logs.logger import MetricsLogger
from trainer.logs.run_files import recording
from trainer.machine import LearnThreads, check_memory
from trainer.networks import MakePolicy
from trainer.policy import Policy, observation_shapes
from trainer.ranks.launch import compare_nodes
from trainer.ranks.ranks import Ranks, join
from trainer.rollout import Rollout
from trainer.spaces import action_numbers, badly_explored, stored_as
from trainer.workers.batched import BatchedEnvironments
from trainer.workers.environments import Environments
from trainer.workers.fixed_order import fixed_order

__all__ = ["TrainResult", "train"]

_log = logging.getLogger(__name__)


@dataclass
class TrainResult:
    """How a run ended."""

    policy: Any  # a trainer.Policy, or what make_policy made
    steps: int
    reason: str  # "complete", the name of the signal that stopped it, or what a callback said
    checkpoint: Path | None  # the newest that there is
    history: list[dict[str, float]] = field(repr=False, default_factory=list)  # logged metrics, each with "step"
    unsaved_steps: int = 0  # which are not in that checkpoint, because it could not be written
    reached: bool = False  # an evaluation was as good as `stop_at`
    best: tuple[float, int] | None = None  # of the evaluations: its success or return, and its step


def train(make_env: Callable[[], Any], config: TrainConfig = TrainConfig(), run_dir: str | os.PathLike | None = None,
          resume_from: str | os.PathLike | None = None,
          observers: Sequence[Callable[[int, Mapping[str, float]], Any]] = (), meta: dict[str, Any] | None = None,
          start_from: str | os.PathLike | None = None, progress: bool = True, callbacks: Sequence[Any] = (),
          make_policy: MakePolicy = Policy, eval_env: Callable[[], Any] | None = None,
          demonstrations: Demonstrations | None = None, transfer: bool = False) -> TrainResult:
    """Train a policy with VER and PPO on any Gymnasium environment.

    Started by torchrun or srun, this process is one of several ranks that learn one policy (trainer/ranks/ranks.py).

    SIGINT, SIGTERM, SIGHUP and a scheduler's SIGUSR1, SIGUSR2 and SIGXCPU finish the update under way, save and
    return; where that takes longer than `config.stop_within_s`, the rollout under way is lost. A second one stops at
    once.

    Args:
        make_env: makes one environment, without arguments, in the worker processes; `trainer.spaces` says which
            spaces it may have.
        config: how to train.
        run_dir: checkpoints go to `run_dir/checkpoints`, metrics to `run_dir` (`trainer.logs.logger`). Without it
            nothing is written or shown.
        resume_from: a checkpoint to continue.
        observers: functions of (step, metrics), short for callbacks that have only `at_log`.
        meta: plain values that are kept in the checkpoints.
        start_from: a checkpoint whose policy a new run begins with; steps, optimiser and schedule begin anew.
        progress: whether progress is shown.
        callbacks: objects that watch the run and may end it (`trainer.callbacks.Callback`); a MetricsLogger among
            them takes the place of the run's own metrics and progress.
        make_policy: (observation_space, action_space, config.policy) -> the network to train
            (`trainer.networks.PolicyNetwork`).
        eval_env: like make_env, for the evaluations of `config.eval_every` (trainer/evaluation.py); by default
            make_env.
        demonstrations: clone these instead of stepping environments; steps are those of the episodes that were
            learned from. PPO goes on from a checkpoint of it with `resume_from`, which counts on, or with
            `start_from`.
        transfer: `start_from` is of another task; begin with what fits of it (`trainer.checkpoints.transfer`).

    Raises:
        ValueError: a setting cannot work.
        WorkerError: an environment worker failed.
        NonFiniteLoss: the policy diverged.
        RankError: another rank died or failed. The last good checkpoint is on disk in each case.
    """
    config.check()
    callbacks = [*callbacks, *(each if hasattr(each, "at_log") else moments.AtLog(each) for each in observers)]
    moments.check(callbacks)
    asked = Asked(make_env=make_env, config=config, run_dir=None if run_dir is None else Path(run_dir),
                  resume_from=resume_from, start_from=start_from, transfer=transfer, demonstrations=demonstrations,
                  make_policy=make_policy, eval_env=eval_env, callbacks=callbacks, meta=meta or {}, progress=progress)
    with join(config.device) as ranks, prepare(asked, ranks) as run:
        with orderly_end(run):
            learn(run)
        learner, saver = run.learner, run.saver
        reason = "complete" if learner.steps >= run.config.steps else run.stop.agreed
        return TrainResult(learner.policy, learner.steps, reason, saver.newest, list(run.log.history),
                           saver.unsaved_steps, run.evaluations.reached, run.evaluations.best)


def learn(run: Run) -> None:
    """Collect, learn, log and save until all steps are done, or somebody asks to stop."""
    learner, callbacks = run.learner, run.callbacks
    while learner.steps < run.config.steps and not run.stop.agreed:
        collected = run.experience.next(learner.policy, learner.updates, run.config.steps - learner.steps)
        callbacks.after_collect(collected)
        with run.threads.learning():
            learned = learner.update(run.rollout, collected)
        run.saver.look()
        everyone = run.ranks.gather(RankReport.of(collected, learner.learn_s, run.stop.asked, run.saver.is_due()))
        learner.count(everyone)
        run.experience.prepare(everyone)
        callbacks.after_update(collected, learned)
        run.evaluations.after_update()
        run.log.after_update(everyone, learned)
        if everyone[0].save:
            run.saver.save()
        run.stop.agree(everyone)
    run.saver.save()  # before waiting for the last evaluations, which take long
    run.evaluations.finish()
    run.log.finish()


# ------------------------------------------------------------------ the parts of a run

@dataclass(frozen=True)
class Run:
    """The parts of a run that the loop works with."""

    config: TrainConfig
    run_dir: Path | None
    ranks: Ranks
    threads: LearnThreads
    learner: Learner
    rollout: Rollout
    experience: Experience
    callbacks: Callbacks
    log: TrainingLog
    saver: Saver
    evaluations: Evaluations
    stop: Stop


@dataclass(frozen=True)
class Asked:
    """What `trainer.train` was called with, whose docstring says what each means. `callbacks` holds its observers,
    too."""

    make_env: Callable[[], Any]
    config: TrainConfig
    run_dir: Path | None
    resume_from: str | os.PathLike | None
    start_from: str | os.PathLike | None
    transfer: bool
    demonstrations: Demonstrations | None
    make_policy: MakePolicy
    eval_env: Callable[[], Any] | None
    callbacks: Sequence[Any]
    meta: dict[str, Any]
    progress: bool


@contextmanager
def prepare(asked: Asked, ranks: Ranks) -> Iterator[Run]:
    """A run at its beginning."""
    config, device = asked.config.for_ranks(ranks.local_size), _device(asked.config.device, ranks.local_rank)
    run_dir, resume_from, demonstrations = asked.run_dir, asked.resume_from, asked.demonstrations
    meta = plain(asked.meta)
    first = ranks.rank == 0  # reads and writes; the others are told
    n = config.collect.num_envs
    with ExitStack() as stack:
        own = stack.enter_context(_own(run_dir, resume_from)) if first and run_dir is not None else None
        content = ranks.from_first(
            checkpoint.load_checkpoint(resume_from, to_continue=True) if first and resume_from is not None else None)
        start = ranks.from_first(checkpoint.load_checkpoint(asked.start_from) if first and asked.start_from is not None
                                 else None)
        began_with = checkpoint.newest(Path(resume_from)) if content and first else None
        done = content["counters"]["steps"] if content else 0
        saved = _saved_by(ranks, content, n) if config.deterministic and demonstrations is None else None
        # A resumed run sees new episodes, unless it is to be the same as one without a break.
        seed = int(np.random.SeedSequence([config.seed, 0 if config.deterministic else done]).generate_state(1)[0])
        threads = stack.enter_context(LearnThreads(config.torch_threads))
        order = fixed_order(config.collect) if config.deterministic else None
        replay = order.restore(saved["collector"]) if order and saved else ()
        evaluator = None
        if first and config.eval_every:  # whose environment is made meanwhile
            evaluator = Evaluator(asked.make_env if asked.eval_env is None else asked.eval_env, asked.make_policy,
                                  config)
            stack.callback(evaluator.close)
        environments: Any = demonstrations  # which show the same spaces, and are not stepped
        if environments is None and config.collect.num_workers == 0:
            environments = stack.enter_context(BatchedEnvironments(asked.make_env, config.collect, seed, ranks.rank))
            n = environments.num_envs
            config = replace(config, collect=replace(config.collect, num_envs=n))
            environments.config = config.collect
            config.check()
        elif environments is None:
            environments = stack.enter_context(
                Environments(asked.make_env, config.collect, seed, ranks.rank * n, config.deterministic, replay))
        cancelled = threading.Event()
        stop = stack.enter_context(stop_on_signal(cancelled.set, config.stop_within_s))
        ranks.on_death(cancelled.set)
        learner = _learner(config, environments, device, ranks, asked.make_policy, clones=demonstrations is not None)
        begins = config.policy.mean_init, np.exp(config.policy.log_std_init)
        if first and not (content or start) and isinstance(learner.policy, Policy):
            if problem := badly_explored(environments.action_space, *begins):
                _log.warning("%s.", problem)
        if evaluator:
            evaluator.check(learner.policy, stop)
        with checkpoint.using(resume_from or asked.start_from or "") if content or start else nullcontext():
            if content:
                learner.restore(content)
            elif start:
                learner.begin_with(start, asked.transfer)
            collector = None if learner.clones else stack.enter_context(
                Collector(environments, learner.policy, seed + ranks.rank, device, order, saved and saved["collector"],
                          ranks.preemption(config), cancelled))
        rollout = Rollout(n, config.steps_per_rollout, observation_shapes(environments.observation_space),
                          learner.policy.action_size, len(learner.policy.choices), learner.policy.state_size, device,
                          batches=config.collect.kept_rollouts,
                          obs_types=stored_as(environments.observation_space))
        if saved:
            with checkpoint.using(resume_from or ""):
                rollout.restore(saved["rollout"])
        experience: Experience = (Demonstrated(demonstrations, rollout, config.seed, ranks.rank)
                                  if demonstrations is not None
                                  else Asynchronous(collector, rollout, learner.policy, over_ranks=ranks.total)
                                  if config.collect.mode == "appo"
                                  else Overlapping(collector, rollout, learner.policy, saved, ranks.total)
                                  if config.collect.overlap else Alternating(collector, rollout))
        stack.callback(experience.close)
        run_dir = ranks.from_first(run_dir)
        compare_nodes(ranks, run_dir)
        callbacks = asked.callbacks
        if first and run_dir is not None and not any(isinstance(callback, MetricsLogger) for callback in callbacks):
            callbacks = [*stack.enter_context(recording(run_dir, config, done, shown=asked.progress)), *callbacks]
        told = Callbacks(callbacks if first else (), learner, stop)
        log = TrainingLog(config, learner, told, content.get("window", ()) if content else ())
        made_from = {"gymnasium": made} if (made := getattr(environments, "made_from", None)) else {}
        meta = made_from | meta
        saver = Saver(config, ranks, learner, experience, log, told, run_dir if first else None, meta, began_with, own)
        evaluations = Evaluations(config, evaluator, learner, log, stop, run_dir if first else None, meta)
        yield Run(config, run_dir, ranks, threads, learner, rollout, experience, told, log, saver, evaluations, stop)


def _learner(config: TrainConfig, environments: Environments | BatchedEnvironments | Demonstrations,
             device: torch.device, ranks: Ranks, make_policy: MakePolicy, clones: bool) -> Learner:
    """The learner, unless the run does not fit into memory; how large the engine's own network would be is known
    before."""
    observations, actions = environments.observation_space, action_numbers(environments.action_space)
    if make_policy is Policy:
        check_memory(config, observations, actions)
    learner = Learner(config, environments.observation_space, environments.action_space, device, ranks, make_policy,
                      clones)
    if make_policy is not Policy:
        check_memory(config, observations, actions, learner.policy.state_size)
    return learner


def _own(run_dir: Path, resume_from: str | os.PathLike | None) -> owner.Hold:
    """This process's own directory, as long as it trains. ValueError if checkpoints cannot be written there, if they
    would be mixed with those of another run, or if another process works there."""
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
            f"this checkpoint cannot be continued with deterministic=True: it was written by {max(1, len(saved))} "
            f"rank(s) {'with' if saved and 'collector' in saved[0] else 'without'} deterministic=True, this run has "
            f"{ranks.size}.")
    mine = saved[ranks.rank]
    if len(mine["collector"]["starts"]) != num_envs:
        raise checkpoint.CheckpointError(
            f"this checkpoint cannot be continued with deterministic=True and {num_envs} environments: "
            f"it has {len(mine['collector']['starts'])} of them (collect.num_envs).")
    return mine


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

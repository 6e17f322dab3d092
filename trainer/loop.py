"""The training loop: collect, learn, log, save. The file to read first."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainer import callbacks as moments
from trainer.assemble_run import Asked, Run, prepare
from trainer.cloning.demonstrations import Demonstrations
from trainer.config import TrainConfig
from trainer.faults.endings import orderly_end
from trainer.networks import MakePolicy
from trainer.policy import Policy
from trainer.ranks.ranks import join
from trainer.ranks.report import RankReport

__all__ = ["TrainResult", "train"]


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
          resume_from: str | os.PathLike | None = None, observers: Sequence[Callable[[int, Mapping[str, float]], Any]] = (),
          meta: dict[str, Any] | None = None, start_from: str | os.PathLike | None = None, progress: bool = True,
          callbacks: Sequence[Any] = (), make_policy: MakePolicy = Policy,
          eval_env: Callable[[], Any] | None = None, demonstrations: Demonstrations | None = None,
          transfer: bool = False) -> TrainResult:
    """Train a policy with VER and PPO on any Gymnasium environment.

    make_env: zero-argument callable that gives one environment, in the worker processes; `trainer.spaces` says which spaces it
    may have. run_dir: checkpoints go to `run_dir/checkpoints`, metrics to `run_dir` (`trainer.logs.logger`), and progress is shown
    unless `progress` is False; without it nothing is written or shown. resume_from: a checkpoint to continue. meta: plain values
    kept in the checkpoints. start_from: a checkpoint whose policy a new run begins with; the steps, the optimiser and the schedule
    begin anew. transfer: it is of another task; begin with what fits of it (`trainer.checkpoints.transfer`).

    callbacks: objects that watch the run and may end it (`trainer.callbacks.Callback`); a MetricsLogger among them takes the place
    of the run's own metrics and progress. observers: functions of (step, metrics), short for callbacks that have only `at_log`.
    eval_env: like make_env, for the evaluations of `config.eval_every` (trainer/evaluation.py); by default make_env.
    demonstrations: clone these instead of stepping environments; steps are those of the episodes that were learned from. PPO
    goes on from a checkpoint of it with `resume_from`, which counts on, or with `start_from`.
    make_policy: (observation_space, action_space, config.policy) -> the network to train (`trainer.networks.PolicyNetwork`).

    Started by torchrun or srun, this process is one of several ranks that learn one policy (trainer/ranks/ranks.py).

    SIGINT, SIGTERM, SIGHUP and a scheduler's SIGUSR1, SIGUSR2 and SIGXCPU finish the update under way, save and return; where that
    takes longer than `config.stop_within_s`, the rollout under way is lost. A second one stops at once.
    Raises ValueError for a setting that cannot work, WorkerError when an environment worker fails, NonFiniteLoss when the
    policy diverges, RankError when another rank died or failed; the last good checkpoint is on disk in each case.
    """
    config.check()
    callbacks = [*callbacks, *(each if hasattr(each, "at_log") else moments.AtLog(each) for each in observers)]
    moments.check(callbacks)
    asked = Asked(make_env=make_env, config=config, run_dir=None if run_dir is None else Path(run_dir), resume_from=resume_from,
                  start_from=start_from, transfer=transfer, demonstrations=demonstrations, make_policy=make_policy, eval_env=eval_env,
                  callbacks=callbacks, meta=meta or {}, progress=progress)
    with join(config.device) as ranks, prepare(asked, ranks) as run:
        with orderly_end(run):
            learn(run)
        learner, saver = run.learner, run.saver
        reason = "complete" if learner.steps >= run.config.steps else run.stop.agreed
        return TrainResult(learner.policy, learner.steps, reason, saver.newest, list(run.log.history), saver.unsaved_steps,
                           run.evaluations.reached, run.evaluations.best)


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

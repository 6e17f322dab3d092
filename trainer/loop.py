"""The training loop: collect, learn, log, save. The file to read first."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Iterator

import numpy as np
import torch

from trainer import checkpoint
from trainer.collect import Collector
from trainer.config import TrainConfig
from trainer.experience import Alternating, Overlapping
from trainer.learner import Learner
from trainer.policy import Policy, observation_shapes
from trainer.record import Observer, Record
from trainer.rollout import Rollout
from trainer.threads import LearnThreads


@dataclass
class TrainResult:
    """How a run ended."""

    policy: Policy
    steps: int
    reason: str  # "complete", or the name of the signal that stopped it
    checkpoint: Path | None
    history: list[dict[str, float]] = field(repr=False, default_factory=list)  # logged metrics, each with "step"


def train(make_env: Callable[[], Any], config: TrainConfig = TrainConfig(), run_dir: str | os.PathLike | None = None,
          resume_from: str | os.PathLike | None = None, observers: tuple[Observer, ...] = (),
          meta: dict[str, Any] | None = None) -> TrainResult:
    """Train a policy with VER and PPO on any Gymnasium environment.

    make_env: zero-argument callable that gives one environment with a Box or Dict-of-Box observation space and a Box or
    Discrete action space; it runs in the worker processes. run_dir: checkpoints go to `run_dir/checkpoints`; without it
    nothing is written. resume_from: a checkpoint to continue. observers: called with (step, metrics) about every
    `config.log_every_s`. meta: plain values kept in the checkpoints.

    SIGINT and SIGTERM finish the update under way, save and return; a second one stops at once.
    Raises ValueError for a setting that cannot work, WorkerError when an environment worker fails, NonFiniteLoss when the
    policy diverges; the last good checkpoint is on disk in each case.
    """
    config.check()
    device = torch.device(("cuda" if torch.cuda.is_available() else "cpu") if config.device == "auto" else config.device)
    content = checkpoint.load_checkpoint(resume_from) if resume_from is not None else None
    done = content["counters"]["steps"] if content else 0
    worker_seed = int(np.random.SeedSequence([config.seed, done]).generate_state(1)[0])  # a resumed run sees new episodes
    with ExitStack() as stack:
        threads = stack.enter_context(LearnThreads(config.torch_threads))
        collector = stack.enter_context(Collector(make_env, config.collect, worker_seed, device))
        stop = stack.enter_context(_stop_on_signal())
        learner = Learner(config, collector, device)
        if content:
            learner.restore(content)
        record = Record(learner, config, Path(run_dir) if run_dir is not None else None, observers, meta or {})
        collector.begin_states(learner.policy)
        rollout = Rollout(config.collect.num_envs, config.steps_per_rollout, observation_shapes(learner.spaces[0]),
                          learner.policy.action_size, learner.policy.discrete, learner.policy.state_size, device,
                          batches=2 if config.collect.overlap else 1)
        experience = Overlapping(collector, rollout, learner.policy) if config.collect.overlap else Alternating(collector, rollout)
        stack.callback(experience.close)
        try:
            while learner.steps < config.steps and not stop.signal:
                collected = experience.next(learner.policy, learner.updates, config.steps - learner.steps)
                with threads.learning():
                    learned = learner.update(rollout, collected)
                record.after_update(collected, learned)
        except BaseException:
            record.save_quietly()
            raise
        record.save()
        reason = "complete" if learner.steps >= config.steps else stop.signal
        return TrainResult(learner.policy, learner.steps, reason, record.saved, record.history)


class _Stop:
    signal: str | None = None


@contextmanager
def _stop_on_signal() -> Iterator[_Stop]:
    """Turn the first SIGINT or SIGTERM into a request to stop after the update; the second acts at once."""
    stop = _Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    previous = {}

    def request(signum: int, frame: Any) -> None:
        stop.signal = signal.Signals(signum).name
        for s, handler in previous.items():
            signal.signal(s, signal.default_int_handler if s == signal.SIGINT else handler)

    for s in (signal.SIGINT, signal.SIGTERM):
        previous[s] = signal.signal(s, request)
    try:
        yield stop
    finally:
        for s, handler in previous.items():
            signal.signal(s, handler)

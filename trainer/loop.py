"""The training loop: collect, learn, log, save. The file to read first."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections import deque
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Callable, Iterator, Protocol

import numpy as np
import torch

from trainer import checkpoint, ppo
from trainer.collect import CollectStats, Collector
from trainer.config import TrainConfig
from trainer.policy import Policy, observation_shapes
from trainer.rollout import Rollout
from trainer.threads import LearnThreads


class Observer(Protocol):
    """Something told of every update: metrics files, a progress line."""

    def __call__(self, step: int, metrics: dict[str, float]) -> None: ...


@dataclass
class TrainResult:
    """How a run ended."""

    policy: Policy
    steps: int
    reason: str  # "complete", or the name of the signal that stopped it
    checkpoint: Path | None
    history: list[dict[str, float]] = field(repr=False, default_factory=list)  # logged metrics, each with "step"


class Learner:
    """The state of a run that a checkpoint must hold: policy, optimiser, counters, random states."""

    def __init__(self, config: TrainConfig, collector: Collector, device: torch.device):
        self.config, self.device = config, device
        self.spaces = (collector.observation_space, collector.action_space)
        torch.manual_seed(config.seed)
        self.policy = Policy(*self.spaces, config.policy).to(device)
        self.entropy_coef = ppo.EntropyCoefficient(config.ppo, device)
        self.optimizer = ppo.make_optimizer(self.policy, self.entropy_coef, config.ppo)
        self.rng = np.random.default_rng([config.seed, 1])
        self.steps = self.updates = self.episodes = 0
        self.seconds = 0.0

    def update(self, rollout: Rollout) -> dict[str, float]:
        """Learn from a full rollout."""
        rate = ppo.scheduled_rate(self.config.ppo, self.steps / self.config.steps)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        stats = ppo.update(self.policy, self.optimizer, self.entropy_coef, rollout, self.config.ppo, self.rng)
        self.steps += rollout.num_closed
        self.updates += 1
        return stats | {"learning_rate": rate}

    def content(self, meta: dict[str, Any]) -> dict[str, Any]:
        """The checkpoint of this moment."""
        return checkpoint.policy_content(self.policy, *self.spaces) | {
            "optimizer": self.optimizer.state_dict(),
            "log_alpha": self.entropy_coef.log_alpha.detach().cpu(),
            "counters": {"steps": self.steps, "updates": self.updates, "episodes": self.episodes, "seconds": self.seconds},
            "torch_rng": torch.get_rng_state(),
            "numpy_rng": _plain_rng(self.rng),
            "train_config": _plain(asdict(self.config)),
            "meta": meta,
        }

    def restore(self, content: dict[str, Any]) -> None:
        """Continue from a checkpoint. Raises CheckpointError if it is of another network."""
        try:
            self.policy.load_state_dict(content["policy"])
            self.optimizer.load_state_dict(content["optimizer"])
        except (RuntimeError, ValueError, KeyError) as error:
            raise checkpoint.CheckpointError(
                f"the checkpoint is of another network than this run's policy: {str(error).splitlines()[-1].strip()}") from error
        with torch.no_grad():
            self.entropy_coef.log_alpha.copy_(content["log_alpha"])
        for name, value in content["counters"].items():
            setattr(self, name, value)
        torch.set_rng_state(content["torch_rng"])
        self.rng.bit_generator.state = _state_from_plain(content["numpy_rng"])


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
    with LearnThreads(config.torch_threads) as threads, Collector(make_env, config.collect, worker_seed, device) as collector, \
            _stop_on_signal() as stop:
        learner = Learner(config, collector, device)
        if content:
            learner.restore(content)
        run = _Run(learner, config, Path(run_dir) if run_dir is not None else None, observers, meta or {})
        rollout = Rollout(config.collect.num_envs, config.steps_per_rollout, observation_shapes(learner.spaces[0]),
                          learner.policy.action_size, learner.policy.discrete, learner.policy.state_size, device)
        collector.begin_states(learner.policy)
        try:
            while learner.steps < config.steps and not stop.signal:
                collected = collector.collect(learner.policy, rollout, learner.updates)
                with threads.learning():
                    learned = learner.update(rollout)
                run.after_update(collected, learned)
        except BaseException:
            run.save_quietly()
            raise
        return run.finish("complete" if learner.steps >= config.steps else stop.signal)


class _Run:
    """What surrounds the loop: rolling means, logging and saving at their intervals."""

    def __init__(self, learner: Learner, config: TrainConfig, run_dir: Path | None, observers: tuple[Observer, ...],
                 meta: dict[str, Any]):
        self.learner, self.config, self.run_dir, self.observers, self.meta = learner, config, run_dir, observers, meta
        self.history: list[dict[str, float]] = []
        self.saved: Path | None = None
        self._window: deque[dict[str, float]] = deque(maxlen=config.episode_window)
        self._started = time.perf_counter()
        self._before = learner.seconds
        self._logged_at = self._saved_at = self._started
        self._logged_steps = learner.steps
        self._saved_steps = -1
        self._times: dict[str, float] = {}
        self._update_started = self._started

    def after_update(self, collected: CollectStats, learned: dict[str, float]) -> None:
        now = time.perf_counter()
        self.learner.seconds = self._before + now - self._started
        self.learner.episodes += len(collected.episodes)
        self._window.extend(collected.episodes)
        spent = {"collect_s": collected.seconds, "wait_s": collected.wait_s, "inference_s": collected.inference_s,
                 "storage_s": collected.storage_s, "learn_s": now - self._update_started - collected.seconds}
        self._update_started = now
        for k, v in spent.items():
            self._times[k] = self._times.get(k, 0.0) + v
        self._times["batches"] = self._times.get("batches", 0) + collected.batches
        if now - self._logged_at >= self.config.log_every_s or self.learner.steps >= self.config.steps or not self.history:
            self._log(now, learned)
        if now - self._saved_at >= self.config.checkpoint_every_s:
            self.save()

    def _log(self, now: float, learned: dict[str, float]) -> None:
        steps, seconds = self.learner.steps - self._logged_steps, now - self._logged_at
        metrics = {"steps_per_s": steps / max(seconds, 1e-9), "episodes": float(self.learner.episodes),
                   "updates": float(self.learner.updates), "wall_s": self.learner.seconds}
        keys = {k for e in self._window for k in e}
        for k in sorted(keys):
            metrics[k if "/" in k else f"episode/{k}"] = float(np.mean([e[k] for e in self._window if k in e]))
        batches = self._times.pop("batches", 0)
        metrics |= {f"time/{k[:-2]}_share": v / max(seconds, 1e-9) for k, v in self._times.items()}
        metrics["collect/mean_batch"] = steps / max(batches, 1)
        metrics |= {f"learn/{k}": v for k, v in learned.items()}
        self.history.append({"step": float(self.learner.steps), **metrics})
        for observer in self.observers:
            observer(self.learner.steps, metrics)
        self._times = {}
        self._logged_at, self._logged_steps = now, self.learner.steps

    def save(self) -> None:
        """Write a checkpoint; a disk that is full is a warning, the run goes on and tries again later."""
        self._saved_at = time.perf_counter()
        if self.run_dir is None or self.learner.steps == self._saved_steps:
            return
        try:
            self.saved = checkpoint.save(self.run_dir / "checkpoints", self.learner.steps, self.learner.content(self.meta))
            self._saved_steps = self.learner.steps
        except OSError as error:
            logging.getLogger(__name__).warning("checkpoint not written (%s); the previous one is intact, training goes on.", error)

    def save_quietly(self) -> None:
        """On the way out of a failure: keep what was learned, if it is sound, and let the failure speak."""
        try:
            if self.learner.updates and all(torch.isfinite(p).all() for p in self.learner.policy.parameters()):
                self.save()
        except Exception:  # the failure that brought us here matters more
            pass

    def finish(self, reason: str) -> TrainResult:
        self.save()
        return TrainResult(self.learner.policy, self.learner.steps, reason, self.saved, self.history)


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


def _plain(value: Any) -> Any:
    """Tuples as lists, so that a checkpoint holds plain values only."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, (list, tuple)) else value


def _plain_rng(rng: np.random.Generator) -> dict[str, Any]:
    """State of a PCG64 generator; its 128-bit integers as strings."""
    state = rng.bit_generator.state
    return {"state": str(state["state"]["state"]), "inc": str(state["state"]["inc"]),
            "has_uint32": int(state["has_uint32"]), "uinteger": int(state["uinteger"])}


def _state_from_plain(plain: dict[str, Any]) -> dict[str, Any]:
    return {"bit_generator": "PCG64", "state": {"state": int(plain["state"]), "inc": int(plain["inc"])},
            "has_uint32": plain["has_uint32"], "uinteger": plain["uinteger"]}

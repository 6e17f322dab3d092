"""Callbacks: objects of the user that watch a training run, and can end it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from trainer.collect import CollectStats
    from trainer.config import TrainConfig
    from trainer.faults.stopping import Stop
    from trainer.learner import Learner, RankReport

__all__ = ["Callback", "TrainState"]


@dataclass(frozen=True)
class TrainState:
    """A training run at one moment, for callbacks to look at."""

    policy: Any
    """The learner's network, on its device. It goes on learning: copy what is to be kept."""
    step: int
    """Environment steps that were learned from so far, of all ranks."""
    updates: int
    """Of the policy, so far."""
    metrics: Mapping[str, float]
    """What there is to say of this moment; each method of `Callback` says what."""
    checkpoint: Path | None = None
    """In `at_save`: the file."""
    films: Mapping[str, bytes] = field(default_factory=dict)
    """In `at_log`: animated GIFs by name, "eval/episode" in the row after an evaluation."""


class Callback:
    """What a callback can have: any object with some of these methods will do, this class need not be its base.

    Each method gets a `TrainState`, on the first rank only, in the thread that learns: the run waits for it. A method
    that returns text asks the run to stop. The update under way is finished, a checkpoint is written, and `train`
    returns with the text as `TrainResult.reason`. A run of several ranks stops one update later.
    """

    def after_collect(self, state: TrainState) -> str | None:
        """A rollout was collected, and nothing learned from it yet. metrics, of this rank: "collect/steps",
        "collect/episodes", "collect/batches", "time/collect_s", "time/held_s", "time/wait_s", "time/inference_s",
        "time/storage_s"."""

    def after_update(self, state: TrainState) -> str | None:
        """The policy has learned from that rollout. metrics: those of `after_collect`, "time/learn_s", and the
        statistics of the update ("learn/kl", "learn/entropy", "learn/value_loss" ..., "lag/mean", "lag/max")."""

    def at_log(self, state: TrainState) -> str | None:
        """About every `log_every_s`. metrics: the row of metrics.jsonl, with the means over the newest episodes
        ("episode/return", "episode/success" ...)."""

    def at_save(self, state: TrainState) -> str | None:
        """A checkpoint was written. metrics: the newest row that was logged."""


MOMENTS = ("after_collect", "after_update", "at_log", "at_save")


def check(callbacks: Sequence[Any]) -> None:
    """Raise ValueError for something that will never be called."""
    for callback in callbacks:
        if not any(callable(getattr(callback, moment, None)) for moment in MOMENTS):
            raise ValueError(f"callback {callback!r} has none of the methods {', '.join(MOMENTS)}.")


class AtLog:
    """A function of (step, metrics) as a callback."""

    def __init__(self, function: Callable[[int, Mapping[str, float]], Any]):
        self.function = function

    def at_log(self, state: TrainState) -> None:
        self.function(state.step, state.metrics)


class Callbacks:
    """All callbacks of a run, told of each moment; their wish to stop goes to `stop`."""

    def __init__(self, callbacks: Sequence[Any], learner: Learner, stop: Stop):
        self.learner, self.stop = learner, stop
        self._methods = {moment: [getattr(c, moment) for c in callbacks if hasattr(c, moment)] for moment in MOMENTS}

    def after_collect(self, collected: CollectStats) -> None:
        self._tell("after_collect", _figures(collected))

    def after_update(self, collected: CollectStats, learned: Mapping[str, float]) -> None:
        learn_s = {"time/learn_s": self.learner.learn_s}
        self._tell("after_update", _figures(collected) | learn_s | of_learning(learned))

    def at_log(self, metrics: Mapping[str, float], films: Mapping[str, bytes]) -> None:
        self._tell("at_log", metrics, films=films)

    def at_save(self, checkpoint: Path, metrics: Mapping[str, float]) -> None:
        self._tell("at_save", metrics, checkpoint)

    def _tell(self, moment: str, metrics: Mapping[str, float], checkpoint: Path | None = None,
              films: Mapping[str, bytes] | None = None) -> None:
        run = self.learner
        for method in self._methods[moment]:
            reason = method(TrainState(run.policy, run.steps, run.updates, metrics, checkpoint, films or {}))
            if reason is not None and not (isinstance(reason, str) and reason):
                name = getattr(method, "__qualname__", moment)
                raise ValueError(f"{name} returned {reason!r}; a callback returns None, or as text the reason why the "
                                 "run is to stop.")
            if reason:
                self.stop.ask(reason)


def of_learning(learned: Mapping[str, float]) -> dict[str, float]:
    """The statistics of an update by the names that metrics have."""
    return {k if "/" in k else f"learn/{k}": v for k, v in learned.items()}


def _figures(collected: CollectStats) -> dict[str, float]:
    counts = {"steps": collected.steps, "episodes": len(collected.episodes), "batches": collected.batches}
    figures = {f"collect/{k}": float(v) for k, v in counts.items()}
    return figures | {f"time/{k}": v for k, v in collected.spent().items()}


HISTORY = 10_000  # rows that are kept, the newest: a day and more at one row in ten seconds


class TrainingLog:
    """Makes a row about every `log_every_s`, keeps it in `history` and tells the callbacks."""

    def __init__(self, config: TrainConfig, learner: Learner, callbacks: Callbacks,
                 episodes: Sequence[dict[str, float]] = ()):
        """`episodes`: the figures of the newest, of the run that this one continues."""
        self.config, self.learner, self.callbacks = config, learner, callbacks
        self.history: deque[dict[str, float]] = deque(maxlen=HISTORY)
        self.episodes: deque[dict[str, float]] = deque(episodes, maxlen=config.episode_window)
        self._logged_at = time.perf_counter()
        self._logged_steps = learner.steps
        self.evaluated: dict[str, float] = {}  # what the newest evaluation told
        self._told: dict[str, float] = {}  # what of that is in a row
        self.film: bytes | None = None  # of one of its episodes, until the next row
        self._spent: dict[str, float] = {}  # since the last row
        self._batches = 0

    @property
    def newest(self) -> dict[str, float]:
        """The metrics of the newest row."""
        return {k: v for k, v in self.history[-1].items() if k != "step"} if self.history else {}

    def after_update(self, everyone: list[RankReport], learned: dict[str, float]) -> None:
        """Note an update that the learner has counted; a row if one is due. The first report is of the rank that
        writes."""
        for report in everyone:
            self.episodes.extend(report.collected.episodes)
        fresh = sum(r.collected.steps for r in everyone) / sum(r.batch_steps for r in everyone)
        for k, v in (everyone[0].collected.spent() | {"learn_s": self.learner.learn_s}).items():
            self._spent[k] = self._spent.get(k, 0.0) + v
        self._batches += everyone[0].collected.batches
        now = time.perf_counter()
        is_over = self.learner.steps >= self.config.steps
        if now - self._logged_at >= self.config.log_every_s or is_over or not self.history:
            self._log(now, learned | {"fresh_fraction": fresh})

    def _log(self, now: float, learned: dict[str, float]) -> None:
        steps, seconds = self.learner.steps - self._logged_steps, max(now - self._logged_at, 1e-9)
        metrics = {"steps_per_s": steps / seconds, "episodes": float(self.learner.episodes),
                   "updates": float(self.learner.updates), "wall_s": self.learner.seconds}
        for k in sorted({k for episode in self.episodes for k in episode}):
            metrics[k if "/" in k else f"episode/{k}"] = float(np.mean([e[k] for e in self.episodes if k in e]))
        metrics |= {f"time/{k[:-2]}_share": v / seconds for k, v in self._spent.items()}
        metrics["collect/mean_batch"] = steps / max(self._batches, 1)
        metrics |= of_learning(learned) | self.evaluated
        self._spent, self._batches = {}, 0
        self._logged_at, self._logged_steps = now, self.learner.steps
        self._write({"step": float(self.learner.steps), **metrics})

    def finish(self) -> None:
        """One more row of the last step where an evaluation has ended since."""
        if self.history and self.evaluated != self._told:
            self._write({**self.history[-1], **self.evaluated})

    def _write(self, row: dict[str, float]) -> None:
        film, self.film, self._told = self.film, None, self.evaluated
        self.history.append(row)
        self.callbacks.at_log(self.newest, {"eval/episode": film} if film else {})

"""Callbacks: objects of the user that watch a training run, and can end it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainer.collect import CollectStats
    from trainer.faults.stopping import Stop
    from trainer.learner import Learner

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

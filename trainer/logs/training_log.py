"""What surrounds the loop: rolling means, metrics and checkpoints at their intervals."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from trainer import checkpoint
from trainer.collect import CollectStats
from trainer.config import TrainConfig
from trainer.experience import Experience
from trainer.learner import Learner
from trainer.plain import plain_rng

HISTORY = 10_000  # rows that are kept, the newest: a day and more at one row in ten seconds


@dataclass
class Report:
    """What one rank tells the others after every update."""

    collected: CollectStats  # without its rows, which mean nothing elsewhere
    batch_steps: int  # steps that were learned from, those of an earlier rollout included
    learn_s: float
    signal: str | None  # that asks the run to stop
    save: bool  # this rank finds that a checkpoint is due

    @staticmethod
    def of(collected: CollectStats, learn_s: float, signal: str | None, save: bool) -> Report:
        return Report(replace(collected, rows=np.empty(0, np.int64)), len(collected.rows), learn_s, signal, save)


class Observer(Protocol):
    """Something told of every update: metrics files, a progress line."""

    def __call__(self, step: int, metrics: dict[str, float]) -> None: ...


class Record:
    """Keeps the history of a run, tells observers, writes checkpoints."""

    def __init__(self, learner: Learner, experience: Experience, config: TrainConfig, run_dir: Path | None,
                 observers: tuple[Observer, ...], meta: dict[str, Any], window: Sequence[dict[str, float]] = (),
                 saved: Path | None = None):
        self.experience = experience
        self.learner, self.config, self.run_dir, self.observers, self.meta = learner, config, run_dir, observers, meta
        self.history: deque[dict[str, float]] = deque(maxlen=HISTORY)
        self.saved = saved  # the newest checkpoint: at first the one that the run goes on from
        self._window: deque[dict[str, float]] = deque(window, maxlen=config.episode_window)
        self._started = time.perf_counter()
        self._before = learner.seconds
        self._logged_at = self._saved_at = self._started
        self._logged_steps = self._kept_steps = learner.steps
        self._saved_steps = -1
        self._times: dict[str, float] = {}

    @property
    def unsaved_steps(self) -> int:
        """Steps that were learned from and are in no checkpoint; 0 where there are no checkpoints."""
        return self.learner.steps - self._kept_steps if self.run_dir else 0

    def save_is_due(self) -> bool:
        return time.perf_counter() - self._saved_at >= self.config.checkpoint_every_s

    def after_update(self, everyone: list[Report], learned: dict[str, float]) -> None:
        """Count what all ranks collected; log and save at their intervals. The first report is of the rank that writes."""
        now = time.perf_counter()
        collected = everyone[0].collected
        self.learner.seconds = self._before + now - self._started
        for report in everyone:
            self.learner.steps += report.collected.steps
            self.learner.episodes += len(report.collected.episodes)
            self._window.extend(report.collected.episodes)
        learned = learned | {"fresh_fraction": sum(r.collected.steps for r in everyone) / sum(r.batch_steps for r in everyone)}
        spent = {"collect_s": collected.seconds, "wait_s": collected.wait_s, "inference_s": collected.inference_s,
                 "storage_s": collected.storage_s, "learn_s": self.learner.learn_s, "batches": collected.batches}
        for k, v in spent.items():
            self._times[k] = self._times.get(k, 0.0) + v
        if now - self._logged_at >= self.config.log_every_s or self.learner.steps >= self.config.steps or not self.history:
            self._log(now, learned)
        if everyone[0].save:
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
        """Write a checkpoint, together with all ranks, of which the first writes; a disk that is full is a warning, the run
        goes on and tries again later."""
        own = {"numpy_rng": plain_rng(self.learner.rng)} | (self.experience.content() if self.config.deterministic else {})
        self._write(self.learner.ranks.gather(own))

    def _write(self, of_ranks: list[dict[str, Any]]) -> None:
        self._saved_at = time.perf_counter()
        if self.run_dir is None or self.learner.steps == self._saved_steps:
            return
        content = self.learner.content(self.meta) | {"ranks": of_ranks, "window": list(self._window)}
        try:
            self.saved = checkpoint.save(self.run_dir / "checkpoints", self.learner.steps, content)
            self._saved_steps = self._kept_steps = self.learner.steps
        except OSError as error:
            before = f"the one of step {self._kept_steps:,} is intact" if self.saved else "there is none yet"
            logging.getLogger(__name__).warning("checkpoint of step %d not written (%s); %s.", self.learner.steps, error, before)

    def tell_lost(self, lost: int) -> None:
        """Say how many steps that this rank collected nobody will learn from."""
        if lost > 0 and self.learner.ranks.rank == 0:
            logging.getLogger(__name__).warning("%d steps collected since update %d (step %d of the run) were not learned from and "
                                                "are lost.", lost, self.learner.updates, self.learner.steps)

    def save_quietly(self, lost: int) -> None:
        """On the way out of a failure: keep what was learned, say how many steps of this rank were `lost`, and let the failure
        speak. A deterministic run keeps nothing now: it goes on exactly from the last checkpoint that knows of the environments."""
        self.tell_lost(lost)
        try:
            if self.learner.updates and not self.config.deterministic:
                self._write([])
        except Exception:  # the failure that brought us here matters more
            pass
        if self.unsaved_steps:
            why = ": deterministic=true goes on exactly from there" if self.config.deterministic and self.saved else ""
            since = f"since the checkpoint of step {self._kept_steps}" if self.saved else "are in no checkpoint and"
            logging.getLogger(__name__).warning("%d steps learned from %s are lost%s.", self.unsaved_steps, since, why)

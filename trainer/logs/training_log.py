"""The metrics of a run: means over the newest episodes and over the updates since the last row, one row at a time."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence

import numpy as np

from trainer.callbacks import Callbacks, of_learning
from trainer.config import TrainConfig
from trainer.learner import Learner
from trainer.ranks.report import RankReport

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

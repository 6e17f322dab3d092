"""When to end a rollout early because some ranks are slow (VER paper 2.3, equation 1; DD-PPO section 3).

Gradients are averaged, so all ranks wait for the slowest. VER ends each rollout at the number of steps S that maximises

    S / (Time(S) + LT)     subject to S <= T x N x ranks

Time(S): the time in which all ranks together collect S steps, if every environment goes on at its mean step time of the
rollout before. LT: the time that learning took. DD-PPO ends it once 60 % of the ranks are done, for those that have at
least a quarter of their steps.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

POLL_EVERY_S = 0.005  # between two looks at what the others have collected


@dataclass(frozen=True)
class Plan:
    """End of the next rollout: after `steps` of all ranks together, expected `seconds` after its beginning."""

    steps: int
    seconds: float


def completion_times(step_s: np.ndarray, quota: int) -> np.ndarray:
    """When each of the first `quota` steps of one rank arrives, sorted, (quota,). Every environment e gives a step
    every step_s[e] seconds, as if its clock were exact. step_s: (N,), positive."""
    low, high = 0.0, quota * float(step_s.min())  # at `high` the fastest alone has given them all
    for _ in range(50):  # the earliest time at which the environments together have given `quota` steps
        middle = 0.5 * (low + high)
        low, high = (low, middle) if np.floor(middle / step_s).sum() >= quota else (middle, high)
    counts = np.minimum(np.floor(high / step_s * (1 + 1e-9)).astype(np.int64), quota)
    first = np.repeat(np.cumsum(counts) - counts, counts)
    times = (np.arange(len(first)) - first + 1) * np.repeat(step_s, counts)
    return np.sort(times)[:quota]


def optimal_plan(step_s: np.ndarray, quota: int, learning_s: float, overlap: bool = False) -> Plan:
    """The S that maximises S / (Time(S) + LT), or S / max(Time(S), LT) where collection overlaps learning.

    step_s: (ranks, N) mean time of one step of each environment, simulation and inference, in the rollout before.
    quota: T x N, the most that one rank gives. learning_s: LT. Ties go to the larger S.
    """
    times = np.sort(np.concatenate([completion_times(rank, quota) for rank in np.asarray(step_s, float)]))
    steps = np.arange(1, len(times) + 1)
    seconds = np.maximum(times, learning_s) if overlap else times + learning_s
    score = steps / np.maximum(seconds, 1e-12)
    best = len(score) - 1 - int(score[::-1].argmax())
    return Plan(best + 1, float(times[best]))


class Preemption:
    """One rank's view of how far all are, while it collects. Ranks count together in the process group's store."""

    def __init__(self, kind: str, quota: int, fraction: float, min_share: float, size: int, store: Any,
                 overlap: bool = False, least: int = 1):
        """`least`: steps that every rank needs, one for each of its mini-batches."""
        self.overlap, self.least = overlap, least
        self.kind, self.quota, self.size, self.store = kind, quota, size, store
        self.done_ranks = math.ceil(fraction * size)
        self.min_steps = max(least, math.ceil(min_share * quota))
        self.plan: Plan | None = None  # of the next rollout; None: to the end
        self._number = 0
        self._told, self._looked_at, self._over = 0, 0.0, False

    def prepare(self, reports: Sequence[Any]) -> None:
        """Plan the next rollout from what all ranks report of the last: every rank comes to the same plan."""
        if self.kind == "optimal":
            learning_s = min(report.learn_s for report in reports)  # the last to begin learning waited for nobody
            step_s = np.stack([report.collected.step_s for report in reports])
            self.plan = optimal_plan(step_s, self.quota, learning_s, self.overlap)

    def begin(self) -> None:
        """A rollout begins."""
        self._number += 1
        if self._number > 3:  # every rank has learned from that one long ago
            self.store.delete_key(f"{self.kind}/{self._number - 3}")
        self._told, self._looked_at, self._over = 0, 0.0, False
        self._target = self.plan.steps if self.plan else self.quota * self.size

    def over(self, closed: int) -> bool:
        """Whether this rank, which has collected `closed` steps, is to stop."""
        now = time.monotonic()
        if self._over or now - self._looked_at < POLL_EVERY_S:
            return self._over
        self._looked_at = now
        if self.kind == "optimal":
            self._over = self._count(closed - self._told) >= self._target and closed >= self.least
            self._told = closed
        elif closed >= self.min_steps:
            self._over = self._count(0) >= self.done_ranks
        return self._over

    def finish(self, closed: int) -> None:
        """The rollout ended here, after `closed` steps."""
        if self.kind == "optimal":
            self._count(closed - self._told)
        elif not self._over:
            self._count(1)

    def _count(self, amount: int) -> int:
        """Add to what all ranks have counted in this rollout; the sum."""
        return self.store.add(f"{self.kind}/{self._number}", amount)

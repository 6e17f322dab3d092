"""Episodes that somebody showed, as experience to learn from: for behaviour cloning no environment is stepped."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import gymnasium
import numpy as np

from trainer.collect import CollectStats
from trainer.networks import PolicyNetwork
from trainer.ranks.report import RankReport
from trainer.rollout import Rollout

__all__ = ["Demonstration", "Demonstrations"]


@dataclass(frozen=True)
class Demonstration:
    """One episode of M steps, from its beginning to its end."""

    obs: dict[str, np.ndarray]  # key -> (M, ...), what was seen; every key that the policy needs
    action: np.ndarray  # (M, A), what was done then, within its bounds; (M, parts) where it is discrete
    reward: np.ndarray  # (M,), what the action led to


class Demonstrations(Protocol):
    """Episodes that somebody showed, and the spaces of what was seen and done in them."""

    observation_space: gymnasium.spaces.Space
    action_space: gymnasium.spaces.Space

    @property
    def lengths(self) -> Sequence[int]:
        """Steps of each episode."""

    def episode(self, index: int) -> Demonstration:
        """One of them."""


def check(demonstrations: Demonstrations, steps_per_rollout: int) -> None:
    """ValueError for an episode that is longer than a rollout."""
    if (longest := max(demonstrations.lengths)) > steps_per_rollout:
        raise ValueError(f"an episode of the demonstrations has {longest:,} steps, and a rollout {steps_per_rollout:,} "
                         "(collect.num_envs x collect.rollout_steps): choose more.")


class Demonstrated:
    """Batches of whole episodes, drawn at random without repetition; an `Experience` (trainer/experience.py). What a batch holds
    follows from the seed and the number of updates, so that a run goes on where it stopped."""

    def __init__(self, demonstrations: Demonstrations, rollout: Rollout, seed: int, rank: int):
        """ValueError for an episode that is longer than a rollout."""
        self.demonstrations, self.rollout, self._seed = demonstrations, rollout, [seed, 2, rank]
        check(demonstrations, rollout.steps)

    def next(self, policy: PolicyNetwork, version: int, steps_left: int) -> CollectStats:
        """As many as fit into a rollout."""
        started = time.perf_counter()
        chosen = [self.demonstrations.episode(index) for index in self._drawn(version)]
        rows = self.rollout.take(chosen, policy, version)
        return CollectStats(rows, len(rows), time.perf_counter() - started, batches=1)

    def _drawn(self, version: int) -> Iterator[int]:
        left = self.rollout.steps
        for index in np.random.default_rng([*self._seed, version]).permutation(len(self.demonstrations.lengths)).tolist():
            left -= self.demonstrations.lengths[index]
            if left < 0:
                return
            yield index

    def prepare(self, everyone: Sequence[RankReport]) -> None:
        """Nothing is to be done."""

    def content(self) -> dict[str, Any]:
        """There is nothing that the next batch depends on."""
        return {}

    def close(self) -> None:
        """Nothing is under way."""

"""Episodes that somebody showed, as experience to learn from: for behaviour cloning no environment is stepped."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import gymnasium
import numpy as np

from trainer.collect import CollectStats
from trainer.experience import Experience
from trainer.networks import PolicyNetwork
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


class Demonstrated(Experience):
    """Batches of whole episodes, drawn at random without repetition; an `Experience` (trainer/experience.py). The seed
    and the number of updates decide what a batch holds, so that a run goes on where it stopped."""

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
        lengths = self.demonstrations.lengths
        for index in np.random.default_rng([*self._seed, version]).permutation(len(lengths)).tolist():
            left -= lengths[index]
            if left < 0:
                return
            yield index

"""A fixed order of answering environments, whatever their speed, that a run can come back to after a restart.

For `deterministic=true`. Environments cannot be saved, but with a seed for every episode each one can be brought back
to where it was: begin its episode again, and repeat the actions taken since.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from trainer.config import CollectConfig


def fixed_order(config: CollectConfig) -> FixedOrder:
    """That of `deterministic`."""
    n = config.num_envs
    return FixedOrder(n, n if config.mode == "ddppo" else config.min_batch or max(1, n // 2))


class FixedOrder:
    """Groups of `group` environments in turn, and the actions of the episode that each environment is in."""

    def __init__(self, num_envs: int, group: int):
        self.num_envs, self.group = num_envs, group
        self._turn = 0
        self._episode = [0] * num_envs
        self._actions: list[list[np.ndarray]] = [[] for _ in range(num_envs)]

    def next(self, waiting: Sequence[int]) -> np.ndarray:
        """The environments to answer now: the next in turn, but for those that wait for the next rollout."""
        turn = (self._turn + np.arange(self.num_envs)) % self.num_envs
        return turn[~np.isin(turn, waiting)][: self.group]

    def answered(self, envs: np.ndarray) -> None:
        """Environments, in turn, that are being answered."""
        self._turn = (int(envs[-1]) + 1) % self.num_envs

    def ended(self, envs: np.ndarray) -> None:
        """Environments whose episode has ended."""
        for e in envs.tolist():
            self._episode[e] += 1
            self._actions[e].clear()

    def acted(self, envs: np.ndarray, action: np.ndarray) -> None:
        """Environments that are taking the steps `action` (N, ...) of all."""
        for e in envs.tolist():
            self._actions[e].append(action[e].copy())

    def content(self) -> dict[str, Any]:
        """Plain values and tensors."""
        actions = [torch.from_numpy(np.array(a)) for a in self._actions]
        return {"turn": self._turn, "episode": list(self._episode), "actions": actions}

    def restore(self, content: dict[str, Any]) -> list[tuple[int, np.ndarray]]:
        """The inverse; returns per environment its episode and the actions to repeat."""
        self._turn, self._episode = content["turn"], list(content["episode"])
        self._actions = [list(a.numpy()) for a in content["actions"]]
        return [(episode, np.array(actions)) for episode, actions in zip(self._episode, self._actions)]

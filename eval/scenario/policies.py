"""Who acts for the skills of a plan that no scripted expert runs: one policy per skill, with a place for every slot.

A slot holds one episode at a time. Every slot draws from its own generator, seeded by its episode, and a batch has a row
for every slot, whoever asks, so that an action does not depend on which other episodes run beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from planner.execute import Request


class SkillAgent(Protocol):
    """Chooses the actions of one skill, for the slots that ask."""

    def begin(self, slot: int, seed: int) -> None:
        """A new episode starts in `slot`."""

    def act(self, requests: Mapping[int, Request]) -> dict[int, np.ndarray]:
        """Slot -> action, for the slots of `requests`."""


class RandomSkill:
    """Uniform random commands."""

    def __init__(self, slots: int, action_size: int) -> None:
        self._rngs = [np.random.default_rng(0)] * slots
        self._size = action_size

    def begin(self, slot: int, seed: int) -> None:
        self._rngs[slot] = np.random.default_rng(seed)

    def act(self, requests: Mapping[int, Request]) -> dict[int, np.ndarray]:
        return {slot: self._rngs[slot].uniform(-1, 1, self._size).astype(np.float32) for slot in requests}


class SkillPolicy:
    """A trained policy with its recurrent state per slot, forgotten whenever the skill begins."""

    def __init__(self, checkpoint: dict[str, Any], slots: int, deterministic: bool) -> None:
        import torch

        from trainer.checkpoint import load_policy, space_from_plain
        from trainer.policy import observation_shapes

        self._torch, self._deterministic = torch, deterministic
        self.policy = load_policy(checkpoint)
        self._state = torch.zeros(slots, self.policy.state_size)
        self._previous = torch.zeros(slots, self.policy.action_size)
        self._rngs = [np.random.default_rng(0)] * slots
        shapes = observation_shapes(space_from_plain(checkpoint["observation_space"]))
        keys = (*self.policy.vector_keys, *self.policy.image_keys)
        self._batch = {key: np.zeros((slots, *shapes[key]), np.float32) for key in keys}

    def begin(self, slot: int, seed: int) -> None:
        self._rngs[slot] = np.random.default_rng(seed)

    def act(self, requests: Mapping[int, Request]) -> dict[int, np.ndarray]:
        torch, slots = self._torch, list(requests)
        noise = np.zeros((len(self._rngs), self.policy.action_size), np.float32)
        for slot, request in requests.items():
            if request.first:
                self._state[slot] = 0
                self._previous[slot] = 0
            for key, rows in self._batch.items():
                rows[slot] = request.observation[key]
            drawn = self._rngs[slot].standard_normal(self.policy.action_size, np.float32)
            noise[slot] = 0.0 if request.mean else drawn
        obs = {key: torch.from_numpy(rows) for key, rows in self._batch.items()}
        act = self.policy.act(obs, self._state, self._previous, self._deterministic, torch.from_numpy(noise))
        actions = self.policy.action_features(act.action)  # clipped to the action space
        self._state[slots], self._previous[slots] = act.state[slots], actions[slots]
        return {slot: actions[slot].numpy() for slot in slots}

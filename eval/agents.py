"""Who acts in an evaluation: a trained policy, a scripted expert, or a baseline that a policy must beat.

An agent serves a fixed number of slots, one environment in each. Every slot draws from its own generator, seeded by its
episode, so what happens in one episode does not depend on which others run beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from rearrange.env import RearrangeEnv


class Agent(Protocol):
    """Chooses actions for all slots at once."""

    def begin(self, slot: int, seed: int) -> None:
        """A new episode starts in `slot`."""

    def act(self, observations: list[dict[str, np.ndarray]]) -> np.ndarray:
        """Actions (slots, A) for the observations of all slots."""

    def end(self, slot: int) -> None:
        """Nothing runs in `slot` any more."""


class ZeroAgent:
    """Stands still, and releases nothing: every command 0."""

    def __init__(self, slots: int, action_size: int):
        self._action = np.zeros((slots, action_size), np.float32)

    def begin(self, slot: int, seed: int) -> None:
        pass

    def act(self, observations: list[dict[str, np.ndarray]]) -> np.ndarray:
        return self._action

    def end(self, slot: int) -> None:
        pass


class RandomAgent:
    """Uniform random commands."""

    def __init__(self, slots: int, action_size: int):
        self._rngs = [np.random.default_rng(0)] * slots
        self._size = action_size

    def begin(self, slot: int, seed: int) -> None:
        self._rngs[slot] = np.random.default_rng(seed)

    def act(self, observations: list[dict[str, np.ndarray]]) -> np.ndarray:
        return np.stack([rng.uniform(-1, 1, self._size).astype(np.float32) for rng in self._rngs])

    def end(self, slot: int) -> None:
        pass


class ExpertAgent:
    """The scripted expert of a skill, which sees the simulator's state and plans in it."""

    def __init__(self, envs: Sequence[RearrangeEnv]):
        self._envs = envs
        self._experts: list[Any] = [None] * len(envs)
        self._actions = np.zeros((len(envs), envs[0].action_space.shape[0]), np.float32)

    def begin(self, slot: int, seed: int) -> None:
        from skills.experts import EXPERTS

        env = self._envs[slot]
        self._experts[slot] = EXPERTS[env.skill.name](env.sim, env.skill)

    def act(self, observations: list[dict[str, np.ndarray]]) -> np.ndarray:
        for slot, expert in enumerate(self._experts):
            self._actions[slot] = 0.0 if expert is None else expert.act()
        return self._actions

    def end(self, slot: int) -> None:
        self._experts[slot] = None


class PolicyAgent:
    """A trained policy with its recurrent state per slot."""

    def __init__(self, checkpoint: dict[str, Any], slots: int, deterministic: bool):
        import torch

        from trainer.checkpoint import load_policy

        self._torch, self.deterministic = torch, deterministic
        self.policy = load_policy(checkpoint)
        self._state = torch.zeros(slots, self.policy.state_size)
        self._previous = torch.zeros(slots, self.policy.action_size)
        self._rngs = [np.random.default_rng(0)] * slots

    def begin(self, slot: int, seed: int) -> None:
        self._rngs[slot] = np.random.default_rng(seed)
        self._state[slot] = 0
        self._previous[slot] = 0

    def act(self, observations: list[dict[str, np.ndarray]]) -> np.ndarray:
        torch = self._torch
        obs = {k: torch.from_numpy(np.stack([o[k] for o in observations])) for k in observations[0]}
        noise = np.stack([rng.standard_normal(self.policy.action_size, np.float32) for rng in self._rngs])
        act = self.policy.act(obs, self._state, self._previous, self.deterministic, torch.from_numpy(noise))
        self._state = act.state
        self._previous = self.policy.action_features(act.action)
        return self._previous.numpy()  # clipped to the action space

    def end(self, slot: int) -> None:
        pass


AGENTS = ("policy", "expert", "random", "zero")


def make_agent(name: str, checkpoint: dict[str, Any] | None, envs: Sequence[RearrangeEnv], deterministic: bool) -> Agent:
    """The agent called `name`, one of AGENTS, for these environments, one in each slot; "policy" needs a checkpoint."""
    if name == "policy":
        return PolicyAgent(checkpoint, len(envs), deterministic)
    if name == "expert":
        return ExpertAgent(envs)
    return {"random": RandomAgent, "zero": ZeroAgent}[name](len(envs), envs[0].action_space.shape[0])

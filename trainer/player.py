"""A trained policy in one environment: observations in, actions out."""

from __future__ import annotations

import os
from typing import Any

import gymnasium
import numpy as np
import torch

from trainer.checkpoint import CheckpointError, load_checkpoint, load_policy
from trainer.checkpoints.compatibility import misfit
from trainer.machine import one_thread
from trainer.networks import MakePolicy
from trainer.policy import Policy, observation_shapes
from trainer.spaces import action_numbers, as_action, choices, flat_space, flattener, units

__all__ = ["Player"]


class Player:
    """Carries the recurrent state and the previous action from step to step; `reset` begins an episode."""

    def __init__(self, checkpoint: str | os.PathLike, env: gymnasium.Env, deterministic: bool = False, seed: int = 0,
                 make_policy: MakePolicy = Policy):
        """`checkpoint`: a file or the directory of a run. `deterministic`: the likeliest action instead of a drawn one.
        `make_policy`: that of the training. Raises CheckpointError if it is none, of another network, or was trained
        with other spaces than `env` has."""
        self._begin(load_policy(load_checkpoint(checkpoint), make_policy), env, deterministic, seed, str(checkpoint))

    @classmethod
    def of(cls, policy: Any, env: gymnasium.Env, deterministic: bool = False, seed: int = 0) -> Player:
        """A player of a policy that is loaded already."""
        player = cls.__new__(cls)
        player._begin(policy, env, deterministic, seed, "what was given")
        return player

    def _begin(self, policy: Any, env: gymnasium.Env, deterministic: bool, seed: int, checkpoint: str) -> None:
        self.policy, self.deterministic = policy, deterministic
        self._space: Any = env.action_space
        self._flatten = flattener(env.observation_space)
        self._as_action, self._generator = as_action(env.action_space), torch.Generator().manual_seed(seed)
        self._keys = [key for key in policy.seen if key not in getattr(policy, "critic_keys", ())]
        seen, size = flat_space(env.observation_space), action_numbers(env.action_space)
        if problem := misfit(self.policy, observation_shapes(seen), size, choices(env.action_space), units=units(seen)):
            raise CheckpointError(f"{checkpoint} is a checkpoint of another network: {problem}.")
        of_training = [policy] if hasattr(policy, "low") else []
        boxes: list[Any] = [] if policy.choices else [*of_training, self._space]
        self._bounds = [tuple(np.asarray(bound).reshape(1, -1) for bound in (box.low, box.high)) for box in boxes]
        self.reset()

    def reset(self) -> None:
        """To be called where the environment is reset."""
        self._state = torch.zeros(1, self.policy.state_size)
        self._previous = torch.zeros(1, self.policy.action_size)

    @torch.no_grad()
    def act(self, observation: Any) -> Any:
        """The action for an observation of the environment, in the environment's own spaces."""
        flat = self._flatten(observation) if self._flatten else observation
        values = flat if isinstance(flat, dict) else {"obs": flat}
        obs = {k: torch.as_tensor(np.asarray(values[k], np.float32)[None]) for k in self._keys}
        with one_thread():
            act = self.policy.act(obs, self._state, self._previous, self.deterministic, generator=self._generator)
        numbers = act.action.numpy()
        for low, high in self._bounds:
            numbers = np.clip(numbers, low, high)
        self._state = act.state
        self._previous = self.policy.action_features(torch.as_tensor(numbers).to(act.action.dtype))
        return self._as_action(numbers.reshape(self._space.shape))

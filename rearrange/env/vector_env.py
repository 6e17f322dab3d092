"""Several environments stepped one after another in one process, as one Gymnasium vector:
`gymnasium.make_vec("rearrange/Pick-v0", num_envs=16)`.

Each does exactly what it does alone. What a step of `gymnasium.vector.SyncVectorEnv` costs beside the environments is
mostly the infos, which are the same two numbers until an episode ends, and observations that are copied twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array

from rearrange.home.errors import UserError

_ALWAYS_TOLD = ("success", "is_success")  # by every step of an environment

Batch = dict[str, Any]
"""Name -> array with a leading N, or a tuple of N texts."""


class VectorOfHomes(VectorEnv):
    """N environments of one kind. Its arrays are new at each step."""

    def __init__(self, make: Callable[[], gymnasium.Env], num_envs: int, autoreset_mode: str | AutoresetMode) -> None:
        """
        Args:
            make: Makes one environment.
            num_envs: N.
            autoreset_mode: When an episode ends, the next begins at the next step ("NextStep"), in the same step
                ("SameStep"), or when it is asked for by `reset(options={"reset_mask": ...})` ("Disabled").
        """
        modes = [mode.value for mode in AutoresetMode]
        if not isinstance(autoreset_mode, AutoresetMode) and autoreset_mode not in modes:
            raise UserError(f"autoreset_mode={autoreset_mode!r} is none of {', '.join(modes)}.")
        if not isinstance(num_envs, int) or num_envs < 1:
            raise UserError(f"num_envs={num_envs!r} is no number of environments: give 1 or more.")
        self.envs = [make() for _ in range(num_envs)]
        self.num_envs, self.autoreset_mode = num_envs, AutoresetMode(autoreset_mode)
        first = self.envs[0]
        self.metadata = first.metadata | {"autoreset_mode": self.autoreset_mode}
        self.render_mode = first.render_mode
        self.single_observation_space, self.single_action_space = first.observation_space, first.action_space
        self.observation_space = batch_space(first.observation_space, num_envs)
        self.action_space = batch_space(first.action_space, num_envs)
        spaces = first.observation_space.spaces
        self._arrays = {k: (space.shape, space.dtype) for k, space in spaces.items()
                        if isinstance(space, gymnasium.spaces.Box)}
        self._others = {k: space for k, space in spaces.items() if k not in self._arrays}
        self._seen: list[Any] = [None] * num_envs  # the last observation of each
        self._ended = np.zeros(num_envs, bool)

    def reset(self, *, seed: int | Sequence[int | None] | None = None,
              options: dict[str, Any] | None = None) -> tuple[Batch, dict[str, Any]]:
        """Begin episodes in all environments, or in those of options["reset_mask"] (N,); environment i has the seed
        seed + i, or seed[i]. Other options are given to each."""
        seeds = [None] * self.num_envs if seed is None else (
            [seed + i for i in range(self.num_envs)] if isinstance(seed, (int, np.integer)) else list(seed))
        if len(seeds) != self.num_envs:
            raise ValueError(f"seed has {len(seeds)} seeds for {self.num_envs} environments.")
        options = dict(options or {})
        mask = options.pop("reset_mask", None)
        if mask is None:
            mask = np.ones(self.num_envs, bool)
        if not isinstance(mask, np.ndarray) or mask.shape != (self.num_envs,) or mask.dtype != bool or not mask.any():
            raise ValueError(f"options['reset_mask'] is {mask!r}, not a bool array of shape ({self.num_envs},) that is "
                             "true somewhere.")
        infos: dict[str, Any] = {}
        for i in np.flatnonzero(mask).tolist():
            self._seen[i], info = self.envs[i].reset(seed=seeds[i], options=options or None)
            infos = self._add_info(infos, info, i)
        self._ended[mask] = False
        return self._batch(), infos

    def step(self, actions: np.ndarray) -> tuple[Batch, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Step every environment. actions (N, ...); the observations (N, ...), rewards (N,) float64, terminated (N,),
        truncated (N,), and infos in the form of Gymnasium's vectors, `final_obs` and `final_info` with "SameStep"."""
        n, mode = self.num_envs, self.autoreset_mode
        if len(actions) != n:
            raise ValueError(f"there are {len(actions)} actions for {n} environments.")
        if mode is AutoresetMode.DISABLED and self._ended.any():
            raise RuntimeError(f"environments {np.flatnonzero(self._ended).tolist()} have ended: begin them anew with "
                               'reset(options={"reset_mask": mask}).')
        rewards, terminated, truncated = np.zeros(n), np.zeros(n, bool), np.zeros(n, bool)
        told = {name: np.zeros(n, bool) for name in _ALWAYS_TOLD}
        tell, infos = np.zeros(n, bool), {}
        for i, env in enumerate(self.envs):
            if self._ended[i] and mode is AutoresetMode.NEXT_STEP:
                self._seen[i], info = env.reset()
                infos = self._add_info(infos, info, i)
                continue
            self._seen[i], rewards[i], terminated[i], truncated[i], info = env.step(actions[i])
            if mode is AutoresetMode.SAME_STEP and (terminated[i] or truncated[i]):
                infos = self._add_info(infos, {"final_obs": self._seen[i], "final_info": info}, i)
                self._seen[i], info = env.reset()
            if info.keys() == told.keys():
                tell[i] = True
                for name, flags in told.items():
                    flags[i] = info[name]
            else:
                infos = self._add_info(infos, info, i)
        for name, flags in told.items() if tell.any() else ():
            infos[name] = np.where(tell, flags, infos.get(name, False))
            infos[f"_{name}"] = tell | infos.get(f"_{name}", False)
        self._ended = terminated | truncated
        return self._batch(), rewards, terminated, truncated, infos

    def _batch(self) -> Batch:
        """The last observations of all, in arrays of their own."""
        batch: Batch = {}
        for k, (shape, dtype) in self._arrays.items():
            batch[k] = array = np.empty((self.num_envs, *shape), dtype)
            for i, seen in enumerate(self._seen):
                array[i] = seen[k]
        for k, space in self._others.items():
            empty = create_empty_array(space, self.num_envs)
            batch[k] = concatenate(space, [seen[k] for seen in self._seen], empty)
        return batch

    def render(self) -> tuple[Any, ...]:
        """The picture of each."""
        return tuple(env.render() for env in self.envs)

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """An attribute of each environment, or what its method gives."""
        found = [getattr(env, name) for env in self.envs]
        return tuple(each(*args, **kwargs) if callable(each) else each for each in found)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """An attribute of each environment."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Give each environment its value of an attribute; one value that is no list is for all."""
        each = values if isinstance(values, (list, tuple)) else [values] * self.num_envs
        for env, value in zip(self.envs, each, strict=True):
            setattr(env, name, value)

    def close_extras(self, **kwargs: Any) -> None:
        """Close every environment."""
        for env in self.envs:
            env.close()

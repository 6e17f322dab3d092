"""A Gymnasium environment whose steps cost what a seeded model says: the workload of the engine benchmark.

Real simulators are slow now and then: a robot in contact needs more solver steps (action-level stragglers), a full
apartment renders slower than an empty one (episode-level), and a reset loads a scene. Here the time of step t of
episode k of environment e follows from (seed, e, k, t) alone, so every system under test meets the same times. The task
is small but learnable: the action has to copy a target that the observation shows.

This file needs numpy and Gymnasium (0.29 or newer) only, so that other systems, in other interpreters, can load it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import gymnasium
import numpy as np

FRAMES = 64  # depth images, drawn once: the cost of a step is the cost model's, not that of drawing an image
ACTIONS = 5
PROPRIOCEPTION = 7


@dataclass(frozen=True)
class StepCost:
    """Cost of steps and resets. Every factor is log-normal with mean 1, so `mean_s` is the long-run mean of a step."""

    mean_s: float  # of a step
    sigma_env: float = 0.0  # spread between environments, drawn once each: hardware, scene
    sigma_episode: float = 0.0  # spread between episodes
    sigma_step: float = 0.0  # spread between steps
    episode_steps: int = 200  # steps of an episode
    reset_steps: float = 10.0  # a reset costs as much as so many mean steps of its episode

    def episode(self, seed: int, env: int, episode: int) -> tuple[float, np.ndarray]:
        """Seconds of the reset that begins an episode, and of each of its steps (episode_steps,)."""
        factor = _factor(np.random.default_rng([seed, env]), self.sigma_env)
        rng = np.random.default_rng([seed, env, episode + 1])
        mean = self.mean_s * factor * _factor(rng, self.sigma_episode)
        return self.reset_steps * mean, mean * _factors(rng, self.sigma_step, self.episode_steps)

    def steps_per_s(self, envs: int) -> float:
        """Expected steps/s of `envs` environments that never wait, over many episodes: the sum over environments of
        1 / E[time per step]. (Not E[1 / time]: a slow episode also lasts longer.) With `sigma_env` the expectation is
        over the draw of the environments as well."""
        per_step_s = self.mean_s * (1 + self.reset_steps / self.episode_steps)
        return envs * np.exp(self.sigma_env**2) / per_step_s  # E[1/x] of a log-normal of mean 1

    def scaled(self, factor: float) -> StepCost:
        """The same workload with all times multiplied by `factor`."""
        return StepCost(**(vars(self) | {"mean_s": self.mean_s * factor}))


def _factor(rng: np.random.Generator, sigma: float) -> float:
    return float(_factors(rng, sigma, 1)[0])


def _factors(rng: np.random.Generator, sigma: float, count: int) -> np.ndarray:
    return np.exp(sigma * rng.standard_normal(count) - 0.5 * sigma**2)


# `v100` is fitted to Table 1 of the VER paper (open fridge, one V100, N = 16, T = 128): with 1.5 s of learning per
# rollout and 5 ms of inference and batching per step, a model of synchronous stepping gives 174 steps/s, of fixed T per
# environment 327 and of variable experience 428, as the paper measured (`benchmarks/collection_model.py`, means over 48
# draws). `mild` has a third of the spread, `none` has none at all.
PRESETS = {
    "v100": StepCost(mean_s=0.02002, sigma_episode=0.273, sigma_step=0.852),
    "mild": StepCost(mean_s=0.02002, sigma_episode=0.091, sigma_step=0.284),
    "none": StepCost(mean_s=0.02002, reset_steps=0.0),
}


class SyntheticEnv(gymnasium.Env):
    """One environment of the workload. Reward 1 - mean((action - target)^2), target in [-0.8, 0.8]^5 a function of the
    observation's `proprioception`; episodes end after `cost.episode_steps` steps.

    env_id: which of the environments this is. burn: "sleep" (time passes, as while a GPU renders) or "spin" (the time
    is spent computing on the CPU). image_size: pixels on a side of `depth` (H, W, 1) in [0, 1]; 0 = no image.
    """

    metadata = {"render_modes": []}

    def __init__(self, cost: StepCost, env_id: int, seed: int = 0, burn: str = "sleep", image_size: int = 64):
        if burn not in ("sleep", "spin"):
            raise ValueError(f"burn={burn} is neither sleep nor spin.")
        self.cost, self.env_id, self.seed = cost, env_id, seed
        self.burn = time.sleep if burn == "sleep" else _spin
        box = gymnasium.spaces.Box
        keys = {"proprioception": box(-1.0, 1.0, (PROPRIOCEPTION,), np.float32)}
        rng = np.random.default_rng(seed)
        if image_size:
            keys["depth"] = box(0.0, 1.0, (image_size, image_size, 1), np.float32)
            self.frames = rng.random((FRAMES, image_size, image_size, 1), np.float32)
        self.observation_space = gymnasium.spaces.Dict(keys)
        self.action_space = box(-1.0, 1.0, (ACTIONS,), np.float32)
        self.to_target = rng.uniform(-0.8 / PROPRIOCEPTION, 0.8 / PROPRIOCEPTION,
                                     (ACTIONS, PROPRIOCEPTION)).astype(np.float32)
        self.episode = -1
        self.step_s = np.empty(0)

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[dict, dict]:
        """Begin the environment's next episode. `seed` changes observations only, never the times."""
        super().reset(seed=seed)
        self.episode += 1
        self.t = 0
        reset_s, self.step_s = self.cost.episode(self.seed, self.env_id, self.episode)
        self.burn(reset_s)
        return self._observe(), {}

    def step(self, action: np.ndarray) -> tuple[dict, float, bool, bool, dict]:
        self.burn(self.step_s[self.t])
        self.t += 1
        action = np.clip(action, -1.0, 1.0)  # here, as not every system does
        reward = 1.0 - float(np.mean((action - self.to_target @ self.proprioception) ** 2))
        return self._observe(), reward, self.t >= self.cost.episode_steps, False, {}

    def _observe(self) -> dict[str, np.ndarray]:
        self.proprioception = self.np_random.uniform(-1, 1, PROPRIOCEPTION).astype(np.float32)
        observation = {"proprioception": self.proprioception.copy()}
        if "depth" in self.observation_space.spaces:
            observation["depth"] = self.frames[(self.env_id + self.t) % FRAMES].copy()
        return observation


def _spin(seconds: float) -> None:
    """Compute for `seconds` of this thread's CPU time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass

"""The tasks of `bench gym`: Gymnasium's own, one of them seen as an image, and two that need memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class CartPoleSeen(gymnasium.Wrapper):
    """CartPole as two grey images of 48 x 64 pixels, now and one step before, drawn from its state: (48, 64, 2)
    bytes."""

    HEIGHT, WIDTH, POLE = 48, 64, 24  # pixels

    def __init__(self) -> None:
        super().__init__(gymnasium.make("CartPole-v1"))
        self.observation_space = spaces.Box(0, 255, (self.HEIGHT, self.WIDTH, 2), np.uint8)

    def reset(self, **words: Any) -> tuple[np.ndarray, dict]:
        state, info = self.env.reset(**words)
        self._now = self._draw(state)
        return np.stack([self._now, self._now], -1), info

    def step(self, action: Any) -> tuple:
        state, *others = self.env.step(action)
        before, self._now = self._now, self._draw(state)
        return np.stack([before, self._now], -1), *others

    def _draw(self, state: np.ndarray) -> np.ndarray:
        picture = np.zeros((self.HEIGHT, self.WIDTH), np.uint8)
        ground, middle = self.HEIGHT - 8, self.WIDTH / 2 + state[0] / 2.4 * (self.WIDTH / 2 - 6)
        picture[ground : ground + 4, max(0, round(middle) - 5) : round(middle) + 5] = 128
        along = np.linspace(0, self.POLE, 2 * self.POLE)
        x, y = middle + along * np.sin(state[2]), ground - along * np.cos(state[2])
        picture[y.round().astype(int).clip(0, self.HEIGHT - 1), x.round().astype(int).clip(0, self.WIDTH - 1)] = 255
        return picture


class Recall(gymnasium.Env):
    """One of four signs is shown in the first step alone; the action of the last step has to name it: reward 1."""

    def __init__(self, wait: int = 12, signs: int = 4):
        self.wait, self.signs = wait, signs
        self.observation_space = spaces.Box(0.0, 1.0, (signs + 1,), np.float32)  # the sign, and whether it is asked for
        self.action_space = spaces.Discrete(signs)

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.t, self.sign = 0, int(self.np_random.integers(self.signs))
        return self._seen(), {}

    def step(self, action: Any) -> tuple:
        over = self.t == self.wait
        reward = float(over and int(action) == self.sign)
        self.t += 1
        return self._seen(), reward, over, False, {}

    def _seen(self) -> np.ndarray:
        out = np.zeros(self.signs + 1, np.float32)
        if self.t == 0:
            out[self.sign] = 1.0
        out[-1] = self.t == self.wait
        return out


class BlindSpeeds(gymnasium.ObservationWrapper):
    """CartPole that shows places, not velocities."""

    def __init__(self) -> None:
        super().__init__(gymnasium.make("CartPole-v1"))
        space = self.env.observation_space
        self.observation_space = spaces.Box(space.low[::2], space.high[::2], (2,), np.float32)

    def observation(self, observation: np.ndarray) -> np.ndarray:
        return observation[::2]


@dataclass(frozen=True)
class Task:
    """An environment, and for how many steps it is trained in."""

    make: Callable[[], gymnasium.Env]
    steps: int
    memory: bool = False  # cannot be solved without


def _gym(id: str, steps: int) -> Task:
    return Task(partial(gymnasium.make, id), steps)


TASKS = {
    "half_cheetah": _gym("HalfCheetah-v5", 1_000_000), "hopper": _gym("Hopper-v5", 1_000_000),
    "walker2d": _gym("Walker2d-v5", 1_000_000), "double_pendulum": _gym("InvertedDoublePendulum-v5", 100_000),
    "reacher": _gym("Reacher-v5", 300_000), "pendulum": _gym("Pendulum-v1", 100_000),
    "cartpole": _gym("CartPole-v1", 50_000),
    "acrobot": _gym("Acrobot-v1", 100_000), "cartpole_seen": Task(CartPoleSeen, 100_000),
    "recall": Task(Recall, 60_000, memory=True), "cartpole_without_speeds": Task(BlindSpeeds, 60_000, memory=True),
}

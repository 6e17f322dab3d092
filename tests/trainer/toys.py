"""Small environments for the engine's tests."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from dataclasses import fields

import gymnasium as gym
import numpy as np

from trainer.config import CollectConfig, PolicyConfig, PPOConfig, TrainConfig

QUICK = PPOConfig(epochs=1, mini_batches=2)  # for tests in which what is learned does not matter
BLIND = PolicyConfig(encoder=None, lstm_layers=1, hidden_size=8, body_size=16)


def small(steps: int = 64, **settings) -> TrainConfig:
    """A small run, in rollouts of two environments with 16 steps each; settings of TrainConfig and of its `collect`."""
    of_collect = {field.name for field in fields(CollectConfig)}
    collect, others = {"num_envs": 2, "num_workers": 1, "rollout_steps": 16}, {"policy": BLIND, "ppo": QUICK}
    for key, value in settings.items():
        (collect if key in of_collect else others)[key] = value
    return TrainConfig(steps=steps, **{"torch_threads": 1} | others, collect=CollectConfig(**collect))


class Counter(gym.Env):
    """Tells where it is: observation (identity, episode, step); the reward is a known function of it.

    Episodes have random lengths and end either way; steps sleep a random time, so that environments run at uneven
    speeds.
    """

    observation_space = gym.spaces.Box(-np.inf, np.inf, (3,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (2,), np.float32)

    def __init__(self, delay_s: float = 0.0, max_length: int = 12):
        self.delay_s, self.max_length = delay_s, max_length
        self.identity, self.episode = None, -1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if self.identity is None:
            self.identity = int(self.np_random.integers(1 << 20))
        self.episode += 1
        self.t = 0
        self.length = int(self.np_random.integers(1, self.max_length + 1))
        self.ends_by_limit = bool(self.np_random.random() < 0.5)
        self.pace = self.delay_s * float(self.np_random.exponential())
        return self._obs(), {}

    def _obs(self):
        return np.array([self.identity, self.episode, self.t], np.float32)

    @staticmethod
    def reward(identity, episode, t):
        return (identity % 97) + 0.5 * (episode % 7) + 0.01 * t

    def step(self, action):
        if self.pace:
            time.sleep(self.pace)  # timed: the speed of an environment
        reward = self.reward(self.identity, self.episode, self.t)
        self.t += 1
        over = self.t >= self.length
        return self._obs(), reward, over and not self.ends_by_limit, over and self.ends_by_limit, {}


class Pointer(gym.Env):
    """Reward for an action near the target that the observation shows (vector or image): learnable within seconds."""

    def __init__(self, image: bool = False, length: int = 10):
        self.length = length
        spaces = {"goal": gym.spaces.Box(-1, 1, (2,), np.float32)}
        if image:
            spaces["depth"] = gym.spaces.Box(0, 1, (32, 32, 1), np.float32)
        self.observation_space = gym.spaces.Dict(spaces)
        self.action_space = gym.spaces.Box(-1, 1, (2,), np.float32)

    def _obs(self):
        obs = {"goal": self.goal}
        if "depth" in self.observation_space.spaces:
            obs["depth"] = self.np_random.random((32, 32, 1), np.float32)
        return obs

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.goal = self.np_random.uniform(-0.8, 0.8, 2).astype(np.float32)
        self.t = 0
        return self._obs(), {}

    def step(self, action):
        self.t += 1
        error = float(np.square(action - self.goal).sum())
        over = self.t >= self.length
        return self._obs(), 1.0 - error, False, over, {"metrics": {"success": float(error < 0.1)}} if over else {}


def shown(*goal: float):
    """What makes an answer with another observation of an answer."""
    return lambda obs, *others: ({"goal": np.array(goal, np.float32)}, *others)


WRONG = {  # fault of an answer -> what it makes of (observation, reward, terminated, truncated, info)
    "NaN": shown(0, np.nan),
    "shape": shown(0, 0, 0),
    "key missing": lambda obs, *others: ({"target": obs["goal"]}, *others),
    "text": lambda obs, *others: ({"goal": ["left", "right"]}, *others),
    "four values": lambda obs, reward, over, cut, info: (obs, reward, over, info),
    "NaN reward": lambda obs, reward, *others: (obs, float("nan"), *others),
    "array reward": lambda obs, reward, *others: (obs, np.zeros(2), *others),
    "infinite reward": lambda obs, reward, *others: (obs, float("inf"), *others),
    "final NaN": lambda obs, reward, over, cut, info: (*shown(np.nan, np.nan)(obs, reward, over), True, info),
    "final shape": lambda obs, reward, over, cut, info: (*shown(0, 0, 0)(obs, reward, over), True, info),
}


class Faulty(Pointer):
    """Fails on purpose from its `at`-th step on: raises, dies, hangs, or answers something WRONG."""

    bad = True

    def __init__(self, fault: str, at: int = 20):
        super().__init__()
        self.fault, self.at, self.count = fault, at, 0

    def reset(self, *, seed=None, options=None):
        obs, info = super().reset(seed=seed)
        if self.bad and self.fault == "first reset raises":
            raise OSError("the front door is locked")
        if self.bad and self.count >= self.at and self.fault == "reset hangs":
            threading.Event().wait()  # an environment that hangs
        if self.bad and self.count >= self.at and self.fault == "reset is NaN":
            obs, _ = WRONG["NaN"](obs, None)
        return obs, info

    def step(self, action):
        self.count += 1
        answer = super().step(action)
        if not self.bad or self.count < self.at:
            return answer
        if self.fault == "raises":
            raise ZeroDivisionError("the drawer fell out")
        if self.fault == "mistake":
            from rearrange.home.errors import UserError

            raise UserError("episode 'x' has no objects.")
        if self.fault == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.fault == "leaves":
            sys.exit("goodbye")
        if self.fault == "os exit":
            os._exit(7)
        if self.fault == "hangs":
            threading.Event().wait()  # an environment that hangs
        return WRONG.get(self.fault, lambda *same: same)(*answer)


class Broken:
    """An environment that cannot even be constructed."""

    def __init__(self):
        raise RuntimeError("no such home")


class Paced(Pointer):
    """A Pointer whose steps take a given time."""

    def __init__(self, step_s: float):
        super().__init__()
        self.step_s = step_s

    def step(self, action):
        time.sleep(self.step_s)  # timed: the speed of an environment
        return super().step(action)


class Uneven(gym.Env):
    """Everything about an episode follows from its seed: observations, length, how it ends; its speed is random."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (3,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t, self.length = 0, int(self.np_random.integers(1, 20))
        self.ends_by_limit = bool(self.np_random.random() < 0.5)
        self.place = self.np_random.normal(size=2)
        return self._obs(), {}

    def _obs(self):
        return np.array([*self.place, self.t], np.float32)

    def step(self, action):
        time.sleep(0.0005 * np.random.random())  # timed: the speed of an environment
        self.t += 1
        self.place += 0.3 * np.asarray(action) + 0.1 * self.np_random.normal(size=2)
        over = self.t >= self.length
        ends = over and not self.ends_by_limit, over and self.ends_by_limit
        return self._obs(), -float(np.abs(self.place).sum()), *ends, {}


class Masked(gym.Env):
    """Of four options two are allowed, by turns; fails at another. The reward is for the smaller one."""

    observation_space = gym.spaces.Dict(turn=gym.spaces.Box(0, 1, (1,)), action_mask=gym.spaces.MultiBinary(4))
    action_space = gym.spaces.Discrete(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = int(self.np_random.integers(2))
        return self._obs(), {}

    def _obs(self):
        self.allowed = np.array([1, 0, 0, 1] if self.t % 2 else [0, 1, 1, 0], np.int8)
        return {"turn": np.array([self.t % 2], np.float32), "action_mask": self.allowed}

    def step(self, action):
        if not self.allowed[action]:
            raise RuntimeError(f"option {action} is not allowed")
        reward, self.t = float(action == self.allowed.argmax()), self.t + 1
        return self._obs(), reward, False, self.t >= 12, {}

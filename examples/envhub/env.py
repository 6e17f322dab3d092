"""Homes for LeRobot's EnvHub: `lerobot.envs.factory.make_env("me/homes", trust_remote_code=True)` loads this file.

A repository needs nothing but it and requirements.txt. Observations have the names of our recordings, so that a policy
which LeRobot trained on one fits: `observation.state`, `observation.images.rgb`.
"""

from functools import partial

import gymnasium
import numpy as np

from eval.recording.features import STATE, features_of, state_of
from skills import make_env as make_skill

SKILL, SETTINGS = "pick", {"split": "val", "depth_size": 0, "observations": ("rgb",), "camera_size": 96}
"""What LeRobot gets where its configuration has no `task`. A policy needs the settings that its data had."""


class AsLeRobot(gymnasium.Wrapper):
    """The observations of a skill under LeRobot's names, and the task in words. skill: its name."""

    def __init__(self, skill: str) -> None:
        super().__init__(make_skill(skill, **SETTINGS))
        own = self.env.unwrapped
        self.task, self._max_episode_steps = skill, own.max_steps
        self.metadata = own.metadata | {"render_fps": 30}
        self._columns = features_of(own.observation_space, tuple(map(str, range(own.action_space.shape[0]))))
        images = {name.rpartition(".")[2]: own.observation_space[name.rpartition(".")[2]] for name in self._columns
                  if name.startswith("observation.images.")}
        state = gymnasium.spaces.Box(-np.inf, np.inf, self._columns[STATE].shape, np.float32)
        self.observation_space = gymnasium.spaces.Dict(
            {"agent_pos": state} | ({"pixels": gymnasium.spaces.Dict(images)} if images else {}))

    @property
    def task_description(self) -> str:
        """What is to be done, in words."""
        return self.env.unwrapped.instruction

    def reset(self, **asked):
        observation, info = self.env.reset(**asked)
        return self._shown(observation), info

    def step(self, action):
        observation, *rest = self.env.step(action)
        return (self._shown(observation), *rest)

    def _shown(self, observation):
        shown = {"agent_pos": state_of(self._columns[STATE], observation)}
        if "pixels" in self.observation_space.spaces:
            shown["pixels"] = {name: observation[name] for name in self.observation_space["pixels"]}
        return shown


def make_env(n_envs: int = 1, use_async_envs: bool = False, cfg=None):
    """What LeRobot calls: {suite: {number of the task: vector of environments}}."""
    skill = getattr(cfg, "task", None) or SKILL
    kind = gymnasium.vector.AsyncVectorEnv if use_async_envs else gymnasium.vector.SyncVectorEnv
    return {"rearrange": {0: kind([partial(AsLeRobot, skill)] * n_envs,
                                  autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP)}}

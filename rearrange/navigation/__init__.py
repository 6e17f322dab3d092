"""Navigation as in DD-PPO and VER: PointNav and its like, with a kinematic agent, or with the Fetch and physics."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rearrange.home.errors import UserError
from rearrange.home.settings import environment
from rearrange.home.settings.environment import NAVIGATION, SEEING, HomeSettings, suggestion
from rearrange.navigation.settings import CONFIGS, NavigationConfig

if TYPE_CHECKING:
    from rearrange.navigation.env import NavigationEnv

__all__ = ["CONFIGS", "OF_HOME", "checked_settings", "config_class", "make_env", "title"]

OF_HOME = ("split", "depth_size", "render_mode", "sim", "gpu_device", *SEEING)
"""Settings of every environment that navigation tasks have too."""


def config_class(task: str) -> type[NavigationConfig]:
    """The settings of a task, a dataclass. UserError if there is no such task."""
    if task not in CONFIGS:
        raise UserError(f"there is no navigation task called {task!r}{suggestion(task, NAVIGATION)}; tasks are "
                        f"{', '.join(NAVIGATION)}.")
    return CONFIGS[task]


def title(task: str) -> str:
    """What a task is about, in one sentence."""
    return str(config_class(task).__doc__).splitlines()[0]


def checked_settings(task: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of the environment of a task in the type of their rules. UserError for the first unknown or refused one.
    """
    config = config_class(task)
    known = [*(field.name for field in dataclasses.fields(config)), *OF_HOME, "expert_action"]
    return environment.checked_settings(f"navigation task {task}", known, config, given)


def make_env(task: str = "pointnav", **settings: Any) -> NavigationEnv:
    """A Gymnasium environment for a navigation task.

    Args:
        settings: Fields of the task's config, those of HomeSettings in OF_HOME, and `expert_action`. With the last,
            observations also say which action leads to the goal by the shortest way. UserError for a value that the
            command line would refuse.
    """
    from rearrange.navigation.env import NavigationEnv

    settings = checked_settings(task, settings)
    advised = settings.pop("expert_action", False)
    home = HomeSettings(**{key: value for key, value in settings.items() if key in OF_HOME})
    config = config_class(task)(
        **{key: value for key, value in settings.items() if key not in OF_HOME and key != "reward_scales"})
    scales = {**config.reward_scales, **settings.get("reward_scales", {})}
    kind = NavigationEnv
    if home.sim not in ("mujoco", "habitat"):
        raise UserError(f"sim={home.sim} has skills and scenarios; nav={task} takes sim=mujoco or sim=habitat.")
    if home.sim == "habitat":
        kind = import_module("rearrange.habitat.navigation").InHabitat  # which is made of this package
    return kind(task, dataclasses.replace(config, reward_scales=scales), home, advised)

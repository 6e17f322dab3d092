"""`planner.make_env`: the environment of a whole scenario from its name and settings, for one policy without a plan."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from planner.scenario_env import ScenarioEnv
from planner.scenario_settings import REWARD_SCALES, WholeTaskSettings
from planner.scenarios import load_scenario
from rearrange.home.settings.environment import HomeSettings, checked_settings
from skills.settings import merge_scales

__all__ = ["make_env"]


def make_env(scenario: str, **settings: Any) -> ScenarioEnv:
    """A Gymnasium environment for a scenario. `settings`: max_steps, of the scenario's YAML file, fields of HomeSettings, and
    reward_scales; homes are of the split `train` unless said otherwise, as with skills. UserError.
    """
    known = ["max_steps", *(field.name for field in fields(HomeSettings)), "reward_scales"]
    what = f"scenario {scenario}"
    settings = checked_settings(what, known, WholeTaskSettings, settings)
    scales = merge_scales(what, REWARD_SCALES, settings.pop("reward_scales", {}))
    config = load_scenario(scenario)
    config = replace(config, max_steps=settings.pop("max_steps", config.max_steps))
    return ScenarioEnv(config, HomeSettings(**settings), scales)

"""`planner.make_env`: the environment of a whole scenario from its name and settings, for one policy without a plan."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any

from planner.scenario_env import REWARD_SCALES, ScenarioEnv
from planner.scenarios import load_scenario
from skills import checked_settings
from skills.skill import merge_scales

__all__ = ["make_env"]


def make_env(scenario: str, **settings: Any) -> ScenarioEnv:
    """A Gymnasium environment for a scenario. `settings`: max_steps, of the scenario's YAML file, and arguments of ScenarioEnv;
    homes are of the split `train` unless said otherwise, as with skills. UserError.
    """
    known = ["max_steps", *inspect.signature(ScenarioEnv).parameters]
    known.remove("config")
    settings = checked_settings("hab", scenario, known, {"split": "train"} | settings)
    settings["reward_scales"] = merge_scales(scenario, REWARD_SCALES, settings.get("reward_scales", {}))
    config = load_scenario(scenario)
    return ScenarioEnv(replace(config, max_steps=settings.pop("max_steps", config.max_steps)), **settings)

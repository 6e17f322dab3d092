"""PDDL task planner of rearrange: chains skills to solve the Home Assistant Benchmark."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planner.execute import Executor
    from planner.scenario_env import ScenarioEnv, make_env
    from planner.scenarios import ScenarioConfig, load_scenario

__all__ = ["Executor", "ScenarioConfig", "ScenarioEnv", "load_scenario", "make_env"]
_HOME = {"Executor": "execute", "ScenarioConfig": "scenarios", "ScenarioEnv": "scenario_env",
         "load_scenario": "scenarios", "make_env": "scenario_env"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'planner' has no attribute '{name}'")
    return getattr(import_module(f"planner.{_HOME[name]}"), name)

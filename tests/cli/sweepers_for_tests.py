"""A sweeper that takes the stop of a range, as one of another package may, and a search space made by a function."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

import hydra_plugins
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.plugins import Plugins
from hydra.plugins.sweeper import Sweeper

MODULE = "hydra_plugins.ends_for_tests"  # Hydra takes plugins of this package alone


class EndsSweeper(Sweeper):
    """Asks for the ends of its one range, each twice."""

    def __init__(self, notes):
        self.launcher = None

    def setup(self, *, hydra_context, task_function, config):
        """Nothing: its launcher is given to it."""

    def sweep(self, arguments):
        key, value = arguments[0].partition("=")[0], OverridesParser.create().parse_overrides(arguments)[0].value()
        for _ in range(2):
            self.launcher.launch([[f"{key}={end}"] for end in (value.start, value.stop)], initial_job_idx=0)


@dataclass
class EndsConf:
    _target_: str = f"{MODULE}.EndsSweeper"
    notes: list = field(default_factory=list)


def register() -> None:
    """hydra/sweeper=ends"""
    EndsSweeper.__module__ = MODULE
    sys.modules[MODULE] = hydra_plugins.ends_for_tests = sys.modules[__name__]
    Plugins.instance().register(EndsSweeper)
    ConfigStore.instance().store(group="hydra/sweeper", name="ends", node=EndsConf, provider="tests")


def also_clip(config, trial) -> None:
    """Of ppo.clip, which must be above 0, values on both sides."""
    trial.suggest_categorical("ppo.clip", [-0.1, 0.1, 0.2])

"""Old names of modules that documentation of version 0.2 has, for one version, with a warning."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED = {
    "planner.environment": "planner.scenario_env",
    "rearrange.apartments": "rearrange.home.apartments",
    "rearrange.episode_making": "rearrange.home.episodes",
    "rearrange.errors": "rearrange.home.errors",
    "rearrange.habitat.simulator": "rearrange.habitat.habitat_simulator",
    "rearrange.habitat_axes": "rearrange.home.axis_conventions",
    "rearrange.home_scene": "rearrange.env.home_env",
    "rearrange.mujoco_sim": "rearrange.home.simulation.mujoco",
    "rearrange.navigation.flee": "rearrange.navigation.start_tasks",
    "rearrange.observations": "rearrange.home.simulation.observations",
    "rearrange.pictures": "rearrange.home.pictures",
    "rearrange.registration": "rearrange.env.registration",
    "rearrange.robot": "rearrange.home.robot",
    "rearrange.settings": "rearrange.home.settings",
    "rearrange.settings.rules": "rearrange.home.settings.setting_fields",
    "rearrange.simulator": "rearrange.home.simulation.simulator_interface",
    "rearrange.simulators": "rearrange.env.make_simulator",
    "skills.marks": "skills.picture_marks",
}


def new_name(old: str) -> str | None:
    """Where a module of that name is now; those in a package that moved have moved along."""
    package = max((moved for moved in MOVED if old == moved or old.startswith(f"{moved}.")), key=len, default=None)
    return MOVED[package] + old.removeprefix(package) if package else None


class OldNames(MetaPathFinder, Loader):
    """Finds modules under their old names, and gives those of the new ones."""

    def find_spec(self, fullname: str, path: Sequence[str] | None = None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        new = new_name(fullname)
        return ModuleSpec(fullname, self, is_package=hasattr(import_module(new), "__path__")) if new else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        new = new_name(spec.name)
        warnings.warn(f"{spec.name} is now {new}; the old name works in this version only.", DeprecationWarning,
                      stacklevel=2)
        module = import_module(new)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = module.__spec__.loader_state  # it stays the module that it is


def install() -> None:
    """Let imports find old names before all others: a package under its old name has the folder of the new one."""
    if not any(isinstance(finder, OldNames) for finder in sys.meta_path):
        sys.meta_path.insert(0, OldNames())

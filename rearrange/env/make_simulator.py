"""Which simulator: `sim=` by its name."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from rearrange.home.errors import UserError
from rearrange.home.scene_files.scene_data import SceneData, is_exported, scenes_of
from rearrange.home.settings.environment import SIMULATORS
from rearrange.home.simulation.mujoco.simulator import MujocoSimulator
from rearrange.home.simulation.simulator_interface import Simulator, SimulatorConfig

if TYPE_CHECKING:
    from rearrange.home.apartments.episodes import Episode
    from rearrange.home.settings.environment import HomeSettings

__all__ = ["CLASSES", "make_simulator"]

CLASSES = {"mujoco": "rearrange.home.simulation.mujoco.simulator:MujocoSimulator",
           "habitat": "rearrange.habitat.habitat_simulator:HabitatSimulator"}
"""Simulator -> its class, `module:Name`, which is made with a `SimulatorConfig`; these two also read data sets."""


def draws_in_scenes(settings: HomeSettings) -> bool:
    """Whether generated episodes are drawn in external scenes, of which nothing is known but their files."""
    dataset = settings.scene_dataset
    return dataset is not None and (settings.sim == "mujoco" or not is_exported(Path(dataset)))


def scene_data(settings: HomeSettings, listed: Sequence[Episode] | None) -> SceneData:
    """What a simulator that reads a scene data set needs to know of it. It must have the scenes of the episodes: of
    those that are listed, or else of the homes of the split. """
    in_scenes = listed is None and draws_in_scenes(settings)
    return SceneData(settings.scene_dataset, settings.robot_urdf, settings.gpu_device,
                     () if in_scenes else scenes_of(settings.homes, settings.num_layouts, listed),
                     tuple(settings.observations or ()), settings.camera_size, settings.mix < 1.0)


def make_simulator(name: str, config: SimulatorConfig, data: SceneData | None = None) -> Simulator:
    """A simulator; `data`: the data set whose scenes are read, which the one called habitat needs. Raises UserError
    when it cannot be had here. """
    if name == "mujoco":
        if data is None or data.scene_dataset is None:
            return MujocoSimulator(config)
        from rearrange.home.simulation.scenes.mjcf import is_mjcf
        from rearrange.home.simulation.scenes.scene_simulator import SceneSimulator

        if not is_mjcf(Path(data.scene_dataset)):
            data.check()
        return SceneSimulator(config, data.scene_dataset, data.mixed)
    if name == "habitat":
        return import_module("rearrange.habitat").make_simulator(config, data)  # which stands above this package
    if name not in CLASSES:
        raise UserError(f"sim={name} is not one of {', '.join(SIMULATORS)}.")
    module, _, kind = CLASSES[name].partition(":")
    return getattr(import_module(module), kind)(config)

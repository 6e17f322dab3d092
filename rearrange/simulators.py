"""Which simulator: `sim=` by its name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rearrange.errors import UserError
from rearrange.mujoco_sim.simulator import MujocoSimulator
from rearrange.nvidia import has_nvidia_device
from rearrange.settings.environment import SIMULATORS
from rearrange.simulator import Simulator, SimulatorConfig

if TYPE_CHECKING:
    from rearrange.apartments.episodes import Episode
    from rearrange.habitat.data import HabitatData

__all__ = ["make_simulator"]


def scene_data(scene_dataset: str | None, robot: str | None, gpu_device: int | None, pictures: bool, split: str,
               num_layouts: int, listed: Sequence[Episode] | None, seen: tuple[str, ...] = (), camera_size: int = 128) -> HabitatData:
    """What a simulator that reads a scene data set needs to know of it; `pictures`: it will be drawn in colour; `seen`, `camera_size`:
    what the robot sees beside depth. It must have the scenes of the episodes: of those that are listed, or else of the homes of the split.
    """
    from rearrange.habitat.data import HabitatData, scenes_of

    return HabitatData(scene_dataset, robot, gpu_device, pictures, scenes_of(split, num_layouts, listed), seen, camera_size)


def make_simulator(name: str, config: SimulatorConfig, data: HabitatData | None = None) -> Simulator:
    """A simulator; `data`: the data set whose scenes are read, which the one called habitat needs. Raises UserError when it cannot be had
    here.
    """
    if name == "mujoco":
        if data is None or data.scene_dataset is None:
            return MujocoSimulator(config)
        from rearrange.mujoco_scenes.mjcf import is_mjcf
        from rearrange.mujoco_scenes.simulator import SceneSimulator

        if not is_mjcf(Path(data.scene_dataset)):
            data.check()
        return SceneSimulator(config, data.scene_dataset)
    if name != "habitat":
        raise UserError(f"sim={name} is not one of {', '.join(SIMULATORS)}.")
    from rearrange.habitat.installed import need_habitat
    from rearrange.habitat.simulator import HabitatSimulator

    need_habitat()
    return HabitatSimulator(config, data, has_nvidia_device())

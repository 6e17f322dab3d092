"""Which simulator: `sim=` by its name. docs/habitat.md says what every simulator offers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from rearrange.errors import UserError
from rearrange.simulator import SimulatorConfig
from rearrange.mujoco_sim.simulator import Simulator

if TYPE_CHECKING:
    from rearrange.apartments.episodes import Episode
    from rearrange.habitat.data import HabitatData

SIMULATORS = ("mujoco", "habitat")


def scene_data(scene_dataset: str | None, robot: str | None, gpu_device: int | None, pictures: bool, split: str,
               num_layouts: int, listed: Sequence[Episode] | None) -> HabitatData:
    """What a simulator that reads a scene data set needs to know of it; `pictures`: it will be drawn in colour. It must have
    the scenes of the episodes: of those that are listed, or else of the homes of the split.
    """
    from rearrange.habitat.data import HabitatData, scenes_of

    return HabitatData(scene_dataset, robot, gpu_device, pictures, scenes_of(split, num_layouts, listed))


def make_simulator(name: str, config: SimulatorConfig, data: HabitatData | None = None) -> Simulator:
    """A simulator; `data`: what the one called habitat reads. Raises UserError when it cannot be had here."""
    if name == "mujoco":
        return Simulator(config)
    if name != "habitat":
        raise UserError(f"sim={name} is not one of {', '.join(SIMULATORS)}.")
    from rearrange.habitat.installed import need_habitat
    from rearrange.habitat.simulator import HabitatSimulator
    from rearrange.settings.compose import has_nvidia_device

    need_habitat()
    return cast(Simulator, HabitatSimulator(config, data, has_nvidia_device()))  # which offers what docs/habitat.md lists

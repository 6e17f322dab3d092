"""Which simulator: `sim=` by its name. docs/habitat.md says what every simulator offers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rearrange.errors import UserError
from rearrange.robot_in_home import RobotInHome, SimulatorConfig
from rearrange.simulator import Simulator

if TYPE_CHECKING:
    from rearrange.habitat.data import HabitatData

SIMULATORS = ("mujoco", "habitat")


def make_simulator(name: str, config: SimulatorConfig, data: HabitatData | None = None) -> RobotInHome:
    """A simulator; `data`: what the one called habitat reads. Raises UserError when it cannot be had here."""
    if name == "mujoco":
        return Simulator(config)
    if name != "habitat":
        raise UserError(f"sim={name} is not one of {', '.join(SIMULATORS)}.")
    from rearrange.habitat.need import need_habitat
    from rearrange.habitat.simulator import HabitatSimulator
    from rearrange.settings import has_nvidia_device

    need_habitat()
    return HabitatSimulator(config, data, has_nvidia_device())

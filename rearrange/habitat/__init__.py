"""Homes in Habitat-Sim (`sim=habitat`): the same skills, planner and evaluation, with Bullet's physics and renderer.

docs/habitat.md says what is needed and how to get it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rearrange.home.errors import UserError

if TYPE_CHECKING:
    from rearrange.habitat.habitat_simulator import HabitatSimulator
    from rearrange.home.scene_files.scene_data import SceneData
    from rearrange.home.simulation.simulator_interface import SimulatorConfig


FETCH, SUCTION = "fetch", "suction"


def make_simulator(config: SimulatorConfig, data: SceneData) -> HabitatSimulator:
    """What `sim=habitat` means. UserError where Habitat-Sim is not installed or does not load."""
    from rearrange.habitat.habitat_simulator import HabitatSimulator
    from rearrange.habitat.installed import need_habitat
    from rearrange.home.settings.presets import has_nvidia_device

    if (config.robot, config.hand or SUCTION) != (FETCH, SUCTION):
        raise UserError(f"sim=habitat knows the fetch with suction only, not sim.robot={config.robot}"
                        f"{f' sim.hand={config.hand}' if config.hand else ''}: use sim=mujoco.")
    need_habitat()
    return HabitatSimulator(config, data, has_nvidia_device())

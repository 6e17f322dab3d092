"""The state of a home in Habitat, in the embedded simulator: for what has to know the geometry."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mujoco

from rearrange.home.apartments.episodes import Episode
from rearrange.home.simulation.mujoco.simulator import MujocoSimulator

if TYPE_CHECKING:
    from rearrange.habitat.habitat_simulator import HabitatSimulator


class Twin:
    """An embedded simulator of the home that a Habitat simulator is in. is_current: everything is where it is there."""

    def __init__(self, simulator: MujocoSimulator) -> None:
        self._simulator = simulator
        self._episode: Episode | None = None
        self.is_current = False

    def of(self, sim: HabitatSimulator) -> MujocoSimulator:
        """The embedded simulator with the state that `sim` has now, at rest.

        Nothing is held in it: what is in the hand is where the hand has it.
        """
        twin = self._simulator
        if self._episode is not sim.episode:
            twin.reset(sim.episode)
            self._episode, self.is_current = sim.episode, False
        if self.is_current:
            return twin
        data, model, home = twin.data, twin.model, twin.home
        data.qpos[home.base_qpos] = sim.base_pose
        for joint, position in sim.body.still.items():
            data.qpos[model.joint(joint).qposadr[0]] = position
        data.qpos[home.arm_qpos] = data.ctrl[home.arm_ctrl] = sim.arm_positions()
        for name in sim.home.handles:
            data.qpos[model.joint(name).qposadr[0]] = sim.joint_position(name)
        for i in range(len(sim.episode.objects)):
            address = model.joint(f"object_{twin.slot_of(i)}").qposadr[0]
            data.qpos[address:address + 7] = sim.object_pose(i)
        data.qvel[:] = 0.0
        mujoco.mj_forward(model, data)
        twin._read_pose()  # noqa: SLF001 its cameras are where the robot is now
        self.is_current = True
        return twin

"""The state of a Habitat home in the embedded simulator: for what has to know the geometry, such as experts and painters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import mujoco

from rearrange.home.apartments.episodes import Episode, Pose
from rearrange.home.robot.fetch import TORSO_JOINT_NAME
from rearrange.home.simulation.mujoco.simulator import MujocoSimulator
from rearrange.home.simulation.simulator_interface import Point

if TYPE_CHECKING:
    from rearrange.habitat.habitat_simulator import HabitatSimulator


class Twin:
    """An embedded simulator of the home that a Habitat simulator is in. `is_current`: everything is where it is there."""

    def __init__(self, simulator: MujocoSimulator) -> None:
        self._simulator = simulator
        self._episode: Episode | None = None
        self.is_current = False

    def of(self, sim: HabitatSimulator) -> MujocoSimulator:
        """The embedded simulator with the state that `sim` has now."""
        if self._episode is not sim.episode:
            self._simulator.reset(sim.episode)
            self._episode, self.is_current = sim.episode, False
        if not self.is_current:
            poses = [sim.object_pose(i) for i in range(len(sim.episode.objects))]
            openings = {name: sim.joint_position(name) for name in sim.home.handles}
            show(self._simulator, sim.base_pose, sim.robot.torso_m, sim.arm_positions(), poses, openings)
            self.is_current = True
        return self._simulator


def show(twin: MujocoSimulator, base_pose: Point, torso_m: float, arm_rad: Sequence[float], objects: Sequence[Pose],
         openings: Mapping[str, float]) -> None:
    """Put everything where it is, at rest. Nothing is held in the twin: what is in the hand is where the hand has it."""
    data, model, home = twin.data, twin.model, twin.home
    data.qpos[home.base_qpos] = base_pose
    data.qpos[model.joint(TORSO_JOINT_NAME).qposadr[0]] = torso_m
    data.qpos[home.arm_qpos] = arm_rad
    data.ctrl[home.arm_ctrl] = arm_rad
    for name, opening in openings.items():
        data.qpos[model.joint(name).qposadr[0]] = opening
    for i, pose in enumerate(objects):
        address = model.joint(f"object_{twin.slot_of(i)}").qposadr[0]
        data.qpos[address:address + 7] = pose
    data.qvel[:] = 0.0
    mujoco.mj_forward(model, data)
    twin._read_pose()  # noqa: SLF001 its cameras are where the robot is now

"""The state of a Habitat home in the embedded simulator: for what has to know the geometry, such as experts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import mujoco

from rearrange.apartments.episodes import Pose
from rearrange.robot.fetch import TORSO_JOINT_NAME
from rearrange.simulator import Point
from rearrange.mujoco_sim.simulator import MujocoSimulator


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

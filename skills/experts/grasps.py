"""Where two fingers take an object: from above and from the side, across what is narrow enough."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import mujoco
import numpy as np

from rearrange.home.simulation.simulator_interface import Simulator
from skills.experts.arm_model import Tool
from skills.experts.reach_plan import Aim, Target, facing_axis

FINGERS = Tool(np.zeros(3), np.array([1.0, 0.0, 0.0]), within_m=0.002, within_rad=0.03)
OPENING_STEPS = 10  # in which open fingers leave what they held
_LEVEL = 0.26  # cosine with the vertical of what counts as level
_ASIDE_RAD = 1.2  # from the direction in which the hand comes to that in which it may go in
_ENOUGH_ROOM_M, _STEPS_PER_M = 0.015, 3000.0  # beside what fingers close on; what less of it costs
_OVER_M = 0.006  # kept between the fingers and what the object stands on
_FINGER_HALF_M = 0.0135


def depth_of(sim: Simulator, i: int) -> Callable[[np.ndarray], float]:
    """How far (m) the middle of object i is behind its surface, along a direction (3,), world."""
    twin = sim.twin
    rotation = twin.data.body(f"object_{twin.slot_of(i)}").xmat.reshape(3, 3).copy()
    geom = twin.model.geom(f"object_{twin.slot_of(i)}").id
    size, kind = twin.model.geom_size[geom].copy(), int(twin.model.geom_type[geom])

    def depth_m(axis: np.ndarray) -> float:
        local = np.abs(rotation.T @ axis) + 1e-9
        if kind == mujoco.mjtGeom.mjGEOM_SPHERE:
            return float(size[0])
        if kind == mujoco.mjtGeom.mjGEOM_CYLINDER:
            return min(size[0] / math.hypot(local[0], local[1]), size[1] / local[2])
        return float((size / local).min())

    return depth_m


def grasp_aim(sim: Simulator, i: int, tilts_rad: Sequence[float]) -> Aim:
    """Aims the fingers at object i, as deep as they go. tilts_rad: of the hand below the horizontal."""
    hand, depth_m = sim.robot.hand, depth_of(sim, i)
    middle = np.array(sim.object_position(i))
    twin = sim.twin
    axes = twin.data.body(f"object_{twin.slot_of(i)}").xmat.reshape(3, 3).copy()
    half = np.array(sim.object_half_extents(i))
    kind = int(twin.model.geom_type[twin.model.geom(f"object_{twin.slot_of(i)}").id])
    bottom_m = float(middle[2] - np.abs(axes[2]) @ half)
    is_round = kind == mujoco.mjtGeom.mjGEOM_SPHERE or (
        kind == mujoco.mjtGeom.mjGEOM_CYLINDER and abs(axes[2, 2]) > 1.0 - _LEVEL)

    def ways(heading: float) -> Iterator[tuple[float, np.ndarray, float]]:
        """Directions (rad) in which the hand goes in, across which of the object's axes it closes then, and half the
        width there.
        """
        if is_round:
            yield heading, np.array([-math.sin(heading), math.cos(heading), 0.0]), half[0]
            return
        for k in range(3):
            across = axes[:, k]
            if abs(across[2]) > _LEVEL or not hand.takes((half[k], half[k])):
                continue
            for way in (math.atan2(across[0], -across[1]), math.atan2(-across[0], across[1])):
                yield way, across, half[k]

    def aim(heading: float) -> Iterator[Target]:
        for way, across, half_width in ways(heading):
            off = abs(math.remainder(way - heading, math.tau))
            for tilt in tilts_rad:
                level = math.cos(tilt)
                if level > 0.1 and off > _ASIDE_RAD:
                    continue
                axis = facing_axis(way, tilt)
                point = middle - max(0.0, depth_m(axis) - hand.deepest_m) * axis
                least = bottom_m + _OVER_M + hand.past_m * math.sin(tilt) + _FINGER_HALF_M * level
                point[2] = max(point[2], least)
                room_m = hand.opening_m / 2.0 - half_width
                cost = _STEPS_PER_M * max(0.0, _ENOUGH_ROOM_M - room_m)
                yield Target(point, axis, -axis, cost, across, room_m)

    return aim

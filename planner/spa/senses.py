"""What the sense-plan-act agent may know: its own body, its odometry, its depth camera.

Its controllers get a `Senses` instead of the simulator, so that they cannot read anything else: no poses of furniture
or objects, no contacts, no collision detection.
"""

from __future__ import annotations

import math
from functools import cache

import mujoco
import numpy as np

from rearrange.home.geometry import PlanePose, quat_matrix
from rearrange.home.numba_cache import njit
from rearrange.home.robot.cameras import camera_points, to_world
from rearrange.home.robot.robot import Robot
from rearrange.home.simulation.simulator_interface import Simulator
from skills.experts.arm_model import arm_model

SIZE, FAR_M = 96, 10.0  # pixels and range of the depth image
_OWN_M, _LOAD_M = 0.05, 0.22  # around the robot's arm, and around the hand while it holds something: not an obstacle


class Senses:
    """The robot's own view. Poses are in the frame of its odometry, which does not drift here."""

    def __init__(self, sim: Simulator) -> None:
        self._sim, self.config, self.robot = sim, sim.config, sim.robot

    @property
    def base_pose(self) -> PlanePose:
        """Odometry: x, y (m), yaw (rad)."""
        return self._sim.base_pose

    @property
    def is_holding(self) -> bool:
        """The hand holds something."""
        return self._sim.is_holding

    def arm_positions(self) -> np.ndarray:
        """Posture of the arm (joints,)."""
        return self._sim.arm_positions()

    def arm_targets(self) -> np.ndarray:
        """What its motors were told (joints,)."""
        return self._sim.arm_targets()

    def to_base(self, point: tuple[float, float, float]) -> tuple[float, float, float]:
        """A point of the odometry frame in the base frame."""
        return self._sim.to_base(point)

    def from_base(self, point: tuple[float, float, float]) -> tuple[float, float, float]:
        """A point of the base frame in the odometry frame."""
        return self._sim.from_base(point)

    def hand(self) -> tuple[np.ndarray, np.ndarray]:
        """Position (3,) and rotation (3, 3) of the end-effector in the odometry frame, from the joint angles."""
        tip, turned = arm_model(self.robot).hand(self.arm_positions())
        yaw = self.base_pose[2]
        cos, sin = math.cos(yaw), math.sin(yaw)
        heading = np.array([[cos, -sin, 0.0], [sin, cos, 0.0], [0.0, 0.0, 1.0]])
        return np.array(self.from_base(tuple(tip))), heading @ turned

    def depth_m(self) -> np.ndarray:
        """The head camera's image now (SIZE, SIZE), metres along its axis; inf where there is nothing."""
        image = self._sim.depth_image(SIZE)[:, :, 0]
        return np.where(image >= 1.0, np.inf, image * FAR_M)

    def points(self) -> np.ndarray:
        """What the camera sees but for the robot itself and what it holds: (n, 3), odometry frame."""
        depth = self.depth_m().ravel()
        seen = np.isfinite(depth)
        local = camera_points(self.robot.head, depth, seen)
        centres, radii = arm_spheres(self.robot, self.arm_positions())
        if self.is_holding:
            centres, radii = np.vstack([centres, centres[-1:]]), np.append(radii, _LOAD_M)
        local = local[~_inside(local, centres, radii + _OWN_M)]
        return to_world(local, self.base_pose)


# ------------------------------------------------------------------ the robot's own shape

@cache
def _balls(robot: Robot) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Balls that fill the arm: index of their body (n,), place in it (n, 3), radius (n,); the hand's are the last."""
    arm = arm_model(robot)
    model, hand = arm.model, arm.model.body(robot.hand.body).id
    bodies, places, radii = [], [], []
    for geom in np.flatnonzero(model.geom_contype != 0):
        if not arm.is_of_arm(int(model.geom_bodyid[geom])) or model.geom_bodyid[geom] == hand:
            continue
        longest, (radius, half) = 2, model.geom_size[geom, :2]
        if model.geom_type[geom] != mujoco.mjtGeom.mjGEOM_CAPSULE:
            extents = model.geom_aabb[geom, 3:]
            longest = int(extents.argmax())
            radius = float(np.delete(extents, longest).max())
            half = float(extents[longest]) - radius
        axis = quat_matrix(model.geom_quat[geom])[:, longest]
        for share in np.linspace(-1.0, 1.0, max(2, math.ceil(2 * half / radius))):
            bodies.append(int(model.geom_bodyid[geom]))
            places.append(model.geom_pos[geom] + share * half * axis)
            radii.append(radius)
    for along, radius in robot.hand.balls_m:
        bodies.append(int(hand))
        places.append(np.array([along, 0.0, 0.0]))
        radii.append(radius)
    return np.array(bodies), np.array(places), np.array(radii)


def arm_spheres(robot: Robot, posture: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Centres (n, 3) in the base frame and radii (n,) of balls that fill the arm in a posture."""
    arm = arm_model(robot)
    arm.set(posture)
    bodies, places, radii = _balls(robot)
    turned = np.einsum("nij,nj->ni", arm.data.xmat[bodies].reshape(-1, 3, 3), places)
    return arm.data.xpos[bodies] + turned, radii


@njit(cache=True, nogil=True)
def _inside(points, centres, radii):
    """Which points (n, 3) lie in one of the balls."""
    found = np.zeros(len(points), np.bool_)
    for i in range(len(points)):
        for k in range(len(centres)):
            d = 0.0
            for c in range(3):
                d += (points[i, c] - centres[k, c]) ** 2
            if d < radii[k] * radii[k]:
                found[i] = True
                break
    return found


@njit(cache=True, nogil=True)
def gap_m(points, centres, radii, most):
    """Smallest distance (m, at most `most`) between points (n, 3) and balls; negative inside."""
    least = most
    for i in range(len(points)):
        for k in range(len(centres)):
            reach = least + radii[k]
            d = 0.0
            for c in range(3):
                d += (points[i, c] - centres[k, c]) ** 2
            if reach > 0.0 and d < reach * reach:
                least = math.sqrt(d) - radii[k]
    return least

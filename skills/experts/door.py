"""The expert that closes the fridge: it drives its hand around the edge of the open door and sweeps the door shut."""

from __future__ import annotations

import math

import numpy as np

from rearrange.home.geometry import PlanePose, rotate, wrap_angle
from rearrange.home.simulation.simulator_interface import STEP_S, Simulator
from skills.articulated import Articulated
from skills.experts.arm_model import arm_model
from skills.experts.base_search import search
from skills.experts.clearance import Clearance
from skills.experts.handle_path import HandlePath
from skills.experts.motion import assemble, follow, servo_driving
from skills.experts.trajectory import Follower, Motion

_POLE_M = (0.6, 0.0, 1.0)  # where the hand can be while it pushes, base frame
_HAND_HALF_M = 0.05  # half its thickness
_ROOM_M = 0.025  # kept between the robot and everything on its way
_CLEAR_M = 0.01  # while the arm takes its posture
_CRUISE = 0.75  # of the fastest that the base drives
_IDLE_STEPS = 20
_PUSH_M_S = 0.4  # of the hand of an arm that reaches to the side
_ELBOW_STEPS = 30.0
_FACING_RAD = 0.9  # a door that is open less far is pushed from the front
_SWINGS_RAD = (0.12, 0.05, 0.0)  # room kept for the door, as much as there is
_PLANS = 4  # at most
_DOOR_M = 0.055  # from the plane of the hinge to the outer face


class CloseDoorExpert:
    """Holds the hand out like a pole, drives it around the edge of the door, and sweeps the door shut."""

    def __init__(self, sim: Simulator, skill: Articulated) -> None:
        self.sim, self.skill, self.handle = sim, skill, skill.target_handle
        self.path = HandlePath(sim, self.handle)
        self.arm = arm = arm_model(sim.robot)
        self.rest = arm.rest_posture(arm.start, skill.rest_m(sim))
        self.posture, self.follower, self.plans = arm.start, None, 0
        self._idle_steps, self._least_rad = 0, math.inf
        ahead = np.array(sim.robot.arm.ahead)
        poles = arm.ik(np.array(_POLE_M)), arm.ik(np.array(_POLE_M), None, ahead, tolerance_m=0.01)
        self._plan([arm.start, *(pole for pole in poles if pole is not None)],
                   facing=sim.joint_position(self.handle) < _FACING_RAD)

    def act(self) -> np.ndarray:
        """The next action."""
        sim, opening = self.sim, self.sim.joint_position(self.handle)
        if opening < 0.5 * self.skill.config.opening_tolerance:
            return self._action(follow(sim, self.rest), (-0.3, 0.0))
        if self.follower is None or self.follower.done:
            caught = opening < _FACING_RAD and not self.facing and self._facing(sim.base_pose, 0.0) < 0.3
            inside = self._along_door(sim.ee_position, opening)[1] < 0.0  # the door was pushed aside on the way
            stalls = not sim.robot.arm.reaches_ahead and self._stalls(opening)
            if (caught or inside or stalls) and self.plans < _PLANS:
                self._plan([self.posture], facing=opening < _FACING_RAD)
        if self.follower is not None and not self.follower.done:
            return self._action(*self.follower.command())
        if not sim.robot.arm.reaches_ahead:
            return self._action(*self._push(opening))
        return self._action(follow(sim, self.posture), self._sweep(opening))

    def _action(self, arm: np.ndarray, base: tuple[float, float]) -> np.ndarray:
        return assemble(self.skill, {"arm": arm, "grip": -1.0, "base": base})

    def _sweep(self, opening: float) -> tuple[float, float]:
        """Base command that moves the hand as the door closes, on to a point a little inside the door."""
        sim = self.sim
        gx, gy, _ = sim.to_base(tuple(self._inside_door(opening)))
        hx, hy, _ = sim.ee_in_base
        vx, vy = 5.0 * (gx - hx), 5.0 * (gy - hy)
        turn = vy / max(hx, 0.3)
        return (float(np.clip((vx + turn * hy) / sim.config.base_speed_m_s, -0.9, 0.9)),
                float(np.clip(turn / sim.config.base_turn_rad_s, -1.0, 1.0)))

    def _stalls(self, opening: float) -> bool:
        """The door has stood still for a while: the arm is stretched out, and the base has to come nearer."""
        self._idle_steps = 0 if opening < self._least_rad - 0.005 else self._idle_steps + 1
        self._least_rad = min(self._least_rad, opening)
        if self._idle_steps <= _IDLE_STEPS:
            return False
        self._idle_steps = 0
        return True

    def _push(self, opening: float) -> tuple[np.ndarray, tuple[float, float]]:
        """Commands of an arm that reaches to the side, and of its base, that move the hand so."""
        sim = self.sim
        off = self._inside_door(opening) - sim.ee_position
        velocity = off * min(5.0, _PUSH_M_S / max(float(np.linalg.norm(off)), 1e-6))
        return servo_driving(sim, velocity, turning=True)

    # ------------------------------------------------------------------ the door

    def _inside_door(self, opening: float) -> np.ndarray:
        """A point (3,) a little inside the door, where the hand shall be next."""
        reach = min(max(self._along_door(self.sim.ee_position, opening)[0], 0.35), 0.6)
        return self._door_point(reach, _HAND_HALF_M - 0.03, max(opening - 0.15, -0.02))

    def _door_frame(self, opening: float) -> tuple[np.ndarray, np.ndarray]:
        """Unit vectors along the door from its hinge, and out of its outer face."""
        x, y = rotate(self.path.out[0], self.path.out[1], self.path.sign * opening)
        return self.path.sign * np.array([y, -x, 0.0]), np.array([x, y, 0.0])

    def _along_door(self, point: tuple[float, float, float], opening: float) -> tuple[float, float]:
        """A world point in the door's frame: along it from the hinge, and out of its outer face (m)."""
        along, out = self._door_frame(opening)
        off = np.array(point) - self.path.hinge
        return float(off @ along), float(off @ out) - _DOOR_M

    def _door_point(self, along_m: float, out_m: float, opening: float) -> np.ndarray:
        along, out = self._door_frame(opening)
        return self.path.hinge + along_m * along + (out_m + _DOOR_M) * out + (0.0, 0.0, _POLE_M[2])

    def _facing(self, pose: PlanePose, opening: float) -> float:
        """Cosine between the direction in which the arm reaches out and the way into the door's outer face."""
        out, bearing = self._door_frame(opening)[1], pose[2] + self.sim.robot.arm.bearing_rad
        return -float(math.cos(bearing) * out[0] + math.sin(bearing) * out[1])

    def _plan(self, postures: list[np.ndarray], facing: bool) -> None:
        """Choose a posture, and the way of the base that brings the hand before the door; `facing`: and faces it."""
        sim, clearance = self.sim, Clearance(self.sim)
        self.facing, self.plans = facing, self.plans + 1
        best, motion, before = math.inf, None, math.inf
        for posture, swing in ((posture, swing) for swing in _SWINGS_RAD for posture in postures):
            if best < math.inf and swing < before:
                break  # there is a way with more room
            before = swing
            way = self._way(posture, clearance, swing)
            if way is None:
                continue
            planned = self._motion(posture, _base_path(sim, way), clearance)
            steps = len(planned) + self.arm.steps(posture, self.rest)
            steps += _ELBOW_STEPS * (self.path.sign < 0 and posture[0] < -0.1)  # the elbow is then on the door's side
            if steps < best:
                best, motion, self.posture = steps, planned, posture
        self.follower = Follower(sim, motion) if motion is not None and len(motion) else None

    def _motion(self, posture: np.ndarray, base: np.ndarray, clearance: Clearance) -> Motion:
        """The way with the arm taking its posture, at the same time where there is room, else before."""
        first = self.sim.arm_positions().copy()
        n = math.ceil(self.arm.steps(first, posture))
        shares = np.minimum(1.0, np.arange(1, len(base) + 1) / max(n, 1))
        arm = first + shares[:, None] * (posture - first)
        clearance.set_joint(self.handle, self.sim.joint_position(self.handle))
        if all(clearance.distance(tuple(base[i]), arm[i]) > _CLEAR_M for i in range(0, min(n, len(base)), 4)):
            return Motion(base, arm)
        stand = np.tile(self.sim.base_pose, (n, 1))
        unfold = first + np.linspace(1.0 / n, 1.0, n)[:, None] * (posture - first)
        return Motion(np.concatenate([stand, base]), np.concatenate([unfold, np.tile(posture, (len(base), 1))]))

    def _way(self, posture: np.ndarray, clearance: Clearance, swing: float) -> list[PlanePose] | None:
        """Poses of the base with the arm in a posture, where the door may swing (rad) to both sides; None = no way."""
        sim = self.sim
        opening = sim.joint_position(self.handle)
        hand_x, hand_y, _ = self.arm.hand(posture)[0]
        goal = self._door_point(0.5, 0.12, opening)

        def hand(pose: PlanePose) -> tuple[float, float, float]:
            c, s = math.cos(pose[2]), math.sin(pose[2])
            return pose[0] + c * hand_x - s * hand_y, pose[1] + s * hand_x + c * hand_y, 1.0

        def reached(pose: PlanePose) -> bool:
            along, out = self._along_door(hand(pose), opening)
            there = 0.33 < along < 0.64 and _HAND_HALF_M < out < 0.3
            return there and (not self.facing or self._facing(pose, 0.0) > 0.5) and free(pose)

        def left_m(pose: PlanePose) -> float:
            return max(0.0, math.dist(hand(pose)[:2], goal[:2]) - 0.12)

        def free(pose: PlanePose) -> bool:
            for side in (0.0, -1.0, 1.0) if swing else (0.0,):
                clearance.set_joint(self.handle, opening + side * swing)
                if clearance.distance(pose, posture) < _ROOM_M:
                    return False
            return True

        if posture is not self.arm.start and not free(sim.base_pose):
            return None
        if reached(sim.base_pose):
            return []
        return search(sim.base_pose, free, reached, left_m, (sim.config.base_speed_m_s, sim.config.base_turn_rad_s))


def _base_path(sim: Simulator, way: list[PlanePose]) -> np.ndarray:
    """The poses (n, 3) of the base at every step along a way, each part of it an arc or a turn on the spot."""
    metres, radians = _CRUISE * sim.config.base_speed_m_s * STEP_S, _CRUISE * sim.config.base_turn_rad_s * STEP_S
    poses, (x, y, yaw) = [], sim.base_pose
    for gx, gy, gyaw in way:
        turn = wrap_angle(gyaw - yaw)
        middle = yaw + turn / 2
        ahead = math.cos(middle) * (gx - x) + math.sin(middle) * (gy - y)
        n = max(1, math.ceil(max(abs(ahead) / metres, abs(turn) / radians)))
        poses += [(x + k / n * (gx - x), y + k / n * (gy - y), yaw + k / n * turn) for k in range(1, n + 1)]
        x, y, yaw = gx, gy, yaw + turn
    return np.array(poses).reshape(-1, 3)

"""Experts for drawers and the fridge's door: they open by suction on the handle, and push shut with the hand."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from rearrange.env import ACTION_SIZES
from rearrange.geometry import rotate, wrap_angle
from rearrange.layout_kitchen import HANDLE_STANDOFF_M
from rearrange.simulator import STEP_S
from skills.experts.base_search import Pose2, search
from skills.experts.clearance import Clearance
from skills.experts.motion import START_RAD, arm_model, arm_steps, arrived, drive_steps, follow, ik, servo

if TYPE_CHECKING:
    from rearrange.simulator import Simulator
    from skills.articulated import Articulated

_BEFORE_M = 0.07  # from the handle, where the hand gets ready
_CLEAR_M = 0.01  # kept from everything on the way
_TILTS_RAD = tuple(math.radians(a) for a in (0, 20, 40, 60, 80))  # of the cup below the horizontal
_TURNS_RAD = tuple(math.radians(a) for a in (0, 25, -25, 50, -50))  # of the cup to the side
_DRIVES_M = (0.0, 0.07, -0.07, 0.14, -0.14, 0.22, -0.22)  # of the base before the hand takes the handle
_READY_RAD = 0.08  # from the posture in which the hand is ready
_SPEED_M_S = 0.5  # of the handle
_BESIDE_M = 0.14  # the handle, where the hand presses on a drawer
_MARGIN = 0.04  # by which it opens farther than it must, or closes
_POLE_M = (0.6, 0.0, 1.0)  # where the hand is while it pushes a door, base frame
_AHEAD_RAD = np.array([0.0, -1.2, 0.0, 1.1, 0.0, 1.7, 0.0])  # such a posture, the whole arm straight ahead
_HAND_HALF_M = 0.05  # half its thickness
_ROOM_M = 0.025  # kept between the robot and everything on its way
_ELBOW_STEPS = 30.0
_FACING_RAD = 0.9  # a door that is open less far is pushed from the front
_DOOR_M = 0.055  # from the plane of the hinge to the outer face


class HandlePath:
    """Where a handle is, and which way it moves, at every opening."""

    def __init__(self, sim: Simulator, name: str) -> None:
        body = next(body for body in sim.home.layout.bodies if body.name == name)
        self.slides, self.sign = body.joint == "slide", body.hinge_sign
        x, y, yaw = body.pose(0.0)
        self.out = np.array([math.cos(yaw), math.sin(yaw), 0.0])  # out of the closed front
        self.first_opening = sim.joint_position(name)
        self._handle = np.array(sim.handle_position(name))
        self.hinge = np.array([x, y, 0.0])

    def at(self, opening: float) -> np.ndarray:
        """Position (3,) of the handle in the world."""
        by = opening - self.first_opening
        if self.slides:
            return self._handle + by * self.out
        c, s = math.cos(self.sign * by), math.sin(self.sign * by)
        x, y, z = self._handle - self.hinge
        return self.hinge + np.array([c * x - s * y, s * x + c * y, z])

    def direction(self, opening: float) -> np.ndarray:
        """Unit vector (3,) along which the handle moves as it opens."""
        if self.slides:
            return self.out
        arm = self.at(opening) - self.hinge
        along = self.sign * np.array([-arm[1], arm[0], 0.0])
        return along / np.linalg.norm(along)


class HandleExpert:
    """What pulling a handle and pressing on a front have in common: the hand gets ready before a point, touches it, moves
    along with it, base and arm together, and comes back to rest.
    """

    grip = 1.0  # while it touches
    sense = 1.0  # of the way: opening +1, closing -1

    def __init__(self, sim: Simulator, skill: Articulated) -> None:
        self.sim, self.skill, self.handle = sim, skill, skill.target_handle
        self.path = HandlePath(sim, self.handle)
        self.start = sim.base_pose
        self.parts = _parts(skill)
        self.drive_m, self.before, self.axis = self._plan()
        self.ready = self.done = False
        self.rest: np.ndarray | None = None

    def act(self) -> np.ndarray:
        """The next action."""
        sim = self.sim
        opening = sim.joint_position(self.handle)
        self.done = self.done or self._far_enough(opening)
        if self.done:
            return self._go_to_rest()
        if self._touches(opening):
            return self._move_along(opening)
        base = self._approach()
        if not self.ready:
            off = float(np.abs(sim.arm_positions() - self.before).max())
            self.ready = off < _READY_RAD and abs(self._drive_left()) < 0.03
            return _action(self.parts, follow(sim, self.before), -1.0, base)
        return _action(self.parts, servo(sim, self._point(), 0.01, self.axis), self.grip, base)

    # ------------------------------------------------------------------ what differs

    def _point(self) -> np.ndarray:
        """World point that the tip of the cup is to touch."""
        return np.array(self.sim.handle_position(self.handle))

    def _touches(self, opening: float) -> bool:
        """The hand can move along now."""
        return self.sim.held_handle is not None

    def _far_enough(self, opening: float) -> bool:
        config = self.skill.config
        return opening > config.target_opening - config.opening_tolerance + _MARGIN

    # ------------------------------------------------------------------ phases

    def _drive_left(self) -> float:
        (x0, y0, yaw), (x, y, _) = self.start, self.sim.base_pose
        return self.drive_m - (x - x0) * math.cos(yaw) - (y - y0) * math.sin(yaw)

    def _approach(self) -> tuple[float, float]:
        return float(np.clip(3.5 * self._drive_left(), -1.0, 1.0)), 3.0 * (self.start[2] - self.sim.base_pose[2])

    def _move_along(self, opening: float) -> np.ndarray:
        """Moves the tip of the cup along the handle's path: the base as far as it can, the arm the rest."""
        sim = self.sim
        x, y, yaw = sim.base_pose
        ahead, left = np.array([math.cos(yaw), math.sin(yaw), 0.0]), np.array([-math.sin(yaw), math.cos(yaw), 0.0])
        tip = np.array(sim.ee_position)
        velocity = self.sense * _SPEED_M_S * self.path.direction(opening)
        arm = tip - (x, y, 0.0)
        turn = 0.9 * float(velocity @ left) / max(0.3, float(arm @ ahead)) if "base" in self.parts else 0.0
        forward = float(velocity @ ahead) if "base" in self.parts else 0.0
        rest = velocity - forward * ahead - turn * np.array([-arm[1], arm[0], 0.0])
        return _action(self.parts, servo(sim, tip + rest * STEP_S + 0.02 * rest, 0.02), self.grip,
                       (forward / sim.config.base_speed_m_s, turn / sim.config.base_turn_rad_s))

    def _go_to_rest(self) -> np.ndarray:
        sim = self.sim
        if self.rest is None:
            found = ik(np.array(self.skill.config.rest_position_m), None, sim.arm_positions(), tolerance_m=0.05)
            self.rest = START_RAD if found is None else found
        away = -0.5 if math.dist(sim.ee_position, self._point()) < 0.25 else 0.0
        return _action(self.parts, follow(sim, self.rest), -1.0, (away, 0.0))

    # ------------------------------------------------------------------ planning

    def _plan(self) -> tuple[float, np.ndarray, np.ndarray]:
        """How far the base drives (m), the posture before the point, and the cup's axis in the world: the fastest."""
        sim, clearance = self.sim, Clearance(self.sim)
        point = self._point()
        yaw_in = math.atan2(-self.path.out[1], -self.path.out[0])
        best = (math.inf, 0.0, START_RAD, -self.path.out)
        for drive in _DRIVES_M if "base" in self.parts else (0.0,):
            x, y, yaw = self.start
            base = (x + drive * math.cos(yaw), y + drive * math.sin(yaw), yaw)
            if clearance.distance(base, START_RAD, base_only=True) < _CLEAR_M:
                continue
            for tilt in _TILTS_RAD:
                for turn in _TURNS_RAD:
                    level, way = math.cos(tilt), yaw_in + turn
                    axis = np.array([level * math.cos(way), level * math.sin(way), -math.sin(tilt)])
                    found = _postures(base, point, axis)
                    if found is None:
                        continue
                    cost = max(arm_steps(START_RAD, found[0]), 10 + 40 * abs(drive)) + arm_steps(*found)
                    if cost < best[0] and all(clearance.distance(base, START_RAD + w * (found[0] - START_RAD)) > _CLEAR_M
                                              for w in (1.0, 0.75, 0.5)):
                        best = (cost, drive, found[0], axis)
        return best[1:]


class OpenExpert(HandleExpert):
    """Takes the handle, pulls with base and arm along its path, lets go and brings the hand back to rest."""


class CloseDrawerExpert(HandleExpert):
    """Presses the hand on the front of a drawer beside its handle and drives forward until it is shut."""

    grip, sense = -1.0, -1.0

    def _point(self) -> np.ndarray:
        side = np.array([-self.path.out[1], self.path.out[0], 0.0])
        return np.array(self.sim.handle_position(self.handle)) - HANDLE_STANDOFF_M * self.path.out + _BESIDE_M * side

    def _touches(self, opening: float) -> bool:
        return self.ready and bool(self.sim.suction.touches() or opening < self.path.first_opening - 0.01)

    def _far_enough(self, opening: float) -> bool:
        return opening < self.skill.config.opening_tolerance - _MARGIN


def _postures(base: Pose2, point: np.ndarray, axis: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Postures before a world point and at it, the cup facing along `axis`."""
    c, s = math.cos(base[2]), math.sin(base[2])
    turn = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
    there, way = turn @ (point - (base[0], base[1], 0.0)), turn @ axis
    before = ik(there - _BEFORE_M * way, way)
    at = None if before is None else ik(there, way, before)
    return None if at is None else (before, at)


class CloseDoorExpert:
    """Holds the hand out like a pole, drives it around the edge of the door, and sweeps the door shut."""

    def __init__(self, sim: Simulator, skill: Articulated) -> None:
        self.sim, self.skill, self.handle = sim, skill, skill.target_handle
        self.path = HandlePath(sim, self.handle)
        self.parts = _parts(skill)
        self.rest = ik(np.array(skill.config.rest_position_m), None, tolerance_m=0.1)
        self.posture, self.way, self.unfolds_first, self.plans = START_RAD, [], False, 0
        self._plan([START_RAD, ik(np.array(_POLE_M), None), ik(np.array(_POLE_M), None, _AHEAD_RAD, tolerance_m=0.01)],
                   facing=sim.joint_position(self.handle) < _FACING_RAD)

    def act(self) -> np.ndarray:
        """The next action."""
        sim, opening = self.sim, self.sim.joint_position(self.handle)
        if opening < 0.5 * self.skill.config.opening_tolerance:
            return _action(self.parts, follow(sim, self.rest), -1.0, (-0.3, 0.0))
        arm = follow(sim, self.posture)
        if self.at == 0 and self.unfolds_first and not arrived(sim, self.posture, 0.1):
            return _action(self.parts, arm, -1.0, (0.0, 0.0))
        if self.at >= len(self.way) and self._along_door(sim.ee_position, opening)[1] < 0.0 and self.plans < 4:
            self._plan([self.posture], facing=opening < _FACING_RAD)  # the door was pushed aside on the way
        if self.at >= len(self.way) and opening < _FACING_RAD and not self.facing and self._facing(sim.base_pose, 0.0) < 0.3:
            self._plan([self.posture], facing=True)  # the arm would be caught between the door and the fridge
        return _action(self.parts, arm, -1.0, self._along() if self.at < len(self.way) else self._sweep(opening))

    def _along(self) -> tuple[float, float]:
        """Follows the way: as `drive`, but to the next pose as soon as one is near."""
        sim = self.sim
        while self.at < len(self.way):
            x, y, yaw = sim.base_pose
            gx, gy, gyaw = self.way[self.at]
            ahead = math.cos(yaw) * (gx - x) + math.sin(yaw) * (gy - y)
            turn = wrap_angle(gyaw - yaw)
            last = self.at == len(self.way) - 1
            if abs(ahead) < (0.03 if last else 0.05) and abs(turn) < (0.06 if last else 0.12):
                self.at += 1
                continue
            left = math.cos(yaw) * (gy - y) - math.sin(yaw) * (gx - x)
            steer = turn + 2.0 * left * np.sign(ahead) * min(1.0, abs(ahead) / 0.05)
            return float(np.clip(8.0 * ahead, -0.9, 0.9)), float(np.clip(4.0 * steer, -1.0, 1.0))
        return 0.0, 0.0

    def _sweep(self, opening: float) -> tuple[float, float]:
        """Base command that moves the hand as the door closes, on to a point a little inside the door."""
        sim = self.sim
        reach = self._along_door(sim.ee_position, opening)[0]
        reach = min(max(reach, 0.35), 0.6)
        goal = self._door_point(reach, _HAND_HALF_M - 0.03, max(opening - 0.15, -0.02))
        gx, gy, _ = sim.to_base(tuple(goal))
        hx, hy, _ = sim.ee_in_base
        vx, vy = 5.0 * (gx - hx), 5.0 * (gy - hy)
        turn = vy / max(hx, 0.3)
        return (float(np.clip((vx + turn * hy) / sim.config.base_speed_m_s, -0.9, 0.9)),
                float(np.clip(turn / sim.config.base_turn_rad_s, -1.0, 1.0)))

    # ------------------------------------------------------------------ the door

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

    def _facing(self, pose: Pose2, opening: float) -> float:
        """Cosine between the heading of the base and the way into the door's outer face."""
        out = self._door_frame(opening)[1]
        return -float(math.cos(pose[2]) * out[0] + math.sin(pose[2]) * out[1])

    def _plan(self, postures: list[np.ndarray], facing: bool) -> None:
        """Choose a posture and the way of the base to where the hand is before the outer face; `facing`: and the base
        faces it, too.
        """
        sim, clearance = self.sim, Clearance(self.sim)
        self.facing, self.at, self.plans = facing, 0, self.plans + 1
        best = math.inf
        for posture in postures:
            way = self._way(posture, clearance)
            if way is None:
                continue
            steps = 0.5 * sum(drive_steps(sim, a, b) for a, b in zip([sim.base_pose, *way], way))
            waits = not self._free_while_unfolding(posture, way, clearance)
            steps += arm_steps(sim.arm_positions(), posture) * waits + arm_steps(posture, self.rest)
            steps += _ELBOW_STEPS * (self.path.sign < 0 and posture[0] < -0.1)  # the elbow is then on the door's side
            if steps < best:
                best, self.posture, self.way, self.unfolds_first = steps, posture, way, waits

    def _way(self, posture: np.ndarray, clearance: Clearance) -> list[Pose2] | None:
        """Places of the base on the way with the arm in a posture; None when there is none."""
        sim = self.sim
        opening = sim.joint_position(self.handle)
        hand_x, hand_y, _ = arm_model().hand(posture)[0]
        goal = self._door_point(0.5, 0.12, opening)

        def hand(pose: Pose2) -> tuple[float, float, float]:
            c, s = math.cos(pose[2]), math.sin(pose[2])
            return pose[0] + c * hand_x - s * hand_y, pose[1] + s * hand_x + c * hand_y, 1.0

        def reached(pose: Pose2) -> bool:
            along, out = self._along_door(hand(pose), opening)
            there = 0.38 < along < 0.62 and _HAND_HALF_M < out < 0.2
            return there and (not self.facing or self._facing(pose, 0.0) > 0.5) and free(pose)

        def left_m(pose: Pose2) -> float:
            return max(0.0, math.dist(hand(pose)[:2], goal[:2]) - 0.12)

        def free(pose: Pose2) -> bool:
            return clearance.distance(pose, posture) > _ROOM_M

        if posture is not START_RAD and not free(sim.base_pose):
            return None
        return search(sim.base_pose, free, reached, left_m, (sim.config.base_speed_m_s, sim.config.base_turn_rad_s))

    def _free_while_unfolding(self, posture: np.ndarray, way: list[Pose2], clearance: Clearance) -> bool:
        """Whether the arm can take a posture while the base is on its way."""
        first, at = self.sim.arm_positions().copy(), 0.0
        steps = max(1.0, arm_steps(first, posture))
        for before, pose in zip([self.sim.base_pose, *way], way):
            at += drive_steps(self.sim, before, pose)
            share = min(1.0, at / steps)
            if share < 1.0 and clearance.distance(pose, first + share * (posture - first)) < _CLEAR_M:
                return False
        return True


def _action(parts: dict[str, slice], arm: np.ndarray, grip: float, base: tuple[float, float]) -> np.ndarray:
    action = np.zeros(max(part.stop for part in parts.values()), np.float32)
    for name, command in (("arm", arm), ("grip", grip), ("base", base)):
        if name in parts:
            action[parts[name]] = command
    return action


def _parts(skill: Articulated) -> dict[str, slice]:
    """Where each part of the skill's action is."""
    parts, at = {}, 0
    for name, size in ACTION_SIZES.items():
        if name in skill.action_parts:
            parts[name] = slice(at, at + size)
            at += size
    return parts

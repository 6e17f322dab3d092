"""How an arm that reaches to the side of its base works at a handle: in line with the way of the hand.

Such a base drives across its arm, so it gets there first; then the arm alone reaches out and draws back. Along the arc
of a door the base drives beside the arm.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from rearrange.home.geometry import PlanePose, to_frame, wrap_angle
from rearrange.home.simulation.simulator_interface import STEP_S, Simulator
from skills.articulated import ArticulatedConfig
from skills.experts.arm_model import ArmModel, arm_model
from skills.experts.clearance import Clearance
from skills.experts.grasps import OPENING_STEPS
from skills.experts.handle_path import HandlePath
from skills.experts.motion import drive_steps, servo, servo_driving, still, turned
from skills.experts.reach_plan import FREE_M, facing_axis, is_free, start_posture, ways
from skills.experts.trajectory import Configuration, Follower, back_from

NEAR_TIPS_M = 0.008  # of the bar, before the middle between the fingers
BEFORE_M = 0.07  # from the handle, where the hand gets ready
AROUND_BAR_M = 0.003  # kept from bar and front by open fingers
DOOR_TURNS_RAD = tuple(math.radians(a) for a in (0, 20, 40, 60))  # of the hand, against the turn of a door
BLOCKED_STEPS = 80.0  # that a way on which something is met seems longer
_GAPS_M = tuple(0.42 + 0.04 * k for k in range(14))  # from the middle of the base to the handle
_TURNS_RAD = (0.0, 0.3, -0.3)  # of the arm, to the way of the hand
_TILTS_RAD = tuple(math.radians(a) for a in (0, 8, 16, 24, 40, 60))  # of the hand below the horizontal
_HAND_TURNS_RAD = tuple(math.radians(a) for a in (0, 25, -25))  # of the hand to the side, at a drawer
_MORE_M = 0.015  # a drawer goes by so much farther than it must
_WRIST_M = 0.25  # from the joint that turns the hand to what it holds
_TRIES = 12  # places to which a way is looked for
_SPEED_M_S, _CRUISE = 0.5, 0.8  # of the handle, at most; share of the fastest that the base drives
_BACK_PER_S = 2.0  # of what the hand is off the bar
_AWAY_M, _DOOR_AWAY_M, _AWAY_M_S = 0.12, 0.25, 0.25  # how far and how fast the hand leaves a drawer's handle, a door's
_MOST_AWAY_STEPS = 60
_UP = np.array([0.0, 0.0, 1.0])

Commands = tuple[np.ndarray, float, tuple[float, float]]
"""Of arm, grip and base."""


@dataclass(frozen=True)
class _Grip:
    """How the hand comes to a point (world): the direction in which it faces, and along which its fingers close: on the
    bar, or where the hand presses on the front one above the other, so that none gets behind the bar.
    """

    point_m: np.ndarray
    axis: np.ndarray
    across: np.ndarray
    takes_bar: bool


@dataclass(frozen=True)
class _Stand:
    """A place of the base and postures of the arm there: before the handle, at it, and at the end of its way."""

    pose: PlanePose
    before: np.ndarray
    at: np.ndarray
    moved: np.ndarray
    axis: np.ndarray


class SideArm:
    """What the expert of `skills.experts.handle` does with such an arm.

    Args:
        config: of the skill.
        path: of the handle.
        sense: of the way: opening +1, closing -1.
        point: world point that the hand is to touch, (3,).
        across_of: the direction along which fingers close on the bar where the hand faces along an axis, if they do.
        blocked: whether the arm meets something at a place of the base, in its postures at the handle and at the end
            of the way.
    """

    def __init__(self, sim: Simulator, config: ArticulatedConfig, path: HandlePath, sense: float, point: np.ndarray,
                 across_of: Callable[[np.ndarray], np.ndarray | None],
                 blocked: Callable[[PlanePose, np.ndarray, np.ndarray, Clearance], bool]) -> None:
        self._sim, self._path, self._sense = sim, path, sense
        self._clearance, self._arm = Clearance(sim), arm_model(sim.robot)
        self._follower: Follower | None = None
        self._left_steps = 0
        self._speed_m_s = min(_SPEED_M_S, _CRUISE * sim.config.base_speed_m_s)
        self.pose, self.before, self.axis = sim.base_pose, self._arm.start, -path.out
        """Where the base stands at the handle, the posture before it, and the way the hand faces (world)."""
        self._plan(list(self._grips(point, across_of)), self._travel_m(config), blocked)

    # ------------------------------------------------------------------ commands

    @property
    def is_there(self) -> bool:
        """The base stands at the handle, the hand before it."""
        return self._follower is None or self._follower.done

    def come(self) -> Commands:
        """On the way there."""
        arm, base = self._follower.command()
        return arm, -1.0, base

    def move_along(self, opening: float, bar: np.ndarray | None) -> tuple[np.ndarray, tuple[float, float]]:
        """Arm and base move the hand along the handle's path; bar: where the hand ought to be on it, world."""
        sim, path = self._sim, self._path
        velocity = self._sense * self._speed_m_s * path.direction(opening)
        if path.slides:
            return self._shared(velocity, np.array(sim.ee_position) if bar is None else bar)
        axis = turned(self.axis, path.sign * (opening - path.first_opening))
        off = path.at(opening) - NEAR_TIPS_M * axis - sim.ee_position
        return servo_driving(sim, velocity + _BACK_PER_S * off, axis)

    def leave(self, point: np.ndarray) -> Commands | None:
        """Fingers open and the hand goes straight away from what it has let go; None once it is away."""
        sim, path = self._sim, self._path
        away_m = _AWAY_M if path.slides else _DOOR_AWAY_M
        if math.dist(sim.ee_position, point) > away_m or self._left_steps > _MOST_AWAY_STEPS:
            self._left_steps = _MOST_AWAY_STEPS + 1
            return None
        self._left_steps += 1
        if self._left_steps < OPENING_STEPS and self._sense > 0:
            return still(sim), -1.0, (0.0, 0.0)
        way = path.direction(sim.joint_position(path.name))
        arm, base = self._shared(_AWAY_M_S * way, np.array(sim.ee_position))
        return arm, -1.0, base

    def _shared(self, velocity: np.ndarray, hand: np.ndarray) -> tuple[np.ndarray, tuple[float, float]]:
        """Arm and base that move the hand, which ought to be at a point, with a velocity (3,): the base what it can by
        driving, the arm the rest. All in the world.
        """
        sim, yaw = self._sim, self._sim.base_pose[2]
        ahead = np.array([math.cos(yaw), math.sin(yaw), 0.0])
        forward = float(velocity @ ahead)
        rest = velocity - forward * ahead
        return servo(sim, hand + (STEP_S + 0.02) * rest, 0.02), (forward / sim.config.base_speed_m_s, 0.0)

    # ------------------------------------------------------------------ planning

    def _travel_m(self, config: ArticulatedConfig) -> np.ndarray:
        """The way of the handle that the arm alone has to make, (3,), world."""
        path = self._path
        opening = config.target_opening - self._sense * (config.opening_tolerance - _MORE_M)
        travel = path.at(opening) - path.at(path.first_opening)
        if path.slides:
            return travel
        # Along a door the base goes sideways, and the hand turns with it.
        return (float(travel @ path.out) - _WRIST_M * (1.0 - math.cos(opening - path.first_opening))) * path.out

    def _grips(self, point: np.ndarray, across_of: Callable[[np.ndarray], np.ndarray | None]) -> Iterator[_Grip]:
        path = self._path
        yaw_in = math.atan2(-path.out[1], -path.out[0])
        turns = _HAND_TURNS_RAD if path.slides else tuple(path.sign * turn for turn in DOOR_TURNS_RAD)
        for tilt in _TILTS_RAD:
            for turn in turns:
                axis = facing_axis(yaw_in + turn, tilt)
                across = across_of(axis)
                if across is None:
                    upwards = np.cross(np.cross(axis, _UP), axis)
                    short_m = self._sim.robot.hand.past_m
                    yield _Grip(point - short_m * axis, axis, upwards / np.linalg.norm(upwards), takes_bar=False)
                else:
                    yield _Grip(point - NEAR_TIPS_M * axis, axis, across, takes_bar=True)

    def _plan(self, grips: list[_Grip], travel_m: np.ndarray,
              blocked: Callable[[PlanePose, np.ndarray, np.ndarray, Clearance], bool]) -> None:
        """Find the quickest place from which the hand takes the handle and moves it along."""
        sim, clearance, arm = self._sim, self._clearance, self._arm
        start = sim.base_pose, start_posture(sim, clearance)
        found = []
        for grip in grips:
            for stand in self._stands(grip, travel_m):
                if clearance.distance(stand.pose, stand.before) < AROUND_BAR_M:
                    continue
                if grip.takes_bar and clearance.distance(stand.pose, stand.at) < AROUND_BAR_M:
                    continue
                steps = max(arm.steps(start[1], stand.before), drive_steps(sim, start[0], stand.pose))
                steps += arm.steps(stand.before, stand.at)
                steps += BLOCKED_STEPS * blocked(stand.pose, stand.at, stand.moved, clearance)
                found.append((steps, stand))
        for _, stand in sorted(found, key=lambda one: one[0])[:_TRIES]:
            if self._goes(start, stand):
                return

    def _goes(self, start: Configuration, stand: _Stand) -> bool:
        """Whether there is a free way to a place; it is followed then."""
        for motion in ways(self._sim, start, (stand.pose, stand.before), may_drive=True):
            if is_free(self._clearance, motion, FREE_M, start=start):
                self._follower = Follower(self._sim, motion)
                self.pose, self.before, self.axis = stand.pose, stand.before, stand.axis
                return True
        return False

    def _stands(self, grip: _Grip, travel_m: np.ndarray) -> Iterator[_Stand]:
        """Places with the arm about in line with the way of the hand, nearer and farther away."""
        arm: ArmModel = self._arm
        bearing_in = math.atan2(grip.axis[1], grip.axis[0])
        for bearing in (bearing_in + turn for turn in _TURNS_RAD):
            line = (grip.point_m[0] + arm.aside_m * math.sin(bearing),
                    grip.point_m[1] - arm.aside_m * math.cos(bearing), bearing)
            for gap in _GAPS_M:
                place = (*back_from(line, gap)[:2], wrap_angle(self._sim.robot.arm.heading_to(bearing)))
                if self._clearance.distance(place, arm.start, base_only=True) >= FREE_M:
                    yield from self._stand(grip, travel_m, place)

    def _stand(self, grip: _Grip, travel_m: np.ndarray, place: PlanePose) -> Iterator[_Stand]:
        """The place, perhaps turned a little, if the hand gets to the handle there and moves it along."""
        arm = self._arm
        solved = arm.ik_turning(_local(grip.point_m, place), turned(grip.axis, -place[2]), arm.start,
                                across=turned(grip.across, -place[2]), tolerance_rad=0.08)
        if solved is None:
            return
        pose, at = (place[0], place[1], wrap_angle(place[2] + solved[0])), solved[1]
        axis, across = turned(grip.axis, -pose[2]), turned(grip.across, -pose[2])
        before = arm.ik(_local(grip.point_m - BEFORE_M * grip.axis, pose), axis, at, across=across,
                        tolerance_rad=0.15 if grip.takes_bar else 0.5)
        moved = arm.ik(_local(grip.point_m + travel_m, pose), axis if grip.takes_bar else None, at, tolerance_m=0.02,
                       tolerance_rad=0.5)
        if before is not None and moved is not None:
            yield _Stand(pose, before, at, moved, grip.axis)


def _local(point: np.ndarray, pose: PlanePose) -> np.ndarray:
    """A world point in the base frame at a pose."""
    return np.array([*to_frame(point[0], point[1], pose), point[2]])

"""Where a robot stands to work at a handle if its arm reaches to its side: the arm in line with the way of the hand.

Such a base drives across its arm, so it gets there first; then the arm alone reaches out and draws back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from rearrange.home.geometry import PlanePose, to_frame, wrap_angle
from rearrange.home.simulation.simulator_interface import Simulator
from skills.experts.arm_model import ArmModel, arm_model
from skills.experts.clearance import Clearance
from skills.experts.motion import drive_steps, turned
from skills.experts.reach_plan import FREE_M, is_free, start_posture, ways
from skills.experts.trajectory import Motion, back_from

_GAPS_M = tuple(0.42 + 0.03 * k for k in range(18))  # from the middle of the base to the handle
_TURNS_RAD = (0.0, 0.2, -0.2, 0.4, -0.4)  # of the arm, to the way of the hand
_BEFORE_M = 0.07  # from the handle, where the hand gets ready
_AROUND_BAR_M = 0.003  # kept from bar and front by open fingers
_BLOCKED_STEPS = 80.0
_TRIES = 12  # places to which a way is looked for


@dataclass(frozen=True)
class Grip:
    """How the hand comes to a point (world): the direction in which it faces, and along which its fingers close."""

    point_m: np.ndarray
    axis: np.ndarray
    across: np.ndarray | None


@dataclass(frozen=True)
class Stand:
    """Where the base stands, the arm before the handle, and how it gets there."""

    pose: PlanePose
    before: np.ndarray
    axis: np.ndarray
    motion: Motion


def plan_stand(sim: Simulator, grips: Iterable[Grip], travel_m: np.ndarray,
               blocked: Callable[[PlanePose, np.ndarray, np.ndarray], bool]) -> Stand | None:
    """The quickest place from which the hand takes a handle and moves it along with the base standing still.

    Args:
        grips: ways to take it, world.
        travel_m: the way of the handle that the arm alone has to make, (3,), world.
        blocked: whether the arm meets something else at a place of the base, given its postures at the handle and at
            the end of the way.
    """
    clearance, arm = Clearance(sim), arm_model(sim.robot)
    start = sim.base_pose, start_posture(sim, clearance)
    found = []
    for grip in grips:
        for pose, before, at, moved in _places(sim, clearance, arm, grip, travel_m):
            if clearance.distance(pose, before) < _AROUND_BAR_M:
                continue
            if grip.across is not None and clearance.distance(pose, at) < _AROUND_BAR_M:
                continue
            steps = max(arm.steps(start[1], before), drive_steps(sim, start[0], pose)) + arm.steps(before, at)
            found.append((steps + _BLOCKED_STEPS * blocked(pose, at, moved), pose, before, grip.axis))
    for _, pose, before, axis in sorted(found, key=lambda one: one[0])[:_TRIES]:
        for motion in ways(sim, start, (pose, before), may_drive=True):
            if is_free(clearance, motion, FREE_M, start=start):
                return Stand(pose, before, axis, motion)
    return None


def _places(sim: Simulator, clearance: Clearance, arm: ArmModel, grip: Grip,
            travel_m: np.ndarray) -> Iterator[tuple[PlanePose, np.ndarray, np.ndarray, np.ndarray]]:
    """Places of the base, and postures before the handle, at it, and at the end of its way."""
    bearing_in = math.atan2(grip.axis[1], grip.axis[0])
    for turn in _TURNS_RAD:
        bearing = bearing_in + turn
        line = (grip.point_m[0] + arm.aside_m * math.sin(bearing), grip.point_m[1] - arm.aside_m * math.cos(bearing),
                bearing)
        for gap in _GAPS_M:
            place = (*back_from(line, gap)[:2], wrap_angle(sim.robot.arm.heading_to(bearing)))
            if clearance.distance(place, arm.start, base_only=True) < FREE_M:
                continue
            solved = arm.ik_turning(_local(grip.point_m, place), turned(grip.axis, -place[2]), arm.start,
                                    across=_turned(grip.across, -place[2]), tolerance_rad=0.08)
            if solved is None:
                continue
            pose, at = (place[0], place[1], wrap_angle(place[2] + solved[0])), solved[1]
            axis, across = turned(grip.axis, -pose[2]), _turned(grip.across, -pose[2])
            before = arm.ik(_local(grip.point_m - _BEFORE_M * grip.axis, pose), axis, at, across=across,
                            tolerance_rad=0.5 if across is None else 0.15)
            moved = arm.ik(_local(grip.point_m + travel_m, pose), None if across is None else axis, at,
                           tolerance_m=0.02, tolerance_rad=0.5)
            if before is not None and moved is not None:
                yield pose, before, at, moved


def _turned(vector: np.ndarray | None, yaw_rad: float) -> np.ndarray | None:
    return None if vector is None else turned(vector, yaw_rad)


def _local(point: np.ndarray, pose: PlanePose) -> np.ndarray:
    """A world point in the base frame at a pose."""
    return np.array([*to_frame(point[0], point[1], pose), point[2]])

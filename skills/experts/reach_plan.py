"""Where to stand and how to hold the arm, to bring the cup to a point: the quickest way in that touches nothing."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from rearrange.home.geometry import PlanePose, to_frame, wrap_angle
from rearrange.home.robot.robot import Robot
from rearrange.home.simulation.mujoco.contacts import NO_OWNER
from rearrange.home.simulation.simulator_interface import Simulator
from skills.experts.arm_model import HAND, ArmModel, Tool, arm_model
from skills.experts.base_search import search
from skills.experts.clearance import MARGIN_M, Clearance
from skills.experts.motion import drive_steps, turned
from skills.experts.trajectory import Configuration, Motion, along, back_from, move, variants

FREE_M = 0.008  # kept from everything on the way
_OPEN_FREE_M = 0.016  # by open fingers, which knock over what they graze
TIGHT_M = 0.003  # kept at the end of the way in
NARROW = 0.2  # share of both that is kept where there is no other way
STANDOFF_M = (0.07,)  # of the tool before the straight way in; where there are several, they are tried in turn
_RETREAT_M, _RETREAT_POSES = 0.3, 300  # how far, and how many poses are looked at
_ASKEW_RAD = 0.12  # by which the hand may turn on that bit where an arm has too few joints to keep its direction
_STRAIGHT_M = 0.08  # a straight way is planned in pieces of at most this length
_STILL_STEPS = 7  # before it, for open fingers: what still swings would push the object away
_OPEN_SPEED = 0.8  # likewise, of open fingers, which touch nothing
_LAST_SPEED = 0.5  # of the arm on it: what it touches must not fall over
_CHECK_EVERY = 3  # steps of a planned motion
_LEAVE_STEPS = 12  # in which what is touched at the start has to be left
_PRESSED_RAD = 0.1  # between where the arm is sent and where it is: something holds it back
_GOOD_STEPS = 160  # there and back: the search looks for nothing shorter
_ABOVE_M = (0.12, 0.25)  # from which the hand comes down where it cannot come straight
_LATE_STEPS = 190  # about the time that a skill has
_MAX_CHECKS = 8000  # of poses, while no motion in time is known; a quarter of it to find a better motion
_GROUP_CHECKS = 1200  # of these from one direction: what blocks the first ways from there blocks most
_GAPS_M = (0.45, 0.53, 0.61, 0.69, 0.77, 0.85, 0.93, 1.01)  # from the middle of the base to the point
_AROUND_RAD = (0.0, 0.35, -0.35, 0.8, -0.8)  # other directions from which to come
_STEEP_LEVEL = 0.1  # share of a way that is level; with less it leads straight down
_SIDES_RAD = ((0.0,), (0.6, -0.6))  # of the hand, to the direction in which the base faces the point


@dataclass(frozen=True)
class Target:
    """Where the tool has to be: its point and direction (world), the way in, and what this choice costs."""

    point_m: np.ndarray
    direction: np.ndarray
    way_back: np.ndarray  # unit vector, world: the last bit of the way in comes from there
    cost_steps: float = 0.0
    across: np.ndarray | None = None
    """Direction (world) along which fingers close."""
    room_m: float = 0.0
    """Between a finger and what it closes on, at the end of the way in."""


Aim = Callable[[float], Iterable[Target]]
"""Targets that are equally good to reach, for the direction (rad, world) in which the hand comes."""


def facing_axis(heading_rad: float, tilt_rad: float) -> np.ndarray:
    """Unit vector (3,) in a direction on the floor plan, tilted below the horizontal."""
    level = math.cos(tilt_rad)
    return np.array([level * math.cos(heading_rad), level * math.sin(heading_rad), -math.sin(tilt_rad)])


def leaning_axis(heading_rad: float, lean_rad: float) -> np.ndarray:
    """Unit vector (3,) upwards that leans against a direction on the floor plan."""
    level = -math.sin(lean_rad)
    return np.array([level * math.cos(heading_rad), level * math.sin(heading_rad), math.cos(lean_rad)])


@dataclass(frozen=True)
class Reach:
    """A way in: the motion, and the place and posture at its end."""

    motion: Motion
    pose: PlanePose
    arm_rad: np.ndarray
    target: Target


@dataclass(frozen=True)
class _Candidate:
    """A place and a posture to reach with; it is not known yet whether there is a way."""

    steps: float  # there and back to rest, at least
    pose: PlanePose
    arm_rad: np.ndarray
    target: Target
    steps_back: float


def plan_reach(sim: Simulator, clearance: Clearance, middle: tuple[float, float], aim: Aim, *, tool: Tool = HAND,
               touching: int = NO_OWNER, may_drive: bool = True, standoff_m: Sequence[float] = STANDOFF_M,
               room: float = 1.0) -> Reach | None:
    """The quickest way found to bring a tool to a target and the arm back to rest; None when none is found.

    Args:
        clearance: what knows the distances to everything.
        middle: (x, y) of the targets in the world.
        aim: gives the targets.
        touching: slot of the object that the cup may touch.
        standoff_m: length of the last bit, which is straight along the target's way, or straight ahead with the base.
        room: share of the usual distances that is kept from everything.
    """
    start = (sim.base_pose, start_posture(sim, clearance))
    best, best_steps = None, math.inf
    for around in (_AROUND_RAD if may_drive else (0.0,)):
        for sides in _SIDES_RAD:
            candidates = _candidates(sim, clearance, middle, aim, tool, around, sides, may_drive)
            enough = min(clearance.checks + _GROUP_CHECKS, _most_checks(best_steps))
            for candidate in sorted(candidates, key=lambda c: c.steps):
                if candidate.steps >= best_steps or clearance.checks > enough:
                    break
                reach = _way_in(sim, clearance, start, candidate, tool, touching, standoff_m, may_drive, room)
                if reach is not None:
                    steps = len(reach.motion) + candidate.steps_back + candidate.target.cost_steps
                    if steps < best_steps:
                        best, best_steps = reach, steps
            if best_steps < _GOOD_STEPS or clearance.checks > _most_checks(best_steps):
                return best
    return best


def _most_checks(best_steps: float) -> float:
    """How many poses may be checked where the best way known takes so many steps."""
    return _MAX_CHECKS if best_steps > _LATE_STEPS else _MAX_CHECKS / 4


def _candidates(sim: Simulator, clearance: Clearance, middle: tuple[float, float], aim: Aim, tool: Tool, around: float,
                sides: Iterable[float], may_drive: bool) -> list[_Candidate]:
    """Places and postures from one direction, whatever is in the way of the arm."""
    (x, y, yaw), model = sim.base_pose, arm_model(sim.robot)
    arm = sim.arm_targets().copy()
    bearing = math.atan2(middle[1] - y, middle[0] - x) + around
    aside_m = 0.0 if sim.robot.arm.reaches_ahead else model.aside_m

    @cache
    def places(bearing: float) -> list[PlanePose]:
        """Where the base may stand for the arm to reach out in a direction."""
        if not may_drive:
            return [(x, y, yaw)]
        heading = sim.robot.arm.heading_to(bearing)
        line = middle[0] + aside_m * math.sin(bearing), middle[1] - aside_m * math.cos(bearing), bearing
        found = [(*back_from(line, gap)[:2], heading) for gap in _GAPS_M]
        return [place for place in found if clearance.distance(place, arm, base_only=True) >= FREE_M]

    targets: dict[float, list[Target]] = {}  # by the direction in which the arm reaches out
    for target in [target for side in sides for target in aim(bearing + side)]:
        for reaching in _arm_bearings(sim.robot, target, bearing):
            targets.setdefault(reaching, []).append(target)
    found = []
    for reaching, place in [(reaching, place) for reaching in targets for place in places(reaching)]:
        for target in targets[reaching]:
            point = np.array([*to_frame(target.point_m[0], target.point_m[1], place), target.point_m[2]])
            direction = turned(target.direction, -place[2])
            across = None if target.across is None else turned(target.across, -place[2])
            if may_drive:
                solution = model.ik_turning(point, direction, arm, tool=tool, tolerance_m=tool.within_m,
                                            tolerance_rad=tool.within_rad, across=across)
            else:
                posture = model.ik(point, direction, arm, tool=tool, tolerance_m=tool.within_m,
                                   tolerance_rad=tool.within_rad, across=across)
                solution = None if posture is None else (0.0, posture)
            if solution is None:
                continue
            pose = (place[0], place[1], wrap_angle(place[2] + solution[0]))
            steps = max(model.steps(arm, solution[1]), drive_steps(sim, sim.base_pose, pose)) + target.cost_steps
            back = model.steps(solution[1], model.rest)
            found.append(_Candidate(steps + back, pose, solution[1], target, back))
    return found


def _arm_bearings(robot: Robot, target: Target, bearing: float) -> tuple[float, ...]:
    """In which directions the arm may reach out: an arm that reaches to the side, and has a base that drives across,
    moves its hand straight only along itself.
    """
    level = math.hypot(target.way_back[0], target.way_back[1])
    if robot.arm.reaches_ahead or level < _STEEP_LEVEL:
        return (bearing,)
    return bearing, math.atan2(-target.way_back[1], -target.way_back[0])


def _way_in(sim: Simulator, clearance: Clearance, start: Configuration, goal: _Candidate, tool: Tool,
            touching: int, standoff_m: Sequence[float], may_drive: bool, room: float) -> Reach | None:
    """The first way to a candidate that is free: along the cup's axis, or driving ahead."""
    if clearance.distance(goal.pose, goal.arm_rad, touching) < room * TIGHT_M:
        return None
    free_m = FREE_M if goal.target.across is None else _OPEN_FREE_M
    for via, last in _last_bits(sim, goal, tool, standoff_m, may_drive):
        if not is_free(clearance, last, room * TIGHT_M, touching):
            continue
        for first in ways(sim, start, via, may_drive):
            if is_free(clearance, first, room * free_m, NO_OWNER, start):
                return Reach(first.then(last), goal.pose, goal.arm_rad, goal.target)
    return None


def _last_bits(sim: Simulator, goal: _Candidate, tool: Tool, standoff_m: Sequence[float],
               may_drive: bool) -> Iterator[tuple[Configuration, Motion]]:
    """Slow straight ends of a way in, after the configuration in which each begins."""
    end = (goal.pose, goal.arm_rad)
    for standoff in standoff_m:
        speed = _LAST_SPEED if goal.target.across is None else _OPEN_SPEED
        postures = _straight_back(arm_model(sim.robot), goal, tool, standoff)
        if postures is not None:
            last = Motion(np.zeros((0, 3)), np.zeros((0, len(goal.arm_rad))))
            for before, after in zip(postures[::-1], [*postures[-2::-1], goal.arm_rad]):
                last = last.then(move(sim, (goal.pose, before), (goal.pose, after), speed=speed))
            via = goal.pose, postures[-1]
            if goal.target.across is not None:
                last = Motion(np.tile(via[0], (_STILL_STEPS, 1)), np.tile(via[1], (_STILL_STEPS, 1))).then(last)
            yield via, last
    for back in (0.12, 0.3) if may_drive and sim.robot.arm.reaches_ahead else ():
        via = (back_from(goal.pose, back), goal.arm_rad)
        yield via, move(sim, via, end, speed=0.5)


def ways(sim: Simulator, start: Configuration, via: Configuration, may_drive: bool) -> Iterator[Motion]:
    """Ways from one configuration to another: base and arm at once, from above, or with the arm moved farther back."""
    yield from variants(sim, start, via)
    arm = arm_model(sim.robot)
    tip, matrix = arm.hand(via[1])
    for height in _ABOVE_M:
        high = arm.ik(tip + (0.0, 0.0, height), matrix[:, 0], via[1], near=start[1],
                      tolerance_rad=0.4, tolerance_m=0.02)
        if high is not None:
            down = move(sim, (via[0], high), via)
            for way in variants(sim, start, (via[0], high)):
                yield way.then(down)
    if may_drive and not sim.robot.arm.reaches_ahead:  # it drives with the arm drawn in
        drawn_in = [(via, None)] + [((via[0], posture), move(sim, (via[0], posture), via))
                                    for posture in arm.drawn_in(via[1])]
        for (goal, last), rest in itertools.product(drawn_in, (start[1], arm.rest)):
            way = move(sim, start, (start[0], rest)).then(move(sim, (start[0], rest), (via[0], rest)))
            way = way.then(move(sim, (via[0], rest), goal))
            yield way if last is None else way.then(last)
    elif may_drive:
        for back in (0.15, 0.35):
            behind = (back_from(via[0], back), via[1])
            yield move(sim, start, behind).then(move(sim, behind, via))
            away = (back_from(start[0], back), start[1])
            yield move(sim, start, away).then(move(sim, away, via, base_last=True))


def _straight_back(arm: ArmModel, goal: _Candidate, tool: Tool, standoff_m: float) -> list[np.ndarray] | None:
    """Postures with the tool farther and farther before its goal, `standoff_m` at the last."""
    arm.set(goal.arm_rad)
    point, direction = arm.at(tool)
    back = turned(goal.target.way_back, -goal.pose[2])
    across = None if goal.target.across is None else turned(goal.target.across, -goal.pose[2])
    postures, count = [], math.ceil(standoff_m / _STRAIGHT_M)
    within_rad = tool.within_rad if arm.robot.arm.reaches_ahead else max(tool.within_rad, _ASKEW_RAD)
    for k in range(1, count + 1):
        near = postures[-1] if postures else goal.arm_rad
        posture = arm.ik(point + k / count * standoff_m * back, direction, near, iterations=16, tool=tool,
                         tolerance_m=tool.within_m, tolerance_rad=within_rad, across=across)
        if posture is None:
            return None
        postures.append(posture)
    return postures


def start_posture(sim: Simulator, clearance: Clearance) -> np.ndarray:
    """Where a motion of the arm begins: where its motors are sent, or where it is if something is in its way."""
    targets, angles = sim.arm_targets().copy(), sim.arm_positions().copy()
    if np.abs(targets - angles).max() > _PRESSED_RAD:
        return angles
    there = clearance.distance(sim.base_pose, targets)
    return angles if there < FREE_M and clearance.distance(sim.base_pose, angles) > there else targets


def is_free(clearance: Clearance, motion: Motion, needed_m: float, touching: int = NO_OWNER,
            start: Configuration | None = None) -> bool:
    """Whether a motion keeps `needed_m` from everything; in its first steps no more than there is at the `start`."""
    first_m = needed_m if start is None else min(needed_m, clearance.distance(*start, touching) - 0.002)
    return all(clearance.distance(*motion.real(i), touching) >= (first_m if i < _LEAVE_STEPS else needed_m)
               for i in spread(len(motion)))


@lru_cache(maxsize=512)
def spread(n: int) -> tuple[int, ...]:
    """Every third index below n: the last one, then those far apart, so that a collision is found soon."""
    last, order, step = (n - 1) // _CHECK_EVERY, [], 1
    while step <= max(last, 1):
        step *= 2
    seen = set()
    while step >= 1:
        for k in range(0, last + 1, step):
            if k not in seen:
                seen.add(k)
                order.append(n - 1 - k * _CHECK_EVERY)
        step //= 2
    return tuple(order)


def plan_retreat(sim: Simulator, clearance: Clearance) -> Motion | None:
    """A short drive out of a narrow place, after which to plan again; None when there is none."""
    start, arm = sim.base_pose, start_posture(sim, clearance)
    there_m = clearance.distance(start, arm) - 0.002

    def away_m(pose: PlanePose) -> float:
        return math.hypot(pose[0] - start[0], pose[1] - start[1])

    def free(pose: PlanePose) -> bool:
        needed_m = FREE_M if away_m(pose) > 0.5 * _RETREAT_M else min(FREE_M, there_m)
        return clearance.distance(pose, arm) >= needed_m

    def reached(pose: PlanePose) -> bool:
        return away_m(pose) > _RETREAT_M and clearance.distance(pose, arm) >= MARGIN_M

    way = search(start, free, reached, lambda pose: max(0.0, _RETREAT_M - away_m(pose)),
                 (sim.config.base_speed_m_s, sim.config.base_turn_rad_s), limit=_RETREAT_POSES)
    return None if way is None else along(sim.config, [start, *way], arm)

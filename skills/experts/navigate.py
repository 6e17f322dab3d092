"""The expert of Navigate: the shortest way that leaves room for the whole robot, then the stop action."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rearrange.home.apartments.floor_grid import CELL_M, DistanceField
from rearrange.home.geometry import PlanePose, wrap_angle
from rearrange.home.simulation.simulator_interface import Simulator
from skills.experts.base_search import search
from skills.experts.clearance import Clearance
from skills.experts.motion import assemble, at_pose, drive, still
from skills.experts.trajectory import Follower, along
from skills.skill import Skill

_END_M = 0.3
_NEAR = (0.2, 0.2)  # m and rad from the goal pose
_ROOM_M = 0.029  # kept from everything
_SLOW = 0.4  # share of the speed where there is less: the slower, the nearer it stays to its way
_Search = tuple[float, tuple[float, float], int]
"""Room kept (m), how near to the goal pose it has to come (m, rad), and the number of poses that are looked at."""
# In a plan, where nobody judges the pose, the last search comes as near as it can: the load may not let it turn there.
_SEARCHES = ((_ROOM_M, _NEAR, 4000), (0.01, _NEAR, 2000))
_IN_A_PLAN = (*_SEARCHES, (0.003, (0.5, 0.8), 4000))
_STEER_STEPS = 60
_STRIDE_M, _MOVE_M, _TURN_RAD = 0.4, 0.15, 0.2
_PATIENCE = 3  # ways that are planned before it only steers
_STEPS_BETWEEN_PLANS = 15


class NavigateExpert:
    """Drives to `skill.goal_pose` and stops there. The arm keeps its posture, the hand what it holds."""

    in_plan = False

    def __init__(self, sim: Simulator, skill: Skill) -> None:
        self.sim, self.skill = sim, skill
        self.goal: PlanePose = skill.goal_pose
        self._follower: Follower | None = None
        self._planned = self._pause = 0
        self._near, self._steered = _NEAR, 0

    def act(self) -> np.ndarray:
        """The action of the next step, in the skill's order."""
        return assemble(self.skill, self.command())

    def command(self) -> dict[str, np.ndarray | tuple | float]:
        """The parts of the next action by name."""
        sim = self.sim
        self._pause = max(0, self._pause - 1)
        if self._planned < _PATIENCE and not self._pause and (self._follower is None or self._follower.stuck):
            self._plan()
        base, stop = (0.0, 0.0), -1.0
        if self._follower is not None and not self._follower.done:
            _, base = self._follower.command()
        elif self._is_within(_NEAR) or (self._steered >= _STEER_STEPS and self._is_within(self._near)):
            stop = 1.0
        elif self._follower is None and math.dist(sim.base_pose[:2], self.goal[:2]) > 0.4:
            (x, y, _), (x2, y2) = sim.base_pose, self.skill.field.descend(*sim.base_pose[:2])
            base = drive(sim, (x2, y2, math.atan2(y2 - y, x2 - x)), reverse=False)
        else:  # the rest of a way that came only near is not planned: it is given up at a touch
            self._steered = _STEER_STEPS if sim.arm_force_n > 0.0 else self._steered + 1
            base = drive(sim, self._end())
        return {"arm": still(sim), "grip": 1.0 if sim.is_holding else -1.0, "base": base, "stop": stop}

    def _is_within(self, near: tuple[float, float]) -> bool:
        return at_pose(self.sim, self._end(), 1.3 * near[0], 1.3 * near[1])

    def _end(self) -> PlanePose:
        """The goal pose, facing the way that is asked for from where the robot stands."""
        return (*self.goal[:2], self.skill.heading_rad(self.sim))

    def _plan(self) -> None:
        self._planned += 1
        sim = self.sim
        searches = _IN_A_PLAN if self.in_plan else _SEARCHES
        way, self._near = plan_drive(sim, self.goal, self.skill.field, searches)
        if way is None:
            self._follower, self._pause = None, _STEPS_BETWEEN_PLANS
            return
        clearance, arm = Clearance(sim), sim.arm_positions().copy()
        tight = [clearance.distance(pose, arm) < _ROOM_M for pose in way]
        shares = [_SLOW if here or there else 1.0 for here, there in zip(tight, tight[1:])]
        self._follower = Follower(sim, along(sim.config, way, sim.arm_targets().copy(), shares))


def plan_drive(sim: Simulator, goal: PlanePose, field: DistanceField,
               searches: Sequence[_Search]) -> tuple[list[PlanePose] | None, tuple[float, float]]:
    """Poses from the present one to a goal pose, a small move apart, and how near they come (m, rad).

    The poses are None when no way is found.

    Args:
        goal: (x, y, yaw), world frame.
        field: driving distances to the goal.
        searches: tried one after another where the shortest way on the floor has no room for the arm.
    """
    clearance, arm, start = Clearance(sim), sim.arm_positions().copy(), sim.base_pose
    speeds = (sim.config.base_speed_m_s, sim.config.base_turn_rad_s)

    def reached(pose: PlanePose, near: tuple[float, float]) -> bool:
        there = math.hypot(pose[0] - goal[0], pose[1] - goal[1]) < near[0]
        return there and abs(wrap_angle(pose[2] - goal[2])) < near[1]

    def left_m(pose: PlanePose) -> float:
        there_m = field.at(pose[0], pose[1])
        if there_m == math.inf:  # between furniture, where only the search finds room
            x, y = field.descend(pose[0], pose[1])
            there_m = field.at(x, y) + math.hypot(x - pose[0], y - pose[1])
        return there_m + 0.3 * abs(wrap_angle(pose[2] - goal[2])) * max(0.0, 1.0 - there_m)

    ends = [(pose, clearance.distance(pose, arm) - 0.001) for pose in (start, goal)]

    def is_free(pose: PlanePose, room: float) -> bool:
        for end, there in ends:  # near both ends no more room is needed than there is
            if math.hypot(pose[0] - end[0], pose[1] - end[1]) < _END_M:
                room = min(room, max(there, 0.0))
        return clearance.distance(pose, arm) >= room

    plain = [start, *_plain_way(start, goal, field)]
    if all(is_free(pose, _ROOM_M) for pose in plain):
        return plain, _NEAR
    for room, near, limit in searches:
        way = search(start, lambda pose: is_free(pose, room), lambda pose: reached(pose, near), left_m, speeds, limit)
        if way is not None:
            return [start, *way], near
    return None, _NEAR


def _plain_way(start: PlanePose, goal: PlanePose, field: DistanceField) -> list[PlanePose]:
    """The shortest way for the base alone: straight pieces, driven forwards, with turns on the spot in between."""
    points = [start[:2]]
    while math.dist(points[-1], goal[:2]) > _STRIDE_M and len(points) < 200:
        point = field.descend(*points[-1], _STRIDE_M)
        if point == points[-1]:
            break
        points.append(point)
    points.append(goal[:2])
    poses, at, (x, y, yaw) = [], 0, start
    while at < len(points) - 1:
        at = next(k for k in range(len(points) - 1, at, -1) if k == at + 1 or _sees(field, (x, y), points[k]))
        x2, y2 = points[at]
        length = math.hypot(x2 - x, y2 - y)
        if length < 0.02:
            continue
        ahead = math.atan2(y2 - y, x2 - x)
        poses += _turns((x, y, yaw), ahead)
        count = math.ceil(length / _MOVE_M)
        poses += [(x + k / count * (x2 - x), y + k / count * (y2 - y), ahead) for k in range(1, count + 1)]
        x, y, yaw = x2, y2, ahead
    return poses + _turns((x, y, yaw), goal[2])


def _sees(field: DistanceField, a: tuple[float, float], b: tuple[float, float]) -> bool:
    """A straight drive between two points stays on free floor."""
    count = math.ceil(math.dist(a, b) / (0.5 * CELL_M)) or 1
    nx, ny = field.distance_m.shape
    for k in range(count + 1):
        i, j = (int((a[c] + k / count * (b[c] - a[c])) / CELL_M) for c in (0, 1))
        if not (0 <= i < nx and 0 <= j < ny and math.isfinite(field.distance_m[i, j])):
            return False
    return True


def _turns(pose: PlanePose, yaw: float) -> list[PlanePose]:
    """Turns on the spot in small moves."""
    angle = wrap_angle(yaw - pose[2])
    count = math.ceil(abs(angle) / _TURN_RAD)
    return [(pose[0], pose[1], wrap_angle(pose[2] + k / count * angle)) for k in range(1, count + 1)]

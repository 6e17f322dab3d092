"""The expert of Navigate: the shortest way that leaves room for the whole robot, then the stop action."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from rearrange.geometry import wrap_angle
from skills.experts.action import assemble
from skills.experts.base_search import search
from skills.experts.clearance import Clearance
from skills.experts.motion import Pose2, at_pose, drive
from skills.experts.trajectory import Follower, along

if TYPE_CHECKING:
    from rearrange.navigation import DistanceField
    from rearrange.simulator import Simulator
    from skills.skill import Skill

_ROOM_M = (0.029, 0.01)  # kept from everything; less where no way is found
_NEAR_M, _NEAR_RAD = 0.12, 0.12  # of the goal pose
_PATIENCE = 3  # ways that are planned before it only steers


class NavigateExpert:
    """Drives to `skill.goal_pose` and stops there. The arm keeps its posture, the hand what it holds."""

    def __init__(self, sim: Simulator, skill: Skill) -> None:
        self.sim, self.skill = sim, skill
        self.goal: Pose2 = skill.goal_pose
        self._follower: Follower | None = None
        self._planned = 0
        self.note = ""

    def act(self) -> np.ndarray:
        """The action of the next step, in the skill's order."""
        return assemble(self.skill, self.command())

    def command(self) -> dict[str, np.ndarray | tuple | float]:
        """The parts of the next action by name."""
        sim = self.sim
        if self._planned < _PATIENCE and (self._follower is None or self._follower.stuck):
            self._plan()
        base, stop = (0.0, 0.0), -1.0
        if self._follower is not None and not self._follower.done:
            _, base = self._follower.command()
        elif at_pose(sim, self.goal, 2 * _NEAR_M, 2 * _NEAR_RAD):
            stop = 1.0
        elif self._follower is None and math.dist(sim.base_pose[:2], self.goal[:2]) > 0.4:
            step = self.skill.field.descend(*sim.base_pose[:2])
            base = drive(sim, (*step, math.atan2(step[1] - sim.base_pose[1], step[0] - sim.base_pose[0])), reverse=False)
        else:
            base = drive(sim, self.goal)
        return {"arm": np.zeros(7), "grip": 1.0 if sim.is_holding else -1.0, "base": base, "stop": stop}

    def _plan(self) -> None:
        self._planned += 1
        sim = self.sim
        way = plan_drive(sim, self.goal, self.skill.field)
        if way is None:
            self.note = "no plan"
        self._follower = None if way is None else Follower(sim, along(sim.config, way, sim.arm_targets().copy()))


def plan_drive(sim: Simulator, goal: Pose2, field: DistanceField) -> list[Pose2] | None:
    """Poses from the present one to a goal pose, a small move apart; None when no way is found.

    `field` holds the driving distances to the goal.
    """
    clearance, arm, start = Clearance(sim), sim.arm_positions().copy(), sim.base_pose
    speeds = (sim.config.base_speed_m_s, sim.config.base_turn_rad_s)

    def reached(pose: Pose2) -> bool:
        near = math.hypot(pose[0] - goal[0], pose[1] - goal[1]) < _NEAR_M
        return near and abs(wrap_angle(pose[2] - goal[2])) < _NEAR_RAD

    def left_m(pose: Pose2) -> float:
        return field.at(pose[0], pose[1]) + 0.3 * abs(wrap_angle(pose[2] - goal[2])) * max(0.0, 1.0 - field.at(pose[0], pose[1]))

    for room in _ROOM_M:
        needed = min(room, clearance.distance(start, arm) - 0.001)
        way = search(start, lambda pose: clearance.distance(pose, arm) >= needed, reached, left_m, speeds)
        if way is not None:
            return [start, *way]
    return None

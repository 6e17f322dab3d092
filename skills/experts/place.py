"""The expert of Place: bring the object over its goal, set it down, let go, pull back, rest."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from skills.experts.clearance import Clearance
from skills.experts.motion import Tool, servo
from skills.experts.pick_or_place import ReachingExpert
from skills.experts.reach_plan import NARROW, Aim, Reach, Target, plan_reach

if TYPE_CHECKING:
    from rearrange.home.simulation.simulator_interface import Simulator

_LEANS_RAD = tuple(math.radians(a) for a in (0, 12, 24, 36, 48))  # of the object, away from upright, when it is let go
# Per radian, as a leaning object may fall over: where all that counts is that it lies near its goal in time, and in a plan.
_LEAN_COST_STEPS, _LEAN_COST_IN_A_PLAN = 120.0, 250.0
_DROP_M = 0.02  # height from which it is let go, less what the arm sags under it
# Tried next: lying down, or leaning away from the hand, and dropped from higher.
_MORE_LEANS_RAD, _MORE_DROP_M = tuple(math.radians(a) for a in (6, -15, 60, -30, 75, 90, -50)), 0.04
_STANDOFF_M = (0.07, 0.16)  # above the goal; the second one is above the rim of a sink
_STEEP, _SLANTED = 0.0, 0.8  # metres towards the robot per metre up: a hand on top of something tall reaches no higher far away
_THERE_M, _MISSES = 0.08, 2  # from its goal it is let go; as often it is brought there again
_HIGHER_M = 0.02  # each time: the arm sags under a load, which then meets the edge of what it is put on
_STILL_STEPS = 4
_UP = np.array([0.0, 0.0, 1.0])


class PlaceExpert(ReachingExpert):
    """Places the object `skill.target`, which is in the hand, at its goal."""

    _still = 0  # steps for which the hand has stood still over the goal
    _missed = 0  # ways at whose end it was not over its goal

    def command(self) -> dict[str, np.ndarray | tuple | float]:
        """The parts of the next action by name."""
        sim = self.sim
        self._plan(done=not sim.is_holding)
        arm, base, grip = np.zeros(7), (0.0, 0.0), 1.0 if sim.is_holding else -1.0
        if self._follower is not None and not self._follower.done:
            arm, base = self._follower.command()
            self._still = 0
        elif self._leaving:
            arm = servo(sim, np.array(sim.from_base(self.skill.config.rest_position_m)), 0.02)
        elif self._follower is not None and self._ready and self._still < _STILL_STEPS:
            self._still += 1  # what swings would fall over
        elif self._follower is not None and self._ready:
            if self._is_there() or self._missed >= _MISSES:
                grip = -1.0
            else:  # it was pushed aside on the way
                self._follower, self._missed = None, self._missed + 1
        return {"arm": arm, "grip": grip, "base": base}

    def _is_there(self) -> bool:
        target = self.skill.target
        return math.dist(self.sim.object_position(target), self.skill.arguments.goal[:3]) < _THERE_M

    def _ways_in(self) -> Iterator[Reach | None]:
        sim, target = self.sim, self.skill.target
        goal = np.array(self.skill.arguments.goal[:3])
        lean_cost = _LEAN_COST_IN_A_PLAN if self.in_plan else _LEAN_COST_STEPS
        low_m = _DROP_M + _HIGHER_M * self._missed
        ways = (_LEANS_RAD, low_m, _STEEP), (_LEANS_RAD, low_m, _SLANTED), (_MORE_LEANS_RAD, _MORE_DROP_M, _STEEP)
        for room, (leans, drop_m, slant) in itertools.product((1.0, NARROW), ways):
            tool, aim = goal_aim(sim, target, goal, leans, drop_m, lean_cost, slant)
            yield plan_reach(sim, Clearance(sim), (goal[0], goal[1]), aim, tool=tool, may_drive=self._may_drive,
                             standoff_m=_STANDOFF_M, room=room)


def goal_aim(sim: Simulator, i: int, goal_m: np.ndarray, leans_rad: Sequence[float],
             drop_m: float, lean_cost: float = _LEAN_COST_STEPS, slant: float = _STEEP) -> tuple[Tool, Aim]:
    """The held object i as a tool, its middle and its upward direction; and targets that put it on its goal, upright or
    leaning towards the hand, or away where the lean is negative; let go `drop_m` above. `lean_cost`: steps per radian.
    It comes from above, by `slant` metres per metre from the robot's side.
    """
    twin = sim.twin
    body, site = twin.data.body(f"object_{twin.slot_of(i)}"), twin.data.site("end_effector")
    hand, turned = site.xmat.reshape(3, 3), body.xmat.reshape(3, 3)
    tool = Tool(hand.T @ (body.xpos - site.xpos), hand.T @ turned[:, 2])
    half = np.array(sim.object_half_extents(i))

    def aim(heading: float) -> Iterator[Target]:
        back = np.array([-slant * math.cos(heading), -slant * math.sin(heading), 1.0]) / math.hypot(slant, 1.0)
        for lean in leans_rad:
            up = np.array([-math.sin(lean) * math.cos(heading), -math.sin(lean) * math.sin(heading), math.cos(lean)])
            lift = _lowest(half, lean) - half[2] + drop_m
            yield Target(goal_m + lift * _UP, up, back, lean_cost * abs(lean))

    return tool, aim


def _lowest(half: np.ndarray, lean: float) -> float:
    """Height (m) of the middle of a leaning box above its lowest corner."""
    return half[2] * math.cos(lean) + max(half[0], half[1]) * abs(math.sin(lean))

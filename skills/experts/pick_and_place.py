"""The experts of Pick and Place: they reach for something, and once it is done they leave with the hand at rest.

Where no way in is found, they step back and plan again.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np

from rearrange.home.simulation.simulator_interface import STEP_S, Simulator
from skills.experts.arm_model import Tool, arm_model
from skills.experts.clearance import Clearance
from skills.experts.grasps import FINGERS, OPENING_STEPS, depth_of, grasp_aim
from skills.experts.motion import assemble, servo, still
from skills.experts.reach_plan import (
    NARROW,
    Aim,
    Reach,
    Target,
    facing_axis,
    leaning_axis,
    plan_reach,
    plan_retreat,
)
from skills.experts.trajectory import Follower
from skills.experts.withdraw import plan_exit
from skills.skill import Skill

_PLANS, _NO_END = 8, 10_000  # after so many plans that failed it waits for the end
_STEPS_BETWEEN_PLANS = 15

# Pick.
_TILTS_RAD = tuple(math.radians(a) for a in (90, 78, 66, 54, 42, 30))  # of the cup below the horizontal
_MORE_TILTS_RAD = tuple(math.radians(a) for a in (84, 72, 60, 48, 36, 18, 6))  # tried next
_LAST_STEPS = 12  # of a way in
_INTO_M = 0.004  # the cup aims at a point this far below the surface
_PRESS_STEPS = 20  # for which the cup is pressed on without a hold
_HINDERED_RAD = 0.05  # between where the arm is sent and where it is, when it should be there
_CLOSE_STEPS = 45  # in which fingers hold what is between them, if anything is
_FINGER_ROOM_M, _END_STEPS = 0.006, 2  # on either side, until the hand is there; in which it gets there
_FINGER_STANDOFF_M = (0.075,)  # where the fingers are free of the object

# Place.
_LEANS_RAD = tuple(math.radians(a) for a in (0, 12, 24, 36, 48))  # of the object, away from upright, when it is let go
# Steps per radian, as a leaning object may fall over; more in a plan, where it counts where the object comes to lie.
_LEAN_COST_STEPS, _LEAN_COST_IN_A_PLAN = 120.0, 250.0
_DROP_M = 0.02  # height from which it is let go, less what the arm sags under it
# Tried next: lying down, or leaning away from the hand, and dropped from higher.
_MORE_LEANS_RAD, _MORE_DROP_M = tuple(math.radians(a) for a in (6, -15, 60, -30, 75, 90, -50)), 0.04
_STANDOFF_M = (0.07, 0.16)  # above the goal; the second one is above the rim of a sink
# Metres towards the robot per metre up: a hand on top of something tall reaches no higher far away.
_STEEP, _SLANTED = 0.0, 0.8
_THERE_M, _MISSES = 0.08, 2  # it is let go this near to its goal; where it is not there, it is brought again so often
_HIGHER_M = 0.02  # each time: the arm sags under a load, which then meets the edge of what it is put on
_STILL_STEPS = 4  # for which the hand waits over the goal: what swings would fall over
_UP = np.array([0.0, 0.0, 1.0])


class ReachingExpert(ABC):
    """Reaches for something, does something at the end of the way in, and leaves.

    `_ready`: the way that is followed leads to where it is to be done. `_leaving`: it is done, and the robot goes.
    `in_plan`: another skill comes next, so the arm is left as that skill finds it at its start.
    """

    in_plan = False

    def __init__(self, sim: Simulator, skill: Skill) -> None:
        self.sim, self.skill = sim, skill
        self._may_drive = "base" in skill.action_parts
        self._has_fingers = bool(sim.robot.hand.fingers)
        self._follower: Follower | None = None
        self._leaving = self._ready = False
        self._patience = self._exits = self._failed = 0
        self._at_end = 0  # steps since the end of the way in
        self._reach: Reach | None = None  # the plan that is followed

    def act(self) -> np.ndarray:
        """The action of the next step, in the skill's order."""
        return assemble(self.skill, self.command())

    def command(self) -> dict[str, np.ndarray | tuple | float]:
        """The parts of the next action by name."""
        self._plan(self._is_done())
        arm, base, grip = still(self.sim), (0.0, 0.0), self._grip()
        if self._follower is not None and not self._follower.done:
            arm, base = self._follower.command()
            self._at_end = 0
        elif self._leaving:
            arm = servo(self.sim, np.array(self.sim.from_base(self.skill.rest_m(self.sim))), 0.02)
        elif self._follower is not None and self._ready:
            self._at_end += 1
            arm, grip = self._act_at_end(grip)
        return {"arm": arm, "grip": grip, "base": base}

    @property
    def busy(self) -> bool:
        """It is done, but still on its way out."""
        return self._leaving and not self._follower.done

    # ------------------------------------------------------------------ what differs

    @abstractmethod
    def _is_done(self) -> bool:
        """Whether the robot can leave."""

    @abstractmethod
    def _grip(self) -> float:
        """Suction only at the object: the cup takes nothing on the way, and lets go of what is not meant."""

    @abstractmethod
    def _act_at_end(self, grip: float) -> tuple[np.ndarray, float]:
        """Commands of arm and suction at the end of the way in."""

    @abstractmethod
    def _ways_in(self) -> Iterator[Reach | None]:
        """Plans to try one after another; None where there is none."""

    # ------------------------------------------------------------------ planning

    def _plan(self, done: bool) -> None:
        """Plan what to follow next, if anything: the way out once it is done, else the way in."""
        if done:
            if not self._leaving or self._follower.stuck:
                self._leaving, self._exits = True, self._exits + 1
                last = arm_model(self.sim.robot).rest if self.in_plan else None
                way = plan_exit(self.sim, self._may_drive, self.skill.rest_m(self.sim), self._exits, last)
                self._follower = Follower(self.sim, way)
            return
        if self._leaving:  # it was lost on the way out
            self._leaving, self._ready, self._follower = False, False, None
        follower = self._follower
        if self._patience == 0 and (follower is None or follower.stuck or (follower.done and not self._ready)):
            self._reach_in()
        self._patience = max(0, self._patience - 1)

    def _reach_in(self) -> None:
        for reach in self._ways_in():
            if reach is not None:
                self._follower, self._ready, self._reach = Follower(self.sim, reach.motion), True, reach
                return
        self._ready, self._failed = False, self._failed + 1
        self._patience = _STEPS_BETWEEN_PLANS if self._failed < _PLANS else _NO_END
        retreat = plan_retreat(self.sim, Clearance(self.sim)) if self._may_drive else None
        self._follower = None if retreat is None else Follower(self.sim, retreat)


class PickExpert(ReachingExpert):
    """Picks the object `skill.target`: stand and reach in, touch, pull back, rest."""

    _pressed = 0  # steps for which the cup has been pressed on, or fingers closed, without a hold

    def _steps_to_end(self) -> int:
        """Of the way in, less those for which the hand has waited there."""
        return math.inf if self._follower is None else len(self._follower.motion) - self._follower.at - self._at_end

    @property
    def _early_steps(self) -> int:
        """So many steps before the end fingers begin to close: then they are near the object, but do not touch it."""
        hand, room_m = self.sim.robot.hand, self._reach.target.room_m
        return math.floor((room_m - _FINGER_ROOM_M) / (hand.speed_m_s * STEP_S)) - _END_STEPS

    def _is_done(self) -> bool:
        return self.sim.held == self.skill.target

    def _grip(self) -> float:
        """Fingers close at the end of the way. Suction only where the cup touches the object, or is about to and
        touches nothing else: it takes nothing on the way, and lets go of what is not meant.
        """
        if self._has_fingers:
            return 1.0 if self._leaving or self._ready and self._steps_to_end() <= self._early_steps else -1.0
        touched, follower = self.sim.touched_objects(), self._follower
        near = follower is not None and self._ready and len(follower.motion) - follower.at <= _LAST_STEPS
        return 1.0 if self._leaving or self.skill.target in touched or (near and not touched) else -1.0

    def _act_at_end(self, grip: float) -> tuple[np.ndarray, float]:
        self._pressed += 1
        if self._has_fingers:
            off = float(np.abs(self.sim.arm_targets() - self.sim.arm_positions()).max())
            if self._pressed > _CLOSE_STEPS or (self._at_end > _STILL_STEPS and off > _HINDERED_RAD):
                self._follower, self._pressed, self._patience = None, 0, OPENING_STEPS
            return still(self.sim), grip
        arm = servo(self.sim, np.array(self.sim.object_position(self.skill.target)), 0.01)
        if self._pressed > _PRESS_STEPS:
            self._follower, self._pressed = None, 0
        return arm, grip

    def _ways_in(self) -> Iterator[Reach | None]:
        sim, target = self.sim, self.skill.target
        middle = tuple(sim.object_position(target)[:2])
        for room, tilts in itertools.product((1.0, NARROW), (_TILTS_RAD, _MORE_TILTS_RAD)):
            if self._has_fingers:
                yield plan_reach(sim, Clearance(sim), middle, grasp_aim(sim, target, tilts), tool=FINGERS,
                                 may_drive=self._may_drive, standoff_m=_FINGER_STANDOFF_M, room=room)
                continue
            yield plan_reach(sim, Clearance(sim), middle, surface_aim(sim, target, tilts),
                             touching=sim.twin.slot_of(target), may_drive=self._may_drive, room=room)


def surface_aim(sim: Simulator, i: int, tilts_rad: Sequence[float]) -> Aim:
    """Aims the cup at the middle of object i, at the place where it meets the surface, from above and from the side."""
    position, depth_m = np.array(sim.object_position(i)), depth_of(sim, i)

    def aim(heading: float) -> Iterator[Target]:
        for tilt in tilts_rad:
            axis = facing_axis(heading, tilt)
            yield Target(position - (depth_m(axis) - _INTO_M) * axis, axis, -axis)

    return aim


class PlaceExpert(ReachingExpert):
    """Places the object `skill.target`, which is in the hand: bring it over its goal, set it down, let go, rest."""

    _missed = 0  # ways at whose end it was not over its goal
    _empty_steps = 0

    def _is_done(self) -> bool:
        """Fingers that have let go open before the hand leaves."""
        self._empty_steps = 0 if self.sim.is_holding else self._empty_steps + 1
        return self._empty_steps > (OPENING_STEPS if self._has_fingers else 0)

    def _grip(self) -> float:
        return 1.0 if self.sim.is_holding else -1.0

    def _act_at_end(self, grip: float) -> tuple[np.ndarray, float]:
        sim, target = self.sim, self.skill.target
        if self._at_end > _STILL_STEPS:
            there = math.dist(sim.object_position(target), self.skill.arguments.goal[:3]) < _THERE_M
            if there or self._missed >= _MISSES:
                grip = -1.0
            else:  # it was pushed aside on the way
                self._follower, self._missed = None, self._missed + 1
        return still(sim), grip

    def _ways_in(self) -> Iterator[Reach | None]:
        sim, goal = self.sim, np.array(self.skill.arguments.goal[:3])
        lean_cost = _LEAN_COST_IN_A_PLAN if self.in_plan else _LEAN_COST_STEPS
        low_m = _DROP_M + _HIGHER_M * self._missed
        ways = (_LEANS_RAD, low_m, _STEEP), (_LEANS_RAD, low_m, _SLANTED), (_MORE_LEANS_RAD, _MORE_DROP_M, _STEEP)
        for room, (leans, drop_m, slant) in itertools.product((1.0, NARROW), ways):
            tool, aim = goal_aim(sim, self.skill.target, goal, leans, drop_m, lean_cost, slant)
            yield plan_reach(sim, Clearance(sim), (goal[0], goal[1]), aim, tool=tool, may_drive=self._may_drive,
                             standoff_m=_STANDOFF_M, room=room)


def goal_aim(sim: Simulator, i: int, goal_m: np.ndarray, leans_rad: Sequence[float], drop_m: float, lean_cost: float,
             slant: float) -> tuple[Tool, Aim]:
    """The held object i as a tool, its middle and its upward direction, and targets that put it on its goal.

    Args:
        goal_m: where the middle of the object belongs, (3,), world frame.
        leans_rad: of the object towards the hand; away from it where the lean is negative.
        drop_m: height above the goal at which it is let go.
        lean_cost: steps per radian.
        slant: of the way in, which comes from above: metres from the robot's side per metre.
    """
    twin = sim.twin
    body, site = twin.data.body(f"object_{twin.slot_of(i)}"), twin.data.site(sim.robot.hand.site)
    hand, turned = site.xmat.reshape(3, 3), body.xmat.reshape(3, 3)
    tool = Tool(hand.T @ (body.xpos - site.xpos), hand.T @ turned[:, 2])
    half = np.array(sim.object_half_extents(i))

    def aim(heading: float) -> Iterator[Target]:
        back = np.array([-slant * math.cos(heading), -slant * math.sin(heading), 1.0]) / math.hypot(slant, 1.0)
        for lean in leans_rad:
            # From the lowest corner of the leaning box to its middle.
            lowest = half[2] * math.cos(lean) + max(half[0], half[1]) * abs(math.sin(lean))
            lift = lowest - half[2] + drop_m
            yield Target(goal_m + lift * _UP, leaning_axis(heading, lean), back, lean_cost * abs(lean))

    return tool, aim

"""Sense, plan, act: the classical baseline (TP-SPA). Controllers of the skills that know what `Senses` tells them:
body, odometry, depth image, and the coordinates of objects and goals that every agent is given.

They are made and asked like `skills.experts`: `PickSPA(memory, sim, skill).act()`. What they remember from one skill to
the next is in a `Memory`.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.spa.aims import front_aim, surface_aim, upright_aim
from planner.spa.senses import Senses
from planner.spa.voxel_map import CloudClearance, Map
from rearrange.home.geometry import PlanePose, wrap_angle
from skills.experts.motion import CUP, Tool, assemble, at_pose, drive, servo
from skills.experts.reach_plan import Aim, plan_reach
from skills.experts.trajectory import Follower
from skills.experts.withdraw import plan_exit

if TYPE_CHECKING:
    from rearrange.home.apartments.floor_grid import DistanceField
    from rearrange.home.simulation.simulator_interface import Simulator
    from skills.skill import Skill

Command = dict[str, np.ndarray | tuple[float, float] | float]

_LOOK_EVERY = 4  # steps
AWAY_M = (0.62, 0.86)  # from the object or goal, where it stands to work
_NEAR_M, _NEAR_RAD = 0.12, 0.12
_STILL_M, _STILL_RAD, _STUCK_STEPS = 0.01, 0.02, 25  # it is stuck if it moves less in so many steps
_BACK_STEPS, _REPLAN_STEPS = 20, 30
_STANDOFF_M = (0.07, 0.16)  # above the goal; the second one is above the rim of a sink
_PRESS_STEPS, _WAIT_STEPS = 30, 40
_PULL_M, _PULL_SPEED = 0.5, 0.25
_UP = np.array([0.0, 0.0, 1.0])


class Memory:
    """What lasts for an episode."""

    episode: str | None = None

    def of(self, sim: Simulator) -> Memory:
        """This memory, emptied when another episode has begun."""
        if self.episode != sim.episode.id:
            self.episode, self.map = sim.episode.id, Map(sim.base_pose)
            self.scanned = False
            self.stood: dict[tuple[float, ...], list[tuple[float, float]]] = {}  # target -> where it stood before it
            self.ways: dict[tuple[float, ...], int] = {}  # target -> how often it has set out for it
            self.tool = CUP  # how the object lies in the hand
        return self


class _SPA:
    """What the controllers have in common."""

    look_every = _LOOK_EVERY

    def __init__(self, memory: Memory, sim: Simulator, skill: Skill) -> None:
        self.memory, self.senses, self.skill = memory.of(sim), Senses(sim), skill
        self.steps = 0

    def act(self) -> np.ndarray:
        """The action of the next step, in the skill's order."""
        if self.steps % self.look_every == 0:
            self.memory.map.look(self.senses)
        self.steps += 1
        return assemble(self.skill, self.command())


class NavigateSPA(_SPA):
    """Looks around once, then drives through what it has seen to be free to a place from which it sees the target."""

    looks_around = True
    straight_m = 0.25  # from its place on it drives straight to it
    replan_steps = _REPLAN_STEPS

    def __init__(self, memory: Memory, sim: Simulator, skill: Skill) -> None:
        super().__init__(memory, sim, skill)
        self.target = tuple(skill.nav_point)
        self._turned, self._yaw = 0.0, self.senses.base_pose[2]
        self._way = None
        self._planned = -self.replan_steps
        self._since, self._still = self.senses.base_pose, 0
        self._back = 0

    def command(self) -> Command:
        """The parts of the next action by name."""
        base, stop = self._base()
        return {"arm": np.zeros(7), "grip": 1.0 if self.senses.is_holding else -1.0, "base": base, "stop": stop}

    def _base(self) -> tuple[tuple[float, float], float]:
        senses, memory = self.senses, self.memory
        if self.looks_around and not memory.scanned:
            self._turned += abs(wrap_angle(senses.base_pose[2] - self._yaw))
            self._yaw = senses.base_pose[2]
            memory.scanned = self._turned > 2 * math.pi or self.steps > 200
            return (0.0, 0.8), -1.0
        if self._back > 0:
            self._back -= 1
            return (-0.4, 0.0), -1.0
        if self.steps - self._planned >= self.replan_steps:
            self._planned = self.steps
            stood = memory.stood.get(self.target, [])
            self._way = self._find_way(stood) or self._way
        if self._way is None:
            return (0.0, 0.5), -1.0  # look for a way elsewhere
        pose, field_ = self._way
        if at_pose(senses, pose, _NEAR_M, _NEAR_RAD):
            memory.stood.setdefault(self.target, []).append(pose[:2])
            return (0.0, 0.0), 1.0
        self._watch()
        if math.dist(senses.base_pose[:2], pose[:2]) < self.straight_m:
            return drive(senses, pose, near_m=0.08), -1.0
        return self._towards(pose, field_), -1.0

    def _find_way(self, stood: list[tuple[float, float]]) -> tuple[PlanePose, Any] | None:
        """Where to stand, and what `_towards` needs to get there."""
        return self.memory.map.way_to(self.senses, self.target[:2], AWAY_M, stood)

    def _towards(self, pose: PlanePose, field: DistanceField) -> tuple[float, float]:
        """Base command on the way to a pose that is not near yet. field: the driving distances to it."""
        x, y = self.memory.map.ahead(field, self.senses.base_pose)
        return drive(self.senses, (x, y, math.atan2(y - self.senses.base_pose[1], x - self.senses.base_pose[0])), reverse=False)

    def _watch(self) -> None:
        """When it does not come on it drives back, and remembers that something is there."""
        pose, since = self.senses.base_pose, self._since
        moved = math.dist(pose[:2], since[:2]) > _STILL_M or abs(wrap_angle(pose[2] - since[2])) > _STILL_RAD
        self._still = 0 if moved else self._still + 1
        if moved:
            self._since = pose
        elif self._still > _STUCK_STEPS:
            self._still, self._back, self._planned = 0, _BACK_STEPS, -self.replan_steps
            self.memory.map.block(pose[0] + 0.33 * math.cos(pose[2]), pose[1] + 0.33 * math.sin(pose[2]))


class _Reaching(_SPA):
    """Reaches for a point, does something there, and comes back to rest."""

    def __init__(self, memory: Memory, sim: Simulator, skill: Skill) -> None:
        super().__init__(memory, sim, skill)
        self._drives = "base" in skill.action_parts
        self._follower: Follower | None = None
        self._leaving = False
        self._wait = self._pressed = self._exits = 0

    def _reach(self, point: np.ndarray, aim: Aim, tool: Tool = CUP, standoff_m: tuple[float, ...] = (0.07,)) -> None:
        """Plan the way in, unless it was planned in vain a moment ago."""
        if self._wait > 0:
            self._wait -= 1
            return
        self.memory.map.look(self.senses)
        clearance = CloudClearance(self.senses, self.memory.map, point)
        found = plan_reach(self.senses, clearance, (point[0], point[1]), aim, tool=tool, may_drive=self._drives,
                           standoff_m=standoff_m)
        self._follower = None if found is None else Follower(self.senses, found.motion)
        self._wait = _WAIT_STEPS if found is None else 0

    def _leave(self) -> tuple[np.ndarray, tuple[float, float]]:
        """Arm and base on the way back to rest."""
        rest_m = self.skill.config.rest_position_m
        if not self._leaving or self._follower.stuck:
            self._leaving, self._exits = True, self._exits + 1
            clearance = CloudClearance(self.senses, self.memory.map, self.senses.hand()[0])
            self._follower = Follower(self.senses, plan_exit(self.senses, self._drives, rest_m, self._exits, clearance=clearance))
        if not self._follower.done:
            return self._follower.command()
        return servo(self.senses, np.array(self.senses.from_base(rest_m)), 0.02), (0.0, 0.0)

    def _come(self) -> tuple[np.ndarray, tuple[float, float]] | None:
        """Arm and base on the way in; None at its end."""
        if self._follower is None or self._follower.done:
            return None
        if self._follower.stuck:
            self._follower = None
            return np.zeros(7), (0.0, 0.0)
        return self._follower.command()

    def _press(self, point: np.ndarray) -> tuple[np.ndarray, tuple[float, float]]:
        """The cup towards a point; after a while it plans again."""
        self._pressed += 1
        if self._pressed > _PRESS_STEPS:
            self._follower, self._pressed = None, 0
        return servo(self.senses, point, 0.01), (0.0, 0.0)


class PickSPA(_Reaching):
    """Touches the object where its coordinates are, from a side that the camera shows free."""

    def __init__(self, memory: Memory, sim: Simulator, skill: Skill) -> None:
        super().__init__(memory, sim, skill)
        self.point = np.array(skill.arguments.position)

    def command(self) -> Command:
        """The parts of the next action by name."""
        if self.senses.is_holding:
            if not self._leaving:
                self._remember()
            arm, base = self._leave()
        else:
            self._leaving = False
            if self._follower is None:
                self._reach(self.point, surface_aim(self.point, self.senses.points()))
            step = (np.zeros(7), (0.0, 0.0)) if self._follower is None else self._come()
            arm, base = self._press(self.point) if step is None else step
        return {"arm": arm, "grip": 1.0, "base": base}

    def _remember(self) -> None:
        """How the object lies in the hand: its coordinates and what is up, seen from there."""
        tip, turned = self.senses.hand()
        self.memory.tool = Tool(turned.T @ (self.point - tip), turned.T @ _UP)


class PlaceSPA(_Reaching):
    """Brings what it holds a little above the goal, as upright as it was taken, and lets go."""

    def __init__(self, memory: Memory, sim: Simulator, skill: Skill) -> None:
        super().__init__(memory, sim, skill)
        self.point = np.array(skill.arguments.goal[:3])

    def command(self) -> Command:
        """The parts of the next action by name."""
        if not self.senses.is_holding:
            arm, base = self._leave()
            return {"arm": arm, "grip": -1.0, "base": base}
        if self._follower is None:
            self._reach(self.point, upright_aim(self.point), self.memory.tool, _STANDOFF_M)
        step = (np.zeros(7), (0.0, 0.0)) if self._follower is None else self._come()
        arm, base = (np.zeros(7), (0.0, 0.0)) if step is None else step
        return {"arm": arm, "grip": -1.0 if step is None else 1.0, "base": base}


class OpenSPA(_Reaching):
    """Takes the handle, drives straight back, lets go. A door that turns it opens as far as it comes that way."""

    def __init__(self, memory: Memory, sim: Simulator, skill: Skill) -> None:
        super().__init__(memory, sim, skill)
        self.point = np.array(sim.handle_position(skill.target_handle))
        self._from: tuple[float, float] | None = None
        self._pulled = False
        self._pulling = 0

    def command(self) -> Command:
        """The parts of the next action by name."""
        senses = self.senses
        if self._pulled:
            arm, base = self._leave()
            return {"arm": arm, "grip": -1.0, "base": base}
        if senses.is_holding:
            self._from = self._from or senses.base_pose[:2]
            self._pulling += 1
            self._pulled = math.dist(self._from, senses.base_pose[:2]) > _PULL_M or self._pulling > 110
            return {"arm": np.zeros(7), "grip": 1.0, "base": (-_PULL_SPEED / senses.config.base_speed_m_s, 0.0)}
        if self._from is not None:  # it slipped off
            self._pulled = True
        if self._follower is None:
            self._reach(self.point, front_aim(self.point))
        step = (np.zeros(7), (0.0, 0.0)) if self._follower is None else self._come()
        arm, base = self._press(self.point) if step is None else step
        return {"arm": arm, "grip": 1.0, "base": base}


CONTROLLERS: dict[str, type[_SPA]] = {
    "navigate": NavigateSPA,
    "pick": PickSPA,
    "place": PlaceSPA,
    "open_cabinet": OpenSPA,
    "open_fridge": OpenSPA,
}


def controllers() -> dict[str, functools.partial]:
    """Skill -> what makes its controller, as an `Executor` takes experts; all share one memory."""
    memory = Memory()
    return {name: functools.partial(made, memory) for name, made in CONTROLLERS.items()}

"""Sense, plan, act: the classical baseline (TP-SPA).

Its controllers of the skills know what `Senses` tells them (body, odometry, depth image), and the coordinates of
objects and goals that every agent is given. They are used like `skills.experts`: `PickSPA(memory, sim, skill).act()`. A
`Memory` holds what they remember from one skill to the next.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from planner.spa.senses import Senses
from planner.spa.voxel_map import CloudClearance, Map
from rearrange.home.apartments.floor_grid import DistanceField
from rearrange.home.geometry import PlanePose, wrap_angle
from rearrange.home.simulation.simulator_interface import Simulator
from skills.experts.arm_model import HAND, Tool
from skills.experts.motion import assemble, at_pose, drive, servo, still
from skills.experts.reach_plan import Aim, Target, facing_axis, leaning_axis, plan_reach
from skills.experts.trajectory import Follower
from skills.experts.withdraw import plan_exit
from skills.skill import Skill

Command = dict[str, np.ndarray | tuple[float, float] | float]

_LOOK_EVERY = 4  # steps
AWAY_M = (0.62, 0.86)  # from the object or goal, where it stands to work
_NEAR_M, _NEAR_RAD = 0.12, 0.12
_STILL_M, _STILL_RAD, _STUCK_STEPS = 0.01, 0.02, 25  # it is stuck if it moves less in so many steps
_BACK_STEPS, _REPLAN_STEPS = 20, 30
_STANDOFF_M = (0.07, 0.16)  # above the goal; the second one is above the rim of a sink
_PRESS_STEPS, _WAIT_STEPS = 30, 40
_PULL_M, _PULL_SPEED, _PULL_STEPS = 0.5, 0.25, 110
_TILTS_RAD = tuple(math.radians(a) for a in (90, 75, 60, 45, 30))  # of the cup below the horizontal, at an object
_HANDLE_TILTS_RAD = tuple(math.radians(a) for a in (0, 20, 40, 60))  # and at a handle
_AROUND_M, _BESIDE_M = 0.16, 0.03  # points of an object: around its middle, and this near to the cup's axis
_SURFACE_M, _INTO_M = 0.04, 0.006  # from the middle to a surface that was not seen; aimed behind the surface
_LEANS_RAD = tuple(math.radians(a) for a in (0, 15, 30, 45))  # of the object when it is let go
_LEAN_COST_STEPS = 120.0  # per radian: a leaning object may fall over
_DROP_M = 0.03  # height from which it is let go
_UP = np.array([0.0, 0.0, 1.0])


class Memory:
    """What lasts for an episode."""

    episode: str | None = None

    def of(self, sim: Simulator) -> Memory:
        """This memory, emptied when another episode has begun."""
        if self.episode != sim.episode.id:
            self.episode, self.map = sim.episode.id, Map(sim.base_pose, sim.robot.base)
            self.scanned = False
            self.stood: dict[tuple[float, ...], list[tuple[float, float]]] = {}  # target -> where it stood before it
            self.ways: dict[tuple[float, ...], int] = {}  # target -> how often it has set out for it
            self.tool = HAND  # how the object lies in the hand
        return self


class _SPA:
    """Base of the controllers."""

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
        return {"arm": still(self.senses), "grip": 1.0 if self.senses.is_holding else -1.0, "base": base, "stop": stop}

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
        (x, y, _), (x2, y2) = self.senses.base_pose, self.memory.map.ahead(field, self.senses.base_pose)
        return drive(self.senses, (x2, y2, math.atan2(y2 - y, x2 - x)), reverse=False)

    def _watch(self) -> None:
        """Where something holds it up, it remembers that something is there, and drives back."""
        pose, since = self.senses.base_pose, self._since
        moved = math.dist(pose[:2], since[:2]) > _STILL_M or abs(wrap_angle(pose[2] - since[2])) > _STILL_RAD
        self._still = 0 if moved else self._still + 1
        if moved:
            self._since = pose
        elif self._still > _STUCK_STEPS:
            self._still, self._back, self._planned = 0, _BACK_STEPS, -self.replan_steps
            self.memory.map.block(pose[0] + 0.33 * math.cos(pose[2]), pose[1] + 0.33 * math.sin(pose[2]))


class _Reaching(_SPA):
    """Reaches for a point (3,), does something there, and comes back to rest."""

    def __init__(self, memory: Memory, sim: Simulator, skill: Skill, point: Sequence[float]) -> None:
        super().__init__(memory, sim, skill)
        self.point = np.array(point)
        self._drives = "base" in skill.action_parts
        self._follower: Follower | None = None
        self._leaving = False
        self._wait = self._pressed = self._exits = 0

    def _reach(self, aim: Aim, tool: Tool = HAND, standoff_m: tuple[float, ...] = (0.07,)) -> None:
        """Plan the way in, unless there is one, or it was planned in vain a moment ago."""
        if self._follower is not None:
            return
        if self._wait > 0:
            self._wait -= 1
            return
        self.memory.map.look(self.senses)
        self._seen = self.senses.points()
        clearance = CloudClearance(self.senses, self.memory.map, self.point)
        found = plan_reach(self.senses, clearance, (self.point[0], self.point[1]), aim, tool=tool,
                           may_drive=self._drives, standoff_m=standoff_m)
        self._follower = None if found is None else Follower(self.senses, found.motion)
        self._wait = _WAIT_STEPS if found is None else 0

    def _leave(self) -> tuple[np.ndarray, tuple[float, float]]:
        """Arm and base on the way back to rest."""
        rest_m = self.skill.rest_m(self.senses)
        if not self._leaving or self._follower.stuck:
            self._leaving, self._exits = True, self._exits + 1
            clearance = CloudClearance(self.senses, self.memory.map, self.senses.hand()[0])
            way = plan_exit(self.senses, self._drives, rest_m, self._exits, clearance=clearance)
            self._follower = Follower(self.senses, way)
        if not self._follower.done:
            return self._follower.command()
        return servo(self.senses, np.array(self.senses.from_base(rest_m)), 0.02), (0.0, 0.0)

    def _still(self) -> tuple[np.ndarray, tuple[float, float]]:
        """Arm and base that do not move."""
        return still(self.senses), (0.0, 0.0)

    def _come(self) -> tuple[np.ndarray, tuple[float, float]] | None:
        """Arm and base on the way in; None at its end."""
        if self._follower is None:
            return self._still()
        if self._follower.done:
            return None
        if self._follower.stuck:
            self._follower = None
            return self._still()
        return self._follower.command()

    def _come_and_press(self) -> tuple[np.ndarray, tuple[float, float]]:
        """Arm and base on the way in, then of the cup towards the point; after a while it plans again."""
        if (step := self._come()) is not None:
            return step
        self._pressed += 1
        if self._pressed > _PRESS_STEPS:
            self._follower, self._pressed = None, 0
        return servo(self.senses, self.point, 0.01), (0.0, 0.0)


class PickSPA(_Reaching):
    """Touches the object where its coordinates are, from a side that the camera shows free."""

    def __init__(self, memory: Memory, sim: Simulator, skill: Skill) -> None:
        super().__init__(memory, sim, skill, skill.arguments.position)

    def command(self) -> Command:
        """The parts of the next action by name."""
        if self.senses.is_holding:
            if not self._leaving:
                self._remember()
            arm, base = self._leave()
        else:
            self._leaving = False
            self._reach(self._aim)
            arm, base = self._come_and_press()
        return {"arm": arm, "grip": 1.0, "base": base}

    def _aim(self, heading: float) -> Iterator[Target]:
        """From above and from the side; the camera's points around the middle of the object show its surface."""
        near = self._seen[np.linalg.norm(self._seen - self.point, axis=1) < _AROUND_M] - self.point
        for tilt in _TILTS_RAD:
            axis = facing_axis(heading, tilt)
            along = -near @ axis
            beside = np.linalg.norm(near + along[:, None] * axis, axis=1)
            seen = along[(beside < _BESIDE_M) & (along > 0.0)]
            depth = float(seen.max()) if len(seen) else _SURFACE_M
            yield Target(self.point - (depth - _INTO_M) * axis, axis, -axis)

    def _remember(self) -> None:
        """How the object lies in the hand: its coordinates and the upward direction, in the frame of the hand."""
        tip, turned = self.senses.hand()
        self.memory.tool = Tool(turned.T @ (self.point - tip), turned.T @ _UP)


class PlaceSPA(_Reaching):
    """Brings what it holds a little above the goal, as upright as it was taken, and lets go."""

    def __init__(self, memory: Memory, sim: Simulator, skill: Skill) -> None:
        super().__init__(memory, sim, skill, skill.arguments.goal[:3])

    def command(self) -> Command:
        """The parts of the next action by name."""
        if not self.senses.is_holding:
            arm, base = self._leave()
            return {"arm": arm, "grip": -1.0, "base": base}
        self._reach(self._aim, self.memory.tool, _STANDOFF_M)
        step = self._come()
        arm, base = self._still() if step is None else step
        return {"arm": arm, "grip": -1.0 if step is None else 1.0, "base": base}

    def _aim(self, heading: float) -> Iterator[Target]:
        """A little above the goal, upright or leaning towards the hand."""
        for lean in _LEANS_RAD:
            yield Target(self.point + _DROP_M * _UP, leaning_axis(heading, lean), _UP, _LEAN_COST_STEPS * lean)


class OpenSPA(_Reaching):
    """Takes the handle, drives straight back, lets go. It opens a door as far as that goes."""

    def __init__(self, memory: Memory, sim: Simulator, skill: Skill) -> None:
        super().__init__(memory, sim, skill, sim.handle_position(skill.target_handle))
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
            self._pulled = math.dist(self._from, senses.base_pose[:2]) > _PULL_M or self._pulling > _PULL_STEPS
            return {"arm": still(senses), "grip": 1.0, "base": (-_PULL_SPEED / senses.config.base_speed_m_s, 0.0)}
        if self._from is not None:  # it slipped off
            self._pulled = True
        self._reach(self._aim)
        arm, base = self._come_and_press()
        return {"arm": arm, "grip": 1.0, "base": base}

    def _aim(self, heading: float) -> Iterator[Target]:
        """From in front and from above."""
        for tilt in _HANDLE_TILTS_RAD:
            axis = facing_axis(heading, tilt)
            yield Target(self.point - 0.005 * axis, axis, -axis)


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

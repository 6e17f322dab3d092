"""What the planner's predicates mean: one function each, measured on the state of the simulator.

Thresholds are those of Habitat-Lab's ReplicaCAD domain as it stands today; the release of the Home Assistant Benchmark
opened drawers at 0.45 m and the fridge at 1.22 rad, farther than its own skills had to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from planner.pddl import Atom
from planner.rules import AT_M
from rearrange.home.apartments.containers import Openings, inside, inside_at, kind_of, opened_to, slid
from rearrange.home.apartments.episodes import Episode, Pose
from rearrange.home.apartments.layouts import Layout
from skills.navigate import CLOSED_BELOW, OPENED_ABOVE

ROBOT_AT_M = 2.0  # between the base and a thing, along the floor


class World(Openings, Protocol):
    """What facts are measured on: a simulator, or a `planner.belief.Belief`."""

    episode: Episode

    @property
    def base_pose(self) -> tuple[float, float, float]: ...

    held: int | None

    @property
    def is_holding(self) -> bool: ...

    def object_position(self, i: int) -> Sequence[float]: ...

    def handle_position(self, name: str) -> Sequence[float]: ...


@dataclass(frozen=True)
class Symbols:
    """What the names of a planning problem stand for in an episode."""

    objects: dict[str, int]  # object_0 -> index of the object in the episode
    goals: dict[str, Pose]  # goal_0 -> pose, world frame
    joints: dict[str, str]  # cabinet_0, fridge -> joint of the drawer or door

    @property
    def types(self) -> dict[str, str]:
        """Type of each name."""
        return ({name: "movable" for name in self.objects} | {name: "goal" for name in self.goals}
                | {name: name.split("_")[0] for name in self.joints})

    def position(self, sim: World, name: str) -> Sequence[float]:
        """Where a thing is now: an object's middle, a goal, a handle; world frame."""
        if name in self.objects:
            return sim.object_position(self.objects[name])
        if name in self.goals:
            return self.goals[name][:3]
        return sim.handle_position(self.joints[name])


def at(sim: World, symbols: Symbols, movable: str, goal: str, within_m: float = AT_M) -> bool:
    """The object lies nearer than `within_m` to the goal, and is not in the hand. A goal in a drawer slides with it."""
    return sim.held != symbols.objects[movable] and apart_m(sim, symbols, movable, goal) < within_m


def apart_m(sim: World, symbols: Symbols, movable: str, goal: str) -> float:
    """From the middle of an object to where its goal is now."""
    return math.dist(sim.object_position(symbols.objects[movable]), _goal_now(sim, symbols, goal))


def _goal_now(sim: World, symbols: Symbols, goal: str) -> Sequence[float]:
    """Where a goal is now: one in a drawer is given where it will be once the drawer is open."""
    point = tuple(symbols.goals[goal][:3])
    drawer = _drawer_around(sim.home.layout, point, tuple(symbols.joints.values()))
    return point if drawer is None else slid(sim, point, drawer)


@lru_cache(maxsize=1024)  # asked at every step
def _drawer_around(layout: Layout, point: tuple[float, float, float], joints: tuple[str, ...]) -> str | None:
    """The drawer that a point is in once the drawer is open."""
    drawers = (joint for joint in joints if kind_of(joint) == "drawer")
    return next((joint for joint in drawers if inside_at(layout, point, joint, opened_to(layout, joint))), None)


def in_(sim: World, symbols: Symbols, thing: str, container: str) -> bool:
    """The middle of the object, or the goal, is in the drawer or fridge. What is in the hand is in nothing; a goal in a
    drawer is given where it will be once the drawer is open.
    """
    joint = symbols.joints[container]
    if thing in symbols.goals:
        return inside(sim, symbols.goals[thing][:3], joint) or inside(sim, symbols.goals[thing][:3], joint, opened=True)
    return sim.held != symbols.objects[thing] and inside(sim, sim.object_position(symbols.objects[thing]), joint)


def in_the_open(sim: World, symbols: Symbols, thing: str) -> bool:
    """The object or goal is in nothing that can be closed, nor in the hand."""
    held = thing in symbols.objects and sim.held == symbols.objects[thing]
    return not held and not any(in_(sim, symbols, thing, container) for container in symbols.joints)


def holding(sim: World, symbols: Symbols, movable: str) -> bool:
    """The hand holds the object."""
    return sim.held == symbols.objects[movable]


def hand_empty(sim: World, symbols: Symbols) -> bool:
    """The hand holds nothing, no handle either."""
    return not sim.is_holding


def opened(sim: World, symbols: Symbols, container: str) -> bool:
    """The drawer or the fridge door stands open far enough to reach in."""
    return sim.joint_position(symbols.joints[container]) > OPENED_ABOVE[symbols.types[container]]


def closed(sim: World, symbols: Symbols, container: str) -> bool:
    """The drawer or the fridge door is shut, or nearly."""
    return abs(sim.joint_position(symbols.joints[container])) < CLOSED_BELOW


def robot_at(sim: World, symbols: Symbols, thing: str) -> bool:
    """The base is near the object, goal or handle."""
    x, y, _ = symbols.position(sim, thing)
    return math.hypot(x - sim.base_pose[0], y - sim.base_pose[1]) <= ROBOT_AT_M


# Name in the PDDL domain -> function, and the types of its arguments.
_THINGS, _CONTAINERS = ("movable", "goal"), ("cabinet", "fridge")
PREDICATES: dict[str, tuple[Callable[..., bool], tuple[tuple[str, ...], ...]]] = {
    "at": (at, (("movable",), ("goal",))),
    "in": (in_, (_THINGS, _CONTAINERS)),
    "in_the_open": (in_the_open, (_THINGS,)),
    "holding": (holding, (("movable",),)),
    "hand_empty": (hand_empty, ()),
    "opened": (opened, (_CONTAINERS,)),
    "closed": (closed, (_CONTAINERS,)),
    "robot_at": (robot_at, ((*_THINGS, *_CONTAINERS),)),
}


def holds(sim: World, symbols: Symbols, atom: Atom, at_m: float = AT_M) -> bool:
    """Whether a fact of the planner is true now. `robot_free` is the planner's own book-keeping and always true.
    at_m: how near is at a goal.
    """
    if atom == ("robot_free",):
        return True
    if atom[0] == "at":
        return at(sim, symbols, *atom[1:], at_m)
    return PREDICATES[atom[0]][0](sim, symbols, *atom[1:])

"""A layout of a scene that is none of our homes, from what a simulator finds in it; for skills, planner and evaluation.

It has no parts: where a robot can stand is given, and what stands where is asked by rays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rearrange.home.apartments.episodes import Marker
from rearrange.home.apartments.floor_grid import CELL_M, FloorGrid, floor_grid
from rearrange.home.apartments.layouts import Layout
from rearrange.home.apartments.parts import Body, Receptacle
from rearrange.home.apartments.standing import HAND_M, MIN_SHARE, STAND_M
from rearrange.home.axis_conventions import Point
from rearrange.home.geometry import PlanePose, from_frame, rotate, to_frame, wrap_angle
from rearrange.home.simulation.scenes.drawers_and_doors import (
    FoundReceptacle,
    MovingLink,
    door_body,
    drawer_body,
    drawers_of,
    fridge_doors,
    named_apart,
    names_for,
)

FRIDGE_DOOR = "fridge_door"
_NOWHERE: PlanePose = (0.0, 0.0, 0.0)
_FRIDGE_DEPTH_M = 1.0  # at most so far behind its door is the inside of a fridge
_HIGH_M = 2.0  # nothing above a surface within this: it is open
_ON_M = 0.01  # so near to something a point lies on it
_SUPPORT_M = 0.1  # so far below its box a surface is looked for
# A word in the name of a receptacle or of what it belongs to -> kind; the first that fits.
_KINDS = (("sink", "sink"), ("coffee", "coffee_table"), ("chair", "chair"), ("sofa", "sofa"), ("couch", "sofa"),
          ("tv", "tv_stand"), ("shelf", "shelf"), ("bookcase", "shelf"), ("counter", "counter"), ("table", "table"))


@dataclass(frozen=True, eq=False)
class SceneHome:
    """What a simulator keeps of an external scene, as `CompiledHome` of one of ours."""

    layout: Layout
    origin_m: tuple[float, float, float]  # of our world in the scene's, z up
    links: dict[str, tuple[str, str]]  # joint -> articulated object and link
    numbers: dict[str, int]  # joint -> number of its link, by which HAB's episodes call it
    shut_off: frozenset[str] = frozenset()  # receptacles that no hand gets to, as behind doors that no skill opens
    holders: Mapping[str, str | None] = field(default_factory=dict)  # receptacle -> the object it belongs to, or stage

    @property
    def handles(self) -> tuple[str, ...]:
        """Names of the joints."""
        return tuple(self.links)


@dataclass(frozen=True, eq=False)
class FoundScene:
    """What a simulator has found of a scene, with neither robot nor objects in it and everything closed, in our world.

    origin_m: (3,) of our world in the scene's, z up: the corner of the floor. blocked: see `Layout.blocked_floor`.
    roots: (4, 4) frames of articulated objects by their handles. free_way: which share of the straight way between two
    points is free; 1 when all of it is.
    """

    name: str
    origin_m: np.ndarray
    blocked: np.ndarray
    moving: Sequence[MovingLink]
    receptacles: Sequence[FoundReceptacle]
    roots: Mapping[str, np.ndarray]
    free_way: Callable[[Point, Point], float]


def home_of(scene: FoundScene, markers: Iterable[Marker]) -> SceneHome:
    """The home that a scene is. `markers`: of its episodes."""
    drawers, doors = drawers_of(scene.moving), fridge_doors(scene.moving)
    named = dict(zip(names_for(drawers), drawers))
    bodies = [drawer_body(name, link, markers) for name, link in named.items()]
    fridge = _NOWHERE
    if doors:
        fridge = _front(scene.roots[doors[0].handle], doors[0])
        bodies.append(door_body(FRIDGE_DOOR, doors[0], fridge[2], markers))
        named[FRIDGE_DOOR] = doors[0]
    size = tuple((CELL_M * (np.array(scene.blocked.shape) - 0.5)).tolist())  # rounded up to cells it is the grid's
    bare = Layout(scene.name, -1, size, (), tuple(bodies), (), (), _NOWHERE, fridge, (0.5, 0.5, 0.5),
                  blocked_floor=scene.blocked)
    places = _Places(scene.free_way, bare, named, doors)
    made = [(receptacle, found.handle) for found in scene.receptacles if (receptacle := places.receptacle(found))]
    receptacles = _named_apart([receptacle for receptacle, _ in made])
    holders = {receptacle.name: handle for receptacle, (_, handle) in zip(receptacles, made)}
    shut_off = frozenset(place.name for place in receptacles if not place.sides)
    layout = replace(bare, receptacles=tuple(place if place.sides else replace(place, sides=_all_sides(place))
                                             for place in receptacles))
    if doors and not any(receptacle.link == FRIDGE_DOOR for receptacle in receptacles):
        # Nothing can be in it, so that it is not a place where plans look.
        layout = replace(layout, bodies=tuple(body for body in bodies if body.name != FRIDGE_DOOR))
        del named[FRIDGE_DOOR]
    links = {name: (link.handle, link.name) for name, link in named.items()}
    numbers = {name: link.number for name, link in named.items()}
    return SceneHome(layout, tuple(scene.origin_m.tolist()), links, numbers, shut_off, holders)


def _front(root: np.ndarray, door: MovingLink) -> PlanePose:
    """Where the root of a fridge stands, and which of its level axes points out of its closed door."""
    x, y = root[:2, 3]
    middle = door.corners.mean(axis=0)
    axes = [sign * root[:2, axis] for axis in range(3) for sign in (1, -1) if np.linalg.norm(root[:2, axis]) > 0.9]
    out = max(axes, key=lambda axis: float(axis @ (middle[:2] - (x, y))))
    return float(x), float(y), math.atan2(out[1], out[0])


def _named_apart(receptacles: list[Receptacle]) -> list[Receptacle]:
    """Two pieces of furniture of one kind have receptacles of one name."""
    names = named_apart([receptacle.name for receptacle in receptacles])
    return [replace(receptacle, name=name) for receptacle, name in zip(receptacles, names)]


def _all_sides(receptacle: Receptacle) -> tuple[tuple[float, float], ...]:
    """What a receptacle has that none of its sides is free of: then the search for a start decides."""
    return tuple(rotate(*side, receptacle.yaw_rad) for side in ((1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0)))


def before_end(start: Point, end: Point) -> Point | None:
    """Where a line of sight is that ends just before what its end lies on; None for one that is shorter than that."""
    length = math.dist(start, end)
    if length <= _ON_M:
        return None
    return tuple(b + _ON_M / length * (a - b) for a, b in zip(start, end))


class _Places:
    """Makes receptacles of what was found."""

    def __init__(self, free_way: Callable[[Point, Point], float], layout: Layout, named: dict[str, MovingLink],
                 doors: list[MovingLink]) -> None:
        self._free_way, self._layout, self._doors = free_way, layout, doors
        self._joint_of = {(link.handle, link.name): name for name, link in named.items()}
        self._bodies = {body.name: body for body in layout.bodies}
        self._grid: FloorGrid = floor_grid(layout)

    def receptacle(self, found: FoundReceptacle) -> Receptacle | None:
        """None for what nothing here can open, such as the lower compartment of a fridge with two doors."""
        (x, y, _), z = found.middle_m, self._surface(found)
        clearance = self._clearance(x, y, z)
        joint = self._joint_of.get((found.handle, found.link))
        if joint is not None:
            return self._in_drawer(found, self._bodies[joint], z, clearance)
        made = Receptacle(found.name, self._kind(found), (x, y, z), found.half_m[:2], wrap_angle(found.yaw_rad),
                          clearance)
        door = next((door for door in self._doors if self._is_behind(door, (x, y, z))), None)
        if door is None:
            return replace(made, sides=self._sides(made))
        if door is not self._doors[0]:
            return None
        front = rotate(1.0, 0.0, self._layout.fridge_pose[2])
        return replace(made, kind="fridge", sides=(front,), closed=True, link=FRIDGE_DOOR)

    def _in_drawer(self, found: FoundReceptacle, body: Body, z: float, clearance: float) -> Receptacle:
        frame = body.pose(0.0)
        x, y = to_frame(found.middle_m[0], found.middle_m[1], frame)
        yaw = wrap_angle(found.yaw_rad - frame[2])
        return Receptacle(found.name, "drawer", (x, y, z - body.position_m[2]), found.half_m[:2], yaw, clearance,
                          body.name, ((1.0, 0.0),), True, body.name)

    def _is_behind(self, door: MovingLink, point: tuple[float, float, float]) -> bool:
        frame = self._layout.fridge_pose
        corners = np.array([(*to_frame(x, y, frame), z) for x, y, z in door.corners])
        low, high = corners.min(axis=0), corners.max(axis=0)
        x, y = to_frame(point[0], point[1], frame)
        level = low[2] - 0.05 < point[2] < high[2]
        return level and low[1] < y < high[1] and high[0] - _FRIDGE_DEPTH_M < x < high[0]

    def _kind(self, found: FoundReceptacle) -> str:
        text = f"{found.name} {found.handle or ''}".lower()
        return next((kind for word, kind in _KINDS if word in text), "table")

    def _surface(self, found: FoundReceptacle) -> float:
        """Height of what is under the middle of the box; of its lower side where nothing is near."""
        x, y, z = found.middle_m
        start, depth = z + 1e-3, found.half_m[2] + _SUPPORT_M
        free = self._free_way((x, y, start), (x, y, start - depth))
        return z - found.half_m[2] if free >= 1.0 else start - free * depth

    def _clearance(self, x: float, y: float, z: float) -> float:
        free = self._free_way((x, y, z + 0.01), (x, y, z + _HIGH_M))
        return math.inf if free >= 1.0 else 0.01 + free * (_HIGH_M - 0.01)

    def _sides(self, receptacle: Receptacle) -> tuple[tuple[float, float], ...]:
        """Before which a robot has room to stand, and nothing is between for the hand, as for our homes."""
        return tuple(side for side in _all_sides(receptacle) if self._share(receptacle, side) >= MIN_SHARE)

    def _share(self, receptacle: Receptacle, side: tuple[float, float]) -> float:
        """Of the edge before which a robot can stand."""
        x, y, z = receptacle.center_m
        frame = (x, y, math.atan2(side[1], side[0]))
        half_across, edge = receptacle.half_across_m(side), receptacle.half_along_m(side)
        steps = max(1, int(half_across / CELL_M))
        good = 0
        for step in range(-steps, steps + 1):
            across = step * half_across / steps
            for out in np.arange(STAND_M[0], STAND_M[1] + 1e-6, CELL_M / 2):
                px, py = from_frame(edge + out, across, frame)
                if self._grid.is_reachable(px, py):
                    start = (*from_frame(edge - 0.05, across, frame), z + HAND_M)
                    good += self._free_way(start, (px, py, z + HAND_M)) >= 1.0
                    break
        return good / (2 * steps + 1)

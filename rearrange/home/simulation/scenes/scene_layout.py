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
    front_of,
    is_behind,
    is_fridge,
    named_apart,
    names_for,
    upright_doors,
)

FRIDGE_DOOR = "fridge_door"
_NOWHERE: PlanePose = (0.0, 0.0, 0.0)
_HIGH_M = 2.0  # nothing above a surface within this: it is open
_BEYOND_M = 2.0  # a robot may stand so far beyond the floor, where no wall ends it
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
    found: frozenset[str] = frozenset()  # receptacles that are found from shape; the others are declared
    things: tuple[str, ...] = ()  # that are marked to be moved, which no scene of Habitat does

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
    size = tuple((CELL_M * (np.array(scene.blocked.shape) - 0.5)).tolist())  # rounded up to cells it is the grid's
    bare = Layout(scene.name, -1, size, (), tuple(bodies), (), (), _NOWHERE, _NOWHERE, (0.5, 0.5, 0.5),
                  blocked_floor=scene.blocked, ground_m=_BEYOND_M)
    fridge = _NOWHERE
    if doors:
        fridge = _front(scene.roots[doors[0].handle], doors[0])
    elif (cupboard := _cupboard(scene, bare, named)) is not None:
        doors, fridge = [cupboard[0]], cupboard[1]
    if doors:
        bodies.append(door_body(FRIDGE_DOOR, doors[0], fridge[2], markers))
        named[FRIDGE_DOOR] = doors[0]
        bare = replace(bare, bodies=tuple(bodies), fridge_pose=fridge)
    places = _Places(scene.free_way, bare, named, doors)
    made = [(receptacle, place) for place in scene.receptacles if (receptacle := places.receptacle(place))]
    receptacles = _named_apart([receptacle for receptacle, _ in made])
    holders = {receptacle.name: place.handle for receptacle, (_, place) in zip(receptacles, made)}
    found = frozenset(receptacle.name for receptacle, (_, place) in zip(receptacles, made) if not place.is_declared)
    shut_off = frozenset(place.name for place in receptacles if not place.sides)
    layout = replace(bare, receptacles=tuple(place if place.sides else replace(place, sides=_all_sides(place))
                                             for place in receptacles))
    if doors and not any(receptacle.link == FRIDGE_DOOR for receptacle in receptacles):
        # Nothing can be in it, so that it is not a place where plans look.
        layout = replace(layout, bodies=tuple(body for body in bodies if body.name != FRIDGE_DOOR))
        del named[FRIDGE_DOOR]
    links = {name: (link.handle, link.name) for name, link in named.items()}
    numbers = {name: link.number for name, link in named.items()}
    return SceneHome(layout, tuple(scene.origin_m.tolist()), links, numbers, shut_off, holders, found)


def _front(root: np.ndarray, door: MovingLink) -> PlanePose:
    """Where the root of a fridge stands, and which of its level axes points out of its closed door."""
    x, y = root[:2, 3]
    middle = door.corners.mean(axis=0)
    axes = [sign * root[:2, axis] for axis in range(3) for sign in (1, -1) if np.linalg.norm(root[:2, axis]) > 0.9]
    out = max(axes, key=lambda axis: float(axis @ (middle[:2] - (x, y))))
    return float(x), float(y), math.atan2(out[1], out[0])


def _cupboard(scene: FoundScene, bare: Layout, named: dict[str, MovingLink]) -> tuple[MovingLink, PlanePose] | None:
    """The door that serves as that of a fridge where no object is called one, and the middle of its compartment.

    Behind it are surfaces that are found from shape and that nothing else gives a way to; of several doors the one that
    is called a fridge's itself, or else with the largest surfaces.
    """
    doors = upright_doors(scene.moving)
    still = [place for place in scene.receptacles if not place.is_declared and place.link is None]
    if not doors or not still:
        return None
    places, best = _Places(scene.free_way, bare, named, []), None
    shut = [place for place in still if not places.has_way(place)]
    for door in doors:
        front = front_of(door)
        boards = [place for place in shut if is_behind(door, place.middle_m, front)]
        rank = is_fridge(door.name), sum(place.half_m[0] * place.half_m[1] for place in boards)
        if boards and (best is None or rank > best[0]):
            inward = float(np.mean([to_frame(*place.middle_m[:2], front)[0] for place in boards]))
            best = rank, door, (*from_frame(inward, 0.0, front), front[2])
    return None if best is None else best[1:]


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
        """None for what nothing here can open, such as the lower compartment of a fridge with two doors, and for what
        is found from shape where no hand gets to it.
        """
        (x, y, _), z = found.middle_m, self._surface(found)
        clearance = self._clearance(x, y, z) if found.is_declared else found.clearance_m
        joint = self._joint_of.get((found.handle, found.link))
        if joint is not None:
            return self._in_drawer(found, self._bodies[joint], z, clearance)
        made = Receptacle(found.name, self._kind(found), (x, y, z), found.half_m[:2], wrap_angle(found.yaw_rad),
                          clearance)
        door = next((door for door in self._doors if is_behind(door, (x, y, z), self._layout.fridge_pose)), None)
        if door is None:
            sides = self._sides(made)
            return replace(made, sides=sides) if sides or found.is_declared else None
        if door is not self._doors[0]:
            return None
        front = rotate(1.0, 0.0, self._layout.fridge_pose[2])
        return replace(made, kind="fridge", sides=(front,), closed=True, link=FRIDGE_DOOR)

    def has_way(self, found: FoundReceptacle) -> bool:
        """Whether a hand gets to it, with everything closed."""
        return bool(self.receptacle(found))

    def _in_drawer(self, found: FoundReceptacle, body: Body, z: float, clearance: float) -> Receptacle:
        frame = body.pose(0.0)
        x, y = to_frame(found.middle_m[0], found.middle_m[1], frame)
        yaw = wrap_angle(found.yaw_rad - frame[2])
        return Receptacle(found.name, "drawer", (x, y, z - body.position_m[2]), found.half_m[:2], yaw, clearance,
                          body.name, ((1.0, 0.0),), True, body.name)

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

"""Receptacles that no file declares, found from what collides: level faces seen from above with room over them.

Surfaces are found of what stands still, and in drawers. What a robot gets to is asked later, of the whole home.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rearrange.home.apartments.containers import LEAST_OPEN_M_OR_RAD, opens_far
from rearrange.home.scene_files.surfaces import moved, transform
from rearrange.home.simulation.scenes.convex_parts import Solid
from rearrange.home.simulation.scenes.drawers_and_doors import FoundReceptacle, MovingLink, drawers_of, plain_name
from rearrange.home.simulation.scenes.outlines import area_of, mark, outline_between, outline_of
from rearrange.home.simulation.scenes.scene_parts import Pieces

HEIGHTS_M = (0.1, 1.3)
"""Above the floor: lower and higher ones the arm does not pick from."""
ROOM_M = 0.1
"""Over a surface on which the smaller objects stand and are held."""
LEAST_SIDE_M = 0.2

_CELL_M, _MOST_CELLS = 0.02, 1000  # the latter along one side: of what is larger, cells are too
_LEVEL_M = 0.01  # faces whose heights differ by less are one surface
_EDGE_M = 0.005  # corners of a body so far below its top belong to its upper face
_FACE_M2 = 1e-3
_OPEN_M = 2.0  # nothing above a surface within this: it is open
_MOST = 4  # on one level of one thing
_BOX_M = 0.05  # half the height of the box over a surface
_FLAT = ("box", "hull", "cylinder")  # what can have a level face


@dataclass(frozen=True)
class Surface:
    """A rectangle on which things can stand: its middle, half sizes, turn, and how much room is over it (m)."""

    middle_m: tuple[float, float, float]
    half_m: tuple[float, float]
    yaw_rad: float
    clearance_m: float

    def receptacle(self, name: str, handle: str | None, link: str | None = None) -> FoundReceptacle:
        x, y, z = self.middle_m
        return FoundReceptacle(name, handle, link, (x, y, z + _BOX_M), (*self.half_m, _BOX_M), self.yaw_rad,
                               self.clearance_m)


class Bodies:
    """All convex bodies of a scene, everything closed, as corners (n, 3) and the boxes around them."""

    def __init__(self, corners: Sequence[np.ndarray]) -> None:
        self.corners = list(corners)
        self.low = np.array([points.min(axis=0) for points in self.corners] or np.empty((0, 3)))
        self.high = np.array([points.max(axis=0) for points in self.corners] or np.empty((0, 3)))

    def between(self, low: np.ndarray, high: np.ndarray) -> list[np.ndarray]:
        """Corners of those whose box overlaps another, (3,) low and high corner."""
        return [self.corners[k] for k in np.flatnonzero(((self.low < high) & (self.high > low)).all(axis=1))]


def found_receptacles(pieces: Pieces, links: Iterable[MovingLink], floor_m: float) -> list[FoundReceptacle]:
    """Of all things of a scene for which no receptacle is declared. links: those that can be opened."""
    around = Bodies([solid.corners() for solid in (*pieces.walls, *pieces.solids)]
                    + [solid.moved(part.frame).corners() for part in pieces.parts for solid in part.solids])
    found, low, high = [], *(floor_m + height for height in HEIGHTS_M)
    for thing in pieces.standing:
        if not thing.declares:
            name = plain_name(thing.handle or "stage")
            found += [surface.receptacle(f"{name}_{'top' if math.isinf(surface.clearance_m) else 'board'}",
                                         thing.handle)
                      for surface in surfaces_of(thing.solids, around, low, high)]
    declaring = {thing.handle for thing in pieces.standing if thing.declares}
    declaring |= {receptacle.handle for receptacle in pieces.receptacles}
    for drawer in drawers_of(links):
        if drawer.handle not in declaring and opens_far("drawer", drawer.range_m_or_rad[1]):
            inside = _in_drawer(drawer, around)
            if inside is not None and not _is_shut_in(drawer, around):
                found.append(inside.receptacle(f"inside_{drawer.name}", drawer.handle, drawer.name))
    return found


def surfaces_of(solids: Iterable[Solid], around: Bodies, low_m: float, high_m: float,
                yaw_rad: float | None = None) -> Iterator[Surface]:
    """Rectangles on the level upper faces of a thing, each with both sides at least `LEAST_SIDE_M`, largest first on
    each level.

    Args:
        solids: What collides of the thing, in the world.
        around: What takes up room over its faces.
        low_m, high_m: Between these heights.
        yaw_rad: How the rectangles are turned; None: along most edges of the faces.
    """
    for faces in _levels(solids, low_m, high_m):
        height = max(z for z, _ in faces)
        outlines = [outline for _, outline in faces]
        yield from _rectangles(outlines, height, around, _main_direction(outlines) if yaw_rad is None else yaw_rad)


def _in_drawer(drawer: MovingLink, around: Bodies) -> Surface | None:
    """The largest surface in a drawer, which is its bottom."""
    solids = [Solid("hull", np.eye(4), points=points) for points in drawer.solids]
    yaw = math.atan2(drawer.axis[1], drawer.axis[0])
    return max(surfaces_of(solids, around, -math.inf, math.inf, yaw),
               key=lambda place: place.half_m[0] * place.half_m[1], default=None)


def _is_shut_in(drawer: MovingLink, around: Bodies) -> bool:
    """Whether something stands in the way of a drawer, as the door of the cupboard that it is in."""
    turn = _turn(-math.atan2(drawer.axis[1], drawer.axis[0]))
    points = moved(drawer.corners, turn)
    front, out_m = points[:, 0].max(), LEAST_OPEN_M_OR_RAD["drawer"]
    low = np.array((front + _LEVEL_M, *(points.min(axis=0)[1:] + _LEVEL_M)))
    high = np.array((front + out_m, *(points.max(axis=0)[1:] - _LEVEL_M)))
    near = around.between(drawer.corners.min(axis=0) - out_m, drawer.corners.max(axis=0) + out_m)
    return bool(Bodies([moved(corners, turn) for corners in near]).between(low, high))


def _levels(solids: Iterable[Solid], low_m: float, high_m: float) -> Iterator[list[tuple[float, np.ndarray]]]:
    """Height and outline (n, 2) of the upper face of each body that has a level one, those of one height together."""
    faces = []
    for solid in solids:
        corners = solid.corners()
        top = float(corners[:, 2].max())
        if solid.kind in _FLAT and low_m <= top <= high_m:
            outline = outline_of(corners[corners[:, 2] > top - _EDGE_M][:, :2])
            if area_of(outline) > _FACE_M2:
                faces.append((top, outline))
    faces.sort(key=lambda face: face[0])
    level: list[tuple[float, np.ndarray]] = []
    for face in faces:
        if level and face[0] > level[0][0] + _LEVEL_M:
            yield level
            level = []
        level.append(face)
    if level:
        yield level


def _main_direction(outlines: Sequence[np.ndarray]) -> float:
    """The direction (rad, 0 .. pi/2) along which or across which most edges of some outlines lie."""
    edges = np.concatenate([np.roll(outline, -1, axis=0) - outline for outline in outlines])
    lengths = np.linalg.norm(edges, axis=1)
    degrees = np.degrees(np.arctan2(edges[:, 1], edges[:, 0])) % 90.0
    along = np.bincount(np.round(degrees).astype(int) % 90, lengths, 90)
    off = (degrees - int(along.argmax()) + 45.0) % 90.0 - 45.0
    near = np.abs(off) < 1.5
    return math.radians(int(along.argmax()) + float(np.average(off[near], weights=lengths[near])))


def _turn(yaw_rad: float) -> np.ndarray:
    """(4, 4) about the vertical."""
    c, s = math.cos(yaw_rad), math.sin(yaw_rad)
    return transform([(c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0)])


def _rectangles(outlines: Sequence[np.ndarray], height: float, around: Bodies, yaw_rad: float) -> Iterator[Surface]:
    """The largest free rectangles of a level, along `yaw_rad`."""
    turn, back = _turn(-yaw_rad), _turn(yaw_rad)
    points = np.concatenate(outlines)
    over = around.between(np.array((*points.min(axis=0), height + _LEVEL_M)),
                          np.array((*points.max(axis=0), height + _OPEN_M)))
    faces = [outline @ turn[:2, :2].T for outline in outlines]
    low, high = np.concatenate(faces).min(axis=0), np.concatenate(faces).max(axis=0)
    cell_m = max(_CELL_M, float((high - low).max()) / _MOST_CELLS)
    free = np.zeros(tuple(np.maximum(1, np.round((high - low) / cell_m)).astype(int)), bool)
    for face in faces:
        mark(free, face - low, 0.0, cell_m, True)
    hanging = []  # what is over the level, but leaves room
    for corners in (moved(points, turn) - (*low, height) for points in over):
        if corners[:, 2].min() < ROOM_M:
            outline = outline_between(corners, _LEVEL_M, ROOM_M)
            mark(free, outline, cell_m / 2, cell_m, False)
        else:
            hanging.append(corners)
    for _ in range(_MOST):
        span = largest_rectangle(free, math.ceil(LEAST_SIDE_M / cell_m - 1e-6))
        if span is None:
            return
        free[span] = False
        first, last = np.array([(side.start, side.stop) for side in span]).T * cell_m
        x, y, z = moved(np.array([(*(low + (first + last) / 2), height)]), back)[0].tolist()
        yield Surface((x, y, z), tuple(((last - first) / 2).tolist()), yaw_rad, _clearance(hanging, first, last))


def _clearance(hanging: Iterable[np.ndarray], low: np.ndarray, high: np.ndarray) -> float:
    """Height above a rectangle, (2,) low and high corner, of the lowest body that hangs over it."""
    return min((float(corners[:, 2].min()) for corners in hanging
                if (corners[:, :2].min(axis=0) < high).all() and (corners[:, :2].max(axis=0) > low).all()),
               default=math.inf)


def largest_rectangle(free: np.ndarray, least: int) -> tuple[slice, slice] | None:
    """The largest rectangle of cells that are all free, (cells in x, cells in y), with both sides at least `least`
    cells; None if there is none.

    Below each row it keeps, for each column, how many free cells are above, and how far left and right as many are.
    """
    rows, count = free.shape
    columns = np.arange(count)
    deep, left, right = np.zeros(count, int), np.zeros(count, int), np.full(count, count)
    best, largest = None, 0
    for row, cells in enumerate(free):
        deep = np.where(cells, deep + 1, 0)
        first = np.maximum.accumulate(np.where(cells, -1, columns)) + 1
        last = np.minimum.accumulate(np.where(cells, count, columns)[::-1])[::-1]
        left = np.where(cells, np.maximum(left, first), 0)
        right = np.where(cells, np.minimum(right, last), count)
        wide = right - left
        areas = np.where((deep >= least) & (wide >= least), deep * wide, 0)
        k = int(areas.argmax())
        if areas[k] > largest:
            largest, best = int(areas[k]), (slice(row + 1 - int(deep[k]), row + 1), slice(int(left[k]), int(right[k])))
    return best

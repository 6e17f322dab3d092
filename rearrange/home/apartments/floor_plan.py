"""Rooms, walls and doorways of a flat, in a canonical orientation that is then mirrored and turned."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from rearrange.home.apartments.parts import Part, Rgb, box
from rearrange.home.geometry import Rectangle

WALL_HEIGHT_M = 2.4
WALL_HALF_M = 0.05
DOORWAY_CLEAR_M = 0.75
"""Floor kept free on both sides of a doorway."""

COMPASS: dict[str, tuple[float, float]] = {"east": (1.0, 0.0), "north": (0.0, 1.0), "west": (-1.0, 0.0),
                                           "south": (0.0, -1.0)}


@dataclass(frozen=True)
class Room:
    """A rectangle of floor between the inner faces of its walls (or of an open area)."""

    name: str
    low_x: float
    low_y: float
    high_x: float
    high_y: float

    @property
    def center(self) -> tuple[float, float]:
        return (self.low_x + self.high_x) / 2, (self.low_y + self.high_y) / 2


@dataclass
class FloorPlan:
    """A flat without furniture. Built with `room`, `wall_x` and `wall_y`, then `turned` once."""

    size_m: tuple[float, float]
    rooms: dict[str, Room] = field(default_factory=dict)
    walls: list[tuple[float, float, float, float]] = field(default_factory=list)
    """Low x, low y, high x, high y of each piece of wall."""
    doorways: list[tuple[float, float, float, float]] = field(default_factory=list)
    """Floor to keep free at each doorway, same form."""
    compass: dict[str, tuple[float, float]] = field(default_factory=lambda: dict(COMPASS))
    """World direction of each side that the plan calls by name."""

    def room(self, name: str, low_x: float, low_y: float, high_x: float, high_y: float) -> None:
        self.rooms[name] = Room(name, low_x, low_y, high_x, high_y)

    def wall_x(self, y: float, start: float, end: float, doors: tuple[tuple[float, float], ...] = ()) -> None:
        """A wall along x at height y of the plan, with openings (centre, width)."""
        for low, high in _solid_spans(start, end, doors):
            self.walls.append((low, y - WALL_HALF_M, high, y + WALL_HALF_M))
        for center, width in doors:
            self.doorways.append((center - width / 2, y - DOORWAY_CLEAR_M, center + width / 2, y + DOORWAY_CLEAR_M))

    def wall_y(self, x: float, start: float, end: float, doors: tuple[tuple[float, float], ...] = ()) -> None:
        """A wall along y at x, with openings (centre, width)."""
        for low, high in _solid_spans(start, end, doors):
            self.walls.append((x - WALL_HALF_M, low, x + WALL_HALF_M, high))
        for center, width in doors:
            self.doorways.append((x - DOORWAY_CLEAR_M, center - width / 2, x + DOORWAY_CLEAR_M, center + width / 2))

    def outer_walls(self) -> list[tuple[float, float, float, float]]:
        x, y, t = *self.size_m, 2 * WALL_HALF_M
        return [(-t, -t, x + t, 0.0), (-t, y, x + t, y + t), (-t, 0.0, 0.0, y), (x, 0.0, x + t, y)]

    def turned(self, mirror_x: bool, mirror_y: bool, swap: bool) -> FloorPlan:
        """The same flat seen in a mirror along x, along y, and/or with x and y exchanged."""
        size_x, size_y = self.size_m

        def turn(rectangle: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
            low_x, low_y, high_x, high_y = rectangle
            if mirror_x:
                low_x, high_x = size_x - high_x, size_x - low_x
            if mirror_y:
                low_y, high_y = size_y - high_y, size_y - low_y
            return (low_y, low_x, high_y, high_x) if swap else (low_x, low_y, high_x, high_y)

        def turn_direction(direction: tuple[float, float]) -> tuple[float, float]:
            x = -direction[0] if mirror_x else direction[0]
            y = -direction[1] if mirror_y else direction[1]
            return (y, x) if swap else (x, y)

        rooms = {r.name: Room(r.name, *turn((r.low_x, r.low_y, r.high_x, r.high_y))) for r in self.rooms.values()}
        return FloorPlan(size_m=(size_y, size_x) if swap else self.size_m, rooms=rooms,
                         walls=[turn(w) for w in self.walls], doorways=[turn(d) for d in self.doorways],
                         compass={name: turn_direction(d) for name, d in self.compass.items()})

    def scaled(self, by_x: float, by_y: float) -> FloorPlan:
        """The same flat with other lengths along x and y."""
        def scale(flat: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
            return flat[0] * by_x, flat[1] * by_y, flat[2] * by_x, flat[3] * by_y

        rooms = {r.name: Room(r.name, *scale((r.low_x, r.low_y, r.high_x, r.high_y))) for r in self.rooms.values()}
        return FloorPlan((self.size_m[0] * by_x, self.size_m[1] * by_y), rooms, [scale(w) for w in self.walls],
                         [scale(d) for d in self.doorways], self.compass)

    def wall_parts(self, rgb: Rgb) -> list[Part]:
        """All walls as solid boxes."""
        flat = self.outer_walls() + self.walls
        return [box((w[0], w[1], 0.0), (w[2], w[3], WALL_HEIGHT_M), rgb, name=f"wall_{k}") for k, w in enumerate(flat)]

    def wall_side(self, room: Room, side: str) -> tuple[float, float, float, float, float]:
        """The wall of `room` that the plan calls `side`: a point on it, its ends along it, and the yaw into the room.

        Returns (fixed coordinate, low, high, axis, yaw): axis 0 when the wall runs along x, 1 when along y.
        """
        direction = self.compass[side]
        yaw = math.atan2(-direction[1], -direction[0])
        if abs(direction[0]) > 0.5:
            return (room.high_x if direction[0] > 0 else room.low_x), room.low_y, room.high_y, 1.0, yaw
        return (room.high_y if direction[1] > 0 else room.low_y), room.low_x, room.high_x, 0.0, yaw


def as_rectangle(flat: tuple[float, float, float, float]) -> Rectangle:
    """(low x, low y, high x, high y) as a turned rectangle of yaw 0."""
    return (flat[0] + flat[2]) / 2, (flat[1] + flat[3]) / 2, (flat[2] - flat[0]) / 2, (flat[3] - flat[1]) / 2, 0.0


def _solid_spans(start: float, end: float, doors: tuple[tuple[float, float], ...]) -> list[tuple[float, float]]:
    """What is left of [start, end] when the doors are cut out."""
    spans, at = [], start
    for center, width in sorted(doors):
        spans.append((at, center - width / 2))
        at = center + width / 2
    spans.append((at, end))
    return [(low, high) for low, high in spans if high - low > 0.02]

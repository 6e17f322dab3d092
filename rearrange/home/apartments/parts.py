"""What a home is made of, before it becomes a simulator's model: primitive parts, moving bodies, receptacles.

Furniture is described in its own frame: origin on the floor under the middle of its footprint, x out of its front,
y to its left, z up. `Piece.at(pose)` puts it into the world.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from rearrange.home.geometry import PlanePose, Rectangle, compose, from_frame, rotate, wrap_angle

Rgb = tuple[float, float, float]
LocalRectangle = tuple[float, float, float, float]
"""Low x, low y, high x, high y in the frame of a piece."""


@dataclass(frozen=True, slots=True)
class Part:
    """One primitive of a piece of furniture or of the building."""

    shape: str
    """"box", "cylinder" (axis z) or "capsule" (axis by `axis`)."""
    center_m: tuple[float, float, float]
    half_size_m: tuple[float, ...]
    """Box: half x, y, z. Cylinder and capsule: radius, half length."""
    rgb: Rgb
    yaw_rad: float = 0.0
    axis: str = "z"
    """Axis of a capsule in its own frame: "y" or "z"."""
    name: str = ""
    solid: bool = True
    """False for decoration (rugs, windows) that nothing touches."""

    def at(self, pose: PlanePose, height_m: float = 0.0) -> Part:
        """This part, given in the frame of `pose` at a height, in the world."""
        x, y = from_frame(self.center_m[0], self.center_m[1], pose)
        return replace(self, center_m=(x, y, self.center_m[2] + height_m), yaw_rad=self.yaw_rad + pose[2])

    @property
    def half_extent_m(self) -> tuple[float, float, float]:
        """Half size of its box, in its own turned frame."""
        if self.shape == "box":
            return self.half_size_m
        radius, half_length = self.half_size_m
        if self.shape == "cylinder":
            return radius, radius, half_length
        if self.axis == "y":
            return radius, half_length + radius, radius
        return radius, radius, half_length + radius

    @property
    def bottom_m(self) -> float:
        return self.center_m[2] - self.half_extent_m[2]

    @property
    def top_m(self) -> float:
        return self.center_m[2] + self.half_extent_m[2]

    @property
    def rectangle(self) -> Rectangle:
        """Its footprint on the floor."""
        half = self.half_extent_m
        return self.center_m[0], self.center_m[1], half[0], half[1], self.yaw_rad


@dataclass(frozen=True, slots=True)
class Body:
    """A drawer or a door: parts that move together along or about one joint."""

    name: str
    """Also the name of its joint; its handle is the part called "<name>_handle"."""
    joint: str
    """"slide" (along its own x) or "hinge" (about the vertical through its origin)."""
    hinge_sign: float
    """+1 when opening turns the hinge counterclockwise seen from above, else -1. Unused for slides."""
    range_m_or_rad: tuple[float, float]
    position_m: tuple[float, float, float]
    yaw_rad: float
    parts: tuple[Part, ...]
    """In the frame of the body, closed."""
    friction_n_or_nm: float | None = None
    """Dry friction of its joint; None: 2 N of a slide, 0.6 N m of a hinge."""
    density_kg_m3: float = 150.0

    def at(self, pose: PlanePose) -> Body:
        """This body, given in the frame of `pose`, in the world."""
        x, y, yaw = compose(pose, (self.position_m[0], self.position_m[1], self.yaw_rad))
        return replace(self, position_m=(x, y, self.position_m[2]), yaw_rad=yaw)

    def pose(self, opening: float = 0.0) -> PlanePose:
        """Plane pose of its frame when its joint stands at `opening` (metres or radians)."""
        if self.joint == "hinge":
            return self.position_m[0], self.position_m[1], self.yaw_rad + self.hinge_sign * opening
        x, y = from_frame(opening, 0.0, (self.position_m[0], self.position_m[1], self.yaw_rad))
        return x, y, self.yaw_rad

    def parts_at(self, opening: float = 0.0) -> tuple[Part, ...]:
        """Its parts in the world when its joint stands at `opening`."""
        pose, height_m = self.pose(opening), self.position_m[2]
        return tuple(part.at(pose, height_m) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Receptacle:
    """A rectangle on which things can stand."""

    name: str
    kind: str
    """table, coffee_table, counter, sink, chair, sofa, tv_stand, shelf, fridge or drawer."""
    center_m: tuple[float, float, float]
    """Middle of the supporting surface: in the world, or in the frame of `parent`."""
    half_extents_m: tuple[float, float]
    yaw_rad: float = 0.0
    clearance_m: float = math.inf
    """Free height above the surface (closed drawers: with the drawer shut)."""
    parent: str | None = None
    """Name of the moving body it belongs to; None when it stands still."""
    sides: tuple[tuple[float, float], ...] = ()
    """Outward unit normals (world, or the frame of `parent`) from which a robot can reach it."""
    closed: bool = False
    """True when a door or drawer hides it until opened."""
    link: str | None = None
    """The joint that opens it ("drawer_2", "fridge_door"), if any."""

    def at(self, pose: PlanePose) -> Receptacle:
        """This receptacle, given in the frame of `pose`, in the world; unchanged when it rides on a moving body."""
        if self.parent is not None:
            return self
        x, y = from_frame(self.center_m[0], self.center_m[1], pose)
        sides = tuple(_clean(rotate(*side, pose[2])) for side in self.sides)
        return replace(self, center_m=(x, y, self.center_m[2]), yaw_rad=wrap_angle(self.yaw_rad + pose[2]), sides=sides)

    def half_along_m(self, side: tuple[float, float]) -> float:
        """Distance from the middle to the edge that faces `side`."""
        c, s = math.cos(self.yaw_rad), math.sin(self.yaw_rad)
        along = abs(side[0] * c + side[1] * s), abs(side[1] * c - side[0] * s)
        return self.half_extents_m[0] * along[0] + self.half_extents_m[1] * along[1]

    def half_across_m(self, side: tuple[float, float]) -> float:
        """Half the width of the edge that faces `side`."""
        return self.half_along_m((-side[1], side[0]))


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of furniture in its own frame."""

    kind: str
    half_depth_m: float
    half_width_m: float
    """Half footprint along x and y."""
    parts: tuple[Part, ...]
    receptacles: tuple[Receptacle, ...] = ()
    bodies: tuple[Body, ...] = ()
    clear: tuple[LocalRectangle, ...] = ()
    """Floor that other furniture must leave free: swings of doors, slides of drawers, room to stand."""

    def footprint(self, pose: PlanePose) -> Rectangle:
        return pose[0], pose[1], self.half_depth_m, self.half_width_m, pose[2]

    def clear_zones(self, pose: PlanePose) -> list[Rectangle]:
        zones = []
        for low_x, low_y, high_x, high_y in self.clear:
            x, y = from_frame((low_x + high_x) / 2, (low_y + high_y) / 2, pose)
            zones.append((x, y, (high_x - low_x) / 2, (high_y - low_y) / 2, pose[2]))
        return zones


@dataclass(frozen=True, slots=True)
class Furniture:
    """A piece of furniture that stands in a home."""

    kind: str
    footprint: Rectangle
    parts: range
    """Which parts of the home are its own."""
    bodies: range
    """Which drawers and doors of the home are its own."""


def box(low: tuple[float, float, float], high: tuple[float, float, float], rgb: Rgb, name: str = "",
        solid: bool = True) -> Part:
    """A box from its low to its high corner."""
    center = ((low[0] + high[0]) / 2, (low[1] + high[1]) / 2, (low[2] + high[2]) / 2)
    half = ((high[0] - low[0]) / 2, (high[1] - low[1]) / 2, (high[2] - low[2]) / 2)
    return Part("box", center, half, rgb, name=name, solid=solid)


def _clean(vector: tuple[float, float]) -> tuple[float, float]:
    """Rounds away the 1e-17 that turning by quarter circles leaves."""
    return round(vector[0], 12) + 0.0, round(vector[1], 12) + 0.0

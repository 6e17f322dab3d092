"""Puts furniture into a floor plan, by trying random places until nothing overlaps."""

from __future__ import annotations

import math

import numpy as np

from rearrange.home.apartments import furniture
from rearrange.home.apartments.catalogue import Catalogue
from rearrange.home.apartments.floor_plan import FloorPlan, Room, as_rectangle
from rearrange.home.apartments.palettes import Palette
from rearrange.home.apartments.parts import Body, Furniture, Part, Piece, Receptacle, box
from rearrange.home.geometry import PlanePose, Rectangle, compose, from_frame, rectangles_overlap

WALL_GAP_M = 0.02
NEIGHBOUR_GAP_M = 0.05
TRIES = 25


class DoesNotFit(Exception):
    """A piece that the home needs found no place; the whole flat is drawn again."""


class Furnishing:
    """A flat being furnished: what stands where, and which floor has to stay free."""

    def __init__(self, plan: FloorPlan, palette: Palette, rng: np.random.Generator, catalogue: Catalogue):
        self.plan, self.palette, self.rng, self.catalogue = plan, palette, rng, catalogue
        self.walls: list[Rectangle] = [as_rectangle(w) for w in plan.outer_walls() + plan.walls]
        self.obstacles: list[Rectangle] = list(self.walls)
        self.zones: list[Rectangle] = [as_rectangle(d) for d in plan.doorways]
        self.parts: list[Part] = plan.wall_parts(palette.wall)
        self.bodies: list[Body] = []
        self.receptacles: list[Receptacle] = []
        self.poses: dict[str, PlanePose] = {}
        self.furniture: list[Furniture] = []

    def room(self, name: str) -> Room:
        return self.plan.rooms[name]

    def fits(self, piece: Piece, pose: PlanePose) -> bool:
        """Whether the piece overlaps nothing and leaves all floor free that has to be."""
        footprint = piece.footprint(pose)
        if any(rectangles_overlap(footprint, other) for other in self.obstacles):
            return False
        if any(rectangles_overlap(footprint, zone) for zone in self.zones):
            return False
        zones = piece.clear_zones(pose)
        return not any(rectangles_overlap(zone, other) for zone in zones for other in self.obstacles)

    def put(self, piece: Piece, pose: PlanePose) -> bool:
        """Places the piece if it fits."""
        if not self.fits(piece, pose):
            return False
        self.obstacles.append(piece.footprint(pose))
        self.zones += piece.clear_zones(pose)
        parts, bodies = (len(self.parts), len(piece.parts)), (len(self.bodies), len(piece.bodies))
        self.furniture.append(
            Furniture(piece.kind, piece.footprint(pose), *(range(k, k + n) for k, n in (parts, bodies))))
        self.parts += [part.at(pose) for part in piece.parts]
        self.bodies += [body.at(pose) for body in piece.bodies]
        self.receptacles += [receptacle.at(pose) for receptacle in piece.receptacles]
        self.poses[piece.kind] = pose
        return True

    def along_wall(self, piece: Piece, room: str, side: str, middle: float) -> PlanePose:
        """Pose of a piece with its back to a wall and its middle at a coordinate along that wall."""
        fixed, _, _, axis, yaw = self.plan.wall_side(self.room(room), side)
        depth = piece.half_depth_m + WALL_GAP_M
        if axis == 1.0:
            return fixed + math.cos(yaw) * depth, middle, yaw
        return middle, fixed + math.sin(yaw) * depth, yaw

    def backed(self, piece: Piece, pose: PlanePose) -> bool:
        """Whether there is a wall behind the whole piece; rooms of an open plan have sides without one."""
        points = [from_frame(-piece.half_depth_m - 0.06, share * piece.half_width_m, pose)
                  for share in (-0.9, 0.0, 0.9)]
        return all(any(abs(x - w[0]) < w[2] and abs(y - w[1]) < w[3] for w in self.walls) for x, y in points)

    def against(self, piece: Piece, room: str, sides: str | tuple[str, ...], corner: float = 0.3) -> PlanePose:
        """Places the piece with its back to one of the walls; with probability `corner` in a corner of the room."""
        sides = (sides,) if isinstance(sides, str) else sides
        for _ in range(TRIES):
            side = sides[self.rng.integers(len(sides))]
            _, low, high, _, _ = self.plan.wall_side(self.room(room), side)
            low, high = low + piece.half_width_m + WALL_GAP_M, high - piece.half_width_m - WALL_GAP_M
            if low > high:
                continue
            middle = self.rng.uniform(low, high)
            if self.rng.random() < corner:
                middle = low if self.rng.random() < 0.5 else high
            pose = self.along_wall(piece, room, side, middle)
            if self.backed(piece, pose) and self.put(piece, pose):
                return pose
        raise DoesNotFit(f"{piece.kind} in {room}")

    def optional(self, piece: Piece, room: str, sides: tuple[str, ...], probability: float = 1.0,
                 corner: float = 0.5) -> bool:
        """Like `against`, but skips the piece if it does not fit."""
        if self.rng.random() > probability:
            return False
        try:
            self.against(piece, room, sides, corner)
        except DoesNotFit:
            return False
        return True

    def rug(self, pose: PlanePose, half_x: float, half_y: float) -> None:
        """A thin rug around a table of that half size, as wide as the walls allow."""
        for margin in (0.35, 0.25, 0.15, 0.05):
            rectangle = (pose[0], pose[1], half_x + margin, half_y + margin, pose[2])
            if not any(rectangles_overlap(rectangle, wall) for wall in self.walls):
                low, high = (-half_x - margin, -half_y - margin, 0.0), (half_x + margin, half_y + margin, 0.004)
                self.parts.append(box(low, high, self.palette.accent, "rug", solid=False).at(pose))
                return


def decorate(home: Furnishing, windows: int = 4) -> None:
    """The entrance door and windows, flat on outer walls where no furniture hides them. Nothing touches them."""
    rng, palette = home.rng, home.palette
    tall = [(part.rectangle, part.top_m) for part in home.parts if part.solid]
    sides = _outer_sides(home.plan.size_m)
    for k in range(windows + 1):
        door = k == 0
        half = 0.46 if door else rng.uniform(0.45, 0.8)
        low, high = (0.0, 2.03) if door else (1.0, 2.0)
        for _ in range(6):
            side = sides[rng.integers(4)] if door else sides[(k + rng.integers(2)) % 4]
            fixed, length, yaw = side
            pose = compose((*fixed, yaw), (0.0, rng.uniform(0.2 + half, length - half - 0.2), 0.0))
            ahead = (*from_frame(0.3, 0.0, pose), 0.29, half + 0.08, yaw)
            if any(top > low and rectangles_overlap(ahead, other) for other, top in tall):
                continue
            tall.append((ahead, 3.0))
            frame = box((0.0, -half - 0.05, low), (0.006, half + 0.05, high + 0.05), palette.white, solid=False)
            pane = box((0.0, -half, low + (0.0 if door else 0.05)), (0.010, half, high),
                       palette.wood_dark if door else palette.glass, "entrance" if door else f"window_{k}", solid=False)
            home.parts += [frame.at(pose), pane.at(pose)]
            break


def _outer_sides(size_m: tuple[float, float]) -> tuple[tuple[tuple[float, float], float, float], ...]:
    """The inner faces of the outer walls: a corner, the length to its left, and the yaw into the home."""
    x, y = size_m
    return (((0.0, 0.0), y, 0.0), ((x, 0.0), x, math.pi / 2), ((x, y), y, math.pi), ((0.0, y), x, -math.pi / 2))


def kitchen_row(home: Furnishing, room: str, sides: tuple[str, ...], columns: tuple[str, ...],
                wall_cabinet: bool = True) -> None:
    """Fridge and counter side by side along one wall."""
    rng = home.rng
    counter = home.catalogue.counter(rng, home.palette, columns[rng.integers(len(columns))], wall_cabinet)
    for _ in range(TRIES):
        fridge = home.catalogue.fridge(rng, home.palette, hinge_left=bool(rng.random() < 0.5))
        side = sides[rng.integers(len(sides))]
        _, low, high, _, _ = home.plan.wall_side(home.room(room), side)
        length = 2 * (fridge.half_width_m + counter.half_width_m) + NEIGHBOUR_GAP_M
        slack = high - low - length - 2 * WALL_GAP_M
        if slack < 0:
            continue
        start = low + WALL_GAP_M + (slack * rng.random() if rng.random() < 0.6 else slack * rng.integers(2))
        order = (fridge, counter) if rng.random() < 0.5 else (counter, fridge)
        first = start + order[0].half_width_m
        second = start + length - order[1].half_width_m
        poses = [home.along_wall(piece, room, side, at) for piece, at in zip(order, (first, second), strict=True)]
        if all(home.fits(piece, pose) for piece, pose in zip(order, poses, strict=True)):
            if all(home.put(piece, pose) for piece, pose in zip(order, poses, strict=True)):
                return
            break
    raise DoesNotFit("kitchen row")


def kitchen_corner(home: Furnishing, room: str, counter_sides: tuple[str, ...], fridge_sides: tuple[str, ...],
                   columns: tuple[str, ...], wall_cabinet: bool = True) -> None:
    """Counter and fridge at different walls of one room."""
    rng = home.rng
    counter = home.catalogue.counter(rng, home.palette, columns[rng.integers(len(columns))], wall_cabinet)
    home.against(counter, room, counter_sides, corner=0.3)
    for hinge_left in rng.permutation(2):
        if home.optional(home.catalogue.fridge(rng, home.palette, bool(hinge_left)), room, fridge_sides, corner=0.4):
            return
    raise DoesNotFit("fridge")


def kitchen(home: Furnishing, room: str, columns: tuple[str, ...], sides: dict[str, tuple[str, ...]]) -> None:
    """Fridge and counter side by side, or, as often, each by itself; `sides`: for "row", "counter" and "fridge"."""
    if home.rng.random() < 0.5:
        kitchen_row(home, room, sides["row"], columns)
    else:
        kitchen_corner(home, room, sides["counter"], sides["fridge"], columns)


def dining_group(home: Furnishing, room: str, table: Piece, chairs: tuple[int, int], spread_m: float = 0.6) -> None:
    """The dining table near the middle of a room, with chairs at its long sides.

    Args:
        chairs: Drawn from this half-open range.
        spread_m: How far the table may be from the middle, along x and along y.
    """
    rng, area = home.rng, home.room(room)
    most_chairs = int(rng.integers(*chairs))
    for _ in range(TRIES):
        yaw = math.pi / 2 * rng.integers(2)
        x, y = area.center
        pose = (x + rng.uniform(-spread_m, spread_m), y + rng.uniform(-spread_m, spread_m), yaw)
        if home.put(table, pose):
            break
    else:
        raise DoesNotFit("dining table")
    placed = 0
    half_x, half_y = table.half_depth_m, table.half_width_m
    slots = [(side, offset) for side in (1, -1) for offset in ((-0.5, 0.5) if half_y > 0.6 else (0.0,))]
    if half_y < 1.05 * half_x:
        slots += [(2, 0.0), (-2, 0.0)]
    for k in rng.permutation(len(slots)):
        side, offset = slots[k]
        seat = home.catalogue.chair(rng, home.palette, f"chair_{placed}")
        away = seat.half_depth_m + rng.uniform(0.04, 0.14)
        if abs(side) == 1:
            local = (side * (half_x + away), offset * half_y, (math.pi if side > 0 else 0.0) + rng.uniform(-0.15, 0.15))
        else:
            turn = -math.pi / 2 if side > 0 else math.pi / 2
            local = (0.0, side / 2 * (half_y + away), turn + rng.uniform(-0.15, 0.15))
        placed += home.put(seat, compose(pose, local))
        if placed == most_chairs:
            break
    if placed < 2:
        raise DoesNotFit("chairs")


def lounge(home: Furnishing, room: str, sofa_sides: tuple[str, ...], tv_sides: tuple[str, ...], coffee: Piece,
           gap_m: tuple[float, float] = (0.68, 0.95)) -> None:
    """Sofa at one wall, the coffee table before it with room to pass, the television at another wall."""
    rng = home.rng
    couch = home.catalogue.sofa(rng, home.palette)
    pose = home.against(couch, room, sofa_sides, corner=0.2)
    for _ in range(TRIES):
        ahead = couch.half_depth_m + coffee.half_depth_m + rng.uniform(*gap_m)
        spot = (*from_frame(ahead, rng.uniform(-0.35, 0.35), pose), pose[2] + rng.uniform(-0.08, 0.08))
        if home.put(coffee, spot):
            break
    else:
        raise DoesNotFit("coffee table")
    home.rug(spot, coffee.half_depth_m, coffee.half_width_m)
    home.against(home.catalogue.tv_stand(rng, home.palette), room, tv_sides, corner=0.1)


def bedroom(home: Furnishing, room: str, bed_sides: tuple[str, ...], other_sides: tuple[str, ...]) -> None:
    """A bed, and what else finds a place beside it."""
    rng = home.rng
    resting = furniture.bed(rng, home.palette)
    pose = home.against(resting, room, bed_sides, corner=0.2)
    if rng.random() < 0.7:
        stand = home.catalogue.nightstand(rng, home.palette)
        beside = (resting.half_width_m + stand.half_width_m + NEIGHBOUR_GAP_M) * (1 if rng.random() < 0.5 else -1)
        home.put(stand, compose(pose, (stand.half_depth_m - resting.half_depth_m, beside, 0.0)))
    home.optional(furniture.wardrobe(rng, home.palette), room, other_sides, 0.8)

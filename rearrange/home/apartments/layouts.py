"""Apartments: a layout says where everything in a home stands; the same (split, index) gives the same home everywhere.

Whole families of flats are held out, as HAB holds out macro layouts: 0-2 for training, 3 for validation, 4 for testing,
and 5 for a last look, when nothing is chosen any more. A layout is drawn at random until it passes every check: nothing
overlaps, doors and drawers can move, a robot gets into all rooms and can stand before every receptacle.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rearrange.home.apartments import families as layout_families
from rearrange.home.apartments.catalogue import CATALOGUES
from rearrange.home.apartments.floor_grid import CELL_M, FloorGrid, blocked_cells
from rearrange.home.apartments.floor_plan import WALL_HEIGHT_M, Room
from rearrange.home.apartments.furnishing import DoesNotFit, Furnishing, decorate
from rearrange.home.apartments.parts import Body, Furniture, Part, Receptacle, Rgb
from rearrange.home.apartments.shell import with_shell
from rearrange.home.apartments.standing import reachable_sides
from rearrange.home.errors import UserError
from rearrange.home.geometry import PlanePose

__all__ = ["SPLIT_FAMILIES", "Layout", "Receptacle", "make_layout"]

SPLIT_FAMILIES: dict[str, tuple[int, ...]] = {"train": (0, 1, 2), "val": (3,), "test": (4,), "unseen": (5,)}
WIDE = "wide/"
"""Before the name of a split: its homes have furniture as varied as the world's."""
_STREAM, _SHELL_STREAM = {"standard": (), "wide": (1,)}, 2  # of random numbers
MAX_DRAWS = 500
MIN_FREE_ROOM_M2 = 0.8
"""Floor on which a robot can stand that every room must offer."""


@dataclass(frozen=True)
class Layout:
    """One home: its building, furniture and receptacles. The floor spans [0, size x] times [0, size y]."""

    name: str
    """"<split>/<index>"."""
    family: int
    size_m: tuple[float, float]
    parts: tuple[Part, ...]
    """Everything that stands still, in the world."""
    bodies: tuple[Body, ...]
    """Drawers and the fridge door."""
    receptacles: tuple[Receptacle, ...]
    rooms: tuple[Room, ...]
    counter_pose: PlanePose
    """Middle of the kitchen counter's footprint; its x axis points into the room."""
    fridge_pose: PlanePose
    floor_rgb: Rgb
    furniture: tuple[Furniture, ...] = ()
    """What of `parts` and `bodies` belongs together, and what it is; not known of an external scene."""
    ceiling_m: float | None = WALL_HEIGHT_M
    """Height of the ceiling; None where there is none. Of an external scene it is not known, and this is the default.
    """
    ground_m: float = 0.0
    """How far the floor goes on beyond `size_m`; 0 where walls end it."""
    blocked_floor: np.ndarray | None = field(default=None, compare=False, repr=False)
    """Of an external scene, which has no `parts`: cells in which no robot can stand, shape (cells in x, cells in y)."""

    def __hash__(self) -> int:
        """Of its name alone: of all that it has it takes 0.03 ms, and what is kept for a layout is asked for at
        every step.
        """
        return hash(self.name)

    def receptacle(self, name: str) -> Receptacle:
        """The receptacle of that name."""
        for receptacle in self.receptacles:
            if receptacle.name == name:
                return receptacle
        names = ", ".join(r.name for r in self.receptacles)
        raise UserError(f"home {self.name} has no receptacle called '{name}'; it has: {names}")


def make_layout(split: str, index: int) -> Layout:
    """The layout number `index` (0, 1, 2, ...) of a split, such as "val", or "wide/val" with other furniture."""
    furniture, base = ("wide", split.removeprefix(WIDE)) if split.startswith(WIDE) else ("standard", split)
    if base not in SPLIT_FAMILIES:
        raise UserError(f"no split called '{split}'; choose one of: {', '.join(SPLIT_FAMILIES)}")
    if index < 0:
        raise UserError(f"layout index {index} is negative; layouts are numbered from 0")
    families = SPLIT_FAMILIES[base]
    family, seed = families[index % len(families)], (list(SPLIT_FAMILIES).index(base), index)
    rng = np.random.default_rng((*seed, *_STREAM[furniture]))
    for _ in range(MAX_DRAWS):
        try:
            layout = _checked(layout_families.draw(family, rng, CATALOGUES[furniture]), f"{split}/{index}", family)
        except DoesNotFit:
            continue
        return with_shell(layout, np.random.default_rng((*seed, _SHELL_STREAM))) if furniture == "wide" else layout
    raise RuntimeError(f"layout {split}/{index}: {MAX_DRAWS} draws of family {family} failed the checks")


def _checked(home: Furnishing, name: str, family: int) -> Layout:
    """The layout of a furnished flat; raises `DoesNotFit` when a robot could not use it."""
    plan = home.plan
    grid = FloorGrid(blocked_cells(plan.size_m, tuple(home.parts), tuple(home.bodies)))
    for room in plan.rooms.values():
        if not _connected(grid, room):
            raise DoesNotFit(f"{room.name} is cut off")
    receptacles = reachable_sides(home.receptacles, home.bodies, home.parts, grid.reachable)
    for receptacle in receptacles:
        if not receptacle.sides:
            raise DoesNotFit(f"nowhere to stand before {receptacle.name}")
    decorate(home)
    return Layout(name=name, family=family, size_m=plan.size_m, parts=tuple(home.parts), bodies=tuple(home.bodies),
                  receptacles=tuple(receptacles), rooms=tuple(plan.rooms.values()), counter_pose=home.poses["counter"],
                  fridge_pose=home.poses["fridge"], floor_rgb=home.palette.floor, furniture=tuple(home.furniture))


def _connected(grid: FloorGrid, room: Room) -> bool:
    """Whether a robot gets into the room and most of the room's free floor belongs to the rest of the home."""
    area = (slice(int(room.low_x / CELL_M), int(room.high_x / CELL_M)),
            slice(int(room.low_y / CELL_M), int(room.high_y / CELL_M)))
    free = np.count_nonzero(~grid.blocked[area])
    reachable = np.count_nonzero(grid.reachable[area])
    return reachable * CELL_M**2 > MIN_FREE_ROOM_M2 and reachable > 0.9 * free

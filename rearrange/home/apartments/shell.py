"""What encloses a home. Most homes have walls and a ceiling. Many scans have no ceiling, and many furnished rooms in a
file have neither.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rearrange.home.apartments.parts import Furniture, Part

if TYPE_CHECKING:
    from rearrange.home.apartments.layouts import Layout

CLOSED, WALLED = 0.4, 0.75  # shares of wide homes: with a ceiling; with walls, a ceiling or none
CLOSED_M, OPEN_M = (2.3, 2.8), (1.35, 2.8)  # heights of their walls; the lowest end above the robot's eyes
GROUND_M = 12.0
"""How far the floor goes on around a home without walls: farther than the 10 m that a robot in the home sees."""
_WINDOW_M = 2.1  # what windows and the front door need of a wall
_ON_WALLS = ("window", "entrance")


def with_shell(layout: Layout, rng: np.random.Generator) -> Layout:
    """The same home with other walls: with a ceiling at their top, open above, or none at all.

    A robot's depth image shows its farthest value where nothing is. Policies that had seen ceilings and walls
    everywhere stood still where these were missing (docs/findings/homes_without_a_ceiling.md).
    """
    share = rng.random()
    if share < WALLED:
        height_m = float(rng.uniform(*(CLOSED_M if share < CLOSED else OPEN_M)))
        walls = [_as_high(part, height_m) for part in layout.parts if _is_wall(part)]
        ceiling_m = height_m if share < CLOSED else None
    else:
        height_m, walls, ceiling_m = 0.0, [], None
    first = sum(map(_is_wall, layout.parts))  # of a layout's parts the walls come first, what hangs on them last
    rest = layout.parts[first:]
    if height_m < _WINDOW_M:
        rest = rest[:_end_of_furniture(layout) - first]
    furniture = tuple(_moved(piece, len(walls) - first) for piece in layout.furniture)
    return replace(layout, parts=(*walls, *rest), furniture=furniture, ceiling_m=ceiling_m,
                   ground_m=0.0 if walls else GROUND_M)


def _is_wall(part: Part) -> bool:
    return part.name.removeprefix("wall_").isdigit()


def _end_of_furniture(layout: Layout) -> int:
    """Number of the first part that hangs on a wall; each has a frame without a name before it."""
    return next((k - 1 for k, part in enumerate(layout.parts) if part.name.startswith(_ON_WALLS)), len(layout.parts))


def _as_high(wall: Part, height_m: float) -> Part:
    (x, y, _), (a, b, _) = wall.center_m, wall.half_size_m
    return replace(wall, center_m=(x, y, height_m / 2), half_size_m=(a, b, height_m / 2))


def _moved(piece: Furniture, by: int) -> Furniture:
    return replace(piece, parts=range(piece.parts.start + by, piece.parts.stop + by))

"""The floor of a scene: how high it is, where its corner is, and where a robot can stand on it."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from rearrange.home.apartments.floor_grid import CELL_M, HEAD_HEIGHT_M, ROBOT_RADIUS_M
from rearrange.home.errors import UserError
from rearrange.home.simulation.scenes.convex_parts import Solid
from rearrange.home.simulation.scenes.outlines import cells_around, cross, mark, outline_between
from rearrange.home.simulation.scenes.scene_parts import THIN_M, Pieces

MOST_CELLS = 4_000_000  # 100 m by 100 m
ROOM_M = 1.5  # to drive around everything, where the floor has no end of its own
_SAME_M = 0.03  # of heights that belong to one floor
_SHARE = 0.2  # of the largest level: what is smaller is no floor, but the top of a wall


def floor_of(pieces: Pieces, scene: str) -> tuple[float, np.ndarray, np.ndarray]:
    """Height of the floor (m), and the rectangle that it lies in, (2,) low and (2,) high corner.

    It is the lowest of the large levels of the stage, or at height 0 around everything where the stage has none.
    """
    if len(pieces.floor):
        sides = pieces.floor[:, 1:] - pieces.floor[:, :1]
        areas = np.abs(cross(sides[:, 0].T, sides[:, 1].T)) / 2
        heights = pieces.floor[:, :, 2].mean(axis=1)
        levels = np.array([areas[np.abs(heights - height) < _SAME_M].sum() for height in heights])
        height = float(heights[levels > _SHARE * levels.max()].min())
        points = pieces.floor[np.abs(heights - height) < _SAME_M].reshape(-1, 3)
    else:
        height, solids = 0.0, [solid.corners() for solid in (*pieces.solids, *pieces.walls)]
        if not solids:
            raise UserError(f"scene {scene} has nothing on which a robot could stand: neither a stage with a floor nor "
                            "anything else.")
        points = np.concatenate(solids)
        points = np.concatenate([points - ROOM_M, points + ROOM_M])
    low, high = points[:, :2].min(axis=0), points[:, :2].max(axis=0)
    if np.prod((high - low) / CELL_M) > MOST_CELLS:
        size = f"{high[0] - low[0]:.0f} by {high[1] - low[1]:.0f} m"
        raise UserError(f"the floor of scene {scene} is {size}; up to 100 by 100 m are used.")
    return height, low, high


def ground_around(solids: Iterable[Solid], height: float) -> np.ndarray:
    """Two level triangles (2, 3, 3): ground without an end, as far as a robot needs it around what stands on it."""
    corners = [solid.corners()[:, :2] for solid in solids]
    points = np.concatenate(corners or [np.zeros((1, 2))])
    (x0, y0), (x1, y1) = points.min(axis=0) - ROOM_M, points.max(axis=0) + ROOM_M
    a, b, c, d = ((x, y, height) for x, y in ((x0, y0), (x1, y0), (x1, y1), (x0, y1)))
    return np.array([(a, b, c), (a, c, d)])


def blocked_cells(pieces: Pieces, height: float, low: np.ndarray, high: np.ndarray, radius_m: float = ROBOT_RADIUS_M,
                  head_m: float = HEAD_HEIGHT_M, shut: bool = False) -> np.ndarray:
    """Cells (in x, in y) from the low corner in which a robot's middle cannot be: beside the floor, or too near to
    anything that collides below its head.

    Args:
        pieces: Of the scene.
        height, low, high: Of `floor_of`.
        radius_m: Of the robot.
        head_m: How high above the floor the top of its head is.
        shut: Whether what can be opened stands there shut; else it is left out, because it is known where it stands.
    """
    shape = tuple(math.ceil(value / CELL_M + 0.5) for value in high - low)
    free = np.ones(shape, bool) if not len(pieces.floor) else _on_floor(pieces.floor, height, low, shape)
    opened = set() if shut else {(link.handle, link.name) for link in pieces.moving_links()}
    solids = [*pieces.walls, *pieces.solids]
    solids += [solid.moved(part.frame) for part in pieces.parts if (part.handle, part.link) not in opened
               for solid in part.solids]
    for solid in solids:
        outline = outline_between(solid.corners() - (*low, height), THIN_M, head_m)
        if len(outline):
            mark(free, outline, radius_m, CELL_M, False)
    return ~free


def _on_floor(triangles: np.ndarray, height: float, low: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Cells whose middle is over a triangle of the floor."""
    found = np.zeros(shape, bool)
    for corners in triangles[np.abs(triangles[:, :, 2].mean(axis=1) - height) < 2 * _SAME_M]:
        a, b, c = corners[:, :2] - low
        area, (where, x, y) = cross(b - a, c - a), cells_around(np.array([a, b, c]), 1e-6, shape, CELL_M)
        if abs(area) < 1e-9:
            continue
        inside = np.ones(np.broadcast_shapes(x.shape, y.shape), bool)
        for p, q in ((a, b), (b, c), (c, a)):
            inside &= ((q[0] - p[0]) * (y - p[1]) - (q[1] - p[1]) * (x - p[0])) * np.sign(area) >= -1e-6
        found[where] |= inside
    return found

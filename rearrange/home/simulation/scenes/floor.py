"""The floor of a scene: how high it is, where its corner is, and where a robot can stand on it."""

from __future__ import annotations

import math

import numpy as np

from rearrange.home.apartments.floor_grid import CELL_M, HEAD_HEIGHT_M
from rearrange.home.errors import UserError
from rearrange.home.robot.fetch import ROBOT_RADIUS_M
from rearrange.home.simulation.scenes.scene_parts import THIN_M, Pieces

MOST_CELLS = 4_000_000  # 100 m by 100 m
_SAME_M = 0.03  # of heights that belong to one floor
_SHARE = 0.2  # of the largest level: what is smaller is no floor, but the top of a wall


def floor_of(pieces: Pieces, scene: str) -> tuple[float, np.ndarray, np.ndarray]:
    """Height of the floor (m), and the rectangle that it lies in, (2,) low and (2,) high corner.

    It is the lowest of the large levels of the stage, or at height 0 around everything where the stage has none.
    """
    if len(pieces.floor):
        sides = pieces.floor[:, 1:] - pieces.floor[:, :1]
        areas = np.abs(_cross(sides[:, 0].T, sides[:, 1].T)) / 2
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
        points = np.concatenate([points - 1.5, points + 1.5])  # room to drive around it
    low, high = points[:, :2].min(axis=0), points[:, :2].max(axis=0)
    if np.prod((high - low) / CELL_M) > MOST_CELLS:
        size = f"{high[0] - low[0]:.0f} by {high[1] - low[1]:.0f} m"
        raise UserError(f"the floor of scene {scene} is {size}; up to 100 by 100 m are used.")
    return height, low, high


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
        outline = _outline(solid.corners() - (*low, height), head_m)
        if len(outline):
            _block(free, outline, radius_m)
    return ~free


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """z of the product of vectors in the plane, (2, ...)."""
    return a[0] * b[1] - a[1] * b[0]


def _on_floor(triangles: np.ndarray, height: float, low: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Cells whose middle is over a triangle of the floor."""
    found = np.zeros(shape, bool)
    for corners in triangles[np.abs(triangles[:, :, 2].mean(axis=1) - height) < 2 * _SAME_M]:
        a, b, c = corners[:, :2] - low
        area, (where, x, y) = _cross(b - a, c - a), _cells(np.array([a, b, c]), 1e-6, shape)
        if abs(area) < 1e-9:
            continue
        inside = np.ones(np.broadcast_shapes(x.shape, y.shape), bool)
        for p, q in ((a, b), (b, c), (c, a)):
            inside &= ((q[0] - p[0]) * (y - p[1]) - (q[1] - p[1]) * (x - p[0])) * np.sign(area) >= -1e-6
        found[where] |= inside
    return found


def _outline(points: np.ndarray, head_m: float) -> np.ndarray:
    """Outline (n, 2), counterclockwise, of what of a convex body is in a robot's way. points: its corners, z up."""
    low, high = THIN_M, head_m
    z = points[:, 2]
    if z.max() <= low or z.min() >= high:
        return np.empty((0, 2))
    kept = [points[(z >= low) & (z <= high)][:, :2]]
    for level in (low, high):
        under, over = points[z < level], points[z > level]
        if len(under) and len(over):
            t = ((level - under[:, 2])[:, None] / (over[None, :, 2] - under[:, None, 2]))[..., None]
            kept.append((under[:, None, :2] + t * (over[None, :, :2] - under[:, None, :2])).reshape(-1, 2))
    return _around(np.concatenate(kept))


def _around(points: np.ndarray) -> np.ndarray:
    """The convex outline of points in the plane, counterclockwise (monotone chain)."""
    points = np.unique(np.round(points, 4), axis=0)
    if len(points) < 3:
        return points
    chains = []
    for ordered in (points, points[::-1]):
        chain: list[np.ndarray] = []
        for point in ordered:
            while len(chain) > 1 and _cross(chain[-1] - chain[-2], point - chain[-1]) <= 0.0:
                chain.pop()
            chain.append(point)
        chains += chain[:-1]
    return np.array(chains)


def _cells(outline: np.ndarray, margin: float,
           shape: tuple[int, int]) -> tuple[tuple[slice, slice], np.ndarray, np.ndarray]:
    """The cells around an outline, and the coordinates (n, 1) and (1, m) of their middles."""
    first = np.clip(np.floor((outline.min(axis=0) - margin) / CELL_M).astype(int), 0, shape)
    last = np.clip(np.ceil((outline.max(axis=0) + margin) / CELL_M).astype(int) + 1, 0, shape)
    x, y = ((np.arange(a, b) + 0.5) * CELL_M for a, b in zip(first, last))
    return (slice(first[0], last[0]), slice(first[1], last[1])), x[:, None], y[None, :]


def _block(free: np.ndarray, outline: np.ndarray, radius_m: float) -> None:
    """Take away the cells whose middle is nearer to an outline than the radius of the robot, or within it."""
    area, x, y = _cells(outline, radius_m, free.shape)
    inside, nearest = np.ones(np.broadcast_shapes(x.shape, y.shape), bool), np.inf
    for p, q in zip(outline, np.roll(outline, -1, axis=0)):
        side = q - p
        inside &= side[0] * (y - p[1]) - side[1] * (x - p[0]) >= 0.0
        share = np.clip(((x - p[0]) * side[0] + (y - p[1]) * side[1]) / max(side @ side, 1e-12), 0.0, 1.0)
        nearest = np.minimum(nearest, np.hypot(x - p[0] - share * side[0], y - p[1] - share * side[1]))
    inside &= len(outline) > 2
    free[area] &= ~(inside | (nearest < radius_m))

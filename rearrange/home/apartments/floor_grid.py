"""Where a robot can stand in a home, and how far it has to drive: a 5 cm grid of the floor and geodesic distances.

The robot is a disc. A cell is free when a robot centred on it touches nothing lower than its head. The free cells that
are connected form the reachable floor. Distances come from `shortest_ways`. It is compiled here: SciPy and scikit-image
would add 150 MB for a label, a dilation and a search that first wants a sparse matrix.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rearrange.home.apartments.parts import Body, Part
from rearrange.home.apartments.shortest_ways import shortest_distances
from rearrange.home.numba_cache import njit

CELL_M = 0.05
ROBOT_RADIUS_M = 0.29
"""Of the disc for which homes are furnished: it finds a way to every place that counts."""
HEAD_HEIGHT_M = 1.4
"""What hangs higher than this does not block a robot."""


@dataclass(frozen=True)
class DistanceField:
    """Length of the shortest drive (metres) from every free cell to the nearest goal; inf where there is no way."""

    distance_m: np.ndarray
    """Shape (cells in x, cells in y), float32."""

    def at(self, x: float, y: float) -> float:
        """Distance from a world point, interpolated between cell centres; inf when no cell around it is reachable."""
        return interpolate(self.distance_m, x, y, CELL_M)

    def descend(self, x: float, y: float, reach_m: float = 0.4) -> tuple[float, float]:
        """The free cell within `reach_m` that is nearest to the goal: where to steer next. If no such cell is within
        reach, as outside of a home without walls, it is the free cell nearest to the robot.
        """
        return _descend(self.distance_m, x, y, reach_m, CELL_M)


class FloorGrid:
    """Free and reachable floor of one home."""

    def __init__(self, blocked: np.ndarray):
        self.blocked = blocked
        """Shape (cells in x, cells in y), bool: a robot centred here would touch something."""

    @cached_property
    def reachable(self) -> np.ndarray:
        """The largest connected set of free cells; bool, same shape."""
        labels, sizes = label(self.blocked)
        return labels == int(np.argmax(sizes)) if len(sizes) else np.zeros_like(self.blocked)

    @cached_property
    def points_m(self) -> np.ndarray:
        """Centres of all reachable cells, shape (n, 2)."""
        return (np.argwhere(self.reachable) + 0.5) * CELL_M

    @cached_property
    def _cells(self) -> np.ndarray:
        """All reachable cells, numbered row by row."""
        return np.flatnonzero(self.reachable)

    def draw_point(self, rng: np.random.Generator) -> tuple[float, float]:
        """A point anywhere on the reachable floor."""
        i, j = divmod(int(self._cells[rng.integers(len(self._cells))]), self.blocked.shape[1])
        dx, dy = rng.uniform(-0.5, 0.5, 2).tolist()
        return (i + 0.5) * CELL_M + dx * CELL_M, (j + 0.5) * CELL_M + dy * CELL_M

    def is_reachable(self, x: float, y: float) -> bool:
        """Whether a robot can stand at a world point and drive from there to the rest of the home."""
        i, j = int(x // CELL_M), int(y // CELL_M)
        nx, ny = self.blocked.shape
        return 0 <= i < nx and 0 <= j < ny and bool(self.reachable[i, j])

    def nearest(self, x: float, y: float) -> tuple[float, float]:
        """Centre of the reachable cell nearest to a world point."""
        i, j = _nearest(self.reachable, x / CELL_M - 0.5, y / CELL_M - 0.5)
        return (i + 0.5) * CELL_M, (j + 0.5) * CELL_M

    def distances_to(self, *goals_m: tuple[float, float], weight: np.ndarray | None = None) -> DistanceField:
        """Driving distances to the nearest of one or more goals, each the reachable cell nearest to a world point.

        `weight` (cells in x, cells in y): by how much longer the way into a cell counts than it is.
        """
        weight = np.ones(self.blocked.shape, np.float32) if weight is None else weight.astype(np.float32)
        return distance_field(self.blocked, self.nearest_cells(goals_m), weight)

    def nearest_cells(self, points_m: Sequence[tuple[float, float]]) -> np.ndarray:
        """Of each world point the reachable cell nearest to it, shape (n, 2)."""
        return np.array([[int(v // CELL_M) for v in self.nearest(*point)] for point in points_m])


def distance_field(blocked: np.ndarray, goals: np.ndarray, weight: np.ndarray, near: tuple[int, int] = (-1, -1),
                   farther_m: float = math.inf) -> DistanceField:
    """Driving distances to the nearest goal.

    Args:
        goals: Cells, (n, 2).
        weight: How many times the way into a cell counts, float32, 1 or more.
        near: A cell. Cells over which its way would be longer by more than `farther_m` may be left at inf. That is
            faster (A*).
        farther_m: See `near`.
    """
    return DistanceField(shortest_distances(blocked, goals, CELL_M, weight, near, farther_m))


def floor_grid(layout, radius_m: float = ROBOT_RADIUS_M, openings: Mapping[str, float] = {}) -> FloorGrid:
    """The grid of a `Layout` (or of anything with `size_m`, `parts` and `bodies`), its doors and drawers shut but for
    those in `openings` (m or rad, by name of the body).
    """
    blocked = blocked_cells(layout.size_m, layout.parts, layout.bodies, radius_m, openings)
    known = getattr(layout, "blocked_floor", None)
    return FloorGrid(blocked if known is None else blocked | known)


def blocked_cells(size_m: tuple[float, float], parts: tuple[Part, ...], bodies: tuple[Body, ...],
                  radius_m: float = ROBOT_RADIUS_M, openings: Mapping[str, float] = {}, above_m: float = 0.0,
                  below_m: float = HEAD_HEIGHT_M) -> np.ndarray:
    """Cells nearer than `radius_m` to the outer walls, or to a solid part between the heights `above_m` and `below_m`.
    """
    opened = (p for body in bodies for p in body.parts_at(openings.get(body.name, 0.0)))
    solid = [p for p in (*parts, *opened) if p.solid]
    rectangles = np.array([p.rectangle for p in solid if p.bottom_m < below_m and p.top_m > above_m],
                          float).reshape(-1, 5)
    blocked = np.zeros((math.ceil(size_m[0] / CELL_M), math.ceil(size_m[1] / CELL_M)), np.bool_)
    _rasterise(blocked, rectangles, size_m[0], size_m[1], radius_m, CELL_M)
    return blocked


@njit(cache=True, nogil=True)
def _rasterise(blocked, rectangles, size_x, size_y, radius, cell):
    nx, ny = blocked.shape
    for i in range(nx):
        for j in range(ny):
            x, y = (i + 0.5) * cell, (j + 0.5) * cell
            if x < radius or y < radius or x > size_x - radius or y > size_y - radius:
                blocked[i, j] = True
    for k in range(rectangles.shape[0]):
        cx, cy, hx, hy, yaw = rectangles[k]
        c, s = math.cos(yaw), math.sin(yaw)
        ex, ey = abs(c) * hx + abs(s) * hy + radius, abs(s) * hx + abs(c) * hy + radius
        for i in range(max(0, int((cx - ex) / cell)), min(nx, int((cx + ex) / cell) + 1)):
            for j in range(max(0, int((cy - ey) / cell)), min(ny, int((cy + ey) / cell) + 1)):
                dx, dy = (i + 0.5) * cell - cx, (j + 0.5) * cell - cy
                u = max(abs(c * dx + s * dy) - hx, 0.0)
                v = max(abs(c * dy - s * dx) - hy, 0.0)
                if u * u + v * v < radius * radius:
                    blocked[i, j] = True


@njit(cache=True, nogil=True)
def label(blocked):
    """Numbers the 4-connected free regions; returns the labels (-1 where blocked) and the size of each region."""
    nx, ny = blocked.shape
    labels = np.full((nx, ny), -1, np.int32)
    stack = np.empty(nx * ny, np.int32)
    sizes = []
    for start in range(nx * ny):
        i, j = start // ny, start % ny
        if blocked[i, j] or labels[i, j] >= 0:
            continue
        label, count, top = len(sizes), 0, 1
        stack[0] = start
        labels[i, j] = label
        while top > 0:
            top -= 1
            i, j = stack[top] // ny, stack[top] % ny
            count += 1
            for a, b in ((i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)):
                if 0 <= a < nx and 0 <= b < ny and not blocked[a, b] and labels[a, b] < 0:
                    labels[a, b] = label
                    stack[top] = a * ny + b
                    top += 1
        sizes.append(count)
    return labels, np.array(sizes, np.int64)


@njit(cache=True, nogil=True)
def _nearest(free, fi, fj):
    best, bi, bj = 1e18, 0, 0
    for i in range(free.shape[0]):
        for j in range(free.shape[1]):
            if free[i, j]:
                d = (i - fi) ** 2 + (j - fj) ** 2
                if d < best:
                    best, bi, bj = d, i, j
    return bi, bj


@njit(cache=True, nogil=True)
def interpolate(distance, x, y, cell):
    """Bilinear between the finite ones of the four cells around a point."""
    fx, fy = x / cell - 0.5, y / cell - 0.5
    i, j = int(math.floor(fx)), int(math.floor(fy))
    nx, ny = distance.shape
    total, weight = 0.0, 0.0
    for a in range(2):
        for b in range(2):
            p, q = min(max(i + a, 0), nx - 1), min(max(j + b, 0), ny - 1)
            if distance[p, q] < 1e5:
                k = (1 - abs(fx - (i + a))) * (1 - abs(fy - (j + b))) + 1e-9
                total += k * distance[p, q]
                weight += k
    return total / weight if weight > 0 else np.inf


@njit(cache=True, nogil=True)
def _descend(distance, x, y, reach, cell):
    nx, ny = distance.shape
    r = int(reach / cell)
    ci, cj = int(math.floor(x / cell)), int(math.floor(y / cell))
    best, bi, bj = np.inf, ci, cj
    for i in range(max(0, ci - r), min(nx, ci + r + 1)):
        for j in range(max(0, cj - r), min(ny, cj + r + 1)):
            if (i - ci) ** 2 + (j - cj) ** 2 <= r * r and distance[i, j] < best:
                best, bi, bj = distance[i, j], i, j
    if best == np.inf:
        free = distance < np.inf
        if free.any():
            bi, bj = _nearest(free, x / cell - 0.5, y / cell - 0.5)
    return (bi + 0.5) * cell, (bj + 0.5) * cell

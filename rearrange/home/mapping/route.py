"""The way to a place through an incomplete map of the floor; what nothing has been seen of counts as free.

Planning with the free-space assumption (Koenig and Likhachev, "D* Lite", AAAI 2002) over the map of the depth images.
It gives short-term goals to a policy that learns to drive there, as in Chaplot et al., "Learning to Explore using
Active Neural SLAM" (ICLR 2020).

The place is that of an object, inside or on something. So no cell is forbidden. A way through things only counts as
longer, and through what the arm cannot reach across, such as a wall, as longer still. The way ends on the side of a
counter from which one can reach across it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rearrange.home.apartments.shortest_ways import shortest_distances
from rearrange.home.geometry import PlanePose
from rearrange.home.numba_cache import njit
from rearrange.home.robot.robot import Base

_LOW_COST, _TALL_COST = 20.0, 100.0  # by how much longer a metre counts where the robot would touch something
_BEHIND_M = 0.4  # how deep what has been seen is taken to be
_FRIDGE_M = 0.6  # nearer to a target that may be in a fridge nothing counts as tall: its front is the way in
_PATIENCE = 24  # images after which a way is planned again, in case there is a shorter one
_WORSE_M = 0.5  # a way that became longer by more is planned again at once; one shorter by less is not taken
_ASTRAY_M = 0.4  # farther from the way than this it is planned again
_POINTS_M = (0.5, 1.5)  # along the way


@dataclass(frozen=True)
class Clearance:
    """How near to something a robot touches it (m), and what a metre of way counts as within some distances of it."""

    touch_m: float
    margins: tuple[tuple[float, float], ...]


def clearance_of(base: Base) -> Clearance:
    """A robot's, in a map of cells of 0.1 m: what it only grazes does not count as touched."""
    touch_m, *margins = (round(base.radius_m + more_m, 4) for more_m in (-0.055, 0.085, 0.225))
    return Clearance(touch_m, tuple(zip(margins, (2.0, 1.4))))


class Route:
    """The way to one place.

    Args:
        target: x, y (m) in the frame of the map, whose middle is 0, 0.
        in_fridge: Whether it may be in something tall.
        cells, cell_m: How many cells the map has on a side, and their side.
    """

    def __init__(self, target: tuple[float, float], in_fridge: bool, cells: int, cell_m: float,
                 clearance: Clearance) -> None:
        self._cells, self._cell_m = cells, cell_m
        self._near = np.array((clearance.touch_m, *(margin for margin, _ in clearance.margins))) / cell_m
        self._counts = np.array([cost for _, cost in clearance.margins])
        self._goal = self._cell_of(target)
        self._inside = _FRIDGE_M / cell_m if in_fridge else -1.0
        self._seen = np.zeros((cells, cells), np.uint8)  # the map at the last look
        self._cost = np.ones((cells, cells), np.float32)
        self._blocked = np.zeros((cells, cells), np.bool_)  # nothing is
        self._path = np.empty((0, 2), np.int64)  # cells of the way
        self._planned_m = np.empty(0)  # what was still to come at each of them, as it counts, when it was planned
        self._looks = 0

    def ahead(self, cells: np.ndarray, pose: PlanePose) -> np.ndarray:
        """The way from a base pose in the frame of the map.

        Args:
            cells: The map (n, n): 0 unknown, 1 free, 2 low and 3 tall things.

        Returns:
            (5,) float32: its length (m), and the points 0.5 m and 1.5 m along it, ahead and left (m) in the base frame.
        """
        here = self._cell_of(pose[:2])
        _enter(self._cost, self._seen, cells, here[0], here[1], self._near, self._counts,
               _LOW_COST, _TALL_COST, _BEHIND_M / self._cell_m, self._goal[0], self._goal[1], self._inside)
        self._looks += 1
        at, gap = _nearest(self._path, here[0], here[1])
        left_m = _to_come(self._path[at:], self._cost, self._cell_m)[0] if len(self._path) else math.inf
        lost = gap * self._cell_m > _ASTRAY_M or left_m > self._planned_m[at] + _WORSE_M
        if lost or self._looks >= _PATIENCE:
            self._looks = 0
            distance = shortest_distances(self._blocked, np.array([self._goal]), self._cell_m, self._cost, here, 0.0)
            if lost or distance[here] < left_m - _WORSE_M:
                self._path, at = _descend(distance, self._cost, self._cell_m, *here), 0
                self._planned_m = _to_come(self._path, self._cost, self._cell_m)
        return _points(self._path[at:], self._cell_m, self._cells, np.array(pose), np.array(_POINTS_M))

    def _cell_of(self, point: tuple[float, float]) -> tuple[int, int]:
        i, j = (min(max(int(v / self._cell_m + self._cells / 2), 0), self._cells - 1) for v in point)
        return i, j


@njit(cache=True, nogil=True)
def _enter(cost, seen, cells, ri, rj, radii, costs, low, tall, behind, gi, gj, inside):
    """Raise the costs around what is new in `cells`, as seen from the cell (ri, rj); lengths in cells."""
    n, far = cells.shape[0], int(radii[-1])
    for i in range(n):
        for j in range(n):
            if cells[i, j] == seen[i, j]:
                continue
            seen[i, j] = cells[i, j]
            if cells[i, j] < 2:
                continue
            for a in range(max(0, i - far), min(n, i + far + 1)):
                for b in range(max(0, j - far), min(n, j + far + 1)):
                    away = math.hypot(a - i, b - j)
                    much = 1.0
                    for k in range(len(radii) - 1, 0, -1):
                        if away <= radii[k]:
                            much = costs[k - 1]
                    if away <= radii[0]:
                        much = tall if cells[i, j] == 3 and math.hypot(a - gi, b - gj) > inside else low
                    if cost[a, b] < much:
                        cost[a, b] = much
            away = max(1.0, math.hypot(i - ri, j - rj))
            for k in range(1, int(behind) + 1):
                a, b = int(round(i + (i - ri) / away * k)), int(round(j + (j - rj) / away * k))
                if 0 <= a < n and 0 <= b < n and cells[a, b] != 1 and cost[a, b] < low:
                    cost[a, b] = low


@njit(cache=True, nogil=True)
def _nearest(path, i, j):
    """The number of the nearest cell of a way, and its distance in cells; inf where there is no way."""
    at, gap = 0, np.inf
    for k in range(len(path)):
        away = math.hypot(path[k, 0] - i, path[k, 1] - j)
        if away < gap:
            at, gap = k, away
    return at, gap


@njit(cache=True, nogil=True)
def _to_come(path, cost, cell):
    """What the way from each of its cells to its end counts (m)."""
    left = np.zeros(len(path))
    for k in range(len(path) - 2, -1, -1):
        step = math.hypot(path[k + 1, 0] - path[k, 0], path[k + 1, 1] - path[k, 1])
        left[k] = left[k + 1] + step * cell * cost[path[k, 0], path[k, 1]]
    return left


@njit(cache=True, nogil=True)
def _descend(distance, cost, cell, i, j):
    """The cells of the way down the distances from a cell, (n, 2)."""
    n = distance.shape[0]
    path = [(i, j)]
    while True:
        best, bi, bj = np.inf, i, j
        for a in range(max(0, i - 2), min(n, i + 3)):
            for b in range(max(0, j - 2), min(n, j + 3)):
                step = math.hypot(a - i, b - j)
                whole = distance[a, b] + step * cell * cost[i, j]
                if step < 2.5 and distance[a, b] < distance[i, j] and whole < best:
                    best, bi, bj = whole, a, b
        if bi == i and bj == j:
            break
        i, j = bi, bj
        path.append((i, j))
    out = np.empty((len(path), 2), np.int64)
    for k in range(len(path)):
        out[k, 0], out[k, 1] = path[k]
    return out


@njit(cache=True, nogil=True)
def _points(path, cell, n, pose, points):
    """The length of a way, and points along it in the base frame."""
    out = np.empty(1 + 2 * len(points), np.float32)
    cos, sin = math.cos(pose[2]), math.sin(pose[2])
    length, at, x, y = 0.0, 0, pose[0], pose[1]
    for k in range(len(path)):
        px, py = (path[k, 0] + 0.5 - n / 2) * cell, (path[k, 1] + 0.5 - n / 2) * cell
        if k > 0:
            length += math.hypot(px - x, py - y)
        x, y = px, py
        last = k == len(path) - 1
        while at < len(points) and (last or length >= points[at]):
            dx, dy = x - pose[0], y - pose[1]
            out[1 + 2 * at], out[2 + 2 * at] = cos * dx + sin * dy, cos * dy - sin * dx
            at += 1
    out[0] = length
    return out

"""Geodesic distances over the floor grid, quickly, since every episode has another goal.

The same distances as `rearrange.home.apartments.floor_grid` (16 neighbours, no corner is cut), without a heap. Every
step is at least one cell long, so cells whose distances lie in one interval of a cell cannot improve each other. They
are taken in any order (Dial, "Algorithm 360", CACM 1969). The steps of each cell are found once per home.
"""

from __future__ import annotations

import math

import numpy as np

from rearrange.home.apartments.floor_grid import CELL_M
from rearrange.home.apartments.shortest_ways import STEP_I, STEP_J, is_open
from rearrange.home.numba_cache import njit

STEP_CELLS = np.hypot(STEP_I, STEP_J).astype(np.float32)
MARGIN = 2  # cells around a grid that are never free, so that no step leaves it


def opened(free: np.ndarray) -> np.ndarray:
    """The floor without slivers: cells of squares of 3 x 3 free cells. Shape (cells in x, cells in y), bool."""
    nx, ny = free.shape
    cells = [(slice(a, nx - 2 + a), slice(b, ny - 2 + b)) for a in range(3) for b in range(3)]  # of all squares
    whole = np.logical_and.reduce([free[each] for each in cells])
    floor = np.zeros_like(free)
    for each in cells:
        floor[each] |= whole
    return floor


def ways(free: np.ndarray) -> np.ndarray:
    """The possible ones of the 16 steps from each free cell, as bits of a uint16. `MARGIN` cells are not free."""
    return _ways(~free)


def distances(cell_ways: np.ndarray, goals: np.ndarray) -> np.ndarray:
    """Metres from every cell to the nearest of the cells `goals` (n, 2), float32; inf where there is no way."""
    return _distances(cell_ways, np.ascontiguousarray(goals, np.int64), CELL_M)


def shortest_path(distance_m: np.ndarray, free: np.ndarray, x: float, y: float) -> np.ndarray:
    """The shortest way from a world point (m) down a distance field: corners (n, 2), from the point to the goal.

    It goes straight wherever nothing is in between, so it is up to 3 % shorter than the grid's own.
    """
    return _straightened(_descended(distance_m, x, y, CELL_M), free, CELL_M)


def next_corner(distance_m: np.ndarray, free: np.ndarray, x: float, y: float) -> tuple[float, float]:
    """The first corner of the shortest way from a world point (m) that is more than a cell away, or else its end."""
    return _next_corner(_descended(distance_m, x, y, CELL_M), free, CELL_M)


def path_length(path: np.ndarray) -> float:
    """Metres along corners (n, 2) or (n, 3)."""
    return float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum())


@njit(cache=True, nogil=True)
def _ways(blocked):
    nx, ny = blocked.shape
    out = np.zeros((nx, ny), np.uint16)
    for i in range(2, nx - 2):
        for j in range(2, ny - 2):
            if blocked[i, j]:
                continue
            bits = 0
            for q in range(16):
                if is_open(blocked, i, j, q):
                    bits |= 1 << q
            out[i, j] = bits
    return out


@njit(cache=True, nogil=True)
def _distances(ways, goals, cell):
    nx, ny = ways.shape
    flat = ways.reshape(-1)
    distance = np.full(nx * ny, np.inf, np.float32)
    done = np.zeros(nx * ny, np.bool_)
    offsets = STEP_I * ny + STEP_J
    room = nx * ny + len(goals)
    buckets, counts = np.empty((4, room), np.int32), np.zeros(4, np.int64)
    for k in range(len(goals)):
        at = goals[k, 0] * ny + goals[k, 1]
        distance[at] = 0
        buckets[0, counts[0]] = at
        counts[0] += 1
    level = 0
    while counts.sum() > 0:
        b = level & 3
        for n in range(counts[b]):
            at = buckets[b, n]
            if done[at]:
                continue
            done[at] = True
            d, bits = distance[at], flat[at]
            for q in range(16):
                if bits >> q & 1:
                    to = at + offsets[q]
                    longer = d + STEP_CELLS[q]
                    if longer < distance[to]:
                        distance[to] = longer
                        c = int(longer) & 3
                        buckets[c, counts[c]] = to
                        counts[c] += 1
        counts[b] = 0
        level += 1
    for k in range(nx * ny):
        distance[k] *= np.float32(cell)
    return distance.reshape(nx, ny)


@njit(cache=True, nogil=True)
def _descended(distance, x, y, cell):
    """The point, and the centres of the cells on the way down."""
    nx, ny = distance.shape
    i, j = int(x / cell), int(y / cell)
    path = [(x, y)]
    while distance[i, j] > 0:
        best, bi, bj = np.inf, i, j
        for a in range(max(0, i - 2), min(nx, i + 3)):
            for b in range(max(0, j - 2), min(ny, j + 3)):
                step = math.sqrt((a - i) ** 2 + (b - j) ** 2) * cell
                if step > 2.3 * cell or not distance[a, b] < distance[i, j]:
                    continue
                whole = abs(distance[a, b] + step - distance[i, j])
                if whole < best:
                    best, bi, bj = whole, a, b
        if bi == i and bj == j:
            break
        i, j = bi, bj
        path.append(((i + 0.5) * cell, (j + 0.5) * cell))
    out = np.empty((len(path), 2))
    for k in range(len(path)):
        out[k, 0], out[k, 1] = path[k]
    return out


@njit(cache=True, nogil=True)
def _clear(free, ax, ay, bx, by, cell):
    """Whether a straight line stays on free cells."""
    steps = int(math.hypot(bx - ax, by - ay) / (0.4 * cell)) + 1
    for k in range(steps + 1):
        x, y = ax + (bx - ax) * k / steps, ay + (by - ay) * k / steps
        if not free[int(x / cell), int(y / cell)]:
            return False
    return True


@njit(cache=True, nogil=True)
def _farthest(path, free, at, cell):
    """Which point of a path can be reached straight from its point `at`, as far along as any."""
    to = at + 1
    for k in range(at + 2, len(path)):
        if _clear(free, path[at, 0], path[at, 1], path[k, 0], path[k, 1], cell):
            to = k
    return to


@njit(cache=True, nogil=True)
def _next_corner(path, free, cell):
    at = 0
    while at < len(path) - 1 and math.hypot(path[at, 0] - path[0, 0], path[at, 1] - path[0, 1]) <= cell:
        at = _farthest(path, free, at, cell)
    return path[at, 0], path[at, 1]


@njit(cache=True, nogil=True)
def _straightened(path, free, cell):
    kept = [0]
    while kept[-1] < len(path) - 1:
        kept.append(_farthest(path, free, kept[-1], cell))
    out = np.empty((len(kept), 2))
    for k in range(len(kept)):
        out[k] = path[kept[k]]
    return out

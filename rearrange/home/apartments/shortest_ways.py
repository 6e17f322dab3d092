"""Shortest ways over a grid of cells, by steps to 16 neighbours: one cell, diagonals, knight's moves.

They overestimate straight lines by at most 2.7 % and on average by 1 %. No step cuts the corner of a blocked cell.
"""

from __future__ import annotations

import heapq
import math

import numpy as np

from rearrange.home.numba_cache import njit

STEP_I = np.array([1, -1, 0, 0, 1, 1, -1, -1, 2, 2, -2, -2, 1, 1, -1, -1])
STEP_J = np.array([0, 0, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 2, -2, 2, -2])
"""The 16 steps from a cell: four along the axes, four diagonals, eight knight's moves."""


def shortest_distances(blocked: np.ndarray, goals: np.ndarray, cell_m: float, weight: np.ndarray,
                       near: tuple[int, int] = (-1, -1), farther_m: float = math.inf) -> np.ndarray:
    """Distances (m) from every free cell to the nearest of some goals, float32, of the shape of `blocked`; inf where
    there is no way. The arguments are as of `rearrange.home.apartments.floor_grid.distance_field`.
    """
    goals = np.asarray(goals, np.int64)  # one type: compiled once
    if near[0] < 0:
        return _flood(blocked, goals, cell_m, weight)
    return _search_near(blocked, goals, cell_m, weight, near[0], near[1], farther_m)


@njit(nogil=True)
def is_open(blocked, i, j, q):
    """Whether step q from a cell leads to a free cell and cuts the corner of no blocked one."""
    di, dj = STEP_I[q], STEP_J[q]
    if blocked[i + di, j + dj]:
        return False
    if q >= 8:
        hi, hj = int(di / 2), int(dj / 2)
        return not (blocked[i + hi, j + hj] or blocked[i + di - hi, j + dj - hj])
    return q < 4 or not (blocked[i, j + dj] or blocked[i + di, j])


@njit(cache=True, nogil=True)
def _flood(blocked, goals, cell, weight):
    """Shortest 16-neighbour paths to the nearest of some cells; no step may cut the corner of a blocked cell.

    Cells wait in the order in which they are reached, and wait again when a shorter way is found, until none is. On
    floors nearly all wait once: 0.19 times the time of a heap (12 homes, some with weights; the median).
    """
    length = _step_lengths(cell)
    distance = np.full(blocked.shape, np.inf, np.float32)
    nx, ny = blocked.shape
    most = nx * ny
    queue, waits = np.empty(most + 1, np.int32), np.zeros(blocked.shape, np.bool_)
    first = last = 0
    for k in range(len(goals)):
        i, j = goals[k]
        if not waits[i, j]:
            distance[i, j], waits[i, j], queue[last] = 0, True, i * ny + j
            last += 1
    while first != last:
        i, j = queue[first] // ny, queue[first] % ny
        first = first + 1 if first < most else 0
        waits[i, j] = False
        for q in range(16):
            a, b = i + STEP_I[q], j + STEP_J[q]
            if a < 0 or b < 0 or a >= nx or b >= ny:
                continue
            longer = distance[i, j] + length[q] * weight[a, b]
            if longer < distance[a, b] and is_open(blocked, i, j, q):
                distance[a, b] = longer
                if not waits[a, b]:
                    waits[a, b], queue[last] = True, a * ny + b
                    last = last + 1 if last < most else 0
    return distance


@njit(nogil=True)
def _step_lengths(cell):
    return (np.sqrt((STEP_I * STEP_I + STEP_J * STEP_J).astype(np.float64)) * cell).astype(np.float32)


@njit(cache=True, nogil=True)
def _search_near(blocked, goals, cell, weight, near_i, near_j, farther):
    """As `_flood`, until the ways over the cell (near_i, near_j) that are longer by at most `farther` are known: A*."""
    length = _step_lengths(cell)
    distance = np.full(blocked.shape, np.inf, np.float32)
    last = np.inf
    heap = [(np.float32(0), np.float32(0), np.int32(0)) for _ in range(0)]
    nx, ny = blocked.shape
    for k in range(len(goals)):
        i, j = goals[k]
        distance[i, j] = 0
        whole = np.float32(cell * math.hypot(i - near_i, j - near_j))  # at least, with what is still to come
        heapq.heappush(heap, (whole, np.float32(0), np.int32(i * ny + j)))
    while len(heap):
        whole, d, k = heapq.heappop(heap)
        if whole > last:
            break
        i, j = k // ny, k % ny
        if d > distance[i, j]:
            continue
        if i == near_i and j == near_j:
            last = min(last, d + farther)
        for q in range(16):
            a, b = i + STEP_I[q], j + STEP_J[q]
            if a < 0 or b < 0 or a >= nx or b >= ny or not is_open(blocked, i, j, q):
                continue
            longer = d + length[q] * weight[a, b]
            if longer < distance[a, b]:
                distance[a, b] = longer
                whole = np.float32(longer + cell * math.sqrt((a - near_i) ** 2 + (b - near_j) ** 2))
                heapq.heappush(heap, (whole, longer, np.int32(a * ny + b)))
    return distance

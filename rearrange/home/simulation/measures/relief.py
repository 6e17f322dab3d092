"""A front seen straight on: how far each point of it stands out, and what of that is a handle.

Frame: x out of the front, y to its left as it looks, z up; metres.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rearrange.home.apartments.floor_grid import label
from rearrange.home.numba_cache import njit

BAR, FLAT, RECESSED = "bar", "flat", "recessed"
CELL_M = 0.004
_STEP_M = 0.002  # of depths that are told apart
_PLANE_SHARE = 0.15  # what of a front is level and covers more is no handle
_BAR_M = 0.015  # what stands out so far is a bar
_KNOB_M, _LEAST_CELLS = 0.004, 6  # what stands out less, or covers less, is none
_OF_HANDLE = 0.6  # so far down from its foremost point a handle is told from the front
_DEEPEST_M = 0.01  # so far behind the hindmost large surface no handle begins
_HOLLOW_M, _HOLLOW_SHARE = 0.008, (0.004, 0.3)  # depth of a hollow, and how much of the front one is
_FINGER_M = 0.015
_ABOVE_M, _MOST_PROUD_M = 0.12, 0.15  # where the edge of a worktop is: so close above a front, and no farther out


@dataclass(frozen=True)
class Front:
    """What a front is like. low, high: its corners (y, z).

    plane_m: where its foremost large surface is: of a panel in a frame, the frame. handle_low, handle_high: corners of
    the small thing that stands out farthest from what is around it, None where there is none. handle_rises_m: how far
    it does. stands_out_m: how far it, or else anything, stands out from the plane.
    """

    kind: str
    plane_m: float
    low: tuple[float, float]
    high: tuple[float, float]
    stands_out_m: float
    handle_rises_m: float = 0.0
    handle_low: tuple[float, float] | None = None
    handle_high: tuple[float, float] | None = None


def front_of(triangles: np.ndarray) -> Front:
    """What is there of triangles (n, 3, 3) seen from the front, as one front."""
    points = triangles.reshape(-1, 3)
    low, high = points[:, 1:].min(axis=0), points[:, 1:].max(axis=0)
    depth = foremost(triangles, low, high)
    if not np.isfinite(depth).any():  # nothing but edges
        depth[:] = points[:, 0].max()
    hindmost, plane = _planes(depth)
    rises, handle = _handle(depth, hindmost)
    bounds = tuple(low.tolist()), tuple(high.tolist())
    if handle is None:
        return Front(RECESSED if _has_hollow(depth, plane) else FLAT, plane, *bounds, max(depth.max() - plane, 0.0))
    stands_out = max(float(depth[handle].max() - plane), 0.0)
    is_recessed = stands_out < rises - _HOLLOW_M or _has_hollow(depth, plane)
    kind = BAR if stands_out > _BAR_M else RECESSED if is_recessed else FLAT
    cells = np.argwhere(handle)
    corners = (tuple((low + CELL_M * ends).tolist()) for ends in (cells.min(axis=0), cells.max(axis=0) + 1))
    return Front(kind, plane, *bounds, stands_out, rises, *corners)


def _handle(depth: np.ndarray, hindmost: float) -> tuple[float, np.ndarray | None]:
    """How far the small thing that stands out most does so from what is around it (m), and its cells."""
    best, peak, most = _KNOB_M - _STEP_M, None, _PLANE_SHARE * depth.size
    for level in np.arange(float(depth.max()) - _KNOB_M, hindmost - _DEEPEST_M, -_STEP_M):
        labels, sizes = label(depth < level)
        for number in np.flatnonzero((sizes < most) & (sizes >= _LEAST_CELLS)).tolist():
            there = np.where(labels == number, depth, -np.inf)
            if (rises := float(there.max() - level)) > best:
                best, peak = rises, np.unravel_index(np.argmax(there), depth.shape)
    if peak is None:
        return 0.0, None
    labels, _ = label(depth < depth[peak] - _OF_HANDLE * best)
    return best + _STEP_M, labels == labels[peak]  # the last level was a step above what is around it


def _has_hollow(depth: np.ndarray, plane: float) -> bool:
    """Whether a small part of the front lies behind the rest, wide enough for a finger."""
    level = np.abs(depth - plane) < 2 * _STEP_M
    rows, columns = (np.flatnonzero(level.any(axis=axis)) for axis in (1, 0))
    inner = depth[rows[0]:rows[-1] + 1, columns[0]:columns[-1] + 1]
    labels, sizes = label(inner > plane - _HOLLOW_M)
    for number in np.flatnonzero((sizes > _HOLLOW_SHARE[0] * inner.size) & (sizes < _HOLLOW_SHARE[1] * inner.size)):
        longest = max(np.ptp(np.argwhere(labels == number), axis=0) + 1)
        if sizes[number] / longest * CELL_M > _FINGER_M:
            return True
    return False


def edge_above(front: Front, around: np.ndarray) -> float:
    """How far what is just above a front stands out from it, as the edge of a worktop (m); 0 where nothing does.

    `around`: triangles (n, 3, 3) of everything else, in the frame of the front.
    """
    x = around[:, :, 0]
    near = (x.min(axis=1) < front.plane_m + _MOST_PROUD_M) & (x.max(axis=1) > front.plane_m)
    low, high = (front.low[0], front.high[1]), (front.high[0], front.high[1] + _ABOVE_M)
    depth = foremost(around[near], np.array(low), np.array(high))
    proud = depth[(depth > front.plane_m) & (depth < front.plane_m + _MOST_PROUD_M)] - front.plane_m
    return float(proud.max()) if proud.size > 0.05 * depth.size else 0.0


def foremost(triangles: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The largest x of triangles (n, 3, 3) over each cell between two corners (y, z); -inf where there is none."""
    shape = [max(1, math.ceil((b - a) / CELL_M - 1e-6)) for a, b in zip(low, high)]
    depth = np.full(shape, -np.inf)
    _fill(depth, np.ascontiguousarray(triangles, float), float(low[0]), float(low[1]), CELL_M)
    return depth


def _planes(depth: np.ndarray) -> tuple[float, float]:
    """The hindmost and the foremost depth that a good part of the surface has, else the one that most of it has."""
    found = depth[np.isfinite(depth)]
    steps = np.round((found - found.min()) / _STEP_M).astype(int)
    count = np.convolve(np.bincount(steps, minlength=3), np.ones(3), "same")  # within one of each step
    large = np.flatnonzero(count > _PLANE_SHARE * len(found))
    large = large if len(large) else [int(np.argmax(count))]
    return tuple(_middle(found[np.abs(steps - step) <= 1]) for step in (large[0], large[-1]))


def _middle(values: np.ndarray) -> float:
    """The median, which is one of the values."""
    return float(np.sort(values)[len(values) // 2])


@njit(cache=True, nogil=True)
def _fill(depth, triangles, low_y, low_z, cell):
    rows, columns = depth.shape
    for k in range(triangles.shape[0]):
        ax, ay, az = triangles[k, 0]
        bx, by, bz = triangles[k, 1]
        cx, cy, cz = triangles[k, 2]
        area = (by - ay) * (cz - az) - (cy - ay) * (bz - az)
        if abs(area) < 1e-12:
            continue
        first_i = max(0, int(math.floor((min(ay, by, cy) - low_y) / cell)))
        last_i = min(rows - 1, int(math.floor((max(ay, by, cy) - low_y) / cell)))
        first_j = max(0, int(math.floor((min(az, bz, cz) - low_z) / cell)))
        last_j = min(columns - 1, int(math.floor((max(az, bz, cz) - low_z) / cell)))
        for i in range(first_i, last_i + 1):
            y = low_y + (i + 0.5) * cell
            for j in range(first_j, last_j + 1):
                z = low_z + (j + 0.5) * cell
                u = ((by - y) * (cz - z) - (cy - y) * (bz - z)) / area
                v = ((cy - y) * (az - z) - (ay - y) * (cz - z)) / area
                if u >= -1e-9 and v >= -1e-9 and u + v <= 1.0 + 1e-9:
                    depth[i, j] = max(depth[i, j], u * ax + v * bx + (1.0 - u - v) * cx)

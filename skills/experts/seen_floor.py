"""What a robot has seen of the floor plan, and the way through it when what it has not seen counts as free.

This is planning with the free-space assumption (Koenig and Likhachev, "D* Lite", AAAI 2002). The robot does not know on
which side of a wall the door is before it has looked, so its actions follow from what the camera has shown.
"""

from __future__ import annotations

import math

import numpy as np

from rearrange.home.apartments.floor_grid import CELL_M, DistanceField, distance_field
from rearrange.home.geometry import PlanePose, from_frame
from rearrange.home.numba_cache import njit
from rearrange.home.robot.robot import Camera

_SIGHT_M = 10.0  # the range of the depth camera
_FELT_M = 0.4  # what is so near to the middle of the base counts as known
_RAYS = 91
_PATIENCE = 24  # looks after which a way is planned again because of something new beside it
_NEAR_CELLS = 6  # around the robot, where a distance has to be known
_BEHIND_CELLS = 8  # behind what hides the floor
_BEYOND_M = 0.5  # how much farther than the robot the distances are known, for where it goes next


class SeenFloor:
    """The part of a floor grid that has been seen, and the distances to some goals as far as that tells them."""

    def __init__(self, camera: Camera, blocked: np.ndarray, opaque: np.ndarray, goals: np.ndarray,
                 weight: np.ndarray) -> None:
        """Arrays but `goals` are of shape (cells in x, cells in y).

        Args:
            camera: of the head.
            blocked: cells where no robot can stand.
            opaque: cells through which nothing is seen.
            goals: indices of cells, (n, 2).
            weight: factor of the way into a cell once it has been seen.
        """
        self._camera, self._goals, self._weight = camera, goals, weight.astype(np.float32)
        self._blocked, self._opaque = blocked, opaque
        self.seen = np.zeros(blocked.shape, np.bool_)
        """The cells that have been seen, bool."""
        self._known = np.zeros(blocked.shape, np.bool_)  # seen and blocked
        self._cost = np.ones(blocked.shape, np.float32)
        self._field: DistanceField | None = None
        self._changed, self._looks = False, 0

    def look(self, pose: PlanePose) -> None:
        """Add what the head camera sees from a base pose."""
        x, y, yaw = pose
        eye, half_fov = from_frame(*self._camera.position_m[:2], pose), math.radians(self._camera.fov_deg) / 2
        arrays = self.seen, self._known, self._cost, self._blocked, self._opaque, self._weight
        new = _look(*arrays, *eye, yaw + self._camera.bearing_rad, half_fov, _SIGHT_M, CELL_M, _RAYS, _BEHIND_CELLS)
        self._changed |= new + _look(*arrays, x, y, yaw, math.pi, _FELT_M, CELL_M, _RAYS, _BEHIND_CELLS) > 0
        self._looks += 1

    def field(self, x: float, y: float) -> DistanceField:
        """Distances to the nearest goal around a point (m), or around the cell nearest to one outside of the grid.

        They are planned again when something new is in the way, and now and then when something new is beside it.
        """
        cell = tuple(min(max(int(at // CELL_M), 0), count - 1) for at, count in zip((x, y), self._known.shape))
        stale = self._field is None or not _is_near(self._field.distance_m, *cell, _NEAR_CELLS)
        if not stale and self._changed:
            stale = self._looks >= _PATIENCE or _is_crossed(self._field.distance_m, self._known, *cell)
        if stale:
            near = _nearest_free(self._known, *cell)
            self._field = distance_field(self._known, self._goals, self._cost, near, _BEYOND_M)
            self._changed, self._looks = False, 0
        return self._field


@njit(cache=True, nogil=True)
def _look(seen, known, cost, blocked, opaque, weight, x, y, yaw, half_fov, sight, cell, rays, behind):
    """Follows rays until something opaque; returns how many blocked cells are new."""
    nx, ny = seen.shape
    new = 0
    for k in range(rays):
        angle = yaw + half_fov * (2.0 * k / (rays - 1) - 1.0)
        step_x, step_y = math.cos(angle) * cell, math.sin(angle) * cell
        px, py = x, y
        entered = False
        for _ in range(int(sight / cell)):
            i, j = int(math.floor(px / cell)), int(math.floor(py / cell))
            inside = 0 <= i < nx and 0 <= j < ny
            if entered and not inside:
                break
            entered = inside
            if not inside:  # the eye may be outside, before a home without walls
                px += step_x
                py += step_y
                continue
            if not seen[i, j]:
                seen[i, j] = True
                cost[i, j] = weight[i, j]
                if blocked[i, j]:
                    known[i, j] = True
                    new += 1
            if opaque[i, j]:
                break
            px += step_x
            py += step_y
        for _ in range(behind):  # no robot fits where the thing is that was seen
            i, j = int(px / cell), int(py / cell)
            if px < 0.0 or py < 0.0 or i >= nx or j >= ny or not blocked[i, j]:
                break
            if not known[i, j]:
                known[i, j] = True
                new += 1
            px += step_x
            py += step_y
    return new


@njit(cache=True, nogil=True)
def _nearest_free(blocked, i, j):
    """The free cell nearest to one, in squares around it; the cell itself where there is none."""
    nx, ny = blocked.shape
    for r in range(max(nx, ny)):
        for a in range(max(0, i - r), min(nx, i + r + 1)):
            step = 1 if abs(a - i) == r else max(1, 2 * r)
            for b in range(j - r, j + r + 1, step):
                if 0 <= b < ny and not blocked[a, b]:
                    return a, b
    return i, j


@njit(cache=True, nogil=True)
def _is_near(distance, i, j, cells):
    """Whether the distance is known of any cell around one."""
    for a in range(max(0, i - cells), min(distance.shape[0], i + cells + 1)):
        for b in range(max(0, j - cells), min(distance.shape[1], j + cells + 1)):
            if distance[a, b] < np.inf:
                return True
    return False


@njit(cache=True, nogil=True)
def _is_crossed(distance, blocked, i, j):
    """Whether the way down the distances from a cell meets a blocked one."""
    nx, ny = distance.shape
    here = distance[i, j]
    while here > 0.0:
        best, bi, bj = here, i, j
        for a in range(max(0, i - 3), min(nx, i + 4)):
            for b in range(max(0, j - 3), min(ny, j + 4)):
                if distance[a, b] < best:
                    best, bi, bj = distance[a, b], a, b
        if best >= here:
            return False
        if blocked[bi, bj]:
            return True
        here, i, j = best, bi, bj
    return False

"""What depth images have shown of the floor since a skill began: a map that grows while the robot drives.

Each pixel of the head camera is a point in the base frame. Points at the height of the floor show free cells, as does
the floor between two of them in a column of the image. Higher points, up to the robot's head, show occupied cells. The
map is kept in the frame of the start and shown around the robot. Robots map so with a depth camera and odometry (Elfes
1989, "Using occupancy grids for mobile robot perception and navigation"); without noise it needs no probabilities.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from rearrange.home.apartments.floor_grid import HEAD_HEIGHT_M
from rearrange.home.geometry import PlanePose
from rearrange.home.mapping.route import Clearance, Route, clearance_of
from rearrange.home.numba_cache import njit
from rearrange.home.robot.robot import Camera, Point, Robot

MAP_SIZE = 64
"""Cells on a side of the map that is shown."""
SHOWN_CELL_M = 0.2
UNKNOWN, FREE, OCCUPIED = 0.0, 0.5, 1.0

_CELL_M = 0.1  # of the map that is kept
_CELLS = 256  # on its side, with the start in the middle
_FAR_M = 10.0  # of the depth image
_FLOOR_M = 0.06  # what is lower is floor
_TALL_M = 1.15  # what reaches higher is a wall, a fridge or a cupboard: nobody reaches across
_OWN_M = 0.27  # around the line from elbow to hand: what is nearer may be the arm or what it carries
_CLEAR_M = 0.3  # where the robot stands is free


class FloorMap:
    """The map of one robot.

    Args:
        start: Base pose at the beginning; its place is the middle of the map.
        camera: Of the depth images, base frame.
        clearance: Distance of routes from things.
        cells: On a side, of 0.1 m.
        elbow_m: From here to the hand the camera sees the robot's own arm, base frame.
    """

    def __init__(self, start: PlanePose, camera: Camera, clearance: Clearance, cells: int = _CELLS,
                 elbow_m: Point = (0.0, 0.0, 0.0)) -> None:
        self._middle, self._camera, self._clearance, self._elbow_m = start[:2], camera, clearance, elbow_m
        self._cells = np.zeros((cells, cells), np.uint8)  # axes of the world; 0 unknown, 1 free, 2 low, 3 tall things
        self._route: tuple[tuple, Route] | None = None  # and where it leads
        self.latest_route: np.ndarray | None = None
        """What `route` gave last, for spectators."""

    def add(self, depth: np.ndarray, pose: PlanePose, hand: tuple[float, float, float] | None = None) -> None:
        """Enter a depth image.

        Args:
            depth: (size, size, 1), 0..1 over 10 m.
            pose: The base pose at which it was taken.
            hand: The end-effector then (base frame, m); None: there is no arm to be seen.
        """
        x, y = pose[0] - self._middle[0], pose[1] - self._middle[1]
        elbow, own_m = np.array(self._elbow_m), _OWN_M if hand else -1.0
        arm, (ahead_m, _, height_m) = np.array(hand or self._elbow_m) - elbow, self._camera.position_m
        _enter(self._cells, depth[:, :, 0], _rays(len(depth), self._camera), ahead_m, height_m, x, y, pose[2], _CELL_M,
               _TALL_M, elbow, arm, own_m)

    def touched(self, x: float, y: float) -> None:
        """Something stands at a point (world, m) that no image has shown: the robot has run into it."""
        i, j = (int((value - middle) / _CELL_M + len(self._cells) / 2) for value, middle in zip((x, y), self._middle))
        if 0 <= i < len(self._cells) and 0 <= j < len(self._cells):
            self._cells[i, j] = 3

    def around(self, pose: PlanePose, target: tuple[float, float]) -> np.ndarray:
        """The map around a base pose, with what lies ahead on top.

        Returns:
            (64, 64, 2) float32, cells of 0.2 m. First what is known: 0 nothing, 0.5 free, 1 occupied. Then the target
                (world, m): 1 in the nine cells around it, on the edge if it is farther away.
        """
        out = np.zeros((MAP_SIZE, MAP_SIZE, 2), np.float32)
        x, y = pose[0] - self._middle[0], pose[1] - self._middle[1]
        _show(self._cells, out, x, y, pose[2], target[0] - pose[0], target[1] - pose[1], _CELL_M, SHOWN_CELL_M)
        return out

    def route(self, pose: PlanePose, target: tuple[float, float], in_fridge: bool = False) -> np.ndarray:
        """The way from a base pose to a target (world, m) that may be in a fridge: (5,) float32, see `Route.ahead`."""
        x, y = pose[0] - self._middle[0], pose[1] - self._middle[1]
        if self._route is None or self._route[0] != (target, in_fridge):
            place = target[0] - self._middle[0], target[1] - self._middle[1]
            self._route = (target, in_fridge), Route(place, in_fridge, len(self._cells), _CELL_M, self._clearance)
        self.latest_route = self._route[1].ahead(self._cells, (x, y, pose[2]))
        return self.latest_route


def map_of(robot: Robot, start: PlanePose) -> FloorMap:
    """An empty map of what the head camera of a robot will show."""
    return FloorMap(start, robot.head, clearance_of(robot.base), elbow_m=robot.arm.elbow_m)


@lru_cache(maxsize=8)
def _rays(size: int, camera: Camera) -> np.ndarray:
    """Of each pixel the direction in the base frame, per metre of depth: (size, size, 3) float32."""
    dx, dy, dz = (b - a for a, b in zip(camera.position_m, camera.target_m))
    level = math.hypot(dx, dy)
    length, x, y = math.hypot(level, dz), dx / level, dy / level
    away, up = np.array((dx, dy, dz)) / length, np.array((-dz * x, -dz * y, level)) / length
    slopes = (np.arange(size) - (size - 1) / 2) * (2 * math.tan(math.radians(camera.fov_deg) / 2) / size)
    rays = away + slopes[None, :, None] * np.array((y, -x, 0.0)) - slopes[:, None, None] * up
    return rays.astype(np.float32)


@njit(cache=True, nogil=True)
def _enter(cells, depth, rays, ahead, height, x, y, yaw, cell, tall, elbow, arm, own):
    n = cells.shape[0]
    cos, sin = math.cos(yaw), math.sin(yaw)
    _clear(cells, x, y, cell)
    for column in range(depth.shape[1]):
        lx, ly, known = 0.0, 0.0, False  # the last point of the floor in this column
        for row in range(depth.shape[0] - 1, -1, -1):
            d = depth[row, column]
            if d >= 1.0:
                continue
            d *= _FAR_M
            z = height + d * rays[row, column, 2]
            if z > HEAD_HEIGHT_M:
                continue
            bx, by = ahead + d * rays[row, column, 0], d * rays[row, column, 1]
            px, py = x + cos * bx - sin * by, y + sin * bx + cos * by
            if z < _FLOOR_M:
                steps = int(math.hypot(px - lx, py - ly) / cell) + 1 if known else 1
                for k in range(1, steps + 1):
                    i = int((px if not known else lx + (px - lx) * k / steps) / cell + n / 2)
                    j = int((py if not known else ly + (py - ly) * k / steps) / cell + n / 2)
                    if 0 <= i < n and 0 <= j < n and cells[i, j] == 0:
                        cells[i, j] = 1
                lx, ly, known = px, py, True
            elif _away(bx - elbow[0], by - elbow[1], z - elbow[2], arm) > own:
                i, j = int(px / cell + n / 2), int(py / cell + n / 2)
                state = 3 if z > tall else 2
                if 0 <= i < n and 0 <= j < n and cells[i, j] < state:
                    cells[i, j] = state


@njit(cache=True, nogil=True)
def _away(x, y, z, arm):
    """Distance (m) of a point from the line that begins at 0, 0, 0 and ends at `arm`."""
    length2 = arm[0] ** 2 + arm[1] ** 2 + arm[2] ** 2
    k = min(1.0, max(0.0, (x * arm[0] + y * arm[1] + z * arm[2]) / max(length2, 1e-9)))
    return math.sqrt((x - k * arm[0]) ** 2 + (y - k * arm[1]) ** 2 + (z - k * arm[2]) ** 2)


@njit(cache=True, nogil=True)
def _clear(cells, x, y, cell):
    n, r = cells.shape[0], int(_CLEAR_M / cell)
    ci, cj = int(x / cell + n / 2), int(y / cell + n / 2)
    for i in range(max(0, ci - r), min(n, ci + r + 1)):
        for j in range(max(0, cj - r), min(n, cj + r + 1)):
            if cells[i, j] == 0 and (i - ci) ** 2 + (j - cj) ** 2 <= r * r:
                cells[i, j] = 1


@njit(cache=True, nogil=True)
def _show(cells, out, x, y, yaw, target_x, target_y, cell, shown):
    n, m = cells.shape[0], out.shape[0]
    cos, sin = math.cos(yaw), math.sin(yaw)
    for row in range(m):
        for column in range(m):
            best = 0
            for a in range(2):
                for b in range(2):
                    u = (m / 2 - row - 0.25 - 0.5 * a) * shown  # ahead
                    v = (m / 2 - column - 0.25 - 0.5 * b) * shown  # to the left
                    i = int((x + cos * u - sin * v) / cell + n / 2)
                    j = int((y + sin * u + cos * v) / cell + n / 2)
                    if 0 <= i < n and 0 <= j < n and cells[i, j] > best:
                        best = cells[i, j]
            out[row, column, 0] = 0.5 * min(best, 2)
    u, v = cos * target_x + sin * target_y, cos * target_y - sin * target_x
    far = max(abs(u), abs(v), 1e-6)
    most = (m / 2 - 1.5) * shown
    if far > most:
        u, v = u * most / far, v * most / far
    row, column = int(m / 2 - u / shown), int(m / 2 - v / shown)
    for i in range(max(0, row - 1), min(m, row + 2)):
        for j in range(max(0, column - 1), min(m, column + 2)):
            out[i, j, 1] = 1.0

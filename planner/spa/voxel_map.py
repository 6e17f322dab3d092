"""The sense-plan-act agent's memory of the home: boxes of 5 cm in which its camera saw something.

Seen boxes are entered, and boxes that the camera sees through are taken out. Where nothing was seen yet counts as free;
the way is planned again when it turns out not to be.
"""

from __future__ import annotations

import math

import numpy as np

from planner.spa.senses import Senses, arm_spheres, gap_m
from rearrange.home.apartments.floor_grid import CELL_M, DistanceField, FloorGrid
from rearrange.home.geometry import PlanePose
from rearrange.home.numba_cache import njit
from rearrange.home.robot.cameras import mounting
from rearrange.home.robot.robot import Base

HALF_M, HEIGHT_M = 16.0, 1.4  # of the map around where the robot began
LOW_M = 0.08  # what is lower is floor
_CARVE_M = 2.5  # boxes nearer than this are checked against each image
_BEHIND_M = 0.12  # the image has to show so much more than a box to take it out
_ROOM_M = (0.07, 0.03)  # around the base; less where there is no way
_ARM_REACH_M = 1.5
_ASIDE_COSTS_M = 10.0  # what a place a quarter turn beside the wanted side counts as
_MOST_M = 0.05  # distances are known up to this one


class Map:
    """Occupied boxes around a robot with a base; `boxes` (cells in x, in y, in z) bool."""

    def __init__(self, pose: PlanePose, base: Base) -> None:
        self._radius_m = base.radius_m
        self.corner = np.array([pose[0] - HALF_M, pose[1] - HALF_M])
        self.boxes = np.zeros((round(2 * HALF_M / CELL_M),) * 2 + (round(HEIGHT_M / CELL_M),), np.bool_)

    def look(self, senses: Senses) -> None:
        """Enter what the camera sees now."""
        points, depth = senses.points(), senses.depth_m()
        x, y, yaw = senses.base_pose
        frame = np.array([math.cos(yaw), math.sin(yaw), x - self.corner[0], y - self.corner[1]])
        low = [max(0, int((v - _CARVE_M) / CELL_M)) for v in frame[2:]]
        high = [min(len(self.boxes), int((v + _CARVE_M) / CELL_M)) for v in frame[2:]]
        camera = senses.robot.head
        slope = math.tan(math.radians(camera.fov_deg / 2))
        eye, axes = np.array(camera.position_m), mounting(camera)[:3]
        _carve(self.boxes, np.array([*low, *high]), frame, axes, eye, depth, slope, CELL_M, _BEHIND_M)
        i, j, k = (((points[:, c] - (*self.corner, 0.0)[c]) / CELL_M).astype(int) for c in range(3))
        n, m = self.boxes.shape[0], self.boxes.shape[2]
        kept = (i >= 0) & (j >= 0) & (i < n) & (j < n) & (points[:, 2] > LOW_M) & (k < m)
        self.boxes[i[kept], j[kept], k[kept]] = True

    def block(self, x: float, y: float) -> None:
        """Something was bumped into here."""
        i, j = (int(v) for v in ((x, y) - self.corner) / CELL_M)
        self.boxes[i - 1:i + 2, j - 1:j + 2, 4] = True

    # ------------------------------------------------------------------ for the base

    def floor(self, room_m: float) -> FloorGrid:
        """Where the base can stand; coordinates are from the corner of the map."""
        return FloorGrid(_swollen(self.boxes.any(2), (self._radius_m + room_m) / CELL_M))

    def way_to(self, senses: Senses, target: tuple[float, float], away_m: tuple[float, float],
               avoid: list[tuple[float, float]]) -> tuple[PlanePose, DistanceField] | None:
        """Where to stand to see a point, as in `place_at`, and the driving distances to it; None if there is none."""
        found = self.place_at(senses, target, away_m, avoid)
        if found is None:
            return None
        pose, floor = found
        return pose, floor.distances_to(np.array(pose[:2]) - self.corner)

    def open_side(self, point: tuple[float, float], within_m: float = 0.5) -> np.ndarray | None:
        """Unit vector (2,) from a point, such as a handle, away from what was seen around it; None if there is none."""
        seen = self.near(*point[:2], within_m)[:, :2] - point[:2]
        seen = np.unique(np.round(seen / CELL_M).astype(int), axis=0)  # one for each column
        away = -seen.mean(axis=0) if len(seen) else np.zeros(2)
        length = float(np.linalg.norm(away))
        return away / length if length > 0.5 else None

    def place_at(self, senses: Senses, target: tuple[float, float], away_m: tuple[float, float],
                 avoid: list[tuple[float, float]],
                 side: np.ndarray | None = None) -> tuple[PlanePose, FloorGrid] | None:
        """Where to stand to see a point, and the floor on which the robot can drive there; None if there is none.

        Args:
            target: the point (x, y), world frame.
            away_m: least and greatest distance from the point.
            avoid: places (x, y) where it stood before in vain.
            side: unit vector (2,) from the point towards the side on which it should stand.
        """
        base = np.array(senses.base_pose[:2]) - self.corner
        wanted = np.array(target[:2]) - self.corner
        filled = self.boxes.any(2)
        for room in _ROOM_M:
            floor = self.floor(room)
            blocked = floor.blocked.copy()
            i, j = (int(v / CELL_M) for v in base)
            blocked[i - 2:i + 3, j - 2:j + 3] = False  # it stands here
            free = FloorGrid(blocked)
            distances = free.distances_to(base)
            best, best_cost = None, math.inf
            for away in np.arange(away_m[0], away_m[1] + 1e-6, 0.08):
                for turn in np.arange(0.0, 2 * math.pi, math.pi / 18):
                    spot = wanted + away * np.array([math.cos(turn), math.sin(turn)])
                    cell = tuple((spot / CELL_M).astype(int))
                    if blocked[cell] or not math.isfinite(distances.distance_m[cell]):
                        continue
                    hidden = _crossed(filled, spot / CELL_M, wanted / CELL_M, 0.2 / CELL_M)
                    again = sum(math.dist(spot, np.array(other) - self.corner) < 0.3 for other in avoid)
                    cost = float(distances.distance_m[cell]) + 0.6 * hidden + 2.0 * again + abs(away - sum(away_m) / 2)
                    if side is not None:
                        cost += _ASIDE_COSTS_M * (1.0 - math.cos(turn) * side[0] - math.sin(turn) * side[1])
                    if cost < best_cost:
                        best, best_cost = spot, cost
            if best is not None:
                yaw = math.atan2(*(wanted - best)[::-1])
                x, y = best + self.corner
                return (float(x), float(y), yaw), free
        return None

    def ahead(self, field: DistanceField, pose: PlanePose) -> tuple[float, float]:
        """Where to steer next on a way of `way_to`."""
        x, y = field.descend(pose[0] - self.corner[0], pose[1] - self.corner[1], 0.35)
        return x + self.corner[0], y + self.corner[1]

    # ------------------------------------------------------------------ for the arm

    def near(self, x: float, y: float, reach_m: float = _ARM_REACH_M) -> np.ndarray:
        """Middles (n, 3) of the occupied boxes around a point."""
        low = [max(0, int((v - reach_m - c) / CELL_M)) for v, c in zip((x, y), self.corner)]
        i, j, across = *low, int(2 * reach_m / CELL_M)
        cells = np.argwhere(self.boxes[i:i + across, j:j + across])
        return (cells + (*low, 0) + 0.5) * CELL_M + (*self.corner, 0.0)


class CloudClearance:
    """Distance of the robot, in poses that it does not have yet, to what its camera saw: like
    `skills.experts.clearance.Clearance`, but without the simulator. What the hand holds does not count.

    target: point that the hand shall touch; nothing within `ignore_m` of it counts.
    """

    def __init__(self, senses: Senses, home: Map, target: np.ndarray | None, ignore_m: float = 0.10) -> None:
        self.checks, self._robot = 0, senses.robot
        x, y, _ = senses.base_pose
        points = np.vstack([home.near(x, y), senses.points()])
        points = points[(points[:, 2] > LOW_M) & (np.hypot(points[:, 0] - x, points[:, 1] - y) < _ARM_REACH_M + 0.7)]
        cells = np.unique(np.round(points / 0.02).astype(int), axis=0) * 0.02  # one for each 2 cm
        if target is not None:
            cells = cells[np.linalg.norm(cells - target, axis=1) > ignore_m]
        self.points = cells

    def distance(self, pose: PlanePose, arm_rad: np.ndarray, touching: int = -1, base_only: bool = False) -> float:
        """Smallest distance (m, at most _MOST_M, negative inside)."""
        self.checks += 1
        x, y, yaw = pose
        cos, sin = math.cos(yaw), math.sin(yaw)
        dx, dy = self.points[:, 0] - x, self.points[:, 1] - y
        local = np.column_stack([cos * dx + sin * dy, cos * dy - sin * dx, self.points[:, 2]])
        base, (ahead_m, radius_m, top_m) = self._robot.base, self._robot.base.trunk_m
        low = local[:, 2] < base.height_m
        least = min(_MOST_M, float((np.hypot(local[low, 0], local[low, 1]) - base.radius_m).min(initial=_MOST_M)))
        trunk = ~low & (local[:, 2] < top_m)
        away_m = np.hypot(local[trunk, 0] - ahead_m, local[trunk, 1]) - radius_m
        least = min(least, float(away_m.min(initial=_MOST_M)))
        if base_only:
            return least
        return min(least, gap_m(local, *arm_spheres(self._robot, arm_rad), _MOST_M))


def _crossed(filled: np.ndarray, start: np.ndarray, end: np.ndarray, spare: float) -> int:
    """Filled columns on a line between two cells, but for the last `spare` cells of it."""
    length = float(np.linalg.norm(end - start))
    shares = np.arange(0.0, max(length - spare, 0.0)) / max(length, 1e-9)
    cells = np.unique((start + shares[:, None] * (end - start)).astype(int), axis=0)
    return int(filled[cells[:, 0], cells[:, 1]].sum())


@njit(cache=True, nogil=True)
def _swollen(filled, radius):
    """Cells (n, m) bool within `radius` cells of a filled one."""
    out = np.zeros_like(filled)
    r = int(math.ceil(radius))
    for i in range(filled.shape[0]):
        for j in range(filled.shape[1]):
            if filled[i, j]:
                for a in range(max(0, i - r), min(filled.shape[0], i + r + 1)):
                    for b in range(max(0, j - r), min(filled.shape[1], j + r + 1)):
                        if (a - i) ** 2 + (b - j) ** 2 <= radius * radius:
                            out[a, b] = True
    return out


@njit(cache=True, nogil=True)
def _carve(boxes, window, frame, axes, eye, depth, slope, cell, behind):
    """Take out boxes that the image sees through. frame: cos, sin, x, y of the base in the map."""
    size = depth.shape[0]
    for i in range(window[0], window[2]):
        for j in range(window[1], window[3]):
            for k in range(boxes.shape[2]):
                if not boxes[i, j, k]:
                    continue
                dx, dy = (i + 0.5) * cell - frame[2], (j + 0.5) * cell - frame[3]
                fx, fy = frame[0] * dx + frame[1] * dy - eye[0], frame[0] * dy - frame[1] * dx - eye[1]
                fz = (k + 0.5) * cell - eye[2]
                ahead = axes[2, 0] * fx + axes[2, 1] * fy + axes[2, 2] * fz
                if ahead < 0.1:
                    continue
                u = (axes[0, 0] * fx + axes[0, 1] * fy + axes[0, 2] * fz) / ahead / slope
                v = (axes[1, 0] * fx + axes[1, 1] * fy + axes[1, 2] * fz) / ahead / slope
                if abs(u) >= 1.0 or abs(v) >= 1.0:
                    continue
                if depth[int((v + 1) / 2 * size), int((u + 1) / 2 * size)] > ahead + behind:
                    boxes[i, j, k] = False

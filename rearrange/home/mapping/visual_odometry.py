"""Where a robot is, by its depth images: each is laid onto the map that the earlier ones have made.

Correlative scan matching (Olson 2009, "Real-time correlative scan matching") against a map of the walls and furniture
that were seen, from the pose to which the command should lead. As in "The surprising effectiveness of visual odometry
techniques for embodied PointGoal navigation" (Zhao et al. 2021), it gives a pose, like GPS and compass.
"""

from __future__ import annotations

import math

import numpy as np

from rearrange.home.geometry import PlanePose, wrap_angle
from rearrange.home.numba_cache import njit

CELL_M = 0.03
BLUR_M = 0.04  # a point of the map attracts from about so far
KNOWN = 0.6  # points nearer to a known thing change nothing: its first look was from the best known pose
ROWS = 0.3  # share of the image's rows above and below the horizon that are used; beyond are floor and ceiling
BANDS, STEP = 5, 2  # bands of rows, one depth a column; every second pixel: Redwood's noise repeats them in pairs
FAR_M = 8.0  # depth is too uncertain beyond
JOINED = 0.3  # two columns with at most this relative difference of depth show one thing
POINTS, FEWEST = 320, 20  # that are compared, at most and at least
PRIOR = 0.006  # share of points that must fit better for a pose one standard deviation from the expected one
FARTHEST = 15.0  # squared deviations: beyond, a pose is no less likely, since something may have been in the way
TURN_STEP_RAD = math.radians(1.0)
DEVIATION = (0.02, 0.02, math.radians(1.0))  # at least, of a motion ahead (m), across (m) and about (rad)


class VisualOdometry:
    """The pose of one robot, and its map.

    Args:
        slopes: Of the image's columns (size,), metres to the right per metre of depth.
        far_m, near_m: Depth that the image shows as 1, and at least.
    """

    def __init__(self, slopes: np.ndarray, far_m: float, near_m: float, reach_m: float = 32.0) -> None:
        self._slopes, self._far_m, self._near_m = slopes, far_m, near_m
        cells = int(2 * reach_m / CELL_M)
        self._map = np.zeros((cells, cells), np.uint8)
        self._points = np.empty((4096, 2), np.float32)

    def begin(self, depth: np.ndarray, pose: PlanePose) -> None:
        """An episode begins at `pose` with this depth image, (size, size, 1) in 0..1."""
        self._start, self._map[:] = pose[:2], 0
        self._at = (0.0, 0.0, pose[2])  # from the start, axes of the world
        self._enter(self._scan(depth))

    @property
    def pose(self) -> PlanePose:
        """x, y (m), yaw (rad), in the frame of the pose that it began with."""
        x, y, yaw = self._at
        return self._start[0] + x, self._start[1] + y, wrap_angle(yaw)

    def see(self, depth: np.ndarray, expected: tuple[float, float, float], deviation: tuple[float, float, float],
            ahead_m: float) -> None:
        """Follow a motion by the image that was taken after it.

        Args:
            expected, deviation: Its mean and standard deviation: ahead, to the left (m) and about (rad).
            ahead_m: How much of it may be missing, because something was in the way.
        """
        x, y, yaw = self._at
        c, s = math.cos(yaw + expected[2]), math.sin(yaw + expected[2])
        guess = x + c * expected[0] - s * expected[1], y + s * expected[0] + c * expected[1], yaw + expected[2]
        deviations = np.maximum(deviation, DEVIATION)
        wide = 3 * deviations + (CELL_M, CELL_M, 0.0)
        count = self._scan(depth)
        if count < FEWEST:
            self._at = guess
            return
        self._at = _matched(self._map, self._points[:count], guess, yaw, -max(wide[0], ahead_m + CELL_M), wide,
                            deviations)
        self._enter(count)

    def _scan(self, depth: np.ndarray) -> int:
        """Points of this image; how many."""
        size = len(depth)
        half = int(ROWS * size)
        return _scan(depth, self._slopes, self._far_m, self._near_m, size // 2 - half, min(size // 2 + half, size),
                     self._points)

    def _enter(self, count: int) -> None:
        _enter(self._map, self._points[:count], *self._at)


@njit(cache=True, nogil=True)
def _scan(depth, slopes, far, near, top, bottom, out):
    """Write points (ahead, left) of a depth image, the median of each column in each band of rows; how many."""
    count = 0
    values = np.empty(depth.shape[0], np.float32)
    for band in range(BANDS):
        first = top + (bottom - top) * band // BANDS
        first += first % 2
        last_d = last_x = last_y = -1.0
        for j in range(0, depth.shape[1], STEP):
            n = 0
            for i in range(first, top + (bottom - top) * (band + 1) // BANDS, STEP):
                if 0.0 < depth[i, j, 0] < 1.0:
                    values[n] = depth[i, j, 0] * far
                    n += 1
            seen = np.sort(values[:n])
            d = 0.5 * (seen[n // 2] + seen[(n - 1) // 2]) if n else -1.0
            if d <= near + 1e-3 or d > FAR_M or seen[n - 1] - seen[0] > 0.1 * d + 0.05:  # nothing, or no upright thing
                last_d = -1.0
                continue
            x, y = d, -slopes[j] * d
            pieces = 1
            if last_d > 0 and abs(d - last_d) < JOINED * min(d, last_d):
                pieces = int(math.hypot(x - last_x, y - last_y) / CELL_M) + 1
            else:
                last_x, last_y = x, y
            for piece in range(1, pieces + 1):
                if count < out.shape[0]:
                    out[count, 0] = last_x + (x - last_x) * piece / pieces
                    out[count, 1] = last_y + (y - last_y) * piece / pieces
                    count += 1
            last_d, last_x, last_y = d, x, y
    return count


@njit(cache=True, nogil=True)
def _matched(grid, points, guess, heading, least_ahead, wide, deviations):
    """The pose near `guess` at which the points fit best: every second cell of a window, then ever smaller steps."""
    every = max(1, len(points) // POINTS)
    used = points[::every]
    n, half, count = grid.shape[0], grid.shape[0] / 2, len(used)
    rows, columns = np.empty(count, np.int64), np.empty(count, np.int64)
    c, s = math.cos(heading), math.sin(heading)
    reach = int(math.ceil(max(-least_ahead, wide[0], wide[1]) / CELL_M))
    turns = int(wide[2] / TURN_STEP_RAD)
    best, x, y, yaw = -math.inf, guess[0], guess[1], guess[2]
    for turn in range(-turns, turns + 1):
        about = turn * TURN_STEP_RAD
        cos, sin = math.cos(guess[2] + about), math.sin(guess[2] + about)
        for k in range(count):
            rows[k] = int((guess[0] + cos * used[k, 0] - sin * used[k, 1]) / CELL_M + half + 0.5)
            columns[k] = int((guess[1] + sin * used[k, 0] + cos * used[k, 1]) / CELL_M + half + 0.5)
        for u in range(-reach, reach + 1, 2):
            for v in range(-reach, reach + 1, 2):
                ahead, across = (c * u + s * v) * CELL_M, (c * v - s * u) * CELL_M
                if ahead < least_ahead or ahead > wide[0] or abs(across) > wide[1]:
                    continue
                unlikely = _unlikely(ahead, across, about, deviations)
                if 1.0 - unlikely <= best:
                    continue
                total = 0
                for k in range(count):
                    i, j = rows[k] + u, columns[k] + v
                    if 0 <= i < n and 0 <= j < n:
                        total += grid[i, j]
                if total / (255.0 * count) - unlikely > best:
                    best = total / (255.0 * count) - unlikely
                    x, y, yaw = guess[0] + u * CELL_M, guess[1] + v * CELL_M, guess[2] + about
    best = _fit(grid, used, x, y, yaw, guess, c, s, deviations)
    size, angle = CELL_M, TURN_STEP_RAD / 2
    ahead, left = used[:, 0].mean(), used[:, 1].mean()  # a turn about the robot would shift all points
    for _ in range(5):
        for _ in range(10):
            before = best
            for axis in range(3):
                for sign in (-1.0, 1.0):
                    to_x, to_y, to_yaw = x, y, yaw
                    if axis == 0:
                        to_x += sign * size
                    elif axis == 1:
                        to_y += sign * size
                    else:
                        to_yaw += sign * angle
                        dc, ds = math.cos(yaw) - math.cos(to_yaw), math.sin(yaw) - math.sin(to_yaw)
                        to_x, to_y = x + dc * ahead - ds * left, y + ds * ahead + dc * left
                    fit = _fit(grid, used, to_x, to_y, to_yaw, guess, c, s, deviations)
                    if fit > best:
                        best, x, y, yaw = fit, to_x, to_y, to_yaw
            if best - before < 1e-6:
                break
        size /= 2
        angle /= 2
    return x, y, yaw


@njit(cache=True, nogil=True)
def _fit(grid, points, x, y, yaw, guess, c, s, deviations):
    """How well points fit, up to 1, less what speaks against the pose."""
    half, cos, sin, total = grid.shape[0] / 2, math.cos(yaw), math.sin(yaw), 0.0
    for k in range(len(points)):
        total += _between(grid, (x + cos * points[k, 0] - sin * points[k, 1]) / CELL_M + half,
                          (y + sin * points[k, 0] + cos * points[k, 1]) / CELL_M + half)
    dx, dy = x - guess[0], y - guess[1]
    return total / (255.0 * len(points)) - _unlikely(c * dx + s * dy, c * dy - s * dx, yaw - guess[2], deviations)


@njit(cache=True, nogil=True)
def _unlikely(ahead, across, about, deviations):
    return PRIOR * min((ahead / deviations[0]) ** 2 + (across / deviations[1]) ** 2 + (about / deviations[2]) ** 2,
                       FARTHEST)


@njit(cache=True, nogil=True)
def _between(grid, at_i, at_j):
    """A value between cells, bilinear; 0 outside."""
    i, j, n = int(at_i), int(at_j), grid.shape[0]
    if i < 0 or j < 0 or i >= n - 1 or j >= n - 1:
        return 0.0
    a, b = at_i - i, at_j - j
    return (1 - a) * ((1 - b) * grid[i, j] + b * grid[i, j + 1]) + a * ((1 - b) * grid[i + 1, j]
                                                                        + b * grid[i + 1, j + 1])


@njit(cache=True, nogil=True)
def _enter(grid, points, x, y, yaw):
    """Let points that are new attract from now on."""
    n, cos, sin, wide = grid.shape[0], math.cos(yaw), math.sin(yaw), int(3 * BLUR_M / CELL_M)
    for k in range(len(points)):
        at_i = (x + cos * points[k, 0] - sin * points[k, 1]) / CELL_M + n / 2
        at_j = (y + sin * points[k, 0] + cos * points[k, 1]) / CELL_M + n / 2
        if _between(grid, at_i, at_j) > KNOWN * 255:
            continue
        middle_i, middle_j = int(at_i + 0.5), int(at_j + 0.5)
        for i in range(max(0, middle_i - wide), min(n, middle_i + wide + 1)):
            for j in range(max(0, middle_j - wide), min(n, middle_j + wide + 1)):
                squared = ((i - at_i) ** 2 + (j - at_j) ** 2) * (CELL_M / BLUR_M) ** 2
                grid[i, j] = max(grid[i, j], int(255 * math.exp(-squared / 2)))

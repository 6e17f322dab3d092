"""A perfect detector: positions of objects, openings of drawers and doors, and empty places, from a depth image in
which the owner of each pixel is known.

Depth images are flat, one row after another, in metres along the camera's axis. Poses and points are in the world
frame, which is that of the robot's odometry.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from rearrange.home.apartments.objects import OBJECTS
from rearrange.home.apartments.parts import Body
from rearrange.home.geometry import PlanePose, to_frame, wrap_angle
from rearrange.home.numba_cache import njit
from rearrange.home.robot.cameras import camera_points, mounting, to_world
from rearrange.home.robot.robot import Camera

_GRID = 61  # openings that are tried
_MOST_POINTS = 80  # of a drawer or door
_GOOD_FIT_M = 0.006  # mean distance of the points to the shape
_NEAREST_M, _FARTHEST_M = 0.3, 6.0  # at which an empty place is recognised
_BEHIND_M = 0.15  # how much farther than the object the camera has to see
_WINDOW = 1  # pixels around the middle of the object


@dataclass(frozen=True)
class Sighting:
    """An object in an image: its middle, and how much of its surface is seen, across the line of sight."""

    position: tuple[float, float, float]
    area_m2: float


def sight(camera: Camera, depth_m: np.ndarray, owners: np.ndarray, index: int, name: str,
          base_pose: PlanePose) -> Sighting:
    """Where an object is, of which some pixels are seen.

    Across the line of sight and upwards it lies in the middle of what is seen. Along the line of sight it lies behind
    the nearest point by half the thickness of its kind.

    Args:
        camera: of the head.
        depth_m: (pixels,), along the camera's axis.
        owners: (pixels,), index of the object to which each pixel belongs.
        index: of the object in the episode.
        name: of its kind.
        base_pose: (x, y, yaw), world frame.
    """
    which = np.flatnonzero(owners == index)
    points = to_world(camera_points(camera, depth_m, which), base_pose)
    eye = to_world(np.array([camera.position_m]), base_pose)[0]
    ahead = points[:, :2].mean(0) - eye[:2]
    ahead /= np.linalg.norm(ahead)
    aside = np.array([-ahead[1], ahead[0]])
    along, across = points[:, :2] @ ahead, points[:, :2] @ aside
    thick = (across.max() - across.min()) / 2  # of a kind that is not known: as deep as wide
    if name in OBJECTS:
        half = OBJECTS[name].half_size_m
        thick = (half[0] + half[1]) / 2 if OBJECTS[name].shape == "box" else half[0]
    x, y = (along.min() + thick) * ahead + (across.min() + across.max()) / 2 * aside
    pixel = 2 * math.tan(math.radians(camera.fov_deg / 2)) / math.isqrt(len(depth_m))
    z = (points[:, 2].min() + points[:, 2].max()) / 2
    return Sighting((float(x), float(y), float(z)), float(((depth_m[which] * pixel) ** 2).sum()))


def looks_through(camera: Camera, depth_m: np.ndarray, points: np.ndarray, base_pose: PlanePose) -> np.ndarray:
    """Which of the points (n, 3) the head camera looks at and sees what is behind them: (n,) bool."""
    x, y = to_frame(points[:, 0], points[:, 1], base_pose)
    local = np.stack([x, y, points[:, 2]]) - np.array(camera.position_m)[:, None]
    right, down, away = mounting(camera)[:3] @ local
    size = math.isqrt(len(depth_m))
    slope = math.tan(math.radians(camera.fov_deg / 2))
    image, found = depth_m.reshape(size, size), np.zeros(len(points), bool)
    for k in np.flatnonzero((_NEAREST_M < away) & (away < _FARTHEST_M)):
        column, row = (int((value[k] / away[k] / slope + 1) * size / 2) for value in (right, down))
        if _WINDOW <= column < size - _WINDOW and _WINDOW <= row < size - _WINDOW:
            around = image[row - _WINDOW:row + _WINDOW + 1, column - _WINDOW:column + _WINDOW + 1]
            found[k] = around.min() > away[k] + _BEHIND_M
    return found


def fit_opening(body: Body, camera: Camera, depth_m: np.ndarray, which: np.ndarray, base_pose: PlanePose,
                before: float) -> float:
    """How far a drawer or door stands open: as before if that explains its pixels, else what explains them best.

    Args:
        body: the drawer or door.
        camera: of the head.
        depth_m: (pixels,), along the camera's axis.
        which: (pixels,) bool, those of the drawer or door.
        base_pose: (x, y, yaw), world frame.
        before: the opening (m, rad) that was believed.
    """
    pixels = np.flatnonzero(which)
    points = to_world(camera_points(camera, depth_m, pixels[::max(1, len(pixels) // _MOST_POINTS)]), base_pose)
    if _misfit(body, before, points) < _GOOD_FIT_M:
        return before
    low, high = body.range_m_or_rad
    for _ in range(2):  # the second time around the best of the first
        tried = np.linspace(low, high, _GRID)
        best = float(min(tried, key=lambda opening: _misfit(body, opening, points)))
        step = tried[1] - tried[0]
        low, high = max(low, best - step), min(high, best + step)
    return best


def _misfit(body: Body, opening: float, points: np.ndarray) -> float:
    """Mean distance (m) of points (n, 3) from the surface of a drawer or door."""
    return _mean_distance(points, _boxes(body), *body.pose(opening), body.position_m[2])


@lru_cache(maxsize=256)
def _boxes(body: Body) -> np.ndarray:
    """Boxes (n, 7) around the solid parts of a drawer or door in its own frame: middle, yaw (rad), half size (m)."""
    boxes = [(*part.center_m, part.yaw_rad, *part.half_extent_m) for part in body.parts if part.solid]
    return np.array(boxes, float).reshape(-1, 7)


@njit(cache=True, nogil=True)
def _mean_distance(points, boxes, x, y, yaw, z):
    """Mean distance of points (n, 3) from the nearest box of a body that stands at (x, y, z), turned by yaw."""
    cos, sin = math.cos(yaw), math.sin(yaw)
    total = 0.0
    for i in range(len(points)):
        dx, dy, nearest = points[i, 0] - x, points[i, 1] - y, np.inf
        u, v, w = cos * dx + sin * dy, cos * dy - sin * dx, points[i, 2] - z
        for k in range(len(boxes)):
            c, s = math.cos(boxes[k, 3]), math.sin(boxes[k, 3])
            du, dv = u - boxes[k, 0], v - boxes[k, 1]
            a, b = abs(c * du + s * dv) - boxes[k, 4], abs(c * dv - s * du) - boxes[k, 5]
            h = abs(w - boxes[k, 2]) - boxes[k, 6]
            outside = math.sqrt(max(a, 0.0) ** 2 + max(b, 0.0) ** 2 + max(h, 0.0) ** 2)
            nearest = min(nearest, outside if outside > 0.0 else -max(a, b, h))
        total += nearest
    return total / len(points)


def opening_at(body: Body, hand: tuple[float, float, float]) -> float:
    """How far a drawer or door stands open whose handle is at the hand."""
    handle = next(part.center_m for part in body.parts if part.name == f"{body.name}_handle")
    low, high = body.range_m_or_rad
    x, y = to_frame(hand[0], hand[1], (*body.position_m[:2], body.yaw_rad))
    if body.joint == "slide":
        return float(min(max(x - handle[0], low), high))
    turned = body.hinge_sign * (math.atan2(y, x) - math.atan2(handle[1], handle[0]))
    return float(min(max(wrap_angle(turned), low), high))

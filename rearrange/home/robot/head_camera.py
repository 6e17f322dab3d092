"""Where the head camera sees a pixel: between its depth image and points of the base frame and of the world."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from rearrange.home.geometry import PlanePose
from rearrange.home.robot.fetch import HEAD_CAMERA_FOV_DEG, HEAD_CAMERA_POSITION_M, HEAD_CAMERA_TARGET_M


@lru_cache(maxsize=1)
def camera_axes() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Right, down and forward (3,) of the head camera in the base frame."""
    axis = np.subtract(HEAD_CAMERA_TARGET_M, HEAD_CAMERA_POSITION_M)
    axis /= np.linalg.norm(axis)
    right = np.array([0.0, -1.0, 0.0])
    return right, np.cross(axis, right), axis


@lru_cache(maxsize=4)
def _rays(size: int) -> np.ndarray:
    """Rays (size * size, 3) through the pixels of the head camera in the base frame, one metre along its axis."""
    slope = math.tan(math.radians(HEAD_CAMERA_FOV_DEG / 2))
    across = ((np.arange(size) + 0.5) * 2 / size - 1) * slope
    columns, rows = np.meshgrid(across, across)
    return np.column_stack([columns.ravel(), rows.ravel(), np.ones(size * size)]) @ np.stack(camera_axes())


def camera_points(depth_m: np.ndarray, which: np.ndarray) -> np.ndarray:
    """Points (n, 3) of the base frame that some pixels of the head camera see. depth_m: the whole square image, one row after
    another; which: (pixels,) bool, or indices.
    """
    return np.array(HEAD_CAMERA_POSITION_M) + _rays(math.isqrt(len(depth_m)))[which] * depth_m[which, None]


def to_world(local: np.ndarray, base_pose: PlanePose) -> np.ndarray:
    """Points (n, 3) of the base frame in the world, which is the frame of the odometry."""
    x, y, yaw = base_pose
    cos, sin = math.cos(yaw), math.sin(yaw)
    ahead, left, up = local.T
    return np.column_stack([x + cos * ahead - sin * left, y + sin * ahead + cos * left, up])

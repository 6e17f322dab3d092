"""Cameras of robots: how each is mounted, its pose in the world, and what the head camera sees at a pixel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, lru_cache

import numpy as np

from rearrange.home.geometry import PlanePose
from rearrange.home.robot.robot import Camera


def camera_axes(eye_m: Sequence[float] | np.ndarray, target_m: Sequence[float] | np.ndarray) -> np.ndarray:
    """(4, 3) float64: right, down and forward of a level camera at eye_m that looks at target_m, and eye_m itself."""
    eye, forward = np.asarray(eye_m, float), np.asarray(target_m, float) - np.asarray(eye_m, float)
    distance = np.linalg.norm(forward)
    if distance < 1e-6:
        raise ValueError(f"the eye and the target of a picture are the same point, {tuple(eye)}")
    forward /= distance
    right = np.cross(forward, (0.0, 0.0, 1.0))
    if np.linalg.norm(right) < 1e-6:  # straight up or down: world y is up in the picture
        right = np.array([1.0, 0.0, 0.0])
    right /= np.linalg.norm(right)
    return np.stack([right, np.cross(forward, right), forward, eye])


@cache
def mounting(camera: Camera) -> np.ndarray:
    """`camera_axes` of a camera of a robot, (4, 3), in the frame that it is fixed to."""
    return camera_axes(camera.position_m, camera.target_m)


def camera_mjcf(name: str, camera: Camera) -> str:
    """A level camera in a body whose frame is that of the camera."""
    dx, dy, dz = (b - a for a, b in zip(camera.position_m, camera.target_m))
    level = math.hypot(dx, dy)
    length = math.hypot(level, dz)
    up = -dz * dx / (level * length), -dz * dy / (level * length) + 0.0, level / length
    position, axes = (" ".join(map(str, values)) for values in (
        camera.position_m, (f"{dy / level:.6g}", f"{-dx / level:.6g}", 0, *(f"{value:.6f}" for value in up))))
    return f'<camera name="{name}" pos="{position}" xyaxes="{axes}" fovy="{camera.fov_deg}"/>'


def shifted(mounted: np.ndarray, shift_m: np.ndarray, turn_rad: np.ndarray) -> np.ndarray:
    """A mounting (4, 3) after a shift along its own axes and a turn about them, which is a rotation vector."""
    angle = float(np.linalg.norm(turn_rad))
    x, y, z = turn_rad / angle if angle else turn_rad
    cross = np.array([(0.0, -z, y), (z, 0.0, -x), (-y, x, 0.0)])
    turn = np.eye(3) + math.sin(angle) * cross + (1.0 - math.cos(angle)) * cross @ cross
    return np.vstack([turn.T @ mounted[:3], mounted[3] + shift_m @ mounted[:3]])


def in_world(mounted: np.ndarray, rotation: np.ndarray, origin: np.ndarray) -> np.ndarray:
    """A mounting (4, 3) in the world. It is fixed to a frame with this rotation (3, 3) and origin (3,)."""
    made = mounted @ rotation.T
    made[3] += origin
    return made


@lru_cache(maxsize=4)
def _rays(camera: Camera, size: int) -> np.ndarray:
    """Rays (size * size, 3) through the pixels of a head camera in the base frame, one metre along its axis."""
    slope = math.tan(math.radians(camera.fov_deg / 2))
    across = ((np.arange(size) + 0.5) * 2 / size - 1) * slope
    columns, rows = np.meshgrid(across, across)
    return np.column_stack([columns.ravel(), rows.ravel(), np.ones(size * size)]) @ mounting(camera)[:3]


def camera_points(camera: Camera, depth_m: np.ndarray, which: np.ndarray) -> np.ndarray:
    """Points (n, 3) of the base frame that some pixels of a head camera see.

    Args:
        camera: The head camera.
        depth_m: The whole square image, one row after another.
        which: The pixels, (pixels,) bool or their indices.
    """
    return np.array(camera.position_m) + _rays(camera, math.isqrt(len(depth_m)))[which] * depth_m[which, None]


def to_world(local: np.ndarray, base_pose: PlanePose) -> np.ndarray:
    """Points (n, 3) of the base frame in the world, which is the frame of the odometry."""
    x, y, yaw = base_pose
    cos, sin = math.cos(yaw), math.sin(yaw)
    ahead, left, up = local.T
    return np.column_stack([x + cos * ahead - sin * left, y + sin * ahead + cos * left, up])

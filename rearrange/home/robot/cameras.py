"""The robot's cameras: where each is mounted, and its pose in the world."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from rearrange.home.robot import fetch

CAMERAS = {"head": (fetch.HEAD_CAMERA_POSITION_M, fetch.HEAD_CAMERA_TARGET_M),
           "arm": (fetch.ARM_CAMERA_POSITION_M, fetch.ARM_CAMERA_TARGET_M)}
"""Of each camera: where it is and a point that it looks at, in the frame that it is fixed to. Head: base. Arm: end-effector."""
FOV_DEG, RANGE_M = fetch.HEAD_CAMERA_FOV_DEG, fetch.HEAD_CAMERA_RANGE_M


@cache
def mounting(camera: str) -> np.ndarray:
    """(4, 3): right, down and forward of a camera, and its place (m), in the frame that it is fixed to. Level: right has no z."""
    eye, target = (np.array(point, float) for point in CAMERAS[camera])
    forward = (target - eye) / np.linalg.norm(target - eye)
    right = np.cross(forward, (0.0, 0.0, 1.0))
    right /= np.linalg.norm(right)
    return np.stack([right, np.cross(forward, right), forward, eye])


def shifted(mounted: np.ndarray, shift_m: np.ndarray, turn_rad: np.ndarray) -> np.ndarray:
    """A mounting (4, 3) after a shift along its own axes (right, down, forward) and a turn about them, a rotation vector."""
    angle = float(np.linalg.norm(turn_rad))
    x, y, z = turn_rad / angle if angle else turn_rad
    cross = np.array([(0.0, -z, y), (z, 0.0, -x), (-y, x, 0.0)])
    turn = np.eye(3) + math.sin(angle) * cross + (1.0 - math.cos(angle)) * cross @ cross
    return np.vstack([turn.T @ mounted[:3], mounted[3] + shift_m @ mounted[:3]])


def in_world(mounted: np.ndarray, rotation: np.ndarray, origin: np.ndarray) -> np.ndarray:
    """A mounting (4, 3) in the world; rotation (3, 3) and origin (3,) of the frame that it is fixed to."""
    made = mounted @ rotation.T
    made[3] += origin
    return made

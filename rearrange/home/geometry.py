"""Geometry of poses: plane poses (x, y, yaw), quaternions (w, x, y, z) and rectangles on the floor.

World frame: z up, metres, radians. A plane pose names a frame whose x axis points along yaw. Everything takes and
returns plain floats or numpy arrays and works without MuJoCo.
"""

from __future__ import annotations

import math

import numpy as np

from rearrange.home.plane_geometry import PlanePose, compose, from_frame, rotate, to_frame, wrap_angle

__all__ = ["PlanePose", "Rectangle", "compose", "from_frame", "matrix_quat", "quat_inverse", "quat_matrix",
           "quat_multiply", "quat_yaw", "rectangles_overlap", "rotate", "to_frame", "wrap_angle", "yaw_quat"]

def yaw_quat(yaw_rad: float) -> np.ndarray:
    """Quaternion (w, x, y, z) of a turn about z. Shape (4,)."""
    return np.array([math.cos(yaw_rad / 2), 0.0, 0.0, math.sin(yaw_rad / 2)])


def quat_yaw(quat: np.ndarray) -> float:
    """Heading of the rotated x axis, in [-pi, pi]."""
    w, x, y, z = quat
    return math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))


def quat_multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Rotation b followed by rotation a. Shapes (4,), (4,) -> (4,)."""
    aw, ax, ay, az = a
    bw, bx, by, bz = b
    return np.array([aw * bw - ax * bx - ay * by - az * bz, aw * bx + ax * bw + ay * bz - az * by,
                     aw * by - ax * bz + ay * bw + az * bx, aw * bz + ax * by - ay * bx + az * bw])


def quat_inverse(quat: np.ndarray) -> np.ndarray:
    """Inverse rotation of a unit quaternion. Shape (4,)."""
    return np.array([quat[0], -quat[1], -quat[2], -quat[3]])


def quat_matrix(quat: np.ndarray) -> np.ndarray:
    """Rotation matrix whose columns are the rotated axes. Shape (3, 3)."""
    w, x, y, z = quat
    return np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                     [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                     [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]])


def matrix_quat(matrix: np.ndarray) -> np.ndarray:
    """Unit quaternion (w >= 0) of a rotation matrix (3, 3), after Shepperd 1978."""
    m = np.asarray(matrix, float)
    trace = m[0, 0] + m[1, 1] + m[2, 2]
    largest = int(np.argmax([trace, m[0, 0], m[1, 1], m[2, 2]]))
    if largest == 0:
        quat = np.array([1 + trace, m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]])
    else:
        i, j, k = largest - 1, largest % 3, (largest + 1) % 3
        quat = np.empty(4)
        quat[0] = m[k, j] - m[j, k]
        quat[1 + i] = 1 + m[i, i] - m[j, j] - m[k, k]
        quat[1 + j] = m[j, i] + m[i, j]
        quat[1 + k] = m[k, i] + m[i, k]
    quat /= np.linalg.norm(quat)
    return -quat if quat[0] < 0 else quat


Rectangle = tuple[float, float, float, float, float]
"""A turned rectangle on the floor: centre x, centre y, half size along its x, half size along its y, yaw."""


def rectangles_overlap(a: Rectangle, b: Rectangle) -> bool:
    """True when two turned rectangles share more than an edge (separating axis theorem; 0.1 mm tolerance)."""
    dx, dy = b[0] - a[0], b[1] - a[1]
    reach = math.hypot(a[2], a[3]) + math.hypot(b[2], b[3])
    if dx * dx + dy * dy > reach * reach:
        return False
    ca, sa, cb, sb = math.cos(a[4]), math.sin(a[4]), math.cos(b[4]), math.sin(b[4])
    c, s = abs(ca * cb + sa * sb), abs(sa * cb - ca * sb)
    return (abs(ca * dx + sa * dy) < a[2] + b[2] * c + b[3] * s - 1e-4 and abs(-sa * dx + ca * dy) < a[3] + b[2] * s
            + b[3] * c - 1e-4 and abs(cb * dx + sb * dy) < b[2] + a[2] * c + a[3] * s - 1e-4
            and abs(-sb * dx + cb * dy) < b[3] + a[2] * s + a[3] * c - 1e-4)

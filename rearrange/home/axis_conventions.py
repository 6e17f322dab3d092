"""Between our world, z up, and Habitat's, y up: the point (x, y, z) of ours is (x, z, -y) there, in metres.

A rotation R of ours is C R C^T there, with C that change of axes. Habitat's 4x4 transforms are given by rows.
"""

from __future__ import annotations

import numpy as np

from rearrange.home.geometry import matrix_quat, quat_matrix

Point = tuple[float, float, float]
Pose = tuple[float, float, float, float, float, float, float]  # x, y, z (m), quaternion w, x, y, z; world frame, z up

AXES = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])
"""`to_y_up` as a matrix."""


def to_y_up(point: Point) -> Point:
    """A point or direction of ours, in Habitat's frame."""
    x, y, z = point
    return (x, z, -y)


def to_z_up(x: float, y: float, z: float) -> Point:
    """Inverse of `to_y_up`."""
    return (x, -z, y)


def pose_to_matrix(pose: Pose) -> list[list[float]]:
    """Our pose as rows of Habitat's 4x4 transform. The axis of a rotation changes frame as a point does."""
    rotation = quat_matrix(np.array([pose[3], *to_y_up(pose[4:])]))
    rows = [[*map(float, rotation[i]), p] for i, p in enumerate(to_y_up(pose[:3]))]
    return [*rows, [0.0, 0.0, 0.0, 1.0]]


def matrix_to_pose(rows: list[list[float]]) -> Pose:
    """Inverse of `pose_to_matrix`, with w >= 0."""
    w, i, j, k = matrix_quat(np.array([row[:3] for row in rows[:3]])).tolist()
    return (*to_z_up(*(row[3] for row in rows[:3])), w, *to_z_up(i, j, k))

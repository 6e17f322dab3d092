"""Habitat's matrices and vectors as ours, z up. `mn` objects come in as anything that can be indexed."""

from __future__ import annotations

from typing import Any

import numpy as np

from rearrange.home.axis_conventions import Point, to_y_up, to_z_up


def numbers(vector: Any) -> tuple[float, float, float]:
    """Of Magnum's vector, one by one: to unpack it costs a C++ exception at its end, a tenth of a millisecond."""
    return vector[0], vector[1], vector[2]


def rotation_of_link(matrix: np.ndarray) -> list[float]:
    """Rotation (9,) row by row, world z up, of a link whose own frame is z up, from its 4x4 transform, world y up."""
    (a, b, c, _), (d, e, f, _), (g, h, i, _), _ = matrix.tolist()
    return [a, b, c, -g, -h, -i, d, e, f]


def turn_of_object(rotation: Any) -> tuple[float, float, float, float]:
    """Our quaternion (w, x, y, z) of an object with a y-up frame of its own, from Habitat's."""
    return (rotation.scalar, *to_z_up(*numbers(rotation.vector)))


def camera_in_base(eye: Point, target: Point) -> np.ndarray:
    """(4, 4) of a camera in the base frame y up, which looks along its -z with y up; `eye`, `target`: ours, z up."""
    eye_up, forward = np.array(to_y_up(eye)), np.subtract(to_y_up(target), to_y_up(eye))
    back = -forward / np.linalg.norm(forward)
    right = np.cross((0.0, 1.0, 0.0), back)
    right /= np.linalg.norm(right)
    matrix = np.eye(4)
    matrix[:3, :3] = np.column_stack([right, np.cross(back, right), back])
    matrix[:3, 3] = eye_up
    return matrix

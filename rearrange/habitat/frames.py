"""Between Habitat's matrices and vectors, y up, and the project's, z up. Magnum's come in as what can be indexed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rearrange.home.axis_conventions import to_y_up, to_z_up


def vector(x: float, y: float, z: float) -> Any:
    """A vector of Magnum."""
    import magnum

    return magnum.Vector3(x, y, z)


def matrix4(rows: np.ndarray | Sequence[Sequence[float]]) -> Any:
    """A matrix of Magnum from rows (4, 4)."""
    import magnum

    return magnum.Matrix4(np.transpose(rows).tolist())


def numbers(vector: Any) -> tuple[float, float, float]:
    """Of Magnum's vector, one by one: to unpack it costs a C++ exception at its end, a tenth of a millisecond."""
    return vector[0], vector[1], vector[2]


def rotation_of_link(matrix: np.ndarray) -> list[float]:
    """Rotation (9,) row by row, world z up, of a link whose own frame is z up, from its 4x4 transform, world y up."""
    (a, b, c, _), (d, e, f, _), (g, h, i, _), _ = matrix.tolist()
    return [a, b, c, -g, -h, -i, d, e, f]


def turn_of_object(rotation: Any) -> tuple[float, float, float, float]:
    """Quaternion (w, x, y, z), z up, of an object with a y-up frame of its own, from Habitat's."""
    return (rotation.scalar, *to_z_up(*numbers(rotation.vector)))


def camera_transform(pose: np.ndarray) -> np.ndarray:
    """(4, 4), y up, of a camera that looks along its -z with y up. pose: (4, 3), right, down, forward, place, z up."""
    made = np.eye(4)
    for column, direction in enumerate((pose[0], -pose[1], -pose[2], pose[3])):
        made[:3, column] = to_y_up(tuple(direction))
    return made

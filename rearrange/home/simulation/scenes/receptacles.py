"""Receptacles of an external scene as Habitat-Lab declares them: a box above a surface. Those given by a mesh
(`receptacle_mesh_...`) are not read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rearrange.home.scene_files.templates import BOX


@dataclass(frozen=True, eq=False)
class FoundReceptacle:
    """In our world, everything closed."""

    name: str  # without the prefix
    handle: str | None  # of the object that it belongs to; None for the stage
    link: int | str | None  # of an articulated object, as its simulator counts or calls it
    middle_m: tuple[float, float, float]  # of its box
    half_m: tuple[float, float, float]
    yaw_rad: float


def found_receptacle(name: str, handle: str | None, link: int | str | None, middle: np.ndarray, half: np.ndarray, frame: np.ndarray,
                     scale: float | np.ndarray = 1.0) -> FoundReceptacle:
    """From what a file declares: middle and half size (3,) of the box in `frame` (4, 4), without its `scale`."""
    middle, half = scale * middle, np.abs(scale * half)
    up = int(np.argmax(np.abs(frame[2, :3])))  # the axis of the box that is upright in the world
    across, along = (axis for axis in range(3) if axis != up)
    return FoundReceptacle(
        name.removeprefix(BOX), handle, link, tuple((frame @ (*middle, 1.0))[:3].tolist()),
        (float(half[across]), float(half[along]), float(half[up])), math.atan2(frame[1, across], frame[0, across]))

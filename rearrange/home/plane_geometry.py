"""Poses (x, y, yaw) on the floor: the frame whose x axis points along yaw. Metres, radians; plain numbers, no numpy."""

from __future__ import annotations

import math

PlanePose = tuple[float, float, float]
_BEFORE_HANDLE_M = 0.02


def wrap_angle(angle_rad: float) -> float:
    """The same angle in [-pi, pi)."""
    return (angle_rad + math.pi) % (2 * math.pi) - math.pi


def rotate(x: float, y: float, yaw_rad: float) -> tuple[float, float]:
    """The plane vector (x, y) turned by yaw."""
    c, s = math.cos(yaw_rad), math.sin(yaw_rad)
    return c * x - s * y, s * x + c * y


def from_frame(x: float, y: float, pose: PlanePose) -> tuple[float, float]:
    """World coordinates of the point (x, y) given in the frame of `pose`."""
    dx, dy = rotate(x, y, pose[2])
    return pose[0] + dx, pose[1] + dy


def to_frame(x: float, y: float, pose: PlanePose) -> tuple[float, float]:
    """Coordinates in the frame of `pose` of the world point (x, y)."""
    return rotate(x - pose[0], y - pose[1], -pose[2])


def just_before(x: float, y: float, to: tuple[float, float]) -> tuple[float, float]:
    """The point on the way from (x, y) where a line of sight to a handle ends.

    A flat front is held on its surface and a bar in its middle: the line must not end inside of what it looks at.
    """
    share = 1.0 - min(1.0, _BEFORE_HANDLE_M / max(math.dist((x, y), to), _BEFORE_HANDLE_M))
    return x + share * (to[0] - x), y + share * (to[1] - y)


def compose(outer: PlanePose, inner: PlanePose) -> PlanePose:
    """The pose `inner`, given in the frame of `outer`, in the world."""
    x, y = from_frame(inner[0], inner[1], outer)
    return x, y, wrap_angle(outer[2] + inner[2])

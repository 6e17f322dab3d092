"""From which sides a robot can reach each receptacle of a home."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from rearrange.home.apartments.floor_grid import CELL_M
from rearrange.home.apartments.parts import Body, Part, Receptacle
from rearrange.home.geometry import from_frame, rotate
from rearrange.home.numba_cache import njit

STAND_M = (0.30, 0.72)
"""Distance of the robot's centre from the edge of the surface that it works on."""
MIN_SHARE = 0.4
"""A side counts when at least this share of its edge has such a place before it."""
HAND_M = 0.2
"""The hand travels this high above the surface."""
STAND_OPEN_M = (0.80, 1.05)
"""The same before a drawer, from its closed front: the drawer has to come out."""


def reachable_sides(receptacles: list[Receptacle], bodies: list[Body], parts: list[Part],
                    reachable: np.ndarray) -> list[Receptacle]:
    """The receptacles with only those `sides` before which a robot has room to stand and nothing in between."""
    poses = {body.name: body.pose() for body in bodies}
    walls = np.array([(*p.rectangle, p.bottom_m, p.top_m) for p in parts if p.solid])
    return [_with_sides(r, poses, walls, reachable) for r in receptacles]


def _with_sides(receptacle: Receptacle, poses: dict, walls: np.ndarray, reachable: np.ndarray) -> Receptacle:
    kept = []
    for side in receptacle.sides:
        x, y, height = receptacle.center_m
        direction, (near, far) = side, STAND_M
        edge = receptacle.half_along_m(side)
        if receptacle.parent is not None:
            pose = poses[receptacle.parent]
            (x, y), direction = from_frame(0.0, y, pose), rotate(*side, pose[2])
            edge, (near, far) = 0.0, STAND_OPEN_M
            height = math.inf
        share = _standing_share(reachable, walls, x, y, direction[0], direction[1], edge,
                                receptacle.half_across_m(side), near, far, height, CELL_M)
        if share >= MIN_SHARE:
            kept.append(side)
    return replace(receptacle, sides=tuple(kept))


@njit(cache=True, nogil=True)
def _standing_share(reachable, walls, x, y, nx, ny, edge, half_across, near, far, height, cell):
    """Share of the edge before which lies a reachable cell, with a straight way for the hand over what is between."""
    steps = max(1, int(half_across / cell))
    count = 0
    for a in range(-steps, steps + 1):
        across = a * half_across / steps
        px, py = x + nx * edge - ny * across, y + ny * edge + nx * across
        d = near
        while d <= far:
            i, j = int((px + nx * d) / cell), int((py + ny * d) / cell)
            if 0 <= i < reachable.shape[0] and 0 <= j < reachable.shape[1] and reachable[i, j]:
                if not _blocked_above(walls, px, py, nx, ny, d, height + HAND_M):
                    count += 1
                break
            d += cell / 2
    return count / (2 * steps + 1)


@njit(cache=True, nogil=True)
def _blocked_above(walls, px, py, nx, ny, length, height):
    """Whether a part stands in the way of the hand, just above `height`, between the edge point and the robot."""
    for k in range(walls.shape[0]):
        cx, cy, hx, hy, yaw, low, high = walls[k]
        if high < height or low > height + 0.25:
            continue
        c, s = math.cos(yaw), math.sin(yaw)
        d = 0.02
        while d < length:
            dx, dy = px + nx * d - cx, py + ny * d - cy
            if abs(c * dx + s * dy) < hx and abs(c * dy - s * dx) < hy:
                return True
            d += 0.03
    return False

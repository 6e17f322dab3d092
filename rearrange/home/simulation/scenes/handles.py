"""Where the handle of a closed drawer or door is: where its file says, or else the bar that stands out of its front."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from rearrange.home.apartments.episodes import Marker
from rearrange.home.axis_conventions import to_y_up

if TYPE_CHECKING:
    from rearrange.home.simulation.scenes.drawers_and_doors import MovingLink

_STANDS_OUT_M = 0.02  # of a bar
_FOREMOST_M = 0.015  # so much of a bar that is only seen says where its middle is
_LARGE = 0.5  # of the largest body as seen from before: so large is no bar


def handle_and_front(link: MovingLink, markers: Iterable[Marker], yaw: float,
                     foremost_m: float) -> tuple[np.ndarray | None, float]:
    """The handle (3,) of a closed link and where its front lies, in axes of which x points out of the front.

    The handle is its marker, or the middle of the bar that stands out of its front and collides, or on the front behind
    one that is only seen, as of ReplicaCAD's fridge, or None.

    Args:
        link: The drawer or door.
        markers: Of the scene and its episodes.
        yaw: Of the axis out of its front (rad).
        foremost_m: The greatest x of what collides of it.
    """
    point = _marked_point(link, markers)
    if point is not None:
        return turned(point[None], yaw)[0], foremost_m
    solids = [turned(points, yaw) for points in link.solids]
    if solids and (bar := _bar(solids)) is not None:
        return bar
    seen = turned(link.seen, yaw)
    if not len(seen) or seen[:, 0].max() < foremost_m + _STANDS_OUT_M:
        return None, foremost_m
    bar = seen[seen[:, 0] > seen[:, 0].max() - _FOREMOST_M]
    return np.array((foremost_m, *((bar.min(axis=0) + bar.max(axis=0)) / 2)[1:])), foremost_m


def _marked_point(link: MovingLink, markers: Iterable[Marker]) -> np.ndarray | None:
    """Where the first marker on a link is, (3,), the link closed; None when it has none."""
    for marker in markers:
        if marker.object == link.handle and marker.link == link.name:
            return (link.frame @ (*to_y_up(marker.offset), 1.0))[:3]  # the reader turned it as it turns world vectors
    return None


def _bar(solids: list[np.ndarray]) -> tuple[np.ndarray, float] | None:
    """Middle (3,) of the foremost face of what stands out of a front, and where the front lies; None for a flat one.

    The front is the foremost of the bodies that are large as seen from before it: what lies behind may be larger.

    Args:
        solids: Corners (n, 3) of each convex body, x out of the front.
    """
    low, high = (np.array([bound(points, axis=0) for points in solids]) for bound in (np.min, np.max))
    area = (high - low)[:, 1] * (high - low)[:, 2]
    front_m = float(high[area > _LARGE * area.max(), 0].max())
    out = high[:, 0] > front_m + _STANDS_OUT_M
    if not out.any():
        return None
    middle = (low[out].min(axis=0) + high[out].max(axis=0)) / 2
    return np.array((high[out, 0].max(), middle[1], middle[2])), front_m


def turned(points: np.ndarray, yaw: float) -> np.ndarray:
    """Points (n, 3) in axes of which x points along yaw."""
    c, s = math.cos(yaw), math.sin(yaw)
    return points @ np.array([(c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0)])

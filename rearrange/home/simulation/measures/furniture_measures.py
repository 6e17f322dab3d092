"""Measures of drawers, doors and surfaces of one home."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from rearrange.home.apartments.containers import LEAST_OPEN_M_OR_RAD
from rearrange.home.apartments.floor_grid import CELL_M
from rearrange.home.apartments.parts import Receptacle
from rearrange.home.episodes.generator import LOW_CLEARANCE_M
from rearrange.home.simulation.measures.relief import Front, edge_above, front_of
from rearrange.home.simulation.measures.shapes import HomeShapes, Opening

Values = Iterator[tuple[str, str, float | str]]
"""Group, property with its unit, value."""

DRAWER, FRIDGE_DOOR = "drawer", "fridge door"  # those that open as far as skills need
SHORT_DRAWER, SLIDING_DOOR, OTHER_DOOR, FLAP = "short drawer", "sliding door", "other door", "flap"
_LEAST_M = LEAST_OPEN_M_OR_RAD["drawer"] - 1e-6
_UPRIGHT = 0.95  # cosine
_LEAF_M = 0.1  # a door is not thicker
_FREE_FROM_M = 0.15  # so near before a front there may be its handle, or the edge of a worktop
FREE_FLOOR, MOST_FREE_M = "free floor before it (m)", 3.0  # what is farther counts as so far


def openings(home: HomeShapes) -> Values:
    """Of all drawers, doors and flaps."""
    for opening in home.openings:
        group = group_of(opening)
        if group in (SLIDING_DOOR, FLAP):
            values = _plain(opening)
        else:
            values = _with_front(home, opening, group)
        yield from ((group, what, value) for what, value in values)


def group_of(opening: Opening) -> str:
    """What kind of opening it is, by its axis and its shape."""
    if opening.kind == "hinge":
        upright = abs(opening.axis[2]) > _UPRIGHT
        return FRIDGE_DOOR if opening.is_fridge and upright else OTHER_DOOR if upright else FLAP
    if abs(opening.axis[2]) > 1.0 - _UPRIGHT:
        return FLAP
    local = _turned(opening.seen, math.atan2(opening.axis[1], opening.axis[0])).reshape(-1, 3)
    along, across, _ = np.ptp(local, axis=0)
    return SLIDING_DOOR if across < _LEAF_M < along else DRAWER if opening.opens_m_or_rad >= _LEAST_M else SHORT_DRAWER


def front_yaw(opening: Opening) -> float:
    """The direction that a closed front looks in: that of a slide, or, of a door, the one it swings to first."""
    if opening.kind == "slide":
        return math.atan2(opening.axis[1], opening.axis[0])
    sides = opening.seen[:, 1:] - opening.seen[:, :1]
    normals = np.cross(sides[:, 0], sides[:, 1])[:, :2]
    size = np.linalg.norm(normals, axis=1, keepdims=True)
    _, axes = np.linalg.eigh(normals.T @ (normals / np.maximum(size, 1e-12)))
    points = opening.seen.reshape(-1, 3)
    arm = (points.min(axis=0) + points.max(axis=0)) / 2 - opening.origin
    swing = np.cross(opening.axis, arm)[:2]
    out = axes[:, 1] * (1.0 if axes[:, 1] @ swing > 0.0 else -1.0)
    return math.atan2(out[1], out[0])


def surfaces(home: HomeShapes) -> Values:
    """Of all receptacles but those in drawers."""
    for place in home.layout.receptacles:
        if place.parent is None:
            group = _surface_group(place)
            depth, width = _depth_and_width(place)
            yield group, "height (m)", place.center_m[2]
            yield group, "depth (m)", depth
            yield group, "width (m)", width
            if math.isfinite(place.clearance_m):
                yield group, "clearance above (m)", place.clearance_m


def _surface_group(place: Receptacle) -> str:
    if place.kind in ("fridge", "counter", "sink"):
        return "fridge board" if place.kind == "fridge" else place.kind
    if place.kind == "shelf" or place.clearance_m < LOW_CLEARANCE_M:
        return "board"
    return place.kind.replace("_", " ")


def _depth_and_width(place: Receptacle) -> tuple[float, float]:
    """How far its farther edge is from the side that it is reached from best, and how wide that side is."""
    side = min(place.sides, key=place.half_along_m)
    return 2 * place.half_along_m(side), 2 * place.half_across_m(side)


def _plain(opening: Opening) -> Iterator[tuple[str, float | str]]:
    points = opening.seen.reshape(-1, 3)
    yield "bottom (m)", points[:, 2].min()
    yield "top (m)", points[:, 2].max()
    yield f"range ({_unit(opening)})", opening.opens_m_or_rad
    yield from _frictions(opening)


def _with_front(home: HomeShapes, opening: Opening, group: str) -> Iterator[tuple[str, float | str]]:
    yaw = front_yaw(opening)
    front, solid = front_of(_turned(opening.seen, yaw)), front_of(_turned(opening.touched, yaw))
    yield "front as seen", front.kind
    yield "front as touched", solid.kind
    yield "handle stands out of the front, as seen (m)", front.stands_out_m
    yield "handle stands out of the front, as touched (m)", solid.stands_out_m
    yield "handle stands out of what is around it (m)", front.handle_rises_m
    if front.handle_low is not None:
        across, up = (b - a for a, b in zip(front.handle_low, front.handle_high))
        yield "handle is", "level" if across > up else "upright"
        yield "handle length (m)", max(across, up)
    yield "bottom (m)", front.low[1]
    yield "top (m)", front.high[1]
    yield "height (m)", front.high[1] - front.low[1]
    yield "width (m)", front.high[0] - front.low[0]
    handle = _handle(opening, front, yaw)
    if handle is not None:
        yield "handle height (m)", handle[1]
    if group in (DRAWER, SHORT_DRAWER):
        yield "depth (m)", float(np.ptp(_turned(opening.touched, yaw)[:, :, 0]))
    else:
        hinge = float(_turned(opening.origin[None, None], yaw)[0, 0, 1])
        # Who faces the front has its left, y, on the right.
        yield "hinge", "right" if hinge > (front.low[0] + front.high[0]) / 2 else "left"
        if handle is not None:
            yield "handle from hinge (m)", abs(handle[0] - hinge)
    yield f"{'travel' if opening.kind == 'slide' else 'range'} ({_unit(opening)})", opening.opens_m_or_rad
    yield from _frictions(opening)
    if group in (DRAWER, FRIDGE_DOOR):
        if group == DRAWER:
            yield "edge above stands out (m)", edge_above(solid, _turned(home.still_touched, yaw))
        yield FREE_FLOOR, free_before(home, front, yaw)


def _frictions(opening: Opening) -> Iterator[tuple[str, float]]:
    unit = "N" if opening.kind == "slide" else "Nm"
    yield f"friction as run ({unit})", opening.friction
    yield f"friction in its file ({unit})", opening.friction_in_file
    yield "mass (kg)", opening.mass_kg


def _unit(opening: Opening) -> str:
    return "m" if opening.kind == "slide" else "rad"


def _handle(opening: Opening, front: Front, yaw: float) -> tuple[float, float] | None:
    """y and z of where it is taken: where skills take it, else the middle of its handle."""
    if opening.handle is not None:
        return tuple(_turned(opening.handle[None, None], yaw)[0, 0, 1:].tolist())
    if front.handle_low is None:
        return None
    return tuple((a + b) / 2 for a, b in zip(front.handle_low, front.handle_high))


def free_before(home: HomeShapes, front: Front, yaw: float) -> float:
    """How far the floor before the middle of a front is free (m)."""
    c, s = math.cos(yaw), math.sin(yaw)
    across = (front.low[0] + front.high[0]) / 2
    for out in np.arange(_FREE_FROM_M, MOST_FREE_M, CELL_M / 2):
        x, y = front.plane_m + out, across
        i, j = int((c * x - s * y) // CELL_M), int((s * x + c * y) // CELL_M)
        if not (0 <= i < home.obstacles.shape[0] and 0 <= j < home.obstacles.shape[1]) or home.obstacles[i, j]:
            return float(out)
    return MOST_FREE_M


def _turned(triangles: np.ndarray, yaw: float) -> np.ndarray:
    """Triangles (n, 3, 3) in axes of which x points along yaw."""
    c, s = math.cos(yaw), math.sin(yaw)
    return triangles @ np.array([(c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0)])

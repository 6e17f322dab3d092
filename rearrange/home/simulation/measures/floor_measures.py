"""Measures of the floor of one home: what encloses it, rooms between walls, the ways that furniture leaves between."""

from __future__ import annotations

import numpy as np

from rearrange.home.apartments.floor_grid import CELL_M, floor_grid, label
from rearrange.home.apartments.parts import Receptacle
from rearrange.home.geometry import to_frame
from rearrange.home.simulation.measures.furniture_measures import Values
from rearrange.home.simulation.measures.shapes import ABOVE_FURNITURE_M, HomeShapes

_EYES_M, _LEVEL = 1.1, 0.9  # height of the head camera; uprightness of a level normal
ENCLOSED = ("ceiling above", "walls around")
"""Properties that say whether a home has them. A ceiling is above more than `_SHARE` of the floor; of level views from
it more than that share ends at something.
"""
_SHARE = 0.5
_EVERY = 5  # cells between points that rooms are measured at
_PERCENTILES = (10, 50, 90)  # of the floor, that stand for its narrow, usual and wide rooms
WAY, WIDEST_WAY_M = "narrowest on the way to a surface (m)", 1.6  # what is wider counts as so wide
_WAYS_M = np.arange(0.5, WIDEST_WAY_M + 0.01, 0.05)
_AT_M = 0.8  # who is so near to a surface has come to it


def floors(home: HomeShapes) -> Values:
    """Of rooms and ways."""
    reachable = floor_grid(home.layout).reachable
    yield "floor", "free floor (m2)", float(reachable.sum()) * CELL_M**2
    cells = np.argwhere(reachable)
    chosen = cells[(cells % _EVERY == 0).all(axis=1)]
    if len(chosen):
        points, size_m = (chosen + 0.5) * CELL_M, home.layout.size_m
        yield "floor", ENCLOSED[0], _said(is_covered(points, home.still_seen).mean())
        ends = ends_at(points, section(home.still_seen, _EYES_M))
        yield "floor", ENCLOSED[1], _said(np.isfinite(ends).mean())
        chords = chords_at(points, section(home.still_seen, home.walls_at_m), size_m)
        for name, lengths in (("shorter", chords.min(axis=1)), ("longer", chords.max(axis=1))):
            for value in np.percentile(lengths, _PERCENTILES):
                yield "floor", f"between walls, {name} way (m)", float(value)
    for width in ways_to(home.obstacles, home.layout.receptacles).values():
        yield "floor", WAY, width


def section(triangles: np.ndarray, height_m: float) -> np.ndarray:
    """(n, 2, 2) lines in which triangles (m, 3, 3) cross a level."""
    above = triangles[:, :, 2] > height_m
    cut = triangles[above.any(axis=1) & ~above.all(axis=1)]
    ends = []
    for start in range(3):
        a, b = cut[:, start], cut[:, (start + 1) % 3]
        crosses = (a[:, 2] > height_m) != (b[:, 2] > height_m)
        share = (height_m - a[:, 2]) / np.where(crosses, b[:, 2] - a[:, 2], 1.0)
        ends.append((crosses, a[:, :2] + share[:, None] * (b - a)[:, :2]))
    lines = np.empty((len(cut), 2, 2))
    for row in range(len(cut)):  # two of the three sides cross
        lines[row] = [points[row] for crosses, points in ends if crosses[row]]
    return lines


def _said(share: float) -> str:
    return "yes" if share > _SHARE else "no"


def is_covered(points: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """(n,) over which of points (n, 2) a level triangle of (m, 3, 3) lies, higher than furniture is."""
    normals = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    level = np.abs(normals[:, 2]) > _LEVEL * np.linalg.norm(normals, axis=1)
    flat = triangles[level & (triangles[:, :, 2].min(axis=1) > ABOVE_FURNITURE_M)][:, :, :2]
    covered = np.zeros(len(points), bool)
    for triangle in flat:
        sides = np.roll(triangle, -1, axis=0) - triangle
        to_point = points[:, None] - triangle
        turns = sides[:, 0] * to_point[..., 1] - sides[:, 1] * to_point[..., 0]
        covered |= (turns >= 0).all(axis=1) | (turns <= 0).all(axis=1)
    return covered


def ends_at(points: np.ndarray, lines: np.ndarray) -> np.ndarray:
    """(n, 2, 2) along x and along y: where lines (m, 2, 2) end the view from points (n, 2), behind and ahead; infinite
    where nothing does.
    """
    found = np.empty((len(points), 2, 2))
    for axis in (0, 1):
        a, b = lines[:, 0], lines[:, 1]
        across = 1 - axis
        for row, point in enumerate(points):
            crosses = (a[:, across] > point[across]) != (b[:, across] > point[across])
            p, q = a[crosses], b[crosses]
            at = p[:, axis] + (point[across] - p[:, across]) / (q - p)[:, across] * (q - p)[:, axis]
            found[row, axis] = (at[at < point[axis]].max(initial=-np.inf), at[at >= point[axis]].min(initial=np.inf))
    return found


def chords_at(points: np.ndarray, lines: np.ndarray, size_m: tuple[float, float]) -> np.ndarray:
    """(n, 2) along x and along y: how far it is from wall to wall through points (n, 2), or to the end of the floor."""
    behind, ahead = np.moveaxis(ends_at(points, lines), -1, 0)
    return np.where(np.isfinite(ahead), ahead, size_m) - np.where(np.isfinite(behind), behind, 0.0)


def ways_to(obstacles: np.ndarray, places: tuple[Receptacle, ...]) -> dict[str, float]:
    """Surface -> how wide the way to it is at its narrowest place (m), from the widest space of the home."""
    clear_m, found = clearance(obstacles), {}
    middle = np.unravel_index(np.argmax(clear_m), clear_m.shape)
    centers = (np.argwhere(np.ones_like(obstacles)) + 0.5) * CELL_M
    near = {place.name: _near(place, centers).reshape(obstacles.shape) for place in places if place.parent is None}
    for width in _WAYS_M:
        labels, _ = label(clear_m < width / 2)
        there = labels == labels[middle]
        if labels[middle] >= 0:
            found |= {name: float(width) for name, cells in near.items() if (there & cells).any()}
    return found


def _near(place: Receptacle, points: np.ndarray) -> np.ndarray:
    """Which of points (n, 2) are near a surface, before a side that it is reached from."""
    x, y = to_frame(points[:, 0], points[:, 1], (*place.center_m[:2], place.yaw_rad))
    beside = np.maximum(np.abs(x) - place.half_extents_m[0], 0), np.maximum(np.abs(y) - place.half_extents_m[1], 0)
    out = ((points - place.center_m[:2]) @ side - place.half_along_m(side) for side in place.sides)
    return (np.hypot(*beside) < _AT_M) & (np.max(list(out), axis=0) > 0.0)


def clearance(obstacles: np.ndarray) -> np.ndarray:
    """How far the middle of each cell is from the nearest obstacle or the end of the floor (m)."""
    padded = np.pad(obstacles, 1, constant_values=True)
    square = np.where(padded, 0.0, np.inf)
    for _ in range(2):  # along x, then along y: the least sum of squares
        steps = np.arange(len(square))
        apart = (steps[:, None] - steps[None]) ** 2.0
        square = np.array([(apart + row[None]).min(axis=1) for row in square.T])
    return CELL_M * np.maximum(np.sqrt(square[1:-1, 1:-1]) - 0.5, 0.0)

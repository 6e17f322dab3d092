"""Outlines of convex bodies seen from above, and the cells of a grid that lie in them."""

from __future__ import annotations

import numpy as np


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """z of the product of vectors in the plane, (2, ...)."""
    return a[0] * b[1] - a[1] * b[0]


def outline_between(points: np.ndarray, low: float, high: float) -> np.ndarray:
    """Outline (n, 2), counterclockwise, of what of a convex body lies between two heights. points: its corners, z up.

    It has no corners where nothing of the body lies there.
    """
    z = points[:, 2]
    if z.max() <= low or z.min() >= high:
        return np.empty((0, 2))
    kept = [points[(z >= low) & (z <= high)][:, :2]]
    for level in (low, high):
        under, over = points[z < level], points[z > level]
        if len(under) and len(over):
            t = ((level - under[:, 2])[:, None] / (over[None, :, 2] - under[:, None, 2]))[..., None]
            kept.append((under[:, None, :2] + t * (over[None, :, :2] - under[:, None, :2])).reshape(-1, 2))
    return outline_of(np.concatenate(kept))


def outline_of(points: np.ndarray) -> np.ndarray:
    """The convex outline of points in the plane, counterclockwise (monotone chain)."""
    points = np.unique(np.round(points, 4), axis=0)
    if len(points) < 3:
        return points
    chains = []
    for ordered in (points, points[::-1]):
        chain: list[np.ndarray] = []
        for point in ordered:
            while len(chain) > 1 and cross(chain[-1] - chain[-2], point - chain[-1]) <= 0.0:
                chain.pop()
            chain.append(point)
        chains += chain[:-1]
    return np.array(chains)


def area_of(outline: np.ndarray) -> float:
    """Area within an outline (n, 2)."""
    return abs(float(cross(outline.T, np.roll(outline, -1, axis=0).T).sum())) / 2 if len(outline) > 2 else 0.0


def cells_around(outline: np.ndarray, margin: float, shape: tuple[int, int],
                 cell_m: float) -> tuple[tuple[slice, slice], np.ndarray, np.ndarray]:
    """The cells around an outline, and the coordinates (n, 1) and (1, m) of their middles.

    Args:
        outline: (n, 2), from the low corner of the grid.
        margin: So far around it (m).
        shape: Of the grid.
        cell_m: Side of a cell.
    """
    first = np.clip(np.floor((outline.min(axis=0) - margin) / cell_m).astype(int), 0, shape)
    last = np.clip(np.ceil((outline.max(axis=0) + margin) / cell_m).astype(int) + 1, 0, shape)
    x, y = ((np.arange(a, b) + 0.5) * cell_m for a, b in zip(first, last))
    return (slice(first[0], last[0]), slice(first[1], last[1])), x[:, None], y[None, :]


def mark(grid: np.ndarray, outline: np.ndarray, radius_m: float, cell_m: float, value: bool) -> None:
    """Set the cells whose middle lies within an outline, or nearer to it than a radius.

    Args:
        grid: (cells in x, cells in y), changed.
        outline: (n, 2), counterclockwise, from the low corner of the grid.
        radius_m: 0 for the inside alone.
        cell_m: Side of a cell.
        value: What they are set to.
    """
    area, x, y = cells_around(outline, radius_m, grid.shape, cell_m)
    inside, nearest = np.ones(np.broadcast_shapes(x.shape, y.shape), bool), np.inf
    for p, q in zip(outline, np.roll(outline, -1, axis=0)):
        side = q - p
        inside &= side[0] * (y - p[1]) - side[1] * (x - p[0]) >= 0.0
        share = np.clip(((x - p[0]) * side[0] + (y - p[1]) * side[1]) / max(side @ side, 1e-12), 0.0, 1.0)
        nearest = np.minimum(nearest, np.hypot(x - p[0] - share * side[0], y - p[1] - share * side[1]))
    inside &= len(outline) > 2
    grid[area][inside | (nearest < radius_m)] = value

"""What collides: convex bodies of a scene, world frame or a link's, metres."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_SAME_M = 1e-4
_THIN_M = 2e-3  # flatter points are thickened: a hull without volume collides with nothing
MOST_CORNERS = 128  # of a hull; of more points the outermost in as many directions are taken
_HEIGHTS = np.linspace(-1.0, 1.0, MOST_CORNERS)
_TURNS = np.pi * (1.0 + 5.0 ** 0.5) * np.arange(MOST_CORNERS)
_DIRECTIONS = np.column_stack([np.sqrt(1.0 - _HEIGHTS**2) * np.cos(_TURNS), np.sqrt(1.0 - _HEIGHTS**2) * np.sin(_TURNS), _HEIGHTS])
_ROUND = np.array([(np.cos(a), np.sin(a)) for a in np.linspace(0, 2 * np.pi, 17)[:-1]])


@dataclass(frozen=True, eq=False)
class Solid:
    """kind: box (half sides), cylinder or capsule along z (radius, half length), sphere (radius) in `frame` (4, 4), or hull of
    `points` (n, 3), which lie in the same frame as `frame` itself does.
    """

    kind: str
    frame: np.ndarray
    size: tuple[float, ...] = ()
    points: np.ndarray | None = None

    def corners(self) -> np.ndarray:
        """Points (n, 3) whose hull it is, or lies around it closely."""
        if self.kind == "hull":
            return self.points
        if self.kind == "box":
            local = _unit_box() * self.size
        elif self.kind == "sphere":
            local = _unit_box() * self.size[0]
        else:
            top = self.size[1] + (self.size[0] if self.kind == "capsule" else 0.0)
            local = np.array([(*(self.size[0] * xy), z) for xy in _ROUND for z in (-top, top)])
        return local @ self.frame[:3, :3].T + self.frame[:3, 3]

    def moved(self, frame: np.ndarray) -> Solid:
        """In the frame of which `frame` (4, 4, rigid) is its own."""
        points = None if self.points is None else self.points @ frame[:3, :3].T + frame[:3, 3]
        return Solid(self.kind, frame @ self.frame, self.size, points)


def _unit_box() -> np.ndarray:
    return np.array([(x, y, z) for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])


def hull(points: np.ndarray) -> Solid | None:
    """The convex hull of points (n, 3), as a box where it is one; None for fewer than three points."""
    points = points[np.unique(np.round(points / _SAME_M).astype(np.int64), axis=0, return_index=True)[1]]
    if len(points) < 3:
        return None
    if len(points) > MOST_CORNERS:
        points = points[np.unique((points @ _DIRECTIONS.T).argmax(axis=0))]
    found = _as_box(points) if len(points) == 8 else None
    return found or Solid("hull", np.eye(4), points=_thickened(points))


def _as_box(points: np.ndarray) -> Solid | None:
    """Eight corners of a box with right angles as that box."""
    middle = points.mean(axis=0)
    from_first = points - points[0]
    nearest = from_first[np.argsort(np.linalg.norm(from_first, axis=1), kind="stable")][1:]
    for third in (2, 3):  # the two nearest corners end two of its edges; before the end of the third there may be a diagonal
        edges = nearest[[0, 1, third]]
        lengths = np.linalg.norm(edges, axis=1)
        axes = edges / lengths[:, None]
        if np.abs(axes @ axes.T - np.eye(3)).max() > 1e-3:
            continue
        local = np.abs((points - middle) @ axes.T) - lengths / 2
        if np.abs(local).max() < 5 * _SAME_M:
            frame = np.eye(4)
            frame[:3, :3], frame[:3, 3] = axes.T, middle
            if np.linalg.det(frame[:3, :3]) < 0.0:
                frame[:3, 2] *= -1.0
            return Solid("box", frame, tuple((lengths / 2).tolist()))
    return None


def _thickened(points: np.ndarray) -> np.ndarray:
    """The points, and as many beside them where they lie in one plane or line."""
    centered = points - points.mean(axis=0)
    _, spread, axes = np.linalg.svd(centered, full_matrices=True)
    for axis in axes:
        if np.ptp(points @ axis) < _THIN_M:
            points = np.concatenate([points - _THIN_M / 2 * axis, points + _THIN_M / 2 * axis])
    return points

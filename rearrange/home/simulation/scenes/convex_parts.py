"""What collides: convex bodies of a scene, and a stage cut into such, world frame or a link's, metres.

MuJoCo takes every mesh for its convex hull, and a stage is one mesh of floor, walls and openings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rearrange.home.scene_files.surfaces import BOX, moved, transform

MOST_CORNERS = 128  # of a hull; of more points the outermost in as many directions are taken
_SAME_M = 1e-4
_THIN_M = 2e-3  # flatter points are thickened: a hull without volume collides with nothing
_WALL_M = 0.02  # behind a surface of a stage, so that nothing slips through it in a substep
_FLAT = 1e-3  # 1 - cosine, and m, within which two triangles lie in one plane
_BENT_M2 = 1e-7  # of a corner that turns the wrong way
_HEIGHTS = np.linspace(-1.0, 1.0, MOST_CORNERS)
_TURNS = np.pi * (1.0 + 5.0 ** 0.5) * np.arange(MOST_CORNERS)
_DIRECTIONS = np.column_stack([np.sqrt(1.0 - _HEIGHTS**2) * np.cos(_TURNS),
                               np.sqrt(1.0 - _HEIGHTS**2) * np.sin(_TURNS), _HEIGHTS])
_ROUND = np.array([(np.cos(a), np.sin(a)) for a in np.linspace(0, 2 * np.pi, 17)[:-1]])


@dataclass(frozen=True, eq=False)
class Solid:
    """kind: box (half sides), cylinder or capsule along z (radius, half length), sphere (radius) in `frame` (4, 4), or
    hull of `points` (n, 3), which lie in the same frame as `frame` itself does.
    """

    kind: str
    frame: np.ndarray
    size: tuple[float, ...] = ()
    points: np.ndarray | None = None

    def corners(self) -> np.ndarray:
        """Points (n, 3) whose hull it is, or lies around it closely."""
        if self.kind == "hull":
            return self.points
        if self.kind in ("box", "sphere"):
            local = BOX * (self.size if self.kind == "box" else self.size[0])
        else:
            top = self.size[1] + (self.size[0] if self.kind == "capsule" else 0.0)
            local = np.array([(*(self.size[0] * xy), z) for xy in _ROUND for z in (-top, top)])
        return moved(local, self.frame)

    def moved(self, frame: np.ndarray) -> Solid:
        """In the frame of which `frame` (4, 4, rigid) is its own."""
        points = None if self.points is None else moved(self.points, frame)
        return Solid(self.kind, frame @ self.frame, self.size, points)


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
    for third in (2, 3):  # the two nearest corners end two edges; before the end of the third there may be a diagonal
        edges = nearest[[0, 1, third]]
        lengths = np.linalg.norm(edges, axis=1)
        axes = edges / lengths[:, None]
        if np.abs(axes @ axes.T - np.eye(3)).max() > 1e-3:
            continue
        local = np.abs((points - middle) @ axes.T) - lengths / 2
        if np.abs(local).max() < 5 * _SAME_M:
            frame = transform(axes.T, middle)
            if np.linalg.det(frame[:3, :3]) < 0.0:
                frame[:3, 2] *= -1.0
            return Solid("box", frame, tuple((lengths / 2).tolist()))
    return None


def _thickened(points: np.ndarray) -> np.ndarray:
    """The points, and as many beside them where they lie in one plane or line."""
    centered = points - points.mean(axis=0)
    _, _, axes = np.linalg.svd(centered, full_matrices=True)
    for axis in axes:
        if np.ptp(points @ axis) < _THIN_M:
            points = np.concatenate([points - _THIN_M / 2 * axis, points + _THIN_M / 2 * axis])
    return points


def flat_pieces(vertices: np.ndarray, triangles: np.ndarray) -> list[np.ndarray]:
    """Corners (n, 3) of convex pieces that have the surface of triangles (m, 3), counterclockwise from outside."""
    keys, same = np.unique(np.round(vertices / _SAME_M).astype(np.int64), axis=0, return_inverse=True)
    points, triangles = keys * _SAME_M, same.reshape(-1)[triangles]
    a, b, c = (points[triangles[:, k]] for k in range(3))
    normals = np.cross(b - a, c - a)
    areas = np.linalg.norm(normals, axis=1)
    kept = areas > 1e-7
    triangles, normals = triangles[kept], normals[kept] / areas[kept, None]
    return [np.concatenate([(corners := points[polygon]), corners - _WALL_M * normal])
            for polygon, normal in _convex_polygons(points, triangles, normals)]


def _convex_polygons(points: np.ndarray, triangles: np.ndarray,
                     normals: np.ndarray) -> list[tuple[list[int], np.ndarray]]:
    """Triangles joined with neighbours in their plane as long as they stay convex: corners and normal of each."""
    polygons = {k: list(map(int, triangle)) for k, triangle in enumerate(triangles)}
    owner: dict[tuple[int, int], int] = {}
    for k, polygon in polygons.items():
        for edge in _edges(polygon):
            owner.setdefault(edge, k)
    offsets = np.einsum("ij,ij->i", normals, points[triangles[:, 0]])
    for edge in sorted(owner, key=lambda edge: -float(np.linalg.norm(points[edge[0]] - points[edge[1]]))):
        one, other = owner.get(edge), owner.get(edge[::-1])
        if one is None or other is None or one == other or normals[one] @ normals[other] < 1.0 - _FLAT:
            continue
        if abs(offsets[one] - points[polygons[other]] @ normals[one]).max() > _FLAT:
            continue
        joined = _joined(polygons[one], polygons[other], edge)
        if joined is None or not _is_convex(points[joined], normals[one]):
            continue
        for k in (one, other):
            for pair in _edges(polygons[k]):
                if owner.get(pair) == k:
                    del owner[pair]
        polygons[one] = joined
        del polygons[other]
        for pair in _edges(joined):
            owner.setdefault(pair, one)
    return [(polygon, normals[k]) for k, polygon in polygons.items()]


def _edges(polygon: list[int]) -> list[tuple[int, int]]:
    return list(zip(polygon, polygon[1:] + polygon[:1]))


def _joined(one: list[int], other: list[int], edge: tuple[int, int]) -> list[int] | None:
    """The outline of two polygons that share an edge of the first; None where it touches itself."""
    i, j = one.index(edge[0]), other.index(edge[1])
    outline = one[i + 1:] + one[:i + 1] + (other[j + 1:] + other[:j + 1])[1:-1]
    return outline if len(set(outline)) == len(outline) else None


def _is_convex(corners: np.ndarray, normal: np.ndarray) -> bool:
    sides = np.roll(corners, -1, axis=0) - corners
    return bool((np.cross(sides, np.roll(sides, -1, axis=0)) @ normal > -_BENT_M2).all())

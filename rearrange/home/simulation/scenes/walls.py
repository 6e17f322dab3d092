"""A stage as convex pieces: what is flat and convex in its surface, with some thickness behind it.

MuJoCo takes every mesh for its convex hull, and a stage is one mesh of floor, walls and openings.
"""

from __future__ import annotations

import numpy as np

_THICK_M = 0.02  # behind a surface, so that nothing slips through it in a substep
_SAME_M = 1e-4
_FLAT = 1e-3  # 1 - cosine, and m, within which two triangles lie in one plane
_BENT = 1e-7  # m2, of a corner that turns the wrong way


def flat_pieces(vertices: np.ndarray, triangles: np.ndarray) -> list[np.ndarray]:
    """Corners (n, 3) of convex pieces that have the given surface, of triangles (m, 3) that are counterclockwise from outside."""
    keys, same = np.unique(np.round(vertices / _SAME_M).astype(np.int64), axis=0, return_inverse=True)
    points, triangles = keys * _SAME_M, same.reshape(-1)[triangles]
    a, b, c = (points[triangles[:, k]] for k in range(3))
    normals = np.cross(b - a, c - a)
    areas = np.linalg.norm(normals, axis=1)
    kept = areas > 1e-7
    triangles, normals = triangles[kept], normals[kept] / areas[kept, None]
    return [np.concatenate([(corners := points[polygon]), corners - _THICK_M * normal])
            for polygon, normal in _convex_polygons(points, triangles, normals)]


def _convex_polygons(points: np.ndarray, triangles: np.ndarray, normals: np.ndarray) -> list[tuple[list[int], np.ndarray]]:
    """Triangles joined with their neighbours in the same plane as long as they stay convex: corners, counterclockwise, and normals."""
    polygons = {k: list(map(int, triangle)) for k, triangle in enumerate(triangles)}
    owner: dict[tuple[int, int], int] = {}
    for k, (a, b, c) in polygons.items():
        for edge in ((a, b), (b, c), (c, a)):
            owner.setdefault(edge, k)
    offsets = np.einsum("ij,ij->i", normals, points[triangles[:, 0]])
    for edge in sorted(owner, key=lambda edge: -float(np.linalg.norm(points[edge[0]] - points[edge[1]]))):
        one, other = owner.get(edge), owner.get(edge[::-1])
        if one is None or other is None or one == other:
            continue
        if normals[one] @ normals[other] < 1.0 - _FLAT or abs(offsets[one] - points[polygons[other]] @ normals[one]).max() > _FLAT:
            continue
        joined = _joined(polygons[one], polygons[other], edge)
        if joined is None or not _is_convex(points[joined], normals[one]):
            continue
        for k in (one, other):
            for pair in zip(polygons[k], polygons[k][1:] + polygons[k][:1]):
                if owner.get(pair) == k:
                    del owner[pair]
        polygons[one] = joined
        del polygons[other]
        for pair in zip(joined, joined[1:] + joined[:1]):
            owner.setdefault(pair, one)
    return [(polygon, normals[k]) for k, polygon in polygons.items()]


def _joined(one: list[int], other: list[int], edge: tuple[int, int]) -> list[int] | None:
    """The outline of two polygons that share an edge, in the first from its first corner to its second; None where it touches itself."""
    i, j = one.index(edge[0]), other.index(edge[1])
    outline = one[i + 1:] + one[:i + 1] + (other[j + 1:] + other[:j + 1])[1:-1]
    return outline if len(set(outline)) == len(outline) else None


def _is_convex(corners: np.ndarray, normal: np.ndarray) -> bool:
    sides = np.roll(corners, -1, axis=0) - corners
    return bool((np.cross(sides, np.roll(sides, -1, axis=0)) @ normal > -_BENT).all())

"""Points and triangles: 4x4 transforms of points, and the surfaces of boxes and round shapes."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

SIDES = 16  # of what is round
BOX = np.array([(x, y, z) for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])  # corners; half sides of 1
BOX_TRIANGLES = np.array([(0, 1, 3), (0, 3, 2), (4, 7, 5), (4, 6, 7), (0, 5, 1), (0, 4, 5), (2, 3, 7), (2, 7, 6),
                          (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3)])
_HABITAT_SHAPE = re.compile(r"(cube|sphere|uvSphere|icosphere|cylinder|capsule3D|cone)(Solid|Wireframe)(_.*)?")


def transform(turn: Any = None, position: Any = None) -> np.ndarray:
    """(4, 4) of a rotation or scale, (3, 3) or (9,), and a position (3,); None changes nothing."""
    made = np.eye(4)
    if turn is not None:
        made[:3, :3] = np.reshape(turn, (3, 3))
    if position is not None:
        made[:3, 3] = position
    return made


def moved(points: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Points (n, 3) after a transform (4, 4)."""
    return points @ by[:3, :3].T + by[:3, 3]


def facing_out(triangles: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Triangles (m, 3) after a transform: a mirror image is turned, so that its outside is seen again."""
    return triangles[:, ::-1] if np.linalg.det(by[:3, :3]) < 0.0 else triangles


def box_around(points: np.ndarray) -> np.ndarray:
    """Corners (8, 3) of the box around points, along the axes."""
    low, high = points.min(axis=0), points.max(axis=0)
    return np.array([[(low, high)[i >> axis & 1][axis] for axis in range(3)] for i in range(8)])


def upward(corners: np.ndarray) -> np.ndarray:
    """Those of triangles (m, 3, 3) that are level and seen from above."""
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    return corners[normals[:, 2] > 0.9 * np.linalg.norm(normals, axis=1)]


def surface(kind: str, size: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (n, 3), with the axis along z (m), and triangles (m, 3), counterclockwise from outside.

    Args:
        kind: "box", "ellipsoid", "sphere", "cylinder", "capsule" or "cone".
        size: Half sides of a box or ellipsoid; the radius of a sphere; else radius and half length.
    """
    if kind == "box":
        return BOX * size, BOX_TRIANGLES
    arc = [(math.cos(a), math.sin(a)) for a in np.linspace(-math.pi / 2, math.pi / 2, SIDES // 2 + 1)]
    if kind == "ellipsoid":
        vertices, triangles = _turned(arc)
        return vertices * size, triangles
    if kind == "sphere":
        return _turned([(size[0] * r, size[0] * z) for r, z in arc])
    radius, half = size[0], size[1]
    if kind == "capsule":
        middle = len(arc) // 2
        return _turned([*((radius * r, radius * z - half) for r, z in arc[:middle + 1]),
                        *((radius * r, radius * z + half) for r, z in arc[middle:])])
    top = [(0.0, half)] if kind == "cone" else [(radius, half), (0.0, half)]
    return _turned([(0.0, -half), (radius, -half), *top])


def _turned(outline: list[tuple[float, float]]) -> tuple[np.ndarray, np.ndarray]:
    """The surface that an outline (radius, z), from below upwards, makes about z."""
    turns = np.linspace(0.0, 2 * math.pi, SIDES, endpoint=False)
    vertices = np.array([(r * math.cos(a), r * math.sin(a), z) for r, z in outline for a in turns])
    sides = [(row * SIDES + k, row * SIDES + (k + 1) % SIDES) for row in range(len(outline) - 1) for k in range(SIDES)]
    return vertices, np.array([corner for a, b in sides
                               for corner in ((a, b, b + SIDES), (a, b + SIDES, a + SIDES))])


@lru_cache(maxsize=64)
def habitat_shape(name: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Vertices and triangles of a shape that Habitat-Sim makes itself, y up (m); None if there is none of this name.

    Its name is that of an asset, as cubeSolid or cylinderSolid_rings_1_..._halfLen_1. A cube has half sides of 1 m, all
    others a radius of 1 m about y. Cylinders and cones are twice the half length high that their names give, a capsule
    so much between its caps (AssetAttributesManager, BulletRigidObject::buildPrimitiveCollisionObject).
    """
    if (match := _HABITAT_SHAPE.fullmatch(name)) is None:
        return None
    if match[1] == "cube":
        return BOX, BOX_TRIANGLES
    length = re.search(r"_halfLen_(\d+\.?\d*)", name)
    kind = {"cylinder": "cylinder", "cone": "cone", "capsule3D": "capsule"}.get(match[1], "sphere")
    vertices, triangles = surface(kind, (1.0, float(length[1]) if length else 1.0))
    vertices = vertices[:, (0, 2, 1)] * (1.0, 1.0, -1.0)
    a, b, c = np.moveaxis(vertices[triangles], 1, 0)
    return vertices, triangles[np.linalg.norm(np.cross(b - a, c - a), axis=1) > 1e-9]

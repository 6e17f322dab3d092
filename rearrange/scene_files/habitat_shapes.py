"""Shapes that Habitat-Sim makes itself, named as assets of a data set: cubeSolid, cylinderSolid_rings_1_..., and others.

A cube has half sides of 1 m, all others a radius of 1 m about y; cylinders and cones are twice the half length high that
their names give, a capsule so much between its caps (Habitat-Sim: AssetAttributesManager,
BulletRigidObject::buildPrimitiveCollisionObject).
"""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np

from rearrange.scene_files.glb import Piece
from rearrange.scene_files.glb_materials import GREY

_NAME = re.compile(r"(cube|sphere|uvSphere|icosphere|cylinder|capsule3D|cone)(Solid|Wireframe)(_.*)?")
_SIDES = 16


@lru_cache(maxsize=64)
def shape_called(name: str) -> Piece | None:
    """Triangles of the surface, seen from outside, in the shape's own frame, y up (m); None for what is no such name."""
    if (match := _NAME.fullmatch(name)) is None:
        return None
    length = re.search(r"_halfLen_(\d+\.?\d*)", name)
    half, arc = float(length.group(1)) if length else 1.0, np.linspace(-np.pi / 2, np.pi / 2, _SIDES // 2 + 1)
    kind = match.group(1)
    if kind == "cube":
        corners = np.array([(x, y, z) for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
        triangles = np.array([(0, 1, 3), (0, 3, 2), (4, 7, 5), (4, 6, 7), (0, 5, 1), (0, 4, 5), (2, 3, 7), (2, 7, 6),
                              (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3)])
    elif kind == "cylinder":
        corners, triangles = _turned([(0.0, -half), (1.0, -half), (1.0, half), (0.0, half)])
    elif kind == "cone":
        corners, triangles = _turned([(0.0, -half), (1.0, -half), (0.0, half)])
    elif kind == "capsule3D":
        below, above = arc[arc <= 1e-9], arc[arc >= -1e-9]
        corners, triangles = _turned([*((np.cos(a), np.sin(a) - half) for a in below), *((np.cos(a), np.sin(a) + half) for a in above)])
    else:
        corners, triangles = _turned([(np.cos(a), np.sin(a)) for a in arc])
    return Piece(corners, triangles.astype(np.int32), np.full(3, GREY))


def _turned(outline: list[tuple[float, float]]) -> tuple[np.ndarray, np.ndarray]:
    """The surface that an outline (radius, y), from below upwards, makes about y."""
    turns = np.linspace(0.0, 2.0 * np.pi, _SIDES, endpoint=False)
    corners = np.array([(r * np.cos(a), y, -r * np.sin(a)) for r, y in outline for a in turns])
    triangles = []
    for row in range(len(outline) - 1):
        for k in range(_SIDES):
            a, b = row * _SIDES + k, row * _SIDES + (k + 1) % _SIDES
            triangles += [(a, b, b + _SIDES), (a, b + _SIDES, a + _SIDES)]
    found = np.array(triangles)
    sides = np.cross(corners[found[:, 1]] - corners[found[:, 0]], corners[found[:, 2]] - corners[found[:, 0]])
    return corners, found[np.linalg.norm(sides, axis=1) > 1e-9]

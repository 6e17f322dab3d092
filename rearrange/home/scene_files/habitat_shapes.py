"""Shapes that Habitat-Sim makes itself, named as assets of a data set: cubeSolid, cylinderSolid_rings_1_..., and others.

A cube has half sides of 1 m, all others a radius of 1 m about y; cylinders and cones are twice the half length high that
their names give, a capsule so much between its caps (Habitat-Sim: AssetAttributesManager,
BulletRigidObject::buildPrimitiveCollisionObject).
"""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np

from rearrange.home.scene_files.glb import Piece
from rearrange.home.scene_files.glb_materials import GREY
from rearrange.home.scene_files.surfaces import BOX, BOX_TRIANGLES, SIDES, turned

_NAME = re.compile(r"(cube|sphere|uvSphere|icosphere|cylinder|capsule3D|cone)(Solid|Wireframe)(_.*)?")


@lru_cache(maxsize=64)
def shape_called(name: str) -> Piece | None:
    """Triangles of the surface, seen from outside, in the shape's own frame, y up (m); None for what is no such name."""
    if (match := _NAME.fullmatch(name)) is None:
        return None
    length = re.search(r"_halfLen_(\d+\.?\d*)", name)
    half, arc = float(length.group(1)) if length else 1.0, np.linspace(-np.pi / 2, np.pi / 2, SIDES // 2 + 1)
    kind = match.group(1)
    if kind == "cube":
        corners, triangles = BOX, BOX_TRIANGLES
    elif kind == "cylinder":
        corners, triangles = _turned([(0.0, -half), (1.0, -half), (1.0, half), (0.0, half)])
    elif kind == "cone":
        corners, triangles = _turned([(0.0, -half), (1.0, -half), (0.0, half)])
    elif kind == "capsule3D":
        below, above = arc[arc <= 1e-9], arc[arc >= -1e-9]
        corners, triangles = _turned([*((np.cos(a), np.sin(a) - half) for a in below),
                                      *((np.cos(a), np.sin(a) + half) for a in above)])
    else:
        corners, triangles = _turned([(np.cos(a), np.sin(a)) for a in arc])
    return Piece(corners, triangles.astype(np.int32), np.full(3, GREY))


def _turned(outline: list[tuple[float, float]]) -> tuple[np.ndarray, np.ndarray]:
    """The surface that an outline (radius, y), from below upwards, makes about y, without triangles that have no area."""
    upright, triangles = turned(outline)
    corners = upright[:, (0, 2, 1)] * (1.0, 1.0, -1.0)
    sides = np.cross(corners[triangles[:, 1]] - corners[triangles[:, 0]], corners[triangles[:, 2]] - corners[triangles[:, 0]])
    return corners, triangles[np.linalg.norm(sides, axis=1) > 1e-9]

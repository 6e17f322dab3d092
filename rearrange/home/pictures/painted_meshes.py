"""Triangle meshes in third-person pictures: their light and colours, and what of them stands in the way of the view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import mujoco
import numpy as np

from rearrange.home.pictures.meshes import MeshTable, draw_meshes
from rearrange.home.pictures.raster_kernels import BOX, FACES

STAGE = 0  # the owner of which single triangles are left out
_LINES_WIDE_M, _LINES_HIGH_M = np.linspace(-0.4, 0.4, 5), (0.0, 1.0, 1.7)  # where sight lines end around a target
_BEFORE = 0.85  # share of a sight line in which something is in the way
_GAMMA = 2.2


class PaintedMeshes:
    """The meshes of a model. linear: (T, 3) float32, colours in linear light."""

    def __init__(self, table: MeshTable, cut_above_m: float, linear: np.ndarray | None = None) -> None:
        self.table = table
        self.linear = np.clip(table.rgb, 0.0, 1.0) ** np.float32(_GAMMA) if linear is None else linear
        self._cut_above_m, self._normals = cut_above_m, table.normals

    def draw(self, data: mujoco.MjData, *view) -> None:
        """As `draw_meshes` from the camera on."""
        draw_meshes(self.table, data.xpos, data.xmat, *view)

    def surfaces(self, data: mujoco.MjData, before: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
        """`surfaces` of the shading kernels: the shapes before, and each triangle as a shape with one flat face."""
        shapes, halves, centers, normals, long_axes = before
        count = len(self.table.triangles)
        faces = np.zeros((count, FACES, 3), np.float32)
        turns = data.xmat.reshape(-1, 3, 3)[self.table.rows]
        faces[:, 0] = np.einsum("nij,nj->ni", turns, self._normals)
        nothing = np.zeros((count, 3), np.float32)
        return (np.concatenate([shapes, np.tile(np.int32((BOX, 0)), (count, 1))]),
                np.concatenate([halves, np.ones((count, 4), np.float32)]), np.concatenate([centers, nothing]),
                np.concatenate([normals, faces.reshape(-1, 3)]), np.concatenate([long_axes, nothing]))

    def between(self, data: mujoco.MjData, eye: np.ndarray, target: np.ndarray) -> PaintedMeshes:
        """Without what is higher than `cut_above_m` and crosses a sight line to the target."""
        table = self.table
        turns, shifts = data.xmat.reshape(-1, 3, 3)[table.rows], data.xpos[table.rows]
        corners = np.einsum("nij,nkj->nki", turns, table.vertices[table.triangles]) + shifts[:, None]
        high = np.flatnonzero(corners[:, :, 2].max(axis=1) > self._cut_above_m)
        hit = high[_crossed(corners[high], eye, target)]
        blocks = set(table.owners[hit].tolist()) - {STAGE}
        away = np.isin(table.owners, sorted(blocks))
        away[hit] = True
        if not away.any():
            return self
        triangles = table.triangles.copy()
        triangles[away] = triangles[away][:, :1]  # without area they are not drawn
        cut = PaintedMeshes.__new__(PaintedMeshes)
        cut.table, cut.linear, cut._cut_above_m, cut._normals = replace(
            table, triangles=triangles), self.linear, self._cut_above_m, self._normals
        return cut


def _crossed(corners: np.ndarray, eye: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Which triangles (n, 3, 3) some sight lines from the eye to around the target cross (after Moeller and Trumbore).
    """
    sideways = np.cross(target - eye, (0.0, 0.0, 1.0))
    sideways /= max(np.linalg.norm(sideways), 1e-6)
    goals: Sequence[np.ndarray] = [target * (1, 1, height) + side * sideways for side in _LINES_WIDE_M
                                   for height in _LINES_HIGH_M]
    a, ab, ac = corners[:, 0], corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    start = eye - a
    across = np.cross(start, ab)
    along = np.einsum("ni,ni->n", ac, across)
    crossed = np.zeros(len(corners), bool)
    for goal in goals:
        way = goal - eye
        p = np.cross(way, ac)
        det = np.einsum("ni,ni->n", ab, p)
        inverse = 1.0 / np.where(np.abs(det) < 1e-12, np.inf, det)
        u, v, t = np.einsum("ni,ni->n", start, p) * inverse, across @ way * inverse, along * inverse
        crossed |= (u >= 0) & (v >= 0) & (u + v <= 1) & (t > 0) & (t < _BEFORE) & (inverse != 0)
    return crossed

"""Triangle meshes for the depth rasteriser (the method: `rearrange.pictures.mesh_kernels`)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from rearrange.pictures.mesh_kernels import draw_mesh_depth, draw_mesh_depth_and_codes

__all__ = ["Mesh", "MeshTable", "draw_meshes", "mesh_table"]

GROUP_TRIANGLES = 128
"""At most so many lie in one group: fewer are tested in vain where only a part of a mesh is seen."""


@dataclass(frozen=True, eq=False)
class Mesh:
    """Triangles that move with one frame. row: of that frame in `xpos` and `xmat`. vertices: (n, 3) in the frame (m). triangles:
    (m, 3), seen from where their corners are counterclockwise. rgb: (m, 3) sRGB of each triangle, or (3,) of all. owner: a number
    that triangles which belong together have in common.
    """

    row: int
    vertices: np.ndarray
    triangles: np.ndarray
    rgb: np.ndarray
    owner: int = 0


@dataclass(frozen=True, eq=False)
class MeshTable:
    """Meshes as the kernels take them; never written to, so that all cameras of a process share it.

    groups (G, 5) int32: row of the frame, first and last + 1 vertex, first and last + 1 triangle. balls (G, 4) float32: middle in the
    frame and radius (m). vertices (V, 3) float32. triangles (T, 3) int32: rows of `vertices`. rows (T,), owners (T,) int32: of each
    triangle. rgb (T, 3) float32: sRGB.
    """

    groups: np.ndarray
    balls: np.ndarray
    vertices: np.ndarray
    triangles: np.ndarray
    rows: np.ndarray
    owners: np.ndarray
    rgb: np.ndarray

    @property
    def bytes(self) -> int:
        """Memory of all arrays."""
        return sum(array.nbytes for array in vars(self).values())


def mesh_table(meshes: Iterable[Mesh]) -> MeshTable:
    """The table of some meshes, each cut into groups of neighbours."""
    groups, balls, vertices, triangles, rows, owners, rgb = [], [], [], [], [], [], []
    corners = faces = 0
    for mesh in meshes:
        colours = np.broadcast_to(np.asarray(mesh.rgb, np.float32), (len(mesh.triangles), 3))
        middles = mesh.vertices[mesh.triangles].mean(axis=1)
        for chosen in _neighbours(middles, np.arange(len(mesh.triangles))):
            used, local = np.unique(mesh.triangles[chosen], return_inverse=True)
            points = mesh.vertices[used]
            middle = (points.min(axis=0) + points.max(axis=0)) / 2
            groups.append((mesh.row, corners, corners + len(used), faces, faces + len(chosen)))
            balls.append((*middle, 1.0001 * np.linalg.norm(points - middle, axis=1).max() + 1e-6))
            vertices.append(points)
            triangles.append(local.reshape(-1, 3) + corners)
            rows.append(np.full(len(chosen), mesh.row))
            owners.append(np.full(len(chosen), mesh.owner))
            rgb.append(colours[chosen])
            corners, faces = corners + len(used), faces + len(chosen)

    def joined(arrays: list, width: int, dtype: type) -> np.ndarray:
        return np.ascontiguousarray(np.concatenate([np.empty((0, width)), *arrays]), dtype)

    return MeshTable(
        np.array(groups, np.int32).reshape(-1, 5), np.array(balls, np.float32).reshape(-1, 4), joined(vertices, 3, np.float32),
        joined(triangles, 3, np.int32), np.concatenate([np.empty(0, np.int32), *rows]).astype(np.int32),
        np.concatenate([np.empty(0, np.int32), *owners]).astype(np.int32), joined(rgb, 3, np.float32))


def _neighbours(middles: np.ndarray, chosen: np.ndarray) -> list[np.ndarray]:
    """Triangles in groups: halved across their longest side until each is small enough."""
    if len(chosen) <= GROUP_TRIANGLES:
        return [chosen] if len(chosen) else []
    axis = int(np.argmax(np.ptp(middles[chosen], axis=0)))
    order = chosen[np.argsort(middles[chosen, axis], kind="stable")]
    half = len(order) // 2
    return _neighbours(middles, order[:half]) + _neighbours(middles, order[half:])


def draw_meshes(table: MeshTable, xpos, xmat, cam_xpos, cam_xmat, camera, us, vs, far, inverse_depth, codes=None,
                first_code: int = 0) -> None:
    """Draw meshes into a buffer into which shapes were drawn before, as `rearrange.pictures.raster.draw` does.

    xpos (R, 3), xmat (R, 9): frames of the meshes' rows. The other arguments are those of `draw`. Codes of pixels that a mesh is seen
    in are first_code + FACES * triangle.
    """
    arguments = (table.groups, table.balls, table.vertices, table.triangles, xpos, xmat, cam_xpos, cam_xmat, camera, us, vs, far,
                 inverse_depth)
    if codes is None:
        draw_mesh_depth(*arguments)
    else:
        draw_mesh_depth_and_codes(*arguments, codes, first_code)

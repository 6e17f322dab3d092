"""Triangle meshes for the depth rasteriser (the method: `rearrange.home.pictures.mesh_kernels`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rearrange.home.pictures.mesh_kernels import draw_mesh_depth, draw_mesh_depth_and_codes

__all__ = ["Mesh", "MeshTable", "draw_meshes", "mesh_table"]

GROUP_TRIANGLES = 64
"""At most so many lie in one group: fewer are tested in vain where only a part of a mesh is seen."""


@dataclass(frozen=True, eq=False)
class Mesh:
    """Triangles that move with one frame.

    row: of that frame in `xpos` and `xmat`. vertices: (n, 3) in the frame (m). triangles: (m, 3), seen from where their
    corners are counterclockwise, or with `two_sided` from both sides. rgb: gives sRGB (m, 3), or (3,) of all, when
    colours are asked for. owner: a number that triangles share which belong together.
    """

    row: int
    vertices: np.ndarray
    triangles: np.ndarray
    rgb: Callable[[], np.ndarray]
    owner: int = 0
    two_sided: bool = False


@dataclass(frozen=True, eq=False)
class MeshTable:
    """Meshes as the kernels take them; never written to, so that all cameras of a process share it.

    groups (G, 6) int32: row of the frame, first and last + 1 vertex, first and last + 1 triangle, two-sided or not.
    balls (G, 4) float32: middle in the frame and radius (m). vertices (V, 3) float32. triangles (T, 3) int32: rows of
    `vertices`. rows (T,), owners (T,) int32: of each triangle.
    """

    groups: np.ndarray
    balls: np.ndarray
    vertices: np.ndarray
    triangles: np.ndarray
    rows: np.ndarray
    owners: np.ndarray
    colours: tuple[tuple[Mesh, np.ndarray], ...]

    @cached_property
    def normals(self) -> np.ndarray:
        """(T, 3), of the side from which the corners of a triangle are counterclockwise, in its frame."""
        corners = self.vertices[self.triangles].astype(float)
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        return normals / np.maximum(np.linalg.norm(normals, axis=1), 1e-12)[:, None]

    @cached_property
    def rgb(self) -> np.ndarray:
        """(T, 3) float32, sRGB."""
        read = {id(mesh): mesh.rgb() for mesh, _ in self.colours}
        return np.concatenate([np.empty((0, 3)), *(np.broadcast_to(read[id(mesh)], (len(mesh.triangles), 3))[chosen]
                                                   for mesh, chosen in self.colours)]).astype(np.float32)


def mesh_table(meshes: Iterable[Mesh]) -> MeshTable:
    """The table of some meshes, each cut into groups of neighbours."""
    groups, balls, vertices, triangles, rows, owners, shown = [], [], [], [], [], [], []
    corners = faces = 0
    for mesh in map(_welded, meshes):
        # Of a closed part the far side is hidden anyway.
        closed = _is_closed(mesh) if mesh.two_sided else np.ones(len(mesh.triangles), bool)
        middles = mesh.vertices[mesh.triangles].mean(axis=1)
        grouped = [(both, chosen) for both in (False, True)
                   for chosen in _neighbours(middles, np.flatnonzero(closed != both))]
        for both, chosen in grouped:
            used, local = np.unique(mesh.triangles[chosen], return_inverse=True)
            points = mesh.vertices[used]
            middle = (points.min(axis=0) + points.max(axis=0)) / 2
            groups.append((mesh.row, corners, corners + len(used), faces, faces + len(chosen), both))
            balls.append((*middle, 1.0001 * np.linalg.norm(points - middle, axis=1).max() + 1e-6))
            vertices.append(points)
            triangles.append(local.reshape(-1, 3) + corners)
            rows.append(np.full(len(chosen), mesh.row))
            owners.append(np.full(len(chosen), mesh.owner))
            shown.append((mesh, chosen))
            corners, faces = corners + len(used), faces + len(chosen)

    def joined(arrays: list, width: int, dtype: type) -> np.ndarray:
        return np.ascontiguousarray(np.concatenate([np.empty((0, width)), *arrays]), dtype)

    return MeshTable(np.array(groups, np.int32).reshape(-1, 6), np.array(balls, np.float32).reshape(-1, 4),
                     joined(vertices, 3, np.float32), joined(triangles, 3, np.int32),
                     np.concatenate([np.empty(0, np.int32), *rows]).astype(np.int32),
                     np.concatenate([np.empty(0, np.int32), *owners]).astype(np.int32), tuple(shown))


def _welded(mesh: Mesh) -> Mesh:
    """With one corner where a file has several, of one place and different colours or lights."""
    vertices, corner = np.unique(mesh.vertices.astype(np.float32), axis=0, return_inverse=True)
    return replace(mesh, vertices=vertices, triangles=corner.reshape(-1)[mesh.triangles])


def _is_closed(mesh: Mesh) -> np.ndarray:
    """(m,) bool: whether each triangle is of a closed part, whose edges are there once in each direction."""
    count = len(mesh.vertices)
    part = np.arange(count)  # of each corner the lowest corner that it is joined to
    while True:
        lowest = part[mesh.triangles].min(axis=1)
        before = part.copy()
        for k in range(3):
            np.minimum.at(part, mesh.triangles[:, k], lowest)
        part = part[part]
        if (part == before).all():
            break
    a, b, c = mesh.triangles.T.astype(np.int64)
    flat = (a == b) | (b == c) | (c == a)
    starts, ends = np.concatenate([a, b, c]), np.concatenate([b, c, a])
    kept = ~np.tile(flat, 3)
    there, back = starts[kept] * count + ends[kept], ends[kept] * count + starts[kept]
    codes, times = np.unique(there, return_counts=True)
    single = times[np.searchsorted(codes, there)] == 1
    good = single & np.isin(back, codes)
    open_parts = np.unique(part[starts[kept][~good]])
    return ~np.isin(part[a], open_parts)


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
    """Draw meshes into a buffer into which `rearrange.home.pictures.raster.draw` has drawn shapes.

    Args:
        xpos, xmat: Frames of the meshes' rows, (R, 3), (R, 9).
        first_code: Pixels of a mesh get the codes first_code + FACES * triangle.

    The other arguments are those of `draw`.
    """
    arguments = (table.groups, table.balls, table.vertices, table.triangles, xpos, xmat, cam_xpos, cam_xmat, camera, us,
                 vs, far, inverse_depth)
    if codes is None:
        draw_mesh_depth(*arguments)
    else:
        draw_mesh_depth_and_codes(*arguments, codes, first_code)

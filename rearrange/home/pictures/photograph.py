"""A camera that shows depth, colours and the thing at each pixel, all of one drawing: the same pixels on every machine.

Frames: as in `rearrange.home.pictures.raster`. Poses of cameras are those of `camera_axes`, (4, 3).
"""

from __future__ import annotations

import math
from collections.abc import Collection
from functools import cache, lru_cache

import numpy as np

from rearrange.home.pictures import exact_kernels as kernels
from rearrange.home.pictures.meshes import MeshTable
from rearrange.home.pictures.raster import pixel_slopes
from rearrange.home.pictures.raster_kernels import FACES, NO_CODE, F

IMAGES = ("depth", "rgb", "segmentation")
_levels = cache(kernels.level_table)


@lru_cache(maxsize=8)  # one drawing is looked at before the next
def _buffers(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Inverse depth and codes of a drawing."""
    return np.empty((size, size), np.float32), np.empty((size, size), np.int32)


def photograph(wanted: Collection[str], scene: tuple[np.ndarray, ...], pose: np.ndarray, size: int,
               colors: np.ndarray | None, light: np.ndarray, ids: np.ndarray | None, fov_deg: float = 90.0,
               far_m: float = 10.0,
               meshes: tuple[MeshTable, np.ndarray, np.ndarray] | None = None) -> dict[str, np.ndarray]:
    """Those of IMAGES that are wanted, square.

    Args:
        scene: shapes, halves, xpos and xmat of `rearrange.home.pictures.raster.draw`.
        colors: Linear, of each shape, (N, 3) float32.
        light: (3, 3), see `exact_kernels`.
        ids: Of each shape, and of a pixel that shows none, (N + 1,) uint16.
        meshes: With xpos and xmat of their rows. Their triangles follow the shapes in colors and ids.

    Returns:
        depth (..., 1) float32, 0..1 over `far_m`; rgb (..., 3) uint8; segmentation (..., 1) uint16.
    """
    shapes, halves, xpos, xmat = scene
    slopes, far = _slopes(size, fov_deg), F(far_m)
    inverse, codes = _buffers(size)
    kernels.draw_exactly(shapes, halves, xpos, xmat, pose, slopes, far, inverse, codes)
    first_code = FACES * len(shapes)
    if meshes is not None:
        table, rows_xpos, rows_xmat = meshes
        kernels.draw_meshes_exactly(table.groups, table.balls, table.vertices, table.triangles, rows_xpos, rows_xmat,
                                    pose, slopes, far, inverse, codes, first_code)
    seen: dict[str, np.ndarray] = {}
    if "depth" in wanted:
        kernels.depth_exactly(inverse, far, seen.setdefault("depth", np.empty((size, size, 1), np.float32)))
    if "rgb" in wanted:
        image = seen.setdefault("rgb", np.empty((size, size, 3), np.uint8))
        of_shapes = codes if meshes is None else np.where(codes < first_code, codes, NO_CODE)
        kernels.color_exactly(inverse, of_shapes, slopes, pose, shapes, halves, xpos, xmat, colors, light, _levels(),
                              image)
        if meshes is not None:
            kernels.color_meshes_exactly(codes, first_code, slopes, pose, table.rows, rows_xmat, table.normals,
                                         colors[len(shapes):], light, _levels(), image)
    if "segmentation" in wanted:
        kernels.shapes_exactly(codes, ids, seen.setdefault("segmentation", np.empty((size, size, 1), np.uint16)))
    return seen


@cache
def _slopes(size: int, fov_deg: float) -> np.ndarray:
    return pixel_slopes(size, 2.0 * math.tan(math.radians(fov_deg) / 2.0) / size)

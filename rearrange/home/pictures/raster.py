"""Depth images of a MuJoCo scene on one CPU core, without GL (the method: `rearrange.home.pictures.raster_kernels`).

Frames: image row 0 on top, pixel centres at half-integers; distances in metres. A camera inside a shape sees its far
side from within, as `mj_ray` does; a plane is seen from its front only.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import mujoco
import numpy as np

from rearrange.home.pictures import raster_kernels as kernels
from rearrange.home.pictures.meshes import MeshTable, draw_meshes
from rearrange.home.pictures.raster_kernels import BOX, CAPSULE, FACES, KINDS, PLANE, SPHERE, F

ENDLESS_M = 1e3  # half extent that stands for an endless plane


def draw(shapes, halves, xpos, xmat, cam_xpos, cam_xmat, camera, us, vs, far, inverse_depth, codes=None) -> None:
    """Rasterise every shape into `inverse_depth` (rows, columns) float32, and into `codes` (same, int32) if given.

    shapes (N, 2) int32: kind, index into xpos/xmat; halves (N, 4) float32: half extents of the shape's box, bounding
    radius (m). xpos (G, 3), xmat (G, 9), cam_xpos (C, 3), cam_xmat (C, 9): float64, as in MjData. camera: row of
    cam_xpos. us (columns,), vs (rows,): ray slopes of the pixel centres, float32. far: float32, what lies farther is
    not drawn (m). All arrays are contiguous.
    """
    arguments = (shapes, halves, xpos, xmat, cam_xpos, cam_xmat, camera, us, vs, far, inverse_depth)
    if codes is None:
        kernels.draw_depth(*arguments)
    else:
        kernels.draw_depth_and_codes(*arguments, codes)


def shape_table(model: mujoco.MjModel, hide_groups: tuple[int, ...] = ()) -> tuple[np.ndarray, np.ndarray]:
    """`shapes` and `halves` of `draw` for the geoms of a model, without hidden groups and transparent geoms."""
    shapes, halves = [], []
    for g in range(model.ngeom):
        if model.geom_group[g] in hide_groups or (model.geom_rgba[g, 3] == 0 and model.geom_matid[g] < 0):
            continue
        kind = int(model.geom_type[g])
        if kind not in KINDS.values():
            raise ValueError(f"geom {g} ({model.geom(g).name!r}) has a type that cannot be drawn; allowed: "
                             f"{', '.join(KINDS)}")
        half = box_half_extents(kind, model.geom_size[g])
        shapes.append((kind, g))
        halves.append((*half, math.hypot(*half)))
    return np.array(shapes, np.int32).reshape(-1, 2), np.array(halves, np.float32).reshape(-1, 4)


def box_half_extents(kind: int, size: np.ndarray) -> tuple[float, float, float]:
    """Half extents (m) of the box around a shape in its own frame, from MuJoCo's `geom_size`."""
    a, b, c = (float(value) for value in size)
    if kind == BOX:
        return a, b, c
    if kind == SPHERE:
        return a, a, a
    if kind == PLANE:
        return (a if a > 0 else ENDLESS_M), (b if b > 0 else ENDLESS_M), 0.0
    return a, a, b + (a if kind == CAPSULE else 0.0)


def pixel_slopes(count: int, pitch: float) -> np.ndarray:
    """Ray slopes (count,) float32 of pixel centres around the optical axis, `pitch` apart."""
    return ((np.arange(count) - (count - 1) / 2) * pitch).astype(np.float32)


class Poses(NamedTuple):
    """Where everything is: arrays of MuJoCo's data, which it keeps in place. Reading them from there costs more."""

    geom_xpos: np.ndarray
    geom_xmat: np.ndarray
    cam_xpos: np.ndarray
    cam_xmat: np.ndarray
    xpos: np.ndarray  # of bodies
    xmat: np.ndarray

    @classmethod
    def of(cls, data: mujoco.MjData) -> Poses:
        return cls(*(getattr(data, name) for name in cls._fields))


class DepthCamera:
    """A square depth camera of a model: z-depth over `far_m`, 1 where nothing is nearer.

    It draws the geoms of the groups that are not hidden, and `meshes`, whose rows are bodies of the model.
    """

    def __init__(self, model: mujoco.MjModel, size: int = 128, fov_deg: float = 90.0, far_m: float = 10.0,
                 camera: str = "head", hide_groups: tuple[int, ...] = (), meshes: MeshTable | None = None):
        if size < 2 or not 0.0 < fov_deg < 180.0 or far_m <= 0.0:
            raise ValueError(f"depth camera: size {size} (at least 2), fov_deg {fov_deg} (0 to 180), far_m {far_m} "
                             "(above 0)")
        self.size = size
        self._far = F(far_m)
        slopes = pixel_slopes(size, 2.0 * math.tan(math.radians(fov_deg) / 2.0) / size)
        self._view = model.camera(camera).id, slopes, slopes, self._far
        self._shapes, self._halves = shape_table(model, hide_groups)
        self._meshes = meshes
        self._inverse_depth = np.empty((size, size), np.float32)
        self._codes = np.empty((size, size), np.int32)
        of_meshes = model.body_geomadr[meshes.rows] if meshes is not None else ()
        # The geom of each code; the last is that of NO_CODE.
        self._geoms = np.concatenate([self._shapes[:, 1], of_meshes, [-1]]).astype(np.int32)

    def render(self, data: mujoco.MjData | Poses, out: np.ndarray) -> np.ndarray:
        """Write the image of the present poses to `out` (size, size), contiguous float32, and return it."""
        return self._render(data, out, None)

    def render_geoms(self, data: mujoco.MjData, out: np.ndarray) -> np.ndarray:
        """Like `render`; gives the geom of each pixel, (size, size) int32: -1 for none, of a mesh its body's first."""
        self._render(data, out, self._codes)
        return self._geoms[self._codes // FACES]  # NO_CODE is rounded down to the last one

    def _render(self, data: mujoco.MjData | Poses, out: np.ndarray, codes: np.ndarray | None) -> np.ndarray:
        camera = data.cam_xpos, data.cam_xmat, *self._view, self._inverse_depth, codes
        draw(self._shapes, self._halves, data.geom_xpos, data.geom_xmat, *camera)
        if self._meshes is not None:
            draw_meshes(self._meshes, data.xpos, data.xmat, *camera, FACES * len(self._shapes))
        kernels.normalise(self._inverse_depth, self._far, out)
        return out

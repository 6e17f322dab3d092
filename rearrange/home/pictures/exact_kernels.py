"""Kernels of camera images that are the same, bit for bit, on every machine: depth, colours, and the shape of a pixel.

The kernels of videos and of plain depth may reorder sums and fuse products with sums, which processors do differently.
Here every operation is done as it is written, so that the same poses give the same pixels. It costs a twentieth more.

Light is plain: the sun, without shadows, and a sky that is brighter above. A pixel has one sample.
"""

from __future__ import annotations

import math
import types
from typing import Any

import numpy as np

from rearrange.home.numba_cache import njit
from rearrange.home.pictures import mesh_kernels, raster_kernels
from rearrange.home.pictures.raster_kernels import BOX, CAPSULE, CYLINDER, FACES, PLANE, SPHERE, F
from rearrange.home.pictures.textures import PLANK_M

_OPTIONS = {"nogil": True, "error_model": "numpy"}
SKY_RGB = (168, 198, 224)  # where nothing is seen
BOARDS = 8  # tints of the boards of a floor, a power of two
LEVELS = 1024  # entries of the table from linear light, 0 to 1, to sRGB


def exactly(kernel: Any) -> Any:
    """A compiled function and all that it calls, compiled again without liberties in floating point."""
    python = kernel.py_func
    own = python.__globals__
    inner = {name: exactly(own[name]) for name in python.__code__.co_names if hasattr(own.get(name), "py_func")}
    options = _OPTIONS | {"forceinline": kernel.targetoptions.get("forceinline", False)}
    return njit(**options)(types.FunctionType(python.__code__, {**own, **inner}, python.__name__))


_draw = exactly(raster_kernels._draw)  # noqa: SLF001 one rasteriser
_draw_meshes = exactly(mesh_kernels._draw)  # noqa: SLF001


@njit(forceinline=True, **_OPTIONS)
def _turned(pose):
    """(1, 9): the axes of a camera as MuJoCo has them, rows of a matrix."""
    turned = np.empty((1, 9))
    for i in range(3):
        turned[0, 3 * i], turned[0, 3 * i + 1], turned[0, 3 * i + 2] = pose[0, i], -pose[1, i], -pose[2, i]
    return turned


@njit(cache=True, **_OPTIONS)
def draw_exactly(shapes, halves, xpos, xmat, pose, slopes, far, inverse_depth, codes):
    """`raster.draw` with codes, of a square image; pose (4, 3): right, down, forward and place of the camera."""
    _draw(shapes, halves, xpos, xmat, pose[3:4], _turned(pose), 0, slopes, slopes, far, inverse_depth, codes)


@njit(cache=True, **_OPTIONS)
def draw_meshes_exactly(groups, balls, vertices, triangles, xpos, xmat, pose, slopes, far, inverse_depth, codes,
                        first_code):
    """`rearrange.home.pictures.meshes.draw_meshes` with codes, of a square image; pose as in `draw_exactly`."""
    _draw_meshes(groups, balls, vertices, triangles, xpos, xmat, pose[3:4], _turned(pose), 0, slopes, slopes, far,
                 inverse_depth, codes, first_code)


@njit(cache=True, **_OPTIONS)
def depth_exactly(inverse_depth, far, out):
    """out (rows, columns, 1) = depth / far, in [0, 1]."""
    for y in range(out.shape[0]):
        for x in range(out.shape[1]):
            out[y, x, 0] = F(1) / (inverse_depth[y, x] * far)


@njit(cache=True, **_OPTIONS)
def shapes_exactly(codes, of_shape, out):
    """out (rows, columns, 1): `of_shape` (shapes + 1) of the shape at a pixel; its last entry where there is none."""
    for y in range(out.shape[0]):
        for x in range(out.shape[1]):
            out[y, x, 0] = of_shape[codes[y, x] // FACES if codes[y, x] >= 0 else of_shape.shape[0] - 1]


@njit(forceinline=True, **_OPTIONS)
def _light(normal, light):
    """Linear light (red, green, blue) on a surface.

    light (3, 3): the way to the sun; its linear light; that of the sky, of which 0.55 reach what faces down.
    """
    sunny = max(F(0), normal[0] * light[0, 0] + normal[1] * light[0, 1] + normal[2] * light[0, 2])
    sky = F(0.775) + F(0.225) * normal[2]
    return (sunny * light[1, 0] + sky * light[2, 0], sunny * light[1, 1] + sky * light[2, 1],
            sunny * light[1, 2] + sky * light[2, 2])


@njit(forceinline=True, **_OPTIONS)
def _level(value):
    """Entry of the table of levels for linear light."""
    return np.uintp(np.int32(min(value * F(LEVELS - 1), F(LEVELS - 1))))


@njit(**_OPTIONS)
def _color_floor(row, first, end, inverse_depth, slopes, v, camera, boards):
    """Write the pixels of a row that show a floor of boards."""
    eye_x, eye_y, right_x, right_y = camera[3, 0], camera[3, 1], camera[0, 0], camera[0, 1]
    x0, y0 = camera[1, 0] * v + camera[2, 0], camera[1, 1] * v + camera[2, 1]
    for x in range(first, end):
        z, u = F(1) / inverse_depth[x], slopes[x]
        across = math.floor((eye_y + z * (right_y * u + y0)) * F(1 / PLANK_M[1]))
        along = math.floor((eye_x + z * (right_x * u + x0)) * F(1 / PLANK_M[0]) + F(0.37) * F(across))
        board = np.uintp((across * 7 + along * 5 + across * along) & (BOARDS - 1))
        row[x, 0], row[x, 1], row[x, 2] = boards[board, 0], boards[board, 1], boards[board, 2]


@njit(**_OPTIONS)
def _color_round(row, first, end, inverse_depth, slopes, v, camera, kind, center, axis, half, color, light, levels):
    """Write the pixels of a row that show a sphere, capsule or cylinder; axis: its long one in the world."""
    ax, ay, az, top = axis[0], axis[1], axis[2], half[2] * F(0.9999) - F(2e-4)
    most = half[2] - half[0] if kind == CAPSULE else F(0) if kind == SPHERE else half[2]
    right_x, right_y, right_z = camera[0, 0], camera[0, 1], camera[0, 2]
    x0, y0, z0 = (camera[1, 0] * v + camera[2, 0], camera[1, 1] * v + camera[2, 1], camera[1, 2] * v + camera[2, 2])
    from_x, from_y, from_z = camera[3, 0] - center[0], camera[3, 1] - center[1], camera[3, 2] - center[2]
    for x in range(first, end):
        z, u = F(1) / inverse_depth[x], slopes[x]
        nx, ny, nz = from_x + z * (right_x * u + x0), from_y + z * (right_y * u + y0), from_z + z * (right_z * u + z0)
        along = ax * nx + ay * ny + az * nz
        if kind == CYLINDER and abs(along) > top:
            scale = F(1) if along > F(0) else F(-1)
            nx, ny, nz = ax, ay, az
        else:
            along = min(max(along, -most), most)
            nx, ny, nz = nx - along * ax, ny - along * ay, nz - along * az
            scale = F(1) / math.sqrt(nx * nx + ny * ny + nz * nz + F(1e-12))
        red, green, blue = _light((scale * nx, scale * ny, scale * nz), light)
        row[x, 0] = levels[_level(color[0] * red)]
        row[x, 1] = levels[_level(color[1] * green)]
        row[x, 2] = levels[_level(color[2] * blue)]


@njit(cache=True, **_OPTIONS)
def color_exactly(inverse_depth, codes, slopes, pose, shapes, halves, xpos, xmat, colors, light, levels, image):
    """Colours (rows, columns, 3) uint8 of what `draw_exactly` has drawn.

    colors (N, 3): linear, of each shape. light: see `_light`. levels: `level_table`.
    """
    count, camera = shapes.shape[0], pose.astype(np.float32)
    normals, faces = np.zeros((FACES * count, 3), np.float32), np.zeros((FACES * count, 3), np.uint8)  # of flat faces
    boards = np.zeros((BOARDS, 3), np.uint8)
    centers, long_axes = np.empty((count, 3), np.float32), np.empty((count, 3), np.float32)
    for n in range(count):
        g = shapes[n, 1]
        for i in range(3):
            centers[n, i], long_axes[n, i] = F(xpos[g, i]), F(xmat[g, 3 * i + 2])
        if shapes[n, 0] == BOX or shapes[n, 0] == PLANE:
            for k in range(3):
                x, y, z = F(xmat[g, k]), F(xmat[g, 3 + k]), F(xmat[g, 6 + k])
                towards = x * (camera[3, 0] - centers[n, 0]) + y * (
                    camera[3, 1] - centers[n, 1]) + z * (camera[3, 2] - centers[n, 2])
                sign = F(1) if towards > F(0) else F(-1)
                normal, at = (sign * x, sign * y, sign * z), FACES * n + k
                bright = _light(normal, light)
                for c in range(3):
                    shade = colors[n, c] * bright[c]
                    normals[at, c], faces[at, c] = normal[c], levels[_level(shade)]
                    if shapes[n, 0] == PLANE and k == 2 and normal[2] > F(0):
                        for tint in range(BOARDS):
                            boards[tint, c] = levels[_level(shade * (F(0.84) + F(0.04) * F(tint)))]
    columns = np.uintp(image.shape[1])
    for y in range(np.uintp(image.shape[0])):
        row, shown, v = image[y], codes[y], slopes[y]
        x = np.uintp(0)
        while x < columns:
            code, end = shown[x], x + np.uintp(1)
            while end < columns and shown[end] == code:
                end += np.uintp(1)
            at = np.uintp(max(code, 0))
            n = at // np.uintp(FACES)
            kind = shapes[n, 0]
            if code >= 0 and kind == PLANE and normals[at, 2] > F(0):
                _color_floor(row, x, end, inverse_depth[y], slopes, v, camera, boards)
            elif code >= 0 and kind != BOX and kind != PLANE:
                _color_round(row, x, end, inverse_depth[y], slopes, v, camera, kind, centers[n], long_axes[n],
                             halves[n], colors[n], light, levels)
            else:
                red, green, blue = (faces[at, 0], faces[at, 1], faces[at, 2]) if code >= 0 else SKY_RGB
                for i in range(x, end):
                    row[i, 0], row[i, 1], row[i, 2] = red, green, blue
            x = end


@njit(cache=True, **_OPTIONS)
def color_meshes_exactly(codes, first_code, slopes, pose, rows, xmat, normals, colors, light, levels, image):
    """Colours of the pixels that show triangles, by the codes of `draw_meshes_exactly`; the others stay.

    rows (T,): frames of the triangles in xmat (R, 9). normals (T, 3): in these frames; triangles are lit from both
    sides. colors (T, 3): linear. light, levels: as in `color_exactly`.
    """
    camera = pose.astype(np.float32)
    for y in range(image.shape[0]):
        for x in range(image.shape[1]):
            if codes[y, x] < first_code:
                continue
            t = (codes[y, x] - first_code) // FACES
            m, n = xmat[rows[t]], normals[t]
            nx = F(m[0] * n[0] + m[1] * n[1] + m[2] * n[2])
            ny = F(m[3] * n[0] + m[4] * n[1] + m[5] * n[2])
            nz = F(m[6] * n[0] + m[7] * n[1] + m[8] * n[2])
            u, v = slopes[x], slopes[y]
            away = F(0)
            for i, part in enumerate((nx, ny, nz)):
                away += part * (camera[0, i] * u + camera[1, i] * v + camera[2, i])
            sign = F(-1) if away > F(0) else F(1)
            red, green, blue = _light((sign * nx, sign * ny, sign * nz), light)
            image[y, x, 0] = levels[_level(colors[t, 0] * red)]
            image[y, x, 1] = levels[_level(colors[t, 1] * green)]
            image[y, x, 2] = levels[_level(colors[t, 2] * blue)]


def level_table() -> np.ndarray:
    """(LEVELS,) uint8: sRGB of linear light from 0 to 1."""
    light = np.linspace(0.0, 1.0, LEVELS)
    srgb = np.where(light < 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
    return np.round(255 * srgb).astype(np.uint8)

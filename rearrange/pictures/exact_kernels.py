"""Kernels of camera images that are the same, bit for bit, on every machine: depth, colours, and which shape a pixel shows.

The kernels of videos and of the depth image alone may reorder sums and join products with sums, which processors do differently. Here
every operation of floating point is done as it is written: the same poses give the same pixels. It costs a twentieth of the time.

Light is plain: the sun, without shadows, and a sky that is brighter above; one sample for a pixel.
"""

from __future__ import annotations

import math
import types
from typing import Any

import numpy as np

from rearrange.compiled import njit
from rearrange.pictures import raster_kernels, shading
from rearrange.pictures.raster_kernels import BOX, FACES, PLANE, F
from rearrange.pictures.shading import PLANK_M

_OPTIONS = {"nogil": True, "error_model": "numpy"}
SKY_RGB = (168, 198, 224)  # where nothing is seen
LEVELS = 1024  # entries of the table from linear light, 0 to 1, to sRGB


def exactly(kernel: Any) -> Any:
    """A compiled function and all that it calls, compiled again without liberties in floating point."""
    python = kernel.py_func
    own = python.__globals__
    inner = {name: exactly(own[name]) for name in python.__code__.co_names if hasattr(own.get(name), "py_func")}
    options = _OPTIONS | {"forceinline": kernel.targetoptions.get("forceinline", False)}
    return njit(**options)(types.FunctionType(python.__code__, {**own, **inner}, python.__name__))


_draw = exactly(raster_kernels._draw)  # noqa: SLF001 one rasteriser
_normal = exactly(shading._normal)  # noqa: SLF001
_noise = exactly(shading._noise)  # noqa: SLF001


@njit(cache=True, **_OPTIONS)
def draw_exactly(shapes, halves, xpos, xmat, cam_xpos, cam_xmat, us, vs, far, inverse_depth, codes):
    """`rearrange.pictures.raster.draw` with codes, from the first camera."""
    _draw(shapes, halves, xpos, xmat, cam_xpos, cam_xmat, 0, us, vs, far, inverse_depth, codes)


@njit(cache=True, **_OPTIONS)
def depth_exactly(inverse_depth, far, out):
    """out (rows, columns, 1) = depth / far, in [0, 1]."""
    for y in range(out.shape[0]):
        for x in range(out.shape[1]):
            out[y, x, 0] = F(1) / (inverse_depth[y, x] * far)


@njit(cache=True, **_OPTIONS)
def shapes_exactly(codes, of_shape, out):
    """out (rows, columns, 1) = `of_shape` (shapes + 1) of the shape that a pixel shows; the last entry where it shows none."""
    for y in range(out.shape[0]):
        for x in range(out.shape[1]):
            out[y, x, 0] = of_shape[codes[y, x] // FACES if codes[y, x] >= 0 else of_shape.shape[0] - 1]


@njit(forceinline=True, **_OPTIONS)
def _light(normal, light):
    """Linear light (red, green, blue) on a surface.

    light (3, 3): the way to the sun; its linear light; that of the sky, all of it on what faces up, 0.55 of it on what faces down.
    """
    sunny = max(F(0), normal[0] * light[0, 0] + normal[1] * light[0, 1] + normal[2] * light[0, 2])
    sky = F(0.775) + F(0.225) * normal[2]
    return (sunny * light[1, 0] + sky * light[2, 0], sunny * light[1, 1] + sky * light[2, 1],
            sunny * light[1, 2] + sky * light[2, 2])


@njit(forceinline=True, **_OPTIONS)
def _level(value):
    """Entry of the table of levels for linear light."""
    return np.uintp(min(value * F(LEVELS - 1), F(LEVELS - 1)))


@njit(forceinline=True, **_OPTIONS)
def _plank(x, y, footprint):
    """Brightness of a plank floor at world x, y; joints fade where a pixel's footprint (m) is wider than they are."""
    along, across = x * F(1 / PLANK_M[0]), y * F(1 / PLANK_M[1])
    row = math.floor(across)
    along += _noise(row, 7)
    column = math.floor(along)
    tint = F(0.86) + F(0.22) * _noise(row, column)
    across, along = across - F(row), along - F(column)
    to_joint = min(min(across, F(1) - across) * F(PLANK_M[1]), min(along, F(1) - along) * F(PLANK_M[0]))
    width = max(F(0.003), F(0.7) * footprint)
    if to_joint < width:
        tint *= F(1) - F(0.55) * (F(1) - to_joint / width) * min(F(1), F(0.004) / width)
    return tint


@njit(cache=True, **_OPTIONS)
def color_exactly(inverse_depth, codes, us, vs, camera, shapes, halves, xpos, xmat, colors, light, levels, image):
    """Colours (rows, columns, 3) uint8 of what `draw_exactly` has drawn.

    camera (4, 3) float32: right, down, forward, eye. colors (N, 3): linear, of each shape. light: see `_light`. levels: `level_table`.
    """
    count = shapes.shape[0]
    normals, shades = np.zeros((FACES * count, 3), np.float32), np.zeros((FACES * count, 3), np.float32)  # of flat faces
    faces = np.zeros((FACES * count, 3), np.uint8)
    centers, long_axes = np.empty((count, 3), np.float32), np.empty((count, 3), np.float32)
    for n in range(count):
        g = shapes[n, 1]
        for i in range(3):
            centers[n, i], long_axes[n, i] = F(xpos[g, i]), F(xmat[g, 3 * i + 2])
        if shapes[n, 0] == BOX or shapes[n, 0] == PLANE:
            for k in range(3):
                x, y, z = F(xmat[g, k]), F(xmat[g, 3 + k]), F(xmat[g, 6 + k])
                towards = x * (camera[3, 0] - centers[n, 0]) + y * (camera[3, 1] - centers[n, 1]) + z * (camera[3, 2] - centers[n, 2])
                sign = F(1) if towards > F(0) else F(-1)
                normal, at = (sign * x, sign * y, sign * z), FACES * n + k
                bright = _light(normal, light)
                for c in range(3):
                    normals[at, c], shades[at, c] = normal[c], colors[n, c] * bright[c]
                    faces[at, c] = levels[_level(shades[at, c])]
    (red, green, blue), flat = SKY_RGB, np.int32(-1)  # the colour that is written, and of which flat face or the sky it is
    for y in range(np.uintp(image.shape[0])):
        v = vs[y]
        for x in range(np.uintp(image.shape[1])):
            code = codes[y, x]
            if code != flat:
                flat = code
                at = np.uintp(max(code, 0))
                n = at // np.uintp(FACES)
                kind = shapes[n, 0]
                if code < 0:
                    red, green, blue = SKY_RGB
                elif kind == BOX or kind == PLANE and normals[at, 2] < F(0):  # a ceiling has no planks
                    red, green, blue = faces[at, 0], faces[at, 1], faces[at, 2]
                else:
                    flat = np.int32(-2)  # each of its pixels has a colour of its own
                    u, z = us[x], F(1) / inverse_depth[y, x]
                    rx = camera[0, 0] * u + camera[1, 0] * v + camera[2, 0]
                    ry = camera[0, 1] * u + camera[1, 1] * v + camera[2, 1]
                    rz = camera[0, 2] * u + camera[1, 2] * v + camera[2, 2]
                    px, py, pz = camera[3, 0] + z * rx, camera[3, 1] + z * ry, camera[3, 2] + z * rz
                    if kind == PLANE:
                        slant = abs(normals[at, 0] * rx + normals[at, 1] * ry + normals[at, 2] * rz)
                        plank = _plank(px, py, (us[1] - us[0]) * z / max(F(0.1), slant))
                        red = levels[_level(shades[at, 0] * plank)]
                        green = levels[_level(shades[at, 1] * plank)]
                        blue = levels[_level(shades[at, 2] * plank)]
                    else:
                        offset = (px - centers[n, 0], py - centers[n, 1], pz - centers[n, 2])
                        bright = _light(_normal(code, shapes, halves, normals, long_axes, offset), light)
                        red = levels[_level(colors[n, 0] * bright[0])]
                        green = levels[_level(colors[n, 1] * bright[1])]
                        blue = levels[_level(colors[n, 2] * bright[2])]
            image[y, x, 0], image[y, x, 1], image[y, x, 2] = red, green, blue


def level_table() -> np.ndarray:
    """(LEVELS,) uint8: sRGB of linear light from 0 to 1."""
    light = np.linspace(0.0, 1.0, LEVELS)
    srgb = np.where(light < 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
    return np.round(255 * srgb).astype(np.uint8)

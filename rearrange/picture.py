"""Third-person RGB pictures of a home without GL: visibility by `rearrange.raster`, then light, shadow and marks.

Frames and units: world z up, metres, quaternions (w, x, y, z); colours sRGB in [0, 1] in the interface and linear
inside; images uint8 (H, W, 3). The scene is rasterised `supersample` times as large as the picture; a pixel whose
samples show one face is shaded once, others once per sample.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import mujoco
import numpy as np

from rearrange.raster import (
    BOX,
    CAPSULE,
    CYLINDER,
    FACES,
    PLANE,
    SHAPE_NAMES,
    SPHERE,
    F,
    box_half_extents,
    compiled,
    draw,
    inlined,
    pixel_slopes,
    shape_table,
)

Vector = Sequence[float] | np.ndarray

NEAR_M, FAR_M = 0.02, 60.0
SUN_DIRECTION = np.array([-0.36, -0.50, 0.79]) / np.linalg.norm([-0.36, -0.50, 0.79])  # towards the sun, world
SUN_DISTANCE_M, SHADOW_RADIUS_M, SHADOW_SIZE = 60.0, 6.0, 1024
SHADOW_OFFSET_M = 0.02  # points are moved along their normal before the shadow test, against self-shadowing
OCCLUSION_RADIUS_M = 0.28
HIDDEN = 0.22  # opacity of the parts of a mark that lie behind something, relative to the rest
WALL_HALF_LENGTH_M = 1.3  # boxes this long are walls, others belong to furniture
ARTICULATED_GROUP = 1  # geom group of doors and drawers, which are cut away like fixed furniture
PLANK_M = (1.3, 0.16)  # length and width of a floor plank
TONES = 4096  # entries of the table from linear light (0 to 1.5) to sRGB
BRIGHTEST = 1.5


@dataclass(frozen=True)
class WireBox:
    """Edges of a box: centre and half extents (m), orientation."""

    center_m: Vector
    half_size_m: Vector
    quat: Vector = (1.0, 0.0, 0.0, 0.0)
    rgb: Vector = (0.1, 0.9, 0.25)


@dataclass(frozen=True)
class Sphere:
    """A translucent ball."""

    center_m: Vector
    radius_m: float
    rgb: Vector = (0.1, 0.9, 0.25)
    alpha: float = 0.5


@dataclass(frozen=True)
class Ghost:
    """A translucent copy of an object; shape and size (m) as in `rearrange.objects.ObjectModel`."""

    shape: str
    size: Vector
    position_m: Vector
    quat: Vector = (1.0, 0.0, 0.0, 0.0)
    rgb: Vector = (0.2, 0.6, 1.0)
    alpha: float = 0.45


@inlined
def _normal(code, shapes, halves, flat_normals, long_axes, offset):
    """Unit outward world normal of the surface that `code` names, at a point `offset` from the shape's centre."""
    n = np.uintp(code) // np.uintp(FACES)
    kind = shapes[n, 0]
    if kind == BOX or kind == PLANE:
        return flat_normals[np.uintp(code), 0], flat_normals[np.uintp(code), 1], flat_normals[np.uintp(code), 2]
    ax, ay, az = long_axes[n, 0], long_axes[n, 1], long_axes[n, 2]
    along = ax * offset[0] + ay * offset[1] + az * offset[2]
    if kind == CYLINDER and abs(along) > halves[n, 2] * F(0.9999) - F(2e-4):
        sign = F(1) if along > F(0) else F(-1)
        return sign * ax, sign * ay, sign * az
    if kind == SPHERE:
        along = F(0)
    elif kind == CAPSULE:
        along = min(max(along, halves[n, 0] - halves[n, 2]), halves[n, 2] - halves[n, 0])
    nx, ny, nz = offset[0] - along * ax, offset[1] - along * ay, offset[2] - along * az
    inverse = F(1) / math.sqrt(nx * nx + ny * ny + nz * nz + F(1e-12))
    return nx * inverse, ny * inverse, nz * inverse


@inlined
def _surface(y, x, q, code, us, vs, camera, shapes, halves, centers, flat_normals, long_axes):
    """World point, ray and normal (three floats each) of sample (y, x); camera: `camera_axes` as float32."""
    u, v, z, n = us[x], vs[y], F(1) / q, np.uintp(code) // np.uintp(FACES)
    ray = (
        camera[0, 0] * u + camera[1, 0] * v + camera[2, 0],
        camera[0, 1] * u + camera[1, 1] * v + camera[2, 1],
        camera[0, 2] * u + camera[1, 2] * v + camera[2, 2],
    )
    point = (camera[3, 0] + z * ray[0], camera[3, 1] + z * ray[1], camera[3, 2] + z * ray[2])
    offset = (point[0] - centers[n, 0], point[1] - centers[n, 1], point[2] - centers[n, 2])
    return point, ray, _normal(code, shapes, halves, flat_normals, long_axes, offset)


@inlined
def _noise(i, j):
    """A repeatable number in [0, 1) for two integers."""
    h = (np.uint32(i) * np.uint32(374761393) + np.uint32(j) * np.uint32(668265263)) & np.uint32(0xFFFFFFFF)
    h = ((h ^ (h >> np.uint32(13))) * np.uint32(1274126177)) & np.uint32(0xFFFFFFFF)
    return F((h >> np.uint32(8)) & np.uint32(0xFFFF)) / F(65536)


@inlined
def _plank(x, y, footprint):
    """Brightness of a plank floor at world x, y; joints fade where a pixel's footprint (m) is wider than they are."""
    row = math.floor(y / F(PLANK_M[1]))
    shifted = x / F(PLANK_M[0]) + _noise(row, 7)
    column = math.floor(shifted)
    tint = F(0.86) + F(0.22) * _noise(row, column)
    across = abs(y / F(PLANK_M[1]) - row - F(0.5)) * F(PLANK_M[1])
    lengthwise = abs(shifted - column - F(0.5)) * F(PLANK_M[0])
    near_joint = min(F(0.5 * PLANK_M[1]) - across, F(0.5 * PLANK_M[0]) - lengthwise)
    width = max(F(0.003), F(0.7) * footprint)
    joint = max(F(0), F(1) - near_joint / width) * min(F(1), F(0.004) / width)
    return tint * (F(1) - F(0.55) * joint)


@inlined
def _sunlight(shadow, sun, point):
    """Share of the sun (0 to 1) that reaches a world point: 2x2 bilinear comparisons; lit outside the map.

    sun (5, 3): right, down, forward, position of the sun's camera, then (first slope, pitch, 0).
    """
    dx, dy, dz = point[0] - sun[3, 0], point[1] - sun[3, 1], point[2] - sun[3, 2]
    q = F(1) / (sun[2, 0] * dx + sun[2, 1] * dy + sun[2, 2] * dz)
    x = ((sun[0, 0] * dx + sun[0, 1] * dy + sun[0, 2] * dz) * q - sun[4, 0]) / sun[4, 1]
    y = ((sun[1, 0] * dx + sun[1, 1] * dy + sun[1, 2] * dz) * q - sun[4, 0]) / sun[4, 1]
    if x < F(0) or y < F(0) or x >= F(shadow.shape[1] - 1) or y >= F(shadow.shape[0] - 1):
        return F(1)
    column, row = np.uintp(x), np.uintp(y)
    fx, fy = x - F(column), y - F(row)
    one = np.uintp(1)
    upper = (F(1) - fx) * F(shadow[row, column] <= q) + fx * F(shadow[row, column + one] <= q)
    lower = (F(1) - fx) * F(shadow[row + one, column] <= q) + fx * F(shadow[row + one, column + one] <= q)
    return (F(1) - fy) * upper + fy * lower


@compiled
def _occlusion(
    depth_buffer, codes, us, vs, camera, shapes, halves, centers, flat_normals, long_axes, pattern, z, open_share
):
    """Screen-space ambient occlusion on a coarse grid: fills z and open_share (rows, columns); 1 is unobstructed.

    pattern (16, N, 2): offsets in the unit disc, another rotation for each cell of a 4x4 tile; the blur over such tiles
    evens them out.
    """
    rows, columns = z.shape
    step = np.uintp(codes.shape[0] // rows)
    half_step = step // np.uintp(2)
    for y in range(np.uintp(rows)):
        for x in range(np.uintp(columns)):
            z[y, x] = F(1) / depth_buffer[y * step + half_step, x * step + half_step]
    pitch = (us[1] - us[0]) * F(step)
    radius = F(OCCLUSION_RADIUS_M)
    for y in range(np.uintp(rows)):
        for x in range(np.uintp(columns)):
            sy, sx = y * step + half_step, x * step + half_step
            open_share[y, x] = F(1)
            code = codes[sy, sx]
            if code < 0:
                continue
            here = z[y, x]
            _, _, (wx, wy, wz) = _surface(
                sy, sx, F(1) / here, code, us, vs, camera, shapes, halves, centers, flat_normals, long_axes
            )
            nx = camera[0, 0] * wx + camera[0, 1] * wy + camera[0, 2] * wz
            ny = camera[1, 0] * wx + camera[1, 1] * wy + camera[1, 2] * wz
            nz = camera[2, 0] * wx + camera[2, 1] * wy + camera[2, 2] * wz
            px, py = us[sx] * here, vs[sy] * here
            reach = min(radius / (here * pitch), F(0.15) * F(rows))
            turn = (y % np.uintp(4)) * np.uintp(4) + x % np.uintp(4)
            blocked = F(0)
            for k in range(np.uintp(pattern.shape[1])):
                fx, fy = F(x) + reach * pattern[turn, k, 0] + F(0.5), F(y) + reach * pattern[turn, k, 1] + F(0.5)
                if fx < F(0) or fy < F(0) or fx >= F(columns) or fy >= F(rows):
                    continue
                column, row = np.uintp(fx), np.uintp(fy)
                there = z[row, column]
                dx, dy = us[column * step + half_step] * there - px, vs[row * step + half_step] * there - py
                dz = there - here
                squared = dx * dx + dy * dy + dz * dz + F(1e-6)
                height = (nx * dx + ny * dy + nz * dz) / math.sqrt(squared)
                blocked += max(F(0), height - F(0.10)) * max(F(0), F(1) - squared / (F(2) * radius * radius))
            open_share[y, x] = max(F(0.2), F(1) - F(1.7) * blocked / F(pattern.shape[1]))


@compiled
def _blur(z, source, target):
    """Mean of `source` over 4x4 cells of about the same depth."""
    rows, columns = z.shape
    for y in range(rows):
        for x in range(columns):
            total, weight, here = F(0), F(1e-6), z[y, x]
            for j in range(max(0, y - 2), min(rows, y + 2)):
                for i in range(max(0, x - 2), min(columns, x + 2)):
                    like = F(1) if abs(z[np.uintp(j), np.uintp(i)] - here) < F(0.03) * here else F(0)
                    total, weight = total + like * source[np.uintp(j), np.uintp(i)], weight + like
            target[y, x] = (total + F(1e-6)) / weight


@inlined
def _coarse(z, values, fy, fx, depth):
    """Interpolate `values` on the coarse grid at (fy, fx), from the cells of about the given depth."""
    y, x = (
        np.uintp(min(max(fy, F(0)), F(z.shape[0]) - F(1.001))),
        np.uintp(min(max(fx, F(0)), F(z.shape[1]) - F(1.001))),
    )
    ty, tx = min(max(fy - F(y), F(0)), F(1)), min(max(fx - F(x), F(0)), F(1))
    total, weight = F(1e-5), F(1e-5)
    for j in range(np.uintp(2)):
        for i in range(np.uintp(2)):
            share = (ty if j else F(1) - ty) * (tx if i else F(1) - tx) + F(1e-3)
            share = share if abs(z[y + j, x + i] - depth) < F(0.05) * depth else F(0)
            total, weight = total + share * values[y + j, x + i], weight + share
    return total / weight


@compiled
def _paint(
    depth_buffer,
    codes,
    us,
    vs,
    camera,
    shapes,
    halves,
    centers,
    flat_normals,
    long_axes,
    colors,
    sun,
    shadow,
    z,
    open_share,
    tones,
    image,
):
    """Shade every pixel of `image` from its samples; a pixel that shows one face is shaded once, at its last sample."""
    rows, columns, _ = image.shape
    s, one = np.uintp(codes.shape[0] // rows), np.uintp(1)
    scale, share, per_cell = F(TONES - 1) / F(BRIGHTEST), F(1) / F(s * s), F(z.shape[0]) / F(codes.shape[0])
    for y in range(np.uintp(rows)):
        background = F(0.62) + F(0.30) * F(y) / F(rows)
        for x in range(np.uintp(columns)):
            first, uniform = codes[y * s, x * s], True
            for j in range(s):
                for i in range(s):
                    uniform = uniform & (codes[y * s + j, x * s + i] == first)
            start, weight = (s - one, F(1)) if uniform else (np.uintp(0), share)
            red, green, blue = F(0), F(0), F(0)
            for j in range(start, s):
                for i in range(start, s):
                    sy, sx = y * s + j, x * s + i
                    code = codes[sy, sx]
                    if code < 0:
                        red, green, blue = (
                            red + weight * F(0.86) * background,
                            green + weight * F(0.93) * background,
                            blue + weight * background,
                        )
                        continue
                    n, q = np.uintp(code) // np.uintp(FACES), depth_buffer[sy, sx]
                    point, ray, normal = _surface(
                        sy, sx, q, code, us, vs, camera, shapes, halves, centers, flat_normals, long_axes
                    )
                    openness = _coarse(
                        z,
                        open_share,
                        (F(sy) + F(0.5)) * per_cell - F(0.5),
                        (F(sx) + F(0.5)) * per_cell - F(0.5),
                        F(1) / q,
                    )
                    r, g, b = _light(point, ray, normal, sun, shadow, openness)
                    albedo = weight
                    if shapes[n, 0] == PLANE:
                        slant = -(normal[0] * ray[0] + normal[1] * ray[1] + normal[2] * ray[2])
                        albedo = weight * _plank(point[0], point[1], (us[1] - us[0]) / (q * max(F(0.1), slant)))
                    red, green, blue = (
                        red + albedo * colors[n, 0] * r,
                        green + albedo * colors[n, 1] * g,
                        blue + albedo * colors[n, 2] * b,
                    )
            image[y, x, 0] = tones[np.uintp(min(red * scale, F(TONES - 1)))]
            image[y, x, 1] = tones[np.uintp(min(green * scale, F(TONES - 1)))]
            image[y, x, 2] = tones[np.uintp(min(blue * scale, F(TONES - 1)))]


@inlined
def _light(point, ray, normal, sun, shadow, openness):
    """Linear light (red, green, blue) on a surface: warm sun, bluish sky from above, a weak fill from the eye."""
    nx, ny, nz = normal
    facing = -(nx * ray[0] + ny * ray[1] + nz * ray[2]) / math.sqrt(ray[0] * ray[0] + ray[1] * ray[1] + ray[2] * ray[2])
    lean, lift = -(nx * sun[2, 0] + ny * sun[2, 1] + nz * sun[2, 2]), F(SHADOW_OFFSET_M)
    sunny = F(0)
    if lean > F(0):
        sunny = lean * _sunlight(shadow, sun, (point[0] + lift * nx, point[1] + lift * ny, point[2] + lift * nz))
    sky, fill = openness * (F(0.36) + F(0.12) * nz), F(0.20) * max(F(0), facing) * openness
    return F(0.74) * sunny + F(0.97) * sky + fill, F(0.70) * sunny + sky + fill, F(0.62) * sunny + F(1.06) * sky + fill


@inlined
def _blend(image, y, x, rgb, alpha):
    for c in range(3):
        image[y, x, c] = np.uint8(F(image[y, x, c]) * (F(1) - alpha) + F(255) * rgb[c] * alpha + F(0.5))


@compiled
def _blend_shapes(
    image, depth_buffer, mark_depth, codes, us, vs, camera, shapes, halves, centers, flat_normals, long_axes, colors
):
    """Blend translucent shapes over the picture; colors (N, 4): sRGB and alpha; parts behind something are faint."""
    rows, columns, _ = image.shape
    s = np.uintp(codes.shape[0] // rows)
    for y in range(np.uintp(rows)):
        for x in range(np.uintp(columns)):
            weight, code, q, sy, sx = F(0), np.int32(-1), F(1), y, x
            for j in range(y * s, y * s + s):
                for i in range(x * s, x * s + s):
                    if codes[j, i] >= 0:
                        code, q, sy, sx = codes[j, i], mark_depth[j, i], j, i
                        weight += F(1) if q >= depth_buffer[j, i] * F(0.999) else F(HIDDEN)
            if code >= 0:
                n = np.uintp(code) // np.uintp(FACES)
                _, _, (nx, ny, nz) = _surface(
                    sy, sx, q, code, us, vs, camera, shapes, halves, centers, flat_normals, long_axes
                )
                bright = F(0.72) + F(0.28) * (F(0.5) * nz - F(0.25) * nx - F(0.35) * ny)
                _blend(
                    image,
                    y,
                    x,
                    (bright * colors[n, 0], bright * colors[n, 1], bright * colors[n, 2]),
                    colors[n, 3] * weight / F(s * s),
                )


@compiled
def _blend_line(image, inverse_depth, start, end, rgb, width):
    """Blend an anti-aliased line over the picture, faint behind things; start, end: column, row (pixels), 1/z."""
    rows, columns, _ = image.shape
    s = inverse_depth.shape[0] // rows
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = math.sqrt(dx * dx + dy * dy) + F(1e-6)
    steep = abs(dy) > abs(dx)
    major, major_slope = (start[1], dy) if steep else (start[0], dx)
    limit = rows if steep else columns
    cross_limit = columns if steep else rows
    low, high = min(major, major + major_slope), max(major, major + major_slope)
    margin = F(0.5) * width + F(1)
    for a in range(max(0, int(low - margin)), min(limit, int(high + margin) + 1)):
        t = min(max((F(a) - major) / (major_slope + F(1e-9)), F(0)), F(1))
        middle = (start[0] + t * dx) if steep else (start[1] + t * dy)
        for b in range(max(0, int(middle - F(1.5) * margin)), min(cross_limit, int(middle + F(1.5) * margin) + 1)):
            x, y = (b, a) if steep else (a, b)
            along = min(max(((F(x) - start[0]) * dx + (F(y) - start[1]) * dy) / (length * length), F(0)), F(1))
            ex, ey = F(x) - start[0] - along * dx, F(y) - start[1] - along * dy
            coverage = min(F(1), F(0.5) * width + F(0.5) - math.sqrt(ex * ex + ey * ey))
            if coverage > F(0):
                q = start[2] + along * (end[2] - start[2])
                visible = q >= inverse_depth[y * s, x * s] * F(0.994)
                _blend(image, y, x, rgb, coverage * (F(0.95) if visible else F(HIDDEN)))


def camera_axes(eye_m: Vector, target_m: Vector) -> np.ndarray:
    """(4, 3) float64: right, down and forward of a level camera at eye_m that looks at target_m, and eye_m itself."""
    eye, forward = np.asarray(eye_m, float), np.asarray(target_m, float) - np.asarray(eye_m, float)
    distance = np.linalg.norm(forward)
    if distance < 1e-6:
        raise ValueError(f"the eye and the target of a picture are the same point, {tuple(eye)}")
    forward /= distance
    right = np.cross(forward, (0.0, 0.0, 1.0))
    if np.linalg.norm(right) < 1e-6:  # straight up or down: world y is up in the picture
        right = np.array([1.0, 0.0, 0.0])
    right /= np.linalg.norm(right)
    return np.stack([right, np.cross(forward, right), forward, eye])


def _mujoco_camera(axes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """cam_xpos (1, 3) and cam_xmat (1, 9) of MuJoCo's convention (right, up, back) for the result of `camera_axes`."""
    return axes[3:4].copy(), np.ascontiguousarray(np.stack([axes[0], -axes[1], -axes[2]], axis=1)).reshape(1, 9)


@cache
def _tone_table() -> np.ndarray:
    """(TONES,) uint8: sRGB of linear light 0..BRIGHTEST, with a soft shoulder instead of clipping."""
    light = np.linspace(0.0, BRIGHTEST, TONES)
    shoulder = np.where(light < 0.7, light, 0.7 + 0.3 * np.tanh((light - 0.7) / 0.3))
    srgb = np.where(shoulder < 0.0031308, 12.92 * shoulder, 1.055 * shoulder ** (1 / 2.4) - 0.055)
    return np.round(255 * srgb).astype(np.uint8)


def _occlusion_pattern(count: int = 5) -> np.ndarray:
    """(16, count, 2) float32: sixteen rotations, in mixed order, of a spiral of offsets in the unit disc."""
    turn, k = np.arange(16)[:, None] * 7 % 16 / 16, np.arange(count)[None, :]
    radius, angle = np.sqrt((k + 0.3 + 0.6 * turn) / count), 2 * math.pi * (k / count + turn) + k * 2.4
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=2).astype(np.float32)


def _surfaces(
    shapes: np.ndarray, halves: np.ndarray, centers: np.ndarray, rotations: np.ndarray, eye: np.ndarray
) -> tuple[np.ndarray, ...]:
    """What `_surface` needs per shape: kinds, halves, centres, normals of the faces towards the eye, long axes."""
    centers, axes = (
        centers[shapes[:, 1]],
        rotations[shapes[:, 1]].reshape(-1, 3, 3).transpose(0, 2, 1),
    )  # axes[n, k]: axis k in the world
    towards = np.einsum("nki,ni->nk", axes, eye - centers)
    normals = np.zeros((len(shapes), FACES, 3), np.float32)
    normals[:, :3] = axes * np.where(towards > 0, 1.0, -1.0)[:, :, None]
    return shapes, halves, centers.astype(np.float32), normals.reshape(-1, 3), axes[:, 2].astype(np.float32)


def _between(
    eye: np.ndarray, target: np.ndarray, centers: np.ndarray, rotations: np.ndarray, halves: np.ndarray
) -> np.ndarray:
    """Which boxes (N) stand before a robot-sized surface around the target, by a fan of sight lines to it."""
    sideways = np.cross(target - eye, (0.0, 0.0, 1.0))
    sideways /= max(np.linalg.norm(sideways), 1e-6)
    goals = np.array(
        [target * (1, 1, height) + side * sideways for side in np.linspace(-0.4, 0.4, 7) for height in (0, 1, 1.7)]
    )
    start = np.einsum("gji,gj->gi", rotations, eye - centers)[:, None]  # (boxes, 1, 3), in the boxes' frames
    step = np.einsum("gji,lj->gli", rotations, goals - eye)  # (boxes, lines, 3)
    step = np.where(np.abs(step) < 1e-9, 1e-9, step)
    first, second = (-halves[:, None] - start) / step, (halves[:, None] - start) / step
    enter, leave = np.minimum(first, second).max(axis=2), np.maximum(first, second).min(axis=2)
    return ((enter < leave) & (leave > 0) & (enter < 0.85)).any(axis=1)


class Painter:
    """Third-person pictures of one model, for videos.

    fov_deg: vertical field of view; hide_groups: geom groups left out (the ceiling). Walls and furniture
    higher than `cut_above_m` that stand between the eye and the target are cut down to `stub_m`.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        width: int = 512,
        height: int = 512,
        fov_deg: float = 60.0,
        supersample: int = 2,
        hide_groups: tuple[int, ...] = (4,),
        cut_above_m: float = 1.25,
        stub_m: float = 0.12,
    ):
        if min(width, height, supersample) < 1 or not 0.0 < fov_deg < 180.0:
            raise ValueError(
                f"picture: width {width}, height {height}, supersample {supersample} (at least 1), "
                f"fov_deg {fov_deg} (0 to 180)"
            )
        self._cut_above_m, self._stub_m = cut_above_m, stub_m
        self._shapes, self._halves = shape_table(model, hide_groups)
        geoms = self._shapes[:, 1]
        self._colors = np.clip(model.geom_rgba[geoms], 0, 1).astype(np.float32) ** 2.2
        self._bodies = model.geom_bodyid[geoms]
        self._articulated = model.geom_group[geoms] == ARTICULATED_GROUP
        fixed = (model.body_weldid[self._bodies] == 0) | self._articulated
        self._cuttable = np.flatnonzero(fixed & (self._shapes[:, 0] == BOX))
        pitch = 2.0 * math.tan(math.radians(fov_deg) / 2.0) / (height * supersample)
        self._us, self._vs = pixel_slopes(width * supersample, pitch), pixel_slopes(height * supersample, pitch)
        self._focal_px = 1.0 / (pitch * supersample)
        samples = (height * supersample, width * supersample)
        self._depth, self._codes = np.empty(samples, np.float32), np.empty(samples, np.int32)
        self._mark_depth, self._mark_codes = np.empty(samples, np.float32), np.empty(samples, np.int32)
        self._sun_slopes = pixel_slopes(SHADOW_SIZE, 2 * SHADOW_RADIUS_M / SUN_DISTANCE_M / SHADOW_SIZE)
        self._shadow = np.empty((SHADOW_SIZE, SHADOW_SIZE), np.float32)
        coarse = (max(2, height // 2), max(2, width // 2))
        self._coarse_z, self._open, self._blurred = (np.empty(coarse, np.float32) for _ in range(3))
        self._image = np.empty((height, width, 3), np.uint8)
        self._pattern = _occlusion_pattern()

    def render(
        self, data: mujoco.MjData, eye_m: Vector, target_m: Vector, marks: Sequence[WireBox | Sphere | Ghost] = ()
    ) -> np.ndarray:
        """The scene from eye_m towards target_m (world), uint8 (height, width, 3); marks are faint behind things."""
        axes = camera_axes(eye_m, target_m)
        kept, halves, centers = self._cut_away(data, axes[3], np.asarray(target_m, float))
        shapes = self._shapes[kept]
        draw(
            shapes,
            halves,
            centers,
            data.geom_xmat,
            *_mujoco_camera(axes),
            0,
            self._us,
            self._vs,
            F(FAR_M),
            self._depth,
            self._codes,
        )
        sun = self._draw_shadows(shapes, halves, centers, data.geom_xmat, np.asarray(target_m, float))
        surfaces = _surfaces(shapes, halves, centers, data.geom_xmat, axes[3])
        view = (self._us, self._vs, axes.astype(np.float32))
        _occlusion(self._depth, self._codes, *view, *surfaces, self._pattern, self._coarse_z, self._open)
        _blur(self._coarse_z, self._open, self._blurred)
        _paint(
            self._depth,
            self._codes,
            *view,
            *surfaces,
            self._colors[kept],
            sun,
            self._shadow,
            self._coarse_z,
            self._blurred,
            _tone_table(),
            self._image,
        )
        self._draw_translucent(axes, [mark for mark in marks if not isinstance(mark, WireBox)])
        for mark in marks:
            if isinstance(mark, WireBox):
                self._draw_wire(axes, mark)
        return self._image.copy()

    def _cut_away(
        self, data: mujoco.MjData, eye: np.ndarray, target: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows of the shape table to draw, their halves, and all geom centres, with what blocks the view cut down."""
        halves, centers, kept = self._halves.copy(), data.geom_xpos.copy(), np.ones(len(self._halves), bool)
        geoms = self._shapes[self._cuttable, 1]
        rotations, sizes = data.geom_xmat[geoms].reshape(-1, 3, 3), halves[self._cuttable, :3]
        reach = np.einsum("gij,gj->gi", np.abs(rotations), sizes)  # half extents along the world axes
        tall = centers[geoms, 2] + reach[:, 2] > self._cut_above_m
        blocking = tall & _between(eye, target, centers[geoms], rotations, sizes)
        high = tall | (centers[geoms, 2] - reach[:, 2] > 0.7 * self._cut_above_m)  # would float without the rest
        furniture = high & (sizes.max(axis=1) < WALL_HALF_LENGTH_M)
        to_follow = list(np.flatnonzero(blocking & furniture))
        while to_follow:  # the rest of a piece of furniture goes with any of its parts
            part = to_follow.pop()
            gap = np.abs(centers[geoms, :2] - centers[geoms[part], :2]) - reach[:, :2] - reach[part, :2]
            joined = furniture & ~blocking & (gap.max(axis=1) < 0.01)
            to_follow.extend(np.flatnonzero(joined))
            blocking |= joined
        for row, geom, half_height in zip(self._cuttable[blocking], geoms[blocking], reach[blocking, 2], strict=True):
            bottom = centers[geom, 2] - half_height
            if bottom > self._stub_m / 2 or abs(data.geom_xmat[geom, 8]) < 0.999:
                kept[row] = False
                continue
            halves[row, 2] = (self._stub_m - bottom) / 2
            centers[geom, 2] = bottom + halves[row, 2]
        kept &= ~np.isin(self._bodies, self._bodies[~kept & self._articulated])  # a door goes with its handle
        return np.flatnonzero(kept), halves[kept], centers

    def _draw_shadows(
        self, shapes: np.ndarray, halves: np.ndarray, centers: np.ndarray, rotations: np.ndarray, target: np.ndarray
    ) -> np.ndarray:
        """Rasterise what the sun sees around the target; returns the sun's camera as `_sunlight` takes it."""
        texel = 2 * SHADOW_RADIUS_M / SHADOW_SIZE
        axes = camera_axes(SUN_DIRECTION * SUN_DISTANCE_M, (0.0, 0.0, 0.0))
        along = np.round(axes[:2] @ target / texel) * texel  # steady shadows in a video
        axes[3] += along @ axes[:2]
        draw(
            shapes,
            halves,
            centers,
            rotations,
            *_mujoco_camera(axes),
            0,
            self._sun_slopes,
            self._sun_slopes,
            F(2 * SUN_DISTANCE_M),
            self._shadow,
            None,
        )
        pitch = self._sun_slopes[1] - self._sun_slopes[0]
        return np.vstack([axes, (self._sun_slopes[0], pitch, 0.0)]).astype(np.float32)

    def _draw_translucent(self, axes: np.ndarray, marks: Sequence[Sphere | Ghost]) -> None:
        """Blend balls and ghosts; where several cover a pixel, the nearest counts."""
        if not marks:
            return
        kinds = {name: kind for kind, name in SHAPE_NAMES.items()}
        shapes, halves, centers, rotations, colors = [], [], [], np.empty((len(marks), 9)), []
        for n, mark in enumerate(marks):
            ghost = (
                mark
                if isinstance(mark, Ghost)
                else Ghost("sphere", (mark.radius_m,), mark.center_m, rgb=mark.rgb, alpha=mark.alpha)
            )
            if ghost.shape not in kinds:
                raise ValueError(f"a mark has the shape {ghost.shape!r}; allowed: {', '.join(kinds)}")
            half = box_half_extents(kinds[ghost.shape], (*ghost.size, 0.0, 0.0)[:3])
            shapes.append((kinds[ghost.shape], n))
            halves.append((*half, math.hypot(*half)))
            centers.append(ghost.position_m)
            mujoco.mju_quat2Mat(rotations[n], np.asarray(ghost.quat, float))
            colors.append((*ghost.rgb, ghost.alpha))
        shapes, halves, centers = np.array(shapes, np.int32), np.array(halves, np.float32), np.array(centers, float)
        draw(
            shapes,
            halves,
            centers,
            rotations,
            *_mujoco_camera(axes),
            0,
            self._us,
            self._vs,
            F(FAR_M),
            self._mark_depth,
            self._mark_codes,
        )
        surfaces = _surfaces(shapes, halves, centers, rotations, axes[3])
        _blend_shapes(
            self._image,
            self._depth,
            self._mark_depth,
            self._mark_codes,
            self._us,
            self._vs,
            axes.astype(np.float32),
            *surfaces,
            np.array(colors, np.float32),
        )

    def _draw_wire(self, axes: np.ndarray, box: WireBox) -> None:
        """Blend the twelve edges of a box."""
        rotation = np.empty(9)
        mujoco.mju_quat2Mat(rotation, np.asarray(box.quat, float))
        signs = np.array([[1 - 2 * (k >> bit & 1) for bit in range(3)] for k in range(8)])
        corners = (
            np.asarray(box.center_m, float) + (signs * np.asarray(box.half_size_m, float)) @ rotation.reshape(3, 3).T
        )
        corners = (corners - axes[3]) @ axes[:3].T  # camera frame
        height, width, _ = self._image.shape
        for a in range(8):
            for b in (a ^ 1, a ^ 2, a ^ 4):
                start, end = corners[a], corners[b]
                if a > b or max(start[2], end[2]) < NEAR_M:
                    continue
                if min(start[2], end[2]) < NEAR_M:  # clip the end that is behind the eye
                    start, end = (start, end) if start[2] > end[2] else (end, start)
                    end = start + (end - start) * (start[2] - NEAR_M) / (start[2] - end[2])
                pixels = [
                    (
                        p[0] / p[2] * self._focal_px + (width - 1) / 2,
                        p[1] / p[2] * self._focal_px + (height - 1) / 2,
                        1 / p[2],
                    )
                    for p in (start, end)
                ]
                rgb = tuple(F(value) for value in box.rgb)
                _blend_line(
                    self._image,
                    self._depth,
                    *(tuple(F(value) for value in pixel) for pixel in pixels),
                    rgb,
                    F(max(1.5, height / 256)),
                )


def follow_camera(
    base_pose: Vector,
    previous: tuple[np.ndarray, np.ndarray] | None = None,
    distance_m: float = 2.1,
    height_m: float = 2.3,
    smoothing: float = 0.06,
) -> tuple[np.ndarray, np.ndarray]:
    """Eye and target (world, m) of a camera behind and to the left of a robot at base_pose (x, y, yaw) that shows where
    its arm works.

    previous: the result for the frame before, of which `1 - smoothing` is kept, so that the view does not swing as the
    robot turns.
    """
    x, y, yaw = (float(value) for value in base_pose)
    c, s = math.cos(yaw), math.sin(yaw)
    behind, left = -0.72 * distance_m, 0.69 * distance_m
    eye = np.array([x + c * behind - s * left, y + s * behind + c * left, height_m])
    target = np.array([x + 0.45 * c, y + 0.45 * s, 0.75])
    if previous is None:
        return eye, target
    return previous[0] + smoothing * (eye - previous[0]), previous[1] + 2 * smoothing * (target - previous[1])


def depth_picture(depth: np.ndarray, size: int | None = None) -> np.ndarray:
    """A normalised depth image (H, W) or (H, W, 1) as uint8 (size, size, 3): near bright yellow, far dark violet,
    nothing black.

    The scale is the square root of nearness, which spends most colours on the first metres. Enlarged without smoothing:
    pixels stay honest.
    """
    depth = np.clip(np.asarray(depth, np.float32).reshape(depth.shape[:2]), 0.0, 1.0)
    image = _depth_colors()[np.round(255 * (1.0 - np.sqrt(depth))).astype(np.intp)]
    if size is None:
        return image
    rows, columns = ((np.arange(size) * count) // size for count in depth.shape)
    return image[rows[:, None], columns[None, :]]


@cache
def _depth_colors() -> np.ndarray:
    """(256, 3) uint8: black, violet, red, orange, pale yellow, with even steps of lightness (after matplotlib's
    inferno).
    """
    stops = np.array(
        [
            [0, 0, 4],
            [40, 11, 84],
            [101, 21, 110],
            [159, 42, 99],
            [212, 72, 66],
            [245, 125, 21],
            [250, 193, 39],
            [252, 255, 164],
        ]
    )
    at = np.linspace(0, 255, len(stops))
    return np.stack([np.interp(np.arange(256), at, stops[:, c]) for c in range(3)], axis=1).round().astype(np.uint8)


@cache
def _font(size: int):
    from PIL import ImageFont

    return ImageFont.load_default(size)


def text_width(text: str, size: int = 16) -> float:
    """Width in pixels of one line as `draw_text` writes it."""
    return _font(size).getlength(text)


def draw_text(
    image: np.ndarray,
    xy: tuple[int, int],
    text: str,
    size: int = 16,
    rgb: tuple[int, int, int] = (255, 255, 255),
    shadow: bool = False,
    line_gap: int | None = None,
) -> None:
    """Write text (lines separated by newlines, line_gap pixels apart) into a uint8 image, in place.

    xy: left and top in pixels; shadow: a dark edge, for use over pictures.
    """
    x, y = xy
    for n, line in enumerate(text.split("\n")):
        top = y + n * (line_gap or round(1.35 * size))
        if shadow:
            _stamp(image, x + 1, top + 1, _text_mask(line, size), (0, 0, 0))
        _stamp(image, x, top, _text_mask(line, size), rgb)


@lru_cache(maxsize=512)  # most lines of a video stay the same from frame to frame
def _text_mask(line: str, size: int) -> np.ndarray:
    """Coverage (rows, columns) in [0, 1] of one line of text."""
    from PIL import Image, ImageDraw

    canvas = Image.new("L", (math.ceil(text_width(line, size)) + 4, 2 * size))
    ImageDraw.Draw(canvas).text((0, 0), line, font=_font(size), fill=255)
    return np.asarray(canvas, np.float32) / 255


def _stamp(image: np.ndarray, x: int, y: int, mask: np.ndarray, rgb: tuple[int, int, int]) -> None:
    """Blend a colour into an image where the mask, placed with its corner at (x, y), covers it."""
    part = image[max(0, y) : max(0, y + mask.shape[0]), max(0, x) : max(0, x + mask.shape[1])]
    covered = mask[max(0, -y) : max(0, -y) + part.shape[0], max(0, -x) : max(0, -x) + part.shape[1], None]
    part[:] = np.round(part + covered * (np.array(rgb, np.float32) - part)).astype(np.uint8)

"""Kernels that turn visible faces into colours: light, shadow, ambient occlusion, floor planks and blending of marks.

The buffers are those of `rearrange.home.pictures.raster.draw`, `supersample` times as large as the picture: inverse
depth (1/m) and codes. World z up, metres. Light and colours are linear unless called sRGB. Images are uint8 (H, W, 3).

Two arguments are tuples that several kernels share:
view: us, vs, the ray slopes of the samples' columns and rows; camera (4, 3) float32: right, down, forward, eye.
surfaces: of each shape shapes (N, 2) and halves (N, 4) as `raster.draw` takes them, centers (N, 3),
flat_normals (FACES * N, 3) by code, long_axes (N, 3).
"""

from __future__ import annotations

import math

import numpy as np

from rearrange.home.pictures.raster_kernels import (
    BOX,
    CAPSULE,
    CYLINDER,
    FACES,
    PLANE,
    SPHERE,
    F,
    compiled,
    inlined,
)

SHADOW_OFFSET_M = 0.02  # points are moved along their normal before the shadow test, against self-shadowing
OCCLUSION_RADIUS_M = 0.28
HIDDEN = 0.22  # opacity of the parts of a mark that lie behind something, relative to the rest
COARSE = 4  # pixels of the picture along each side of a cell of the grid of ambient occlusion


@inlined
def _normal(code, shapes, halves, flat_normals, long_axes, offset):
    """Unit outward world normal of the surface that `code` names, at a point `offset` from the shape's centre."""
    n = np.uintp(code) // np.uintp(FACES)
    kind = shapes[n, 0]
    if kind == BOX or kind == PLANE:
        return flat_normals[np.uintp(code), 0], flat_normals[np.uintp(code), 1], flat_normals[np.uintp(code), 2]
    axis = long_axes[n, 0], long_axes[n, 1], long_axes[n, 2]
    return round_normal((kind, halves[n, 0], halves[n, 2], axis), offset)


@inlined
def round_normal(shape, offset):
    """Unit outward normal at `offset` from the centre of a round shape: kind, radius, half length, axis."""
    kind, radius, half, (ax, ay, az) = shape
    along = ax * offset[0] + ay * offset[1] + az * offset[2]
    if kind == CYLINDER and abs(along) > half * F(0.9999) - F(2e-4):
        sign = F(1) if along > F(0) else F(-1)
        return sign * ax, sign * ay, sign * az
    if kind == SPHERE:
        along = F(0)
    elif kind == CAPSULE:
        along = min(max(along, radius - half), half - radius)
    nx, ny, nz = offset[0] - along * ax, offset[1] - along * ay, offset[2] - along * az
    inverse = F(1) / math.sqrt(nx * nx + ny * ny + nz * nz + F(1e-12))
    return nx * inverse, ny * inverse, nz * inverse


@inlined
def surface_at(y, x, q, code, view, surfaces):
    """World point, ray and normal (three floats each) of sample (y, x)."""
    us, vs, camera = view
    shapes, halves, centers, flat_normals, long_axes = surfaces
    u, v, z, n = us[x], vs[y], F(1) / q, np.uintp(code) // np.uintp(FACES)
    ray = (camera[0, 0] * u + camera[1, 0] * v + camera[2, 0], camera[0, 1] * u + camera[1, 1] * v + camera[2, 1],
           camera[0, 2] * u + camera[1, 2] * v + camera[2, 2])
    point = (camera[3, 0] + z * ray[0], camera[3, 1] + z * ray[1], camera[3, 2] + z * ray[2])
    offset = (point[0] - centers[n, 0], point[1] - centers[n, 1], point[2] - centers[n, 2])
    return point, ray, _normal(code, shapes, halves, flat_normals, long_axes, offset)


@inlined
def sunlight(shadow, sun, point):
    """Share of the sun (0 to 1) that reaches a world point: 2x2 bilinear comparisons; lit outside the map.

    sun: right, down, forward and position of the sun's camera (three floats each), then first slope and pitch.
    """
    right, down, forward, eye, (first, pitch) = sun
    dx, dy, dz = point[0] - eye[0], point[1] - eye[1], point[2] - eye[2]
    q = F(1) / (forward[0] * dx + forward[1] * dy + forward[2] * dz)
    x = ((right[0] * dx + right[1] * dy + right[2] * dz) * q - first) / pitch
    y = ((down[0] * dx + down[1] * dy + down[2] * dz) * q - first) / pitch
    inside = (x >= F(0)) & (y >= F(0)) & (x < F(shadow.shape[1] - 1)) & (y < F(shadow.shape[0] - 1))
    x, y = x if inside else F(0), y if inside else F(0)
    column, row, one = np.uintp(np.int32(x)), np.uintp(np.int32(y)), np.uintp(1)
    fx, fy = x - F(column), y - F(row)
    upper = (F(1) - fx) * F(shadow[row, column] <= q) + fx * F(shadow[row, column + one] <= q)
    lower = (F(1) - fx) * F(shadow[row + one, column] <= q) + fx * F(shadow[row + one, column + one] <= q)
    return (F(1) - fy) * upper + fy * lower if inside else F(1)


@compiled
def occlusion(depth_buffer, codes, view, surfaces, pattern, z, open_share):
    """Screen-space ambient occlusion on a coarse grid: fills z and open_share (rows, columns); 1 is unobstructed.

    pattern (16, N, 2): offsets in the unit disc, turned in each cell of a 4x4 tile; the blur evens them out.
    """
    us, vs, camera = view
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
            _, _, (wx, wy, wz) = surface_at(sy, sx, F(1) / here, code, view, surfaces)
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
def blur(z, source, target):
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
def at_cell(z, values, fy, fx, depth):
    """Interpolate `values` on the coarse grid at (fy, fx), from the cells of about the given depth."""
    y = np.uintp(np.int32(min(max(fy, F(0)), F(z.shape[0]) - F(1.001))))
    x = np.uintp(np.int32(min(max(fx, F(0)), F(z.shape[1]) - F(1.001))))
    ty, tx = min(max(fy - F(y), F(0)), F(1)), min(max(fx - F(x), F(0)), F(1))
    total, weight = F(1e-5), F(1e-5)
    for j in range(np.uintp(2)):
        for i in range(np.uintp(2)):
            share = (ty if j else F(1) - ty) * (tx if i else F(1) - tx) + F(1e-3)
            share = share if abs(z[y + j, x + i] - depth) < F(0.05) * depth else F(0)
            total, weight = total + share * values[y + j, x + i], weight + share
    return total / weight


@inlined
def on_grid(k, z, samples):
    """Row or column of the coarse grid z where that of the samples, k, lies."""
    return (F(k) + F(0.5)) * (F(z.shape[0]) / F(samples.shape[0])) - F(0.5)


@inlined
def light_on(point, ray, normal, sun, shadow, openness):
    """Linear light (red, green, blue) on a surface: warm sun, bluish sky from above, a weak fill from the eye."""
    return mixed_light(ray, normal, sun_on(point, normal, sun_camera(sun), shadow), openness)


@inlined
def sun_camera(sun):
    """What `sunlight` takes of the sun's camera, from an array (5, 3)."""
    return ((sun[0, 0], sun[0, 1], sun[0, 2]), (sun[1, 0], sun[1, 1], sun[1, 2]), (sun[2, 0], sun[2, 1], sun[2, 2]),
            (sun[3, 0], sun[3, 1], sun[3, 2]), (sun[4, 0], sun[4, 1]))


@inlined
def sun_on(point, normal, sun, shadow):
    """Share of the sun that reaches a surface, times the cosine to it; 0 where it faces away. sun: of `sun_camera`."""
    (nx, ny, nz), forward, lift = normal, sun[2], F(SHADOW_OFFSET_M)
    lean = -(nx * forward[0] + ny * forward[1] + nz * forward[2])
    if lean <= F(0):
        return F(0)
    return lean * sunlight(shadow, sun, (point[0] + lift * nx, point[1] + lift * ny, point[2] + lift * nz))


@inlined
def mixed_light(ray, normal, sunny, openness):
    """`light_on` where the share of the sun, times the cosine to it, is `sunny`."""
    nx, ny, nz = normal
    facing = -(nx * ray[0] + ny * ray[1] + nz * ray[2]) / math.sqrt(ray[0] * ray[0] + ray[1] * ray[1] + ray[2] * ray[2])
    sky, fill = openness * (F(0.36) + F(0.12) * nz), F(0.20) * max(F(0), facing) * openness
    return F(0.74) * sunny + F(0.97) * sky + fill, F(0.70) * sunny + sky + fill, F(0.62) * sunny + F(1.06) * sky + fill


@inlined
def _blend(image, y, x, rgb, alpha):
    """Mix a colour (sRGB, each in [0, 1]) into a pixel."""
    for c in range(3):
        image[y, x, c] = np.uint8(F(image[y, x, c]) * (F(1) - alpha) + F(255) * rgb[c] * alpha + F(0.5))


@compiled
def blend_shapes(image, depth_buffer, top, left, mark_depth, codes, view, surfaces, colors):
    """Blend translucent shapes over the picture; parts behind something are faint.

    top, left: sample of the picture where mark_depth, codes and view begin. colors (N, 4): sRGB and alpha.
    """
    s = np.uintp(depth_buffer.shape[0] // image.shape[0])
    down, aside = np.uintp(top), np.uintp(left)
    for y in range(np.uintp(codes.shape[0]) // s):
        for x in range(np.uintp(codes.shape[1]) // s):
            weight, code, q, sy, sx = F(0), np.int32(-1), F(1), y, x
            for j in range(y * s, y * s + s):
                for i in range(x * s, x * s + s):
                    if codes[j, i] >= 0:
                        code, q, sy, sx = codes[j, i], mark_depth[j, i], j, i
                        weight += F(1) if q >= depth_buffer[down + j, aside + i] * F(0.999) else F(HIDDEN)
            if code >= 0:
                n = np.uintp(code) // np.uintp(FACES)
                _, _, (nx, ny, nz) = surface_at(sy, sx, q, code, view, surfaces)
                bright = F(0.72) + F(0.28) * (F(0.5) * nz - F(0.25) * nx - F(0.35) * ny)
                rgb = (bright * colors[n, 0], bright * colors[n, 1], bright * colors[n, 2])
                _blend(image, down // s + y, aside // s + x, rgb, colors[n, 3] * weight / F(s * s))


@compiled
def blend_line(image, inverse_depth, start, end, rgb, width):
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


def occlusion_pattern(count: int = 5) -> np.ndarray:
    """(16, count, 2) float32: sixteen rotations, in mixed order, of a spiral of offsets in the unit disc."""
    turn, k = np.arange(16)[:, None] * 7 % 16 / 16, np.arange(count)[None, :]
    radius, angle = np.sqrt((k + 0.3 + 0.6 * turn) / count), 2 * math.pi * (k / count + turn) + k * 2.4
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=2).astype(np.float32)

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
from functools import cache

import numpy as np

from rearrange.home.pictures.raster_kernels import BOX, CAPSULE, CYLINDER, FACES, PLANE, SPHERE, F, compiled, inlined
from rearrange.home.pictures.textures import PLAIN, noise, textured

SHADOW_OFFSET_M = 0.02  # points are moved along their normal before the shadow test, against self-shadowing
OCCLUSION_RADIUS_M = 0.28
HIDDEN = 0.22  # opacity of the parts of a mark that lie behind something, relative to the rest
PLANK_M = (1.3, 0.16)  # length and width of a floor plank
TONES = 4096  # entries of the table from linear light (0 to 1.5) to sRGB
BRIGHTEST = 1.5
SMOOTH = 0.04  # linear light: cells that differ by more have an edge of a shadow between them


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
def _surface(y, x, q, code, view, surfaces):
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
def _plank(x, y, footprint):
    """Brightness of a plank floor at world x, y; joints fade where a pixel's footprint (m) is wider than they are."""
    row = math.floor(y / F(PLANK_M[1]))
    shifted = x / F(PLANK_M[0]) + noise(row, 7)
    column = math.floor(shifted)
    tint = F(0.86) + F(0.22) * noise(row, column)
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
            _, _, (wx, wy, wz) = _surface(sy, sx, F(1) / here, code, view, surfaces)
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
def _coarse(z, values, fy, fx, depth):
    """Interpolate `values` on the coarse grid at (fy, fx), from the cells of about the given depth."""
    y = np.uintp(min(max(fy, F(0)), F(z.shape[0]) - F(1.001)))
    x = np.uintp(min(max(fx, F(0)), F(z.shape[1]) - F(1.001)))
    ty, tx = min(max(fy - F(y), F(0)), F(1)), min(max(fx - F(x), F(0)), F(1))
    total, weight = F(1e-5), F(1e-5)
    for j in range(np.uintp(2)):
        for i in range(np.uintp(2)):
            share = (ty if j else F(1) - ty) * (tx if i else F(1) - tx) + F(1e-3)
            share = share if abs(z[y + j, x + i] - depth) < F(0.05) * depth else F(0)
            total, weight = total + share * values[y + j, x + i], weight + share
    return total / weight


@compiled
def light_cells(depth_buffer, codes, view, surfaces, sun, shadow, open_share, cell_codes, cell_light):
    """Light at the middles of the cells of the coarse grid: fills cell_codes and cell_light (rows, columns, 3)."""
    rows, columns = open_share.shape
    step = np.uintp(codes.shape[0] // rows)
    half_step = step // np.uintp(2)
    for y in range(np.uintp(rows)):
        for x in range(np.uintp(columns)):
            sy, sx = y * step + half_step, x * step + half_step
            code = codes[sy, sx]
            cell_codes[y, x] = code
            if code >= 0:
                point, ray, normal = _surface(sy, sx, depth_buffer[sy, sx], code, view, surfaces)
                cell_light[y, x, 0], cell_light[y, x, 1], cell_light[y, x, 2] = _light(
                    point, ray, normal, sun, shadow, open_share[y, x])


@inlined
def _neighbours(k, count):
    """The cell that holds pixel k of a row or column of pixels, and the cell next to the pixel's other side."""
    near = min(k // np.uintp(2), count - np.uintp(1))
    if k % np.uintp(2):
        return near, min(near + np.uintp(1), count - np.uintp(1))
    return near, near - np.uintp(near > np.uintp(0))


@compiled
def paint(depth_buffer, codes, view, surfaces, colors, materials, frames, light, cells, tones, image):
    """Shade every pixel of `image` from its samples; a pixel that shows one face is shaded once, at its last sample.

    Where the four cells around such a pixel show its face in about the same light, that is interpolated.

    materials (N,): of `rearrange.home.pictures.textures`. frames (N, 3, 3): the axes of each shape, one in a row.
    cells: cell_codes and cell_light of `light_cells`.
    """
    (us, _, _), shapes, (sun, shadow, z, open_share), (cell_codes, lights) = view, surfaces[0], light, cells
    rows, columns, _ = image.shape
    s, one = np.uintp(codes.shape[0] // rows), np.uintp(1)
    scale, share, per_cell = F(TONES - 1) / F(BRIGHTEST), F(1) / F(s * s), F(z.shape[0]) / F(codes.shape[0])
    for y in range(np.uintp(rows)):
        background = F(0.62) + F(0.30) * F(y) / F(rows)
        near_y, far_y = _neighbours(y, np.uintp(z.shape[0]))
        for x in range(np.uintp(columns)):
            first, uniform = codes[y * s, x * s], True
            for j in range(s):
                for i in range(s):
                    uniform = uniform & (codes[y * s + j, x * s + i] == first)
            start, weight = (s - one, F(1)) if uniform else (np.uintp(0), share)
            near_x, far_x = _neighbours(x, np.uintp(z.shape[1]))
            lit = uniform & (cell_codes[near_y, near_x] == first) & (cell_codes[near_y, far_x] == first) & (
                cell_codes[far_y, near_x] == first) & (cell_codes[far_y, far_x] == first) & (
                    abs(lights[near_y, near_x, 1] - lights[far_y, far_x, 1]) < F(SMOOTH)) & (
                        abs(lights[near_y, far_x, 1] - lights[far_y, near_x, 1]) < F(SMOOTH))
            red, green, blue = F(0), F(0), F(0)
            for j in range(start, s):
                for i in range(start, s):
                    sy, sx = y * s + j, x * s + i
                    code = codes[sy, sx]
                    if code < 0:
                        red += weight * F(0.86) * background
                        green += weight * F(0.93) * background
                        blue += weight * background
                        continue
                    n, albedo = np.uintp(code) // np.uintp(FACES), weight
                    own = colors[n, 0], colors[n, 1], colors[n, 2]
                    r, g, b = F(0), F(0), F(0)
                    if lit:
                        r = _between_cells(lights, near_y, far_y, near_x, far_x, 0)
                        g = _between_cells(lights, near_y, far_y, near_x, far_x, 1)
                        b = _between_cells(lights, near_y, far_y, near_x, far_x, 2)
                    if not lit or materials[n] != PLAIN or shapes[n, 0] == PLANE:
                        q = depth_buffer[sy, sx]
                        point, ray, normal = _surface(sy, sx, q, code, view, surfaces)
                        if materials[n] != PLAIN:
                            own_red, own_green, own_blue, shines = _texture(
                                code, n, point, ray, normal, (us[1] - us[0]) / q, materials[n], surfaces, frames, own)
                            if shines:
                                red += weight * own_red
                                green += weight * own_green
                                blue += weight * own_blue
                                continue
                            own = own_red, own_green, own_blue
                        if shapes[n, 0] == PLANE:
                            slant = -(normal[0] * ray[0] + normal[1] * ray[1] + normal[2] * ray[2])
                            albedo = weight * _plank(point[0], point[1], (us[1] - us[0]) / (q * max(F(0.1), slant)))
                        if not lit:
                            fy, fx = (F(sy) + F(0.5)) * per_cell - F(0.5), (F(sx) + F(0.5)) * per_cell - F(0.5)
                            openness = _coarse(z, open_share, fy, fx, F(1) / q)
                            r, g, b = _light(point, ray, normal, sun, shadow, openness)
                    red += albedo * own[0] * r
                    green += albedo * own[1] * g
                    blue += albedo * own[2] * b
            image[y, x, 0] = tones[np.uintp(min(red * scale, F(TONES - 1)))]
            image[y, x, 1] = tones[np.uintp(min(green * scale, F(TONES - 1)))]
            image[y, x, 2] = tones[np.uintp(min(blue * scale, F(TONES - 1)))]


@inlined
def _between_cells(lights, near_y, far_y, near_x, far_x, c):
    """One colour of the light of a pixel, a quarter of a cell away from the middle of the cell that holds it."""
    return (F(0.5625) * lights[near_y, near_x, c] + F(0.0625) * lights[far_y, far_x, c]
            + F(0.1875) * (lights[near_y, far_x, c] + lights[far_y, near_x, c]))


@inlined
def _texture(code, n, point, ray, normal, width, material, surfaces, frames, rgb):
    """Colour of a point of shape n, and whether it shines by itself; width: of a pixel that faces the camera there (m).
    """
    shapes, halves, centers, _, _ = surfaces
    dx, dy, dz = point[0] - centers[n, 0], point[1] - centers[n, 1], point[2] - centers[n, 2]
    local = (frames[n, 0, 0] * dx + frames[n, 0, 1] * dy + frames[n, 0, 2] * dz,
             frames[n, 1, 0] * dx + frames[n, 1, 1] * dy + frames[n, 1, 2] * dz,
             frames[n, 2, 0] * dx + frames[n, 2, 1] * dy + frames[n, 2, 2] * dz)
    through = frames[n, 0, 0] * ray[0] + frames[n, 0, 1] * ray[1] + frames[n, 0, 2] * ray[2]
    along = (frames[n, 1, 0] * ray[0] + frames[n, 1, 1] * ray[1]
             + frames[n, 1, 2] * ray[2]) / max(F(1e-3), abs(through))
    slant = -(normal[0] * ray[0] + normal[1] * ray[1] + normal[2] * ray[2])
    return textured(material, shapes[n, 0], np.uintp(code) % np.uintp(FACES), np.int64(n), local,
                    (halves[n, 0], halves[n, 1], halves[n, 2]), along, width / max(F(0.25), slant), rgb)


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
    """Mix a colour (sRGB, each in [0, 1]) into a pixel."""
    for c in range(3):
        image[y, x, c] = np.uint8(F(image[y, x, c]) * (F(1) - alpha) + F(255) * rgb[c] * alpha + F(0.5))


@compiled
def blend_shapes(image, depth_buffer, mark_depth, codes, view, surfaces, colors):
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
                _, _, (nx, ny, nz) = _surface(sy, sx, q, code, view, surfaces)
                bright = F(0.72) + F(0.28) * (F(0.5) * nz - F(0.25) * nx - F(0.35) * ny)
                rgb = (bright * colors[n, 0], bright * colors[n, 1], bright * colors[n, 2])
                _blend(image, y, x, rgb, colors[n, 3] * weight / F(s * s))


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


@cache
def tone_table() -> np.ndarray:
    """(TONES,) uint8: sRGB of linear light 0..BRIGHTEST, with a soft shoulder instead of clipping."""
    light = np.linspace(0.0, BRIGHTEST, TONES)
    shoulder = np.where(light < 0.7, light, 0.7 + 0.3 * np.tanh((light - 0.7) / 0.3))
    srgb = np.where(shoulder < 0.0031308, 12.92 * shoulder, 1.055 * shoulder ** (1 / 2.4) - 0.055)
    return np.round(255 * srgb).astype(np.uint8)


def occlusion_pattern(count: int = 5) -> np.ndarray:
    """(16, count, 2) float32: sixteen rotations, in mixed order, of a spiral of offsets in the unit disc."""
    turn, k = np.arange(16)[:, None] * 7 % 16 / 16, np.arange(count)[None, :]
    radius, angle = np.sqrt((k + 0.3 + 0.6 * turn) / count), 2 * math.pi * (k / count + turn) + k * 2.4
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=2).astype(np.float32)

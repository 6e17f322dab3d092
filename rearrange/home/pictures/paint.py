"""The kernel that paints pictures: every pixel from the faces that its samples show, their light and their textures.

Buffers, and the tuples `view` and `surfaces`, are those of `rearrange.home.pictures.shading`. Pixels of a row that show
one flat face are a run: they are shaded together, in loops of which the compiler makes vector code. A run is its first
column and the column after its last, then of all columns their ray slopes and inverse depths (1/m).
"""

from __future__ import annotations

from functools import cache

import numpy as np

from rearrange.home.pictures.raster_kernels import BOX, FACES, PLANE, F, compiled, inlined, part
from rearrange.home.pictures.shading import (
    at_cell,
    light_on,
    mixed_light,
    on_grid,
    round_normal,
    sun_camera,
    sun_on,
    surface_at,
)
from rearrange.home.pictures.textures import (
    FABRIC,
    LABEL,
    PLAIN,
    PLANK_M,
    WINDOW,
    WOOD,
    fabric,
    label,
    noise,
    on_face,
    textured,
    tiles,
    whole_below,
    window,
    wood,
)

TONES = 4096  # entries of the table from linear light (0 to 1.5) to sRGB
BRIGHTEST = 1.5
MIXED = -2  # in the place of a code: the samples of a pixel show several faces


@compiled
def paint(depth_buffer, codes, view, surfaces, colors, materials, frames, light, tones, image):
    """Shade every pixel of `image` from its samples; a pixel that shows one face is shaded once, at its last sample.

    Pixels of a row that show one flat face are shaded together, in loops of which the compiler makes vector code.

    materials (N,): of `rearrange.home.pictures.textures`. frames (N, 3, 3): the axes of each shape, one in a row.
    light: sun, shadow, and z and open_share of the coarse grid.
    """
    shapes, (rows, columns, _), (us, vs, _) = surfaces[0], image.shape, view
    s, last, end = np.uintp(codes.shape[0] // rows), np.uintp(codes.shape[0] // rows - 1), np.uintp(columns)
    seen, us_last, scale = np.empty(columns, np.int32), us[last::s].copy(), F(TONES - 1) / F(BRIGHTEST)
    row = np.empty(columns, np.float32), np.empty(columns, np.float32), np.empty(columns, np.float32)
    qs, openness, sunny = np.empty(columns, np.float32), np.empty(columns, np.float32), np.empty(columns, np.float32)
    for y in range(np.uintp(rows)):
        _seen_in_row(codes, y * s, s, seen)
        grey = F(0.62) + F(0.30) * F(y) / F(rows)
        sy, x0 = y * s + last, np.uintp(0)
        for x in range(end):
            qs[x] = depth_buffer[sy, x * s + last]
        _openness_in_row(on_grid(sy, light[2], codes), qs, light[2], light[3], openness)
        while x0 < end:
            code, x1 = seen[x0], x0 + np.uintp(1)
            while x1 < end and seen[x1] == code:
                x1 += np.uintp(1)
            n = np.uintp(max(code, 0)) // np.uintp(FACES)
            flat, material = shapes[n, 0] == BOX or shapes[n, 0] == PLANE, materials[n]
            face = _face(max(code, 0), vs[sy], view, surfaces)
            run, own = (x0, x1, us_last, qs), (colors[n, 0], colors[n, 1], colors[n, 2])
            if code == MIXED or material == LABEL or material == WINDOW or not (flat or material == PLAIN):
                for x in range(x0, x1):
                    row[0][x], row[1][x], row[2][x] = _by_sample(y, x, s, grey, depth_buffer, codes, view, surfaces,
                                                                 colors, materials, frames, light)
            elif code < 0:
                for x in range(x0, x1):
                    row[0][x], row[1][x], row[2][x] = _sky(grey)
            elif not flat:
                _round_run(run, face, n, surfaces, openness, light[0], light[1], own, row)
            else:
                _light_run(run, face, openness, sunny, light[0], light[1], row)
                if shapes[n, 0] == PLANE:
                    _floor_run(run, face, us[1] - us[0], own, row)
                elif material == PLAIN:
                    _plain_run(run, own, row)
                else:
                    place = _place(code, face, surfaces, frames)
                    if material == WOOD:
                        _texture_run(wood, run, face, place, us[1] - us[0], own, row)
                    elif material == FABRIC:
                        _texture_run(fabric, run, face, place, us[1] - us[0], own, row)
                    else:
                        _texture_run(tiles, run, face, place, us[1] - us[0], own, row)
            x0 = x1
        for x in range(end):
            image[y, x, 0] = tones[np.uintp(min(row[0][x] * scale, F(TONES - 1)))]
            image[y, x, 1] = tones[np.uintp(min(row[1][x] * scale, F(TONES - 1)))]
            image[y, x, 2] = tones[np.uintp(min(row[2][x] * scale, F(TONES - 1)))]


@inlined
def _seen_in_row(codes, first, s, seen):
    """Fill seen (columns,): the code that all samples of a pixel show, or MIXED; first: row of the upper samples."""
    for x in range(np.uintp(seen.shape[0])):
        seen[x] = codes[first, x * s]
    for j in range(s):
        for i in range(s):
            for x in range(np.uintp(seen.shape[0])):
                seen[x] = seen[x] if codes[first + j, x * s + i] == seen[x] else np.int32(MIXED)


@inlined
def _sky(grey):
    """Colour of what shows nothing; grey: its brightness in that row."""
    return F(0.86) * grey, F(0.93) * grey, grey


@part
def _by_sample(y, x, s, grey, depth_buffer, codes, view, surfaces, colors, materials, frames, light):
    """Colour of a pixel whose samples may show several faces: each face is shaded at the first of its samples."""
    red, green, blue = F(0), F(0), F(0)
    for k in range(s * s):
        code, count, first = codes[y * s + k // s, x * s + k % s], F(0), True
        for m in range(s * s):
            same = codes[y * s + m // s, x * s + m % s] == code
            first = first & (not same or m >= k)
            count += F(same)
        if first:
            sy, sx = y * s + k // s, x * s + k % s
            r, g, b = _sample(sy, sx, grey, depth_buffer, codes, view, surfaces, colors, materials, frames, light)
            red, green, blue = red + count * r, green + count * g, blue + count * b
    share = F(1) / F(s * s)
    return share * red, share * green, share * blue


@inlined
def _sample(sy, sx, grey, depth_buffer, codes, view, surfaces, colors, materials, frames, light):
    """Colour (red, green, blue) of sample (sy, sx); grey: brightness of the background in its row."""
    code, q = codes[sy, sx], depth_buffer[sy, sx]
    if code < 0:
        return _sky(grey)
    n = np.uintp(code) // np.uintp(FACES)
    point, ray, normal = surface_at(sy, sx, q, code, view, surfaces)
    own, pitch = (colors[n, 0], colors[n, 1], colors[n, 2]), view[0][1] - view[0][0]
    if materials[n] != PLAIN:
        local, footprint = _in_frame(n, point, ray, normal, pitch / q, surfaces, frames)
        kind, halves, face = surfaces[0][n, 0], surfaces[1], np.uintp(code) % np.uintp(FACES)
        half = halves[n, 0], halves[n, 1], halves[n, 2]
        if materials[n] == WINDOW:
            red, green, blue, shines = window(local, half, _across(n, ray, frames), own)
            if shines:
                return red, green, blue
            own = red, green, blue
        elif materials[n] == LABEL:
            own = label(kind, face, np.int32(n), local, half, footprint, own)
        else:
            u, v = on_face(kind, face, local, half)
            own = textured(materials[n], u, v, np.int32(n), footprint, own)
    if surfaces[0][n, 0] == PLANE:
        tint = _plank(point[0], point[1], pitch / (q * max(F(0.1), _slant(normal, ray))))
        own = tint * own[0], tint * own[1], tint * own[2]
    openness = at_cell(light[2], light[3], on_grid(sy, light[2], codes), on_grid(sx, light[2], codes), F(1) / q)
    red, green, blue = light_on(point, ray, normal, light[0], light[1], openness)
    return own[0] * red, own[1] * green, own[2] * blue


@inlined
def _openness_in_row(fy, qs, z, values, openness):
    """Fill openness (columns,): `values` on the coarse grid as `at_cell` gives them at row fy, cell by cell."""
    columns, per_pixel = np.uintp(z.shape[1]), F(z.shape[1]) / F(len(qs))
    y = np.uintp(np.int32(min(max(fy, F(0)), F(z.shape[0]) - F(1.001))))
    ty, below, start = min(max(fy - F(y), F(0)), F(1)), y + np.uintp(1), np.uintp(0)
    for cell in range(columns - np.uintp(1)):
        after = cell + np.uintp(1)
        z00, z01, z10, z11 = z[y, cell], z[y, after], z[below, cell], z[below, after]
        v00, v01, v10, v11 = values[y, cell], values[y, after], values[below, cell], values[below, after]
        end = np.uintp(len(qs)) if after == columns - np.uintp(1) else np.uintp((F(after) + F(0.5)) / per_pixel)
        for x in range(start, end):
            depth = F(1) / qs[x]
            tx = min(max((F(x) + F(0.5)) * per_pixel - F(0.5) - F(cell), F(0)), F(1))
            near = F(0.05) * depth
            w00 = (F(1) - ty) * (F(1) - tx) + F(1e-3) if abs(z00 - depth) < near else F(0)
            w01 = (F(1) - ty) * tx + F(1e-3) if abs(z01 - depth) < near else F(0)
            w10 = ty * (F(1) - tx) + F(1e-3) if abs(z10 - depth) < near else F(0)
            w11 = ty * tx + F(1e-3) if abs(z11 - depth) < near else F(0)
            total = w00 * v00 + w01 * v01 + w10 * v10 + w11 * v11 + F(1e-5)
            openness[x] = total / (w00 + w01 + w10 + w11 + F(1e-5))
        start = end


@inlined
def _face(code, v, view, surfaces):
    """A flat face in a row of the image: eye, the ray at u = 0 and its change with u, normal (three floats each)."""
    camera, normals, k = view[2], surfaces[3], np.uintp(code)
    return ((camera[3, 0], camera[3, 1], camera[3, 2]),
            (camera[1, 0] * v + camera[2, 0], camera[1, 1] * v + camera[2, 1], camera[1, 2] * v + camera[2, 2]),
            (camera[0, 0], camera[0, 1], camera[0, 2]), (normals[k, 0], normals[k, 1], normals[k, 2]))


@inlined
def _on_face(u, q, face):
    """World point and ray where the ray of column slope u meets a face of `_face`, at the inverse depth q."""
    eye, at_zero, change, _ = face
    ray = at_zero[0] + u * change[0], at_zero[1] + u * change[1], at_zero[2] + u * change[2]
    depth = F(1) / q
    return (eye[0] + depth * ray[0], eye[1] + depth * ray[1], eye[2] + depth * ray[2]), ray


@inlined
def _light_run(run, face, openness, sunny, sun, shadow, row):
    """Fill row (red, green, blue) along a run (first and last column, their slopes, inverse depths) with light."""
    (x0, x1, us, qs), normal, (red, green, blue), rows = run, face[3], row, sun_camera(sun)
    for x in range(x0, x1):
        point, _ = _on_face(us[x], qs[x], face)
        sunny[x] = sun_on(point, normal, rows, shadow)
    for x in range(x0, x1):
        _, ray = _on_face(us[x], qs[x], face)
        red[x], green[x], blue[x] = mixed_light(ray, normal, sunny[x], openness[x])


@inlined
def _round_run(run, face, n, surfaces, openness, sun, shadow, own, row):
    """Fill `row` along a run with a plain round shape n in its light."""
    (x0, x1, us, qs), (red, green, blue), (shapes, halves, centers, _, axes) = run, row, surfaces
    shape = shapes[n, 0], halves[n, 0], halves[n, 2], (axes[n, 0], axes[n, 1], axes[n, 2])
    cx, cy, cz, rows = centers[n, 0], centers[n, 1], centers[n, 2], sun_camera(sun)
    for x in range(x0, x1):
        point, ray = _on_face(us[x], qs[x], face)
        normal = round_normal(shape, (point[0] - cx, point[1] - cy, point[2] - cz))
        r, g, b = mixed_light(ray, normal, sun_on(point, normal, rows, shadow), openness[x])
        red[x], green[x], blue[x] = own[0] * r, own[1] * g, own[2] * b


@inlined
def _plain_run(run, own, row):
    """Multiply the light in `row` by one colour."""
    (x0, x1, _, _), (red, green, blue) = run, row
    for x in range(x0, x1):
        red[x], green[x], blue[x] = own[0] * red[x], own[1] * green[x], own[2] * blue[x]


@inlined
def _floor_run(run, face, pitch, own, row):
    """Multiply the light in `row` by the colours of a plank floor; pitch: between the slopes of two samples."""
    (x0, x1, us, qs), (red, green, blue) = run, row
    for x in range(x0, x1):
        point, ray = _on_face(us[x], qs[x], face)
        tint = _plank(point[0], point[1], pitch / (qs[x] * max(F(0.1), _slant(face[3], ray))))
        red[x], green[x], blue[x] = tint * own[0] * red[x], tint * own[1] * green[x], tint * own[2] * blue[x]


@inlined
def _place(code, face, surfaces, frames):
    """Where a point of a box face lies on it: for u and for v of `on_face`, what a world point is multiplied by, and
    what is then added (four floats each); and the shape, as the seed of its texture.
    """
    n, axis, half = np.uintp(code) // np.uintp(FACES), np.uintp(code) % np.uintp(FACES), surfaces[1]
    first = np.uintp(1) if axis == 0 else np.uintp(0)
    second = np.uintp(1) if axis == 2 else np.uintp(2)
    if half[n, second] > half[n, first]:
        first, second = second, first
    cx, cy, cz = surfaces[2][n, 0], surfaces[2][n, 1], surfaces[2][n, 2]
    ux, uy, uz = frames[n, first, 0], frames[n, first, 1], frames[n, first, 2]
    vx, vy, vz = frames[n, second, 0], frames[n, second, 1], frames[n, second, 2]
    return (ux, uy, uz, -(ux * cx + uy * cy + uz * cz)), (vx, vy, vz, -(vx * cx + vy * cy + vz * cz)), np.int32(n)


@inlined
def _texture_run(texture, run, face, place, pitch, own, row):
    """Multiply the light in `row` by the colours of a texture of `rearrange.home.pictures.textures`."""
    (x0, x1, us, qs), (red, green, blue), (to_u, to_v, seed) = run, row, place
    for x in range(x0, x1):
        point, ray = _on_face(us[x], qs[x], face)
        u = to_u[0] * point[0] + to_u[1] * point[1] + to_u[2] * point[2] + to_u[3]
        v = to_v[0] * point[0] + to_v[1] * point[1] + to_v[2] * point[2] + to_v[3]
        r, g, b = texture(u, v, seed, pitch / (qs[x] * max(F(0.25), _slant(face[3], ray))), own)
        red[x], green[x], blue[x] = r * red[x], g * green[x], b * blue[x]


@inlined
def _in_frame(n, point, ray, normal, width, surfaces, frames):
    """A point of shape n in the frame of the shape, and the width (m) there of a pixel of width `width` if it faced it.
    """
    centers = surfaces[2]
    dx, dy, dz = point[0] - centers[n, 0], point[1] - centers[n, 1], point[2] - centers[n, 2]
    return (frames[n, 0, 0] * dx + frames[n, 0, 1] * dy + frames[n, 0, 2] * dz,
            frames[n, 1, 0] * dx + frames[n, 1, 1] * dy + frames[n, 1, 2] * dz,
            frames[n, 2, 0] * dx + frames[n, 2, 1] * dy + frames[n, 2, 2] * dz), width / max(
                F(0.25), _slant(normal, ray))


@inlined
def _across(n, ray, frames):
    """How far a ray goes along y for each metre along x in the frame of shape n."""
    through = frames[n, 0, 0] * ray[0] + frames[n, 0, 1] * ray[1] + frames[n, 0, 2] * ray[2]
    along = frames[n, 1, 0] * ray[0] + frames[n, 1, 1] * ray[1] + frames[n, 1, 2] * ray[2]
    return along / max(F(1e-3), abs(through))


@inlined
def _slant(normal, ray):
    return -(normal[0] * ray[0] + normal[1] * ray[1] + normal[2] * ray[2])


@inlined
def _plank(x, y, footprint):
    """Brightness of a plank floor at world x, y; joints fade where a pixel's footprint (m) is wider than they are."""
    row = whole_below(y / F(PLANK_M[1]))
    shifted = x / F(PLANK_M[0]) + noise(row, np.int32(7))
    column = whole_below(shifted)
    tint = F(0.86) + F(0.22) * noise(row, column)
    across = abs(y / F(PLANK_M[1]) - F(row) - F(0.5)) * F(PLANK_M[1])
    lengthwise = abs(shifted - F(column) - F(0.5)) * F(PLANK_M[0])
    near_joint = min(F(0.5 * PLANK_M[1]) - across, F(0.5 * PLANK_M[0]) - lengthwise)
    width = max(F(0.003), F(0.7) * footprint)
    joint = max(F(0), F(1) - near_joint / width) * min(F(1), F(0.004) / width)
    return tint * (F(1) - F(0.55) * joint)


@cache
def tone_table() -> np.ndarray:
    """(TONES,) uint8: sRGB of linear light 0..BRIGHTEST, with a soft shoulder instead of clipping."""
    light = np.linspace(0.0, BRIGHTEST, TONES)
    shoulder = np.where(light < 0.7, light, 0.7 + 0.3 * np.tanh((light - 0.7) / 0.3))
    srgb = np.where(shoulder < 0.0031308, 12.92 * shoulder, 1.055 * shoulder ** (1 / 2.4) - 0.055)
    return np.round(255 * srgb).astype(np.uint8)

"""Kernels of the depth rasteriser: a z-buffer span rasteriser without GL, compiled by numba for one CPU core.

Why not triangles: every shape here is convex with a closed form, and the buffer holds *inverse* depth q = 1/z, which
makes the forms cheap.

* Where a ray (u, v, 1) meets the plane n . p = d, q = n . (u, v, 1) / d: linear along an image row.
* A ray enters a convex box where it crosses the last of the planes that face the camera, so q = min over those (at
  most three) planes.
* A ray meets a quadric a t^2 + 2 b t + c = 0 at t = c / (sqrt(b^2 - a c) - b), so q = (sqrt(b^2 - a c) - b) / c. As c
  depends only on the camera's position, there is no division per pixel. The other root, for a camera inside the shape,
  has the other sign.
* The pixels to visit are, in each row, one span between the planes through the camera and the silhouette edges of the
  shape's box. Such planes need no clipping: they are right for shapes that reach behind the camera.

Frames: image row 0 on top, pixel centres at half-integers; camera frame x right, y down, z forward (MuJoCo's camera
looks along its -z, y up); distances in metres. A camera inside a shape sees its far side from within, as `mj_ray` does;
a plane is seen from its front only.
"""

from __future__ import annotations

import math

import numpy as np

from rearrange.home.numba_cache import njit

F = np.float32
PLANE, SPHERE, CAPSULE, CYLINDER, BOX = 0, 2, 3, 5, 6  # values of mjtGeom
KINDS = {"plane": PLANE, "sphere": SPHERE, "capsule": CAPSULE, "cylinder": CYLINDER, "box": BOX}
NO_CODE = -1  # what `codes` holds where nothing is seen
FACES = 4  # codes are FACES * row + axis of the box face that is seen (0 for round shapes)

# No nnan/ninf: the kernels compare values that may be infinite (edges parallel to a row).
_OPTIONS = {"nogil": True, "error_model": "numpy", "fastmath": {"contract", "reassoc", "arcp", "nsz"}}


def compiled(function):
    """numba.njit, cached.

    Call the result with arguments of one set of types only: numba numbers its cache files per set, and two processes
    that fill an empty cache with two sets at the same moment can take the same number, after which either is loaded as
    the other. With one set they write the same file. numba renews the cache when the function's own source file has
    changed, not for changes in what it imports.
    """
    return njit(cache=True, **_OPTIONS)(function)


def part(function):
    """A part of compiled functions; it is stored with them, so it needs no cache of its own."""
    return njit(**_OPTIONS)(function)


def inlined(function):
    """A part of compiled functions that runs per pixel: always inlined, which LLVM does not always do by itself."""
    return njit(forceinline=True, **_OPTIONS)(function)


@inlined
def _put(image, codes, y, x, q, code, shown):
    """Write a pixel where a surface is to be shown."""
    image[y, x] = q if shown else image[y, x]
    if codes is not None:
        codes[y, x] = code if shown else codes[y, x]


@part
def _draw_box(image, codes, code, spans, y0, y1, us, vs, planes, faces):
    """Draw a box (or plane) from outside: q = min of three planes (a, b, c), each a slope in u and a value at u = 0."""
    code_a, code_b, code_c = code + faces[0], code + faces[1], code + faces[2]
    for y in range(y0, y1):
        v = vs[y]
        a1, a0 = planes[0, 0], planes[0, 2] + v * planes[0, 1]
        b1, b0 = planes[1, 0], planes[1, 2] + v * planes[1, 1]
        c1, c0 = planes[2, 0], planes[2, 2] + v * planes[2, 1]
        for x in range(spans[y, 0], spans[y, 1]):
            u = us[x]
            qa, qb, qc = a0 + a1 * u, b0 + b1 * u, c0 + c1 * u
            q = min(min(qa, qb), qc)
            face = code_b if qb < qa else code_a
            face = code_c if qc < min(qa, qb) else face
            _put(image, codes, y, x, q, face, q > image[y, x])


@part
def _draw_box_inside(image, codes, code, spans, y0, y1, us, vs, axes, o, h):
    """Draw the inner sides of a box around the camera: the exit is at the largest of the six planes' q."""
    for y in range(y0, y1):
        for x in range(spans[y, 0], spans[y, 1]):
            nearest, face = F(0), np.int32(0)
            for axis in range(3):
                direction = us[x] * axes[axis, 0] + vs[y] * axes[axis, 1] + axes[axis, 2]
                q = max(direction / (h[axis] - o[axis]), -direction / (h[axis] + o[axis]))
                if q > nearest:
                    nearest, face = q, np.int32(axis)
            if nearest > image[y, x]:
                image[y, x] = nearest
                if codes is not None:
                    codes[y, x] = code + face


@part
def _row_direction(axes, v):
    """Ray directions of a row in the shape's frame, (x, y, z), as value at u = 0 and slope in u."""
    at_zero = (axes[0, 2] + v * axes[0, 1], axes[1, 2] + v * axes[1, 1], axes[2, 2] + v * axes[2, 1])
    return at_zero, (axes[0, 0], axes[1, 0], axes[2, 0])


@part
def _draw_sphere(image, codes, code, spans, y0, y1, us, vs, axes, o, r):
    """Draw a sphere. Discriminant as a r^2 - |o x d|^2 (Lagrange): no cancellation for small far spheres."""
    ox, oy, oz = o[0], o[1], o[2]
    c = ox * ox + oy * oy + oz * oz - r * r
    sign, inverse_c, rr = (F(1) if c > F(0) else F(-1)), F(1) / c, r * r
    for y in range(y0, y1):
        (dx0, dy0, dz0), (sx, sy, sz) = _row_direction(axes, vs[y])
        for x in range(spans[y, 0], spans[y, 1]):
            u = us[x]
            dx, dy, dz = dx0 + u * sx, dy0 + u * sy, dz0 + u * sz
            kx, ky, kz = oy * dz - oz * dy, oz * dx - ox * dz, ox * dy - oy * dx
            disc = (dx * dx + dy * dy + dz * dz) * rr - (kx * kx + ky * ky + kz * kz)
            q = (sign * math.sqrt(max(disc, F(0))) - (ox * dx + oy * dy + oz * dz)) * inverse_c
            _put(image, codes, y, x, q, code, (disc > F(0)) & (q > image[y, x]))


@part
def _draw_cylinder(image, codes, code, spans, y0, y1, us, vs, axes, o, r, h):
    """Draw a cylinder along its z: side and one end disc, each where it is seen from o; from inside, the far sides."""
    ox, oy, oz = o[0], o[1], o[2]
    c = ox * ox + oy * oy - r * r
    inside_round, inside_slab = c < F(0), abs(oz) < h
    inside = inside_round and inside_slab
    sign, inverse_c, rr = (F(-1) if inside else F(1)), F(1) / c, r * r
    end_inverse = F(0) if inside_slab else F(1) / ((h if oz > F(0) else -h) - oz)
    up_inverse, down_inverse = (F(1) / (h - oz), F(-1) / (h + oz)) if inside else (F(0), F(0))
    for y in range(y0, y1):
        (dx0, dy0, dz0), (sx, sy, sz) = _row_direction(axes, vs[y])
        for x in range(spans[y, 0], spans[y, 1]):
            u = us[x]
            dx, dy, dz = dx0 + u * sx, dy0 + u * sy, dz0 + u * sz
            k = ox * dy - oy * dx
            disc = (dx * dx + dy * dy) * rr - k * k
            q = (sign * math.sqrt(max(disc, F(0))) - (ox * dx + oy * dy)) * inverse_c
            on_side = (not inside_round) & (disc > F(0)) & (abs(oz * q + dz) <= h * q)
            exit_q = max(q, max(dz * up_inverse, dz * down_inverse))
            q = exit_q if inside else (q if on_side else F(0))
            end_q = dz * end_inverse
            ex, ey = ox * end_q + dx, oy * end_q + dy
            q = end_q if (end_q > F(0)) & (ex * ex + ey * ey <= rr * end_q * end_q) else q
            _put(image, codes, y, x, q, code, q > image[y, x])


@part
def _draw_capsule(image, codes, code, spans, y0, y1, us, vs, axes, o, r, h):
    """Draw a capsule along its z: its side where a ray meets the cylinder between the ends, else an end ball."""
    ox, oy, oz = o[0], o[1], o[2]
    radial = ox * ox + oy * oy
    beyond = oz - min(max(oz, -h), h)
    inside = radial + beyond * beyond < r * r
    c = radial - r * r
    above_end = c < F(0) and not inside  # within the infinite cylinder, beyond an end: only that ball can be seen
    sign, inverse_c, rr = (F(-1) if inside else F(1)), F(1) / c, r * r
    top, bottom = oz - h, oz + h
    inverse_top, inverse_bottom = F(1) / (c + top * top), F(1) / (c + bottom * bottom)
    for y in range(y0, y1):
        (dx0, dy0, dz0), (sx, sy, sz) = _row_direction(axes, vs[y])
        for x in range(spans[y, 0], spans[y, 1]):
            u = us[x]
            dx, dy, dz = dx0 + u * sx, dy0 + u * sy, dz0 + u * sz
            k = ox * dy - oy * dx
            a, b = dx * dx + dy * dy, ox * dx + oy * dy
            disc = a * rr - k * k
            side_q = (sign * math.sqrt(max(disc, F(0))) - b) * inverse_c
            along = oz * side_q + dz  # height of the hit on the infinite cylinder, times q
            at_top = (oz if above_end else along) > F(0)
            z, inverse_ball = (top if at_top else bottom), (inverse_top if at_top else inverse_bottom)
            kx, ky = oy * dz - z * dy, z * dx - ox * dz
            ball_disc = (a + dz * dz) * rr - (kx * kx + ky * ky + k * k)
            ball_q = (sign * math.sqrt(max(ball_disc, F(0))) - (b + z * dz)) * inverse_ball
            ball_q = ball_q if ball_disc > F(0) else F(0)
            q = side_q if (not above_end) & (abs(along) <= h * side_q) else ball_q
            _put(image, codes, y, x, q, code, (disc > F(0)) & (q > image[y, x]))


@part
def _silhouette(p, axes, front, v_first, pitch, u_first, edges):
    """Planes through the camera and the silhouette edges of a box, as bounds on the pixel column x in row y.

    p, axes: centre and half axes (rows) in the camera frame; front[k]: -1, 0, 1, which face of axis k faces the camera.
    Fills edges[0, :n_left] with (offset, slope) of x >= offset + slope y, edges[1, :n_right] of x <= ..., edges[2,
    :n_flat] of 0 <= ...
    """
    left, right, flat = 0, 0, 0
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        for corner in range(4):
            si, sj = F(1 - 2 * (corner & 1)), F(1 - (corner & 2))
            if (front[i] == si) == (front[j] == sj):
                continue  # an edge between two visible faces or two hidden ones
            mx = p[0] + si * axes[i, 0] + sj * axes[j, 0]
            my = p[1] + si * axes[i, 1] + sj * axes[j, 1]
            mz = p[2] + si * axes[i, 2] + sj * axes[j, 2]
            nx = axes[k, 1] * mz - axes[k, 2] * my
            ny = axes[k, 2] * mx - axes[k, 0] * mz
            nz = axes[k, 0] * my - axes[k, 1] * mx
            if nx * p[0] + ny * p[1] + nz * p[2] < F(0):
                nx, ny, nz = -nx, -ny, -nz
            constant, per_row, per_column = nx * u_first + ny * v_first + nz, ny * pitch, nx * pitch
            if abs(per_column) <= F(1e-5) * abs(per_row):
                edges[2, flat, 0], edges[2, flat, 1] = constant, per_row
                flat += 1
            elif per_column > F(0):
                edges[0, left, 0], edges[0, left, 1] = -constant / per_column, -per_row / per_column
                left += 1
            else:
                edges[1, right, 0], edges[1, right, 1] = -constant / per_column, -per_row / per_column
                right += 1
    return left, right, flat


@part
def _screen_rectangle(p, axes, limit_u, limit_v, pitch, u_first, v_first, columns, rows):
    """Pixel rectangle (x0, x1, y0, y1), half open, around a box before the camera; empty when off screen."""
    u_low, u_high, v_low, v_high = F(1e9), F(-1e9), F(1e9), F(-1e9)
    for corner in range(8):
        s0, s1, s2 = F(1 - 2 * (corner & 1)), F(1 - (corner & 2)), F(1 - ((corner & 4) >> 1))
        inverse = F(1) / (p[2] + s0 * axes[0, 2] + s1 * axes[1, 2] + s2 * axes[2, 2])
        u = (p[0] + s0 * axes[0, 0] + s1 * axes[1, 0] + s2 * axes[2, 0]) * inverse
        v = (p[1] + s0 * axes[0, 1] + s1 * axes[1, 1] + s2 * axes[2, 1]) * inverse
        u_low, u_high, v_low, v_high = min(u_low, u), max(u_high, u), min(v_low, v), max(v_high, v)
    x0 = max(0, int(math.ceil((max(u_low, -limit_u) - u_first) / pitch)))
    x1 = min(columns, int(math.floor((min(u_high, limit_u) - u_first) / pitch)) + 1)
    y0 = max(0, int(math.ceil((max(v_low, -limit_v) - v_first) / pitch)))
    y1 = min(rows, int(math.floor((min(v_high, limit_v) - v_first) / pitch)) + 1)
    return x0, x1, y0, y1


@part
def _find_spans(edges, left, right, flat, x0, x1, y0, y1, spans):
    """Columns spans[y] = [first, last) of each row inside every edge of `_silhouette` and the rectangle."""
    for y in range(y0, y1):
        low, high, row = F(x0), F(x1 - 1), F(y)
        for k in range(left):
            low = max(low, edges[0, k, 0] + edges[0, k, 1] * row)
        for k in range(right):
            high = min(high, edges[1, k, 0] + edges[1, k, 1] * row)
        for k in range(flat):
            high = high if edges[2, k, 0] + edges[2, k, 1] * row >= F(0) else F(-1)
        spans[y, 0], spans[y, 1] = 0, 0
        if low <= high:  # also keeps the conversions to integers in range
            spans[y, 0], spans[y, 1] = np.uintp(math.ceil(low)), np.uintp(math.floor(high)) + np.uintp(1)


@part
def _visible_planes(axes, o, half, front, planes, faces):
    """The box faces that face the camera: planes[k] = coefficients of q in (u, v, 1), one repeated if there are fewer.

    front[k]: which face of axis k, -1 or 1, or 0 for none; faces[k]: the axis of planes[k]. Returns their number; 0
    means that the camera is inside.
    """
    found, last = 0, 0
    for k in range(3):
        front[k] = F(0)
        if abs(o[k]) > half[k] + F(1e-6):
            front[k] = F(1) if o[k] > F(0) else F(-1)
            inverse = F(1) / (front[k] * half[k] - o[k])
            for i in range(3):
                planes[k, i] = axes[k, i] * inverse
            found, last = found + 1, k
    for k in range(3):
        faces[k] = k if front[k] != F(0) else last
        for i in range(3):
            planes[k, i] = planes[faces[k], i]
    return found


@part
def _to_camera(g, half, xpos, xmat, cam_xpos, cam_xmat, camera, p, o, axes, extents):
    """Pose of geom g in the camera frame: centre p, unit axes (rows), half axes `extents`; o: the camera in its frame.
    """
    dx, dy, dz = xpos[g, 0] - cam_xpos[camera, 0], xpos[g, 1] - cam_xpos[camera, 1], xpos[g, 2] - cam_xpos[camera, 2]
    for k in range(3):
        sign = 1.0 if k == 0 else -1.0  # MuJoCo's camera axes are right, up, back; ours right, down, forward
        rx, ry, rz = sign * cam_xmat[camera, k], sign * cam_xmat[camera, 3 + k], sign * cam_xmat[camera, 6 + k]
        p[k] = F(rx * dx + ry * dy + rz * dz)
        for i in range(3):
            axes[i, k] = F(xmat[g, i] * rx + xmat[g, 3 + i] * ry + xmat[g, 6 + i] * rz)
            extents[i, k] = half[i] * axes[i, k]
    for i in range(3):
        o[i] = F(-(xmat[g, i] * dx + xmat[g, 3 + i] * dy + xmat[g, 6 + i] * dz))


@part
def _out_of_view(g, radius, xpos, cam_xpos, cam_xmat, camera, limit_u, limit_v, far):
    """Whether the ball around the geom is behind the camera, beyond `far` or beside the frustum (four planes)."""
    dx, dy, dz = xpos[g, 0] - cam_xpos[camera, 0], xpos[g, 1] - cam_xpos[camera, 1], xpos[g, 2] - cam_xpos[camera, 2]
    z = -(cam_xmat[camera, 2] * dx + cam_xmat[camera, 5] * dy + cam_xmat[camera, 8] * dz)
    if z < -radius or z > far + radius:
        return True
    x = abs(cam_xmat[camera, 0] * dx + cam_xmat[camera, 3] * dy + cam_xmat[camera, 6] * dz)
    y = abs(cam_xmat[camera, 1] * dx + cam_xmat[camera, 4] * dy + cam_xmat[camera, 7] * dz)
    return (x - limit_u * z > radius * math.sqrt(1.0 + limit_u * limit_u)) or (
        y - limit_v * z > radius * math.sqrt(1.0 + limit_v * limit_v))


@part
def _draw(shapes, halves, xpos, xmat, cam_xpos, cam_xmat, camera, us, vs, far, inverse_depth, codes):
    """The body of `rearrange.home.pictures.raster.draw`."""
    rows, columns = inverse_depth.shape
    pitch, u_first, v_first = us[1] - us[0], us[0], vs[0]
    limit_u = max(-u_first, us[columns - 1]) + F(0.5) * pitch
    limit_v = max(-v_first, vs[rows - 1]) + F(0.5) * pitch
    inverse_depth[:] = F(1) / far
    if codes is not None:
        codes[:] = np.int32(NO_CODE)
    p, o, front = np.empty(3, np.float32), np.empty(3, np.float32), np.empty(3, np.float32)
    axes, extents, planes = np.empty((3, 3), np.float32), np.empty((3, 3), np.float32), np.empty((3, 3), np.float32)
    edges, faces = np.empty((3, 6, 2), np.float32), np.empty(3, np.int32)
    spans = np.empty((rows, 2), np.uintp)  # unsigned: spares the pixel loops the test for negative indices (5x)
    for n in range(shapes.shape[0]):
        kind, g, half = shapes[n, 0], shapes[n, 1], halves[n]
        if _out_of_view(g, half[3], xpos, cam_xpos, cam_xmat, camera, limit_u, limit_v, far):
            continue
        _to_camera(g, half, xpos, xmat, cam_xpos, cam_xmat, camera, p, o, axes, extents)
        if kind == PLANE:
            if o[2] <= F(0):
                continue
            kind = BOX
        reach = abs(extents[0, 2]) + abs(extents[1, 2]) + abs(extents[2, 2])
        if p[2] + reach <= F(0):
            continue
        x0, x1, y0, y1 = 0, columns, 0, rows
        if p[2] - reach > F(1e-3):
            x0, x1, y0, y1 = _screen_rectangle(p, extents, limit_u, limit_v, pitch, u_first, v_first, columns, rows)
            if x0 >= x1 or y0 >= y1:
                continue
        left, right, flat = 0, 0, 0
        outside = _visible_planes(axes, o, half, front, planes, faces) > 0
        if outside:
            left, right, flat = _silhouette(p, extents, front, v_first, pitch, u_first, edges)
        _find_spans(edges, left, right, flat, x0, x1, y0, y1, spans)
        code = np.int32(FACES * n)
        if kind == BOX and outside:
            _draw_box(inverse_depth, codes, code, spans, y0, y1, us, vs, planes, faces)
        elif kind == BOX:
            _draw_box_inside(inverse_depth, codes, code, spans, y0, y1, us, vs, axes, o, half)
        elif kind == CYLINDER:
            _draw_cylinder(inverse_depth, codes, code, spans, y0, y1, us, vs, axes, o, half[0], half[2])
        elif kind == CAPSULE:
            _draw_capsule(inverse_depth, codes, code, spans, y0, y1, us, vs, axes, o, half[0], half[2] - half[0])
        else:
            _draw_sphere(inverse_depth, codes, code, spans, y0, y1, us, vs, axes, o, half[0])


@compiled
def draw_depth(shapes, halves, xpos, xmat, cam_xpos, cam_xmat, camera, us, vs, far, inverse_depth):
    """`rearrange.home.pictures.raster.draw` without codes."""
    _draw(shapes, halves, xpos, xmat, cam_xpos, cam_xmat, camera, us, vs, far, inverse_depth, None)


@compiled
def draw_depth_and_codes(shapes, halves, xpos, xmat, cam_xpos, cam_xmat, camera, us, vs, far, inverse_depth, codes):
    """`rearrange.home.pictures.raster.draw` with codes."""
    _draw(shapes, halves, xpos, xmat, cam_xpos, cam_xmat, camera, us, vs, far, inverse_depth, codes)


@compiled
def normalise(inverse_depth, far, out):
    """out = depth / far, in [0, 1]."""
    scale = F(1) / far
    for y in range(out.shape[0]):
        for x in range(out.shape[1]):
            out[y, x] = scale / inverse_depth[y, x]

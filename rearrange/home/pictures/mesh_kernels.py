"""Kernels that draw triangle meshes into the buffer of `rearrange.home.pictures.raster_kernels` (inverse depth).

* On the screen q is linear, so that a triangle is a span of each pixel row and one plane of q.
* Two triangles compute the ends of their common edge from the same numbers in the same order, so that nothing shows
  between them.
* A triangle that reaches behind the camera has no image on the screen: its edges are planes through the camera, whose
  signs say which rays meet it. That needs no clipping, and few triangles are so near.
* Only faces that turn towards the camera are drawn, corners counterclockwise, as glTF has them, unless a group is
  two-sided.
* Triangles lie in groups of neighbours with a ball around each: a group that is out of view costs one test, and one
  that is hidden by nearer groups, which are drawn before it, the projection of its corners.
"""

from __future__ import annotations

import math

import numpy as np

from rearrange.home.pictures.raster_kernels import FACES, F, _out_of_view, _put, compiled, inlined, part

_NEAR_M = 0.05  # nearer corners are not projected: their pixels would be too far away to be computed with
_SMALLEST_PX2 = 1e-6  # twice the area of a triangle that is drawn


@part
def _project(first, last, vertices, row, xpos, xmat, cam_xpos, cam_xmat, camera, pitch, u_first, v_first, corners,
             points):
    """Corners of a group in the camera frame (m), and as pixel column, row and inverse depth, 0 if they are too near.
    """
    turn, shift = np.empty((3, 3), np.float32), np.empty(3, np.float32)
    place, eye = xpos[row], cam_xpos[camera]
    dx, dy, dz = place[0] - eye[0], place[1] - eye[1], place[2] - eye[2]
    for k in range(3):
        sign = 1.0 if k == 0 else -1.0  # MuJoCo's camera axes are right, up, back; ours right, down, forward
        rx, ry, rz = sign * cam_xmat[camera, k], sign * cam_xmat[camera, 3 + k], sign * cam_xmat[camera, 6 + k]
        shift[k] = F(rx * dx + ry * dy + rz * dz)
        for i in range(3):
            turn[k, i] = F(xmat[row, i] * rx + xmat[row, 3 + i] * ry + xmat[row, 6 + i] * rz)
    inverse_pitch = F(1) / pitch
    for n in range(last - first):
        x, y, z = vertices[first + n, 0], vertices[first + n, 1], vertices[first + n, 2]
        cx = turn[0, 0] * x + turn[0, 1] * y + turn[0, 2] * z + shift[0]
        cy = turn[1, 0] * x + turn[1, 1] * y + turn[1, 2] * z + shift[1]
        cz = turn[2, 0] * x + turn[2, 1] * y + turn[2, 2] * z + shift[2]
        corners[n, 0], corners[n, 1], corners[n, 2] = cx, cy, cz
        q = F(1) / max(cz, F(_NEAR_M))
        points[n, 0], points[n, 1] = (cx * q - u_first) * inverse_pitch, (cy * q - v_first) * inverse_pitch
        points[n, 2] = q if cz > F(_NEAR_M) else F(0)


@inlined
def _crossing(top_x, top_y, bottom_x, bottom_y, y):
    """Column in which an edge crosses a row."""
    return top_x + (y - top_y) * ((bottom_x - top_x) / (bottom_y - top_y))


@inlined
def _fill(points, a, b, c, columns, rows, image, codes, code):
    """Draw a triangle of which all corners are before the camera."""
    xa, ya, xb, yb, xc, yc = points[a, 0], points[a, 1], points[b, 0], points[b, 1], points[c, 0], points[c, 1]
    double_area = (xc - xa) * (yb - ya) - (xb - xa) * (yc - ya)  # rows count downwards
    if double_area <= F(_SMALLEST_PX2):
        return
    low_x, high_x, low_y, high_y = min(xa, xb, xc), max(xa, xb, xc), min(ya, yb, yc), max(ya, yb, yc)
    if high_x < F(0) or low_x > F(columns - 1) or high_y < F(0) or low_y > F(rows - 1):
        return
    x0, x1 = math.ceil(max(low_x, F(0))), math.floor(min(high_x, F(columns - 1)))
    y0, y1 = math.ceil(max(low_y, F(0))), math.floor(min(high_y, F(rows - 1)))
    if x0 > x1 or y0 > y1:
        return
    qa, qb, qc = points[a, 2], points[b, 2], points[c, 2]
    inverse = F(1) / double_area
    per_column = ((qc - qa) * (yb - ya) - (qb - qa) * (yc - ya)) * inverse
    per_row = ((xc - xa) * (qb - qa) - (xb - xa) * (qc - qa)) * inverse
    low_q, high_q = min(qa, qb, qc), max(qa, qb, qc)
    # Top, middle and bottom corner.
    tx, ty, mx, my, bx, by = xa, ya, xb, yb, xc, yc
    if ty > my:
        tx, ty, mx, my = mx, my, tx, ty
    if my > by:
        mx, my, bx, by = bx, by, mx, my
    if ty > my:
        tx, ty, mx, my = mx, my, tx, ty
    for row in range(y0, y1 + 1):
        y = F(row)
        long = _crossing(tx, ty, bx, by, y)
        if y < my or my >= by:
            short = _crossing(tx, ty, mx, my, y) if my > ty else mx
        else:
            short = _crossing(mx, my, bx, by, y)
        left, right = max(min(long, short), F(x0)), min(max(long, short), F(x1))
        if not left <= right:
            continue
        start = qa + (y - ya) * per_row - xa * per_column
        for x in range(np.uintp(math.ceil(left)), np.uintp(math.floor(right)) + np.uintp(1)):
            q = min(max(start + F(x) * per_column, low_q), high_q)
            _put(image, codes, row, x, q, code, q > image[row, x])


@part
def _fill_near(corners, a, b, c, us, vs, image, codes, code):
    """Draw a triangle that may reach behind the camera."""
    ax, ay, az = np.float64(corners[a, 0]), np.float64(corners[a, 1]), np.float64(corners[a, 2])
    bx, by, bz = np.float64(corners[b, 0]), np.float64(corners[b, 1]), np.float64(corners[b, 2])
    cx, cy, cz = np.float64(corners[c, 0]), np.float64(corners[c, 1]), np.float64(corners[c, 2])
    side, below = -np.float64(us[0]), -np.float64(vs[0])
    if (az <= 0.0 and bz <= 0.0 and cz <= 0.0 or ax > side * az and bx > side * bz and cx > side * cz or -ax > side * az
        and -bx > side * bz and -cx > side * cz or ay > below * az and by > below * bz and cy > below * cz
        or -ay > below * az and -by > below * bz and -cy > below * cz):
        return
    # Normals of the planes through the camera and an edge, pointing inwards, and of the triangle.
    edge = np.empty((3, 3), np.float64)
    edge[0, 0], edge[0, 1], edge[0, 2] = cy * bz - cz * by, cz * bx - cx * bz, cx * by - cy * bx
    edge[1, 0], edge[1, 1], edge[1, 2] = ay * cz - az * cy, az * cx - ax * cz, ax * cy - ay * cx
    edge[2, 0], edge[2, 1], edge[2, 2] = by * az - bz * ay, bz * ax - bx * az, bx * ay - by * ax
    facing = ax * edge[0, 0] + ay * edge[0, 1] + az * edge[0, 2]
    if not facing > 0.0:
        return
    nx = (edge[0, 0] + edge[1, 0] + edge[2, 0]) / facing
    ny = (edge[0, 1] + edge[1, 1] + edge[2, 1]) / facing
    nz = (edge[0, 2] + edge[1, 2] + edge[2, 2]) / facing
    rows, columns = image.shape
    pitch, u_first = np.float64(us[1]) - np.float64(us[0]), np.float64(us[0])
    for row in range(rows):
        v = np.float64(vs[row])
        left, right = 0.0, columns - 1.0
        for k in range(3):
            at_zero, slope = edge[k, 0] * u_first + edge[k, 1] * v + edge[k, 2], edge[k, 0] * pitch
            if slope > 0.0:
                left = max(left, -at_zero / slope)
            elif slope < 0.0:
                right = min(right, -at_zero / slope)
            elif at_zero < 0.0:
                right = -1.0
        if not left <= right:
            continue
        start, per_column = nx * u_first + ny * v + nz, nx * pitch
        for x in range(np.uintp(math.ceil(left)), np.uintp(math.floor(right)) + np.uintp(1)):
            q = F(start + np.float64(x) * per_column)
            _put(image, codes, row, x, q, code, q > image[row, x])


@part
def _is_hidden(points, count, image):
    """Whether everything in the rectangle around some projected corners is nearer than they are, or it is empty."""
    rows, columns = image.shape
    low_x, high_x, low_y, high_y = F(columns), F(-1), F(rows), F(-1)
    near_q, far_q = F(0), F(1)
    for n in range(count):
        low_x, high_x = min(low_x, points[n, 0]), max(high_x, points[n, 0])
        low_y, high_y = min(low_y, points[n, 1]), max(high_y, points[n, 1])
        near_q, far_q = max(near_q, points[n, 2]), min(far_q, points[n, 2])
    if far_q <= F(0):  # a corner is too near to be projected
        return False
    x0, x1 = np.uintp(math.ceil(max(low_x, F(0)))), np.uintp(math.floor(max(min(high_x, F(columns - 1)), F(-1))) + 1)
    y0, y1 = np.uintp(math.ceil(max(low_y, F(0)))), np.uintp(math.floor(max(min(high_y, F(rows - 1)), F(-1))) + 1)
    for y in range(y0, y1):
        farthest = near_q
        for x in range(x0, x1):
            farthest = min(farthest, image[y, x])
        if farthest < near_q:
            return False
    return True


@inlined
def _turns_away(corners, a, b, c):
    """Whether the camera sees the back of a triangle."""
    ax, ay, az = corners[a, 0], corners[a, 1], corners[a, 2]
    ux, uy, uz = corners[b, 0] - ax, corners[b, 1] - ay, corners[b, 2] - az
    vx, vy, vz = corners[c, 0] - ax, corners[c, 1] - ay, corners[c, 2] - az
    return ax * (uy * vz - uz * vy) + ay * (uz * vx - ux * vz) + az * (ux * vy - uy * vx) > F(0)


@part
def _draw(groups, balls, vertices, triangles, xpos, xmat, cam_xpos, cam_xmat, camera, us, vs, far, image, codes,
          first_code):
    """The body of `rearrange.home.pictures.meshes.draw_meshes`."""
    rows, columns = image.shape
    pitch, u_first, v_first = us[1] - us[0], us[0], vs[0]
    limit_u, limit_v = -u_first + F(0.5) * pitch, -v_first + F(0.5) * pitch
    most = 0
    for n in range(groups.shape[0]):
        most = max(most, groups[n, 2] - groups[n, 1])
    corners, points = np.empty((most, 3), np.float32), np.empty((most, 3), np.float32)
    middle = np.empty((1, 3), np.float64)
    chosen, distance, count = np.empty(groups.shape[0], np.int64), np.empty(groups.shape[0], np.float32), 0
    for n in range(groups.shape[0]):
        row = groups[n, 0]
        for i in range(3):
            middle[0, i] = (xpos[row, i] + xmat[row, 3 * i] * balls[n, 0] + xmat[row, 3 * i + 1] * balls[n, 1]
                            + xmat[row, 3 * i + 2] * balls[n, 2])
        if _out_of_view(0, balls[n, 3], middle, cam_xpos, cam_xmat, camera, limit_u, limit_v, far):
            continue
        away = F(0)
        for i in range(3):
            away -= F(cam_xmat[camera, 3 * i + 2] * (middle[0, i] - cam_xpos[camera, i]))
        chosen[count], distance[count] = n, away - balls[n, 3]
        count += 1
    for n in chosen[np.argsort(distance[:count])]:  # the nearest first, which hide others
        row, first, last = groups[n, 0], groups[n, 1], groups[n, 2]
        _project(first, last, vertices, row, xpos, xmat, cam_xpos, cam_xmat, camera, pitch, u_first, v_first, corners,
                 points)
        if _is_hidden(points, last - first, image):
            continue
        for t in range(groups[n, 3], groups[n, 4]):
            a, b, c = np.uintp(triangles[t, 0] - first), np.uintp(
                triangles[t, 1] - first), np.uintp(triangles[t, 2] - first)
            code = np.int32(first_code + FACES * t)
            if groups[n, 5] and _turns_away(corners, a, b, c):
                b, c = c, b
            if points[a, 2] > F(0) and points[b, 2] > F(0) and points[c, 2] > F(0):
                _fill(points, a, b, c, columns, rows, image, codes, code)
            else:
                _fill_near(corners, a, b, c, us, vs, image, codes, code)


@compiled
def draw_mesh_depth(groups, balls, vertices, triangles, xpos, xmat, cam_xpos, cam_xmat, camera, us, vs, far, image):
    """`rearrange.home.pictures.meshes.draw_meshes` without codes."""
    _draw(groups, balls, vertices, triangles, xpos, xmat, cam_xpos, cam_xmat, camera, us, vs, far, image, None, 0)


@compiled
def draw_mesh_depth_and_codes(groups, balls, vertices, triangles, xpos, xmat, cam_xpos, cam_xmat, camera, us, vs, far,
                              image, codes, first_code):
    """`rearrange.home.pictures.meshes.draw_meshes` with codes."""
    _draw(groups, balls, vertices, triangles, xpos, xmat, cam_xpos, cam_xmat, camera, us, vs, far, image, codes,
          first_code)

"""Wood, fabric, tiles, labels and the sky behind a window as functions of a point, for pictures from outside.

No observation of a robot has them. Points and lengths in the frame of the shape (m); colours linear.
"""

from __future__ import annotations

import math

import numpy as np

from rearrange.home.pictures.raster_kernels import BOX, CYLINDER, F, inlined

PLAIN, WOOD, FABRIC, TILES, LABEL, WINDOW = range(6)
"""Materials of shapes. WINDOW: a pane whose frame has x through it, y along it and z up."""
TILE_M, JOINT_M = 0.15, 0.004
PLANK_M = (1.3, 0.16)  # length and width of a floor plank
BAR_M = 0.012  # half width of the bars across a window


@inlined
def whole_below(x):
    """The largest int32 that is not above x. (numba's own floor gives 64 bits, which spoil vector code.)"""
    i = np.int32(x)
    return np.int32(i - np.int32(x < F(i)))


@inlined
def noise(i, j):
    """A repeatable number in [0, 1) for two int32. Every step is cut to 32 bits, as numba widens them."""
    h = np.uint32(np.uint32(np.uint32(i) * np.uint32(374761393)) + np.uint32(np.uint32(j) * np.uint32(668265263)))
    h = np.uint32(np.uint32(h ^ np.uint32(h >> np.uint32(13))) * np.uint32(1274126177))
    return F(np.int32(np.uint32(h >> np.uint32(8)) & np.uint32(0xFFFF))) * F(1 / 65536)


@inlined
def _smooth(x, y, seed):
    """Noise in [0, 1) that changes smoothly, over lengths of 1."""
    i, j = whole_below(x), whole_below(y)
    fx, fy = x - F(i), y - F(j)
    fx, fy = fx * fx * (F(3) - F(2) * fx), fy * fy * (F(3) - F(2) * fy)
    i = np.int32(i + np.int32(seed) * np.int32(57))
    after, below = np.int32(i + 1), np.int32(j + 1)
    low = noise(i, j) * (F(1) - fx) + noise(after, j) * fx
    high = noise(i, below) * (F(1) - fx) + noise(after, below) * fx
    return low * (F(1) - fy) + high * fy


@inlined
def _fine(length, footprint):
    """Share, 0 to 1, of a pattern of this length that a pixel of this width (m) shows: finer ones fade, not flicker."""
    return min(F(1), max(F(0), F(1.5) - footprint / length))


@inlined
def on_face(kind, face, p, half):
    """Where a point lies on the surface of a shape (m): u along the longer, v along the shorter side of a box's face.

    kind, face: of the shape, and the axis of the box face that is seen. p, half: the point, and half extents, in the
    frame of the shape.
    """
    if kind == BOX:
        first = 1 if face == 0 else 0
        second = 1 if face == 2 else 2
        turned = half[second] > half[first]
        return (p[second], p[first]) if turned else (p[first], p[second])
    if abs(p[2]) > half[2] - F(1e-3):  # the end of a cylinder
        return p[0], p[1]
    return p[2], half[0] * F(math.atan2(p[1], p[0]))


@inlined
def textured(material, u, v, seed, footprint, rgb):
    """Colour (red, green, blue) of a point (u, v) of WOOD, FABRIC or TILES whose own colour is rgb.

    seed: an int32, other for each shape. footprint: width of a pixel there (m).
    """
    if material == WOOD:
        return wood(u, v, seed, footprint, rgb)
    if material == FABRIC:
        return fabric(u, v, seed, footprint, rgb)
    return tiles(u, v, seed, footprint, rgb)


@inlined
def wood(u, v, seed, footprint, rgb):
    """Coarse and fine grain along u; see `textured`."""
    coarse = _smooth(u * F(1.6), v * F(26), seed)
    fine = _smooth(u * F(6), v * F(130), seed + 7)
    tint = F(1) + F(0.42) * (coarse - F(0.5)) * _fine(F(0.03), footprint) + F(0.22) * (fine - F(0.5)) * _fine(
        F(0.008), footprint)
    return rgb[0] * tint, rgb[1] * tint * (F(0.97) + F(0.03) * coarse), rgb[2] * tint * (F(0.9) + F(0.1) * coarse)


@inlined
def fabric(u, v, seed, footprint, rgb):
    """Mottled, with threads of 12 mm; see `textured`."""
    mottled = _smooth(u * F(30), v * F(30), seed) - F(0.5)
    thread = F(math.sin(u * F(500))) * F(math.sin(v * F(500)))
    tint = F(1) + F(0.12) * mottled * _fine(F(0.04), footprint) + F(0.08) * thread * _fine(F(0.006), footprint)
    return rgb[0] * tint, rgb[1] * tint, rgb[2] * tint


@inlined
def tiles(u, v, seed, footprint, rgb):
    """Tiles with pale joints; see `textured`."""
    across, up = u / F(TILE_M), v / F(TILE_M)
    i, j = whole_below(across), whole_below(up)
    across, up = across - F(i), up - F(j)
    into = F(TILE_M) * min(min(across, F(1) - across), min(up, F(1) - up))
    tint = F(0.88) + F(0.24) * noise(np.int32(i + 3 * seed), j)
    width = max(F(JOINT_M), F(0.7) * footprint)
    joint = max(F(0), F(1) - into / width) * min(F(1), F(JOINT_M) / width)
    tint = tint * (F(1) - joint)
    return rgb[0] * tint + F(0.55) * joint, rgb[1] * tint + F(0.53) * joint, rgb[2] * tint + F(0.50) * joint


@inlined
def label(kind, face, seed, p, half, footprint, rgb):
    """A can has metal ends and a pale band with lines of print; a carton has a pale field with print."""
    height = p[2] / half[2]
    if kind == CYLINDER:
        if abs(height) > F(0.90):
            return F(0.50), F(0.51), F(0.53)
        u, v = half[0] * F(math.atan2(p[1], p[0])), p[2]
        pale = (height > F(-0.45)) & (height < F(0.25))
    else:
        first = 1 if face == 0 else 0
        second = 1 if face == 2 else 2
        turned = half[second] < half[first] if face == 2 else False
        u, v = (p[first], p[second]) if (face != 2 or turned) else (p[second], p[first])
        wide, tall = (half[first], half[second]) if (face != 2 or turned) else (half[second], half[first])
        pale = (abs(u) < F(0.78) * wide) & (v > F(-0.15) * tall) & (v < F(0.75) * tall)
        disc = (u * u + (v + F(0.55) * tall) * (v + F(0.55) * tall)) < F(0.09) * min(wide, tall) * min(wide, tall)
        if disc:
            return F(0.85), F(0.62), F(0.15)
    if not pale:
        return rgb[0], rgb[1], rgb[2]
    row = whole_below(v / F(0.009))
    between = v / F(0.009) - F(row)
    printed = (between > F(0.35)) & (noise(np.int32(whole_below(u / F(0.004)) + 11 * seed), row) > F(0.38)) & (
        row % 2 == 0)
    ink = (F(0.8) if printed else F(0)) * _fine(F(0.012), footprint)
    return (F(0.86) * (F(1) - ink) + F(0.5) * rgb[0] * ink, F(0.83) * (F(1) - ink) + F(0.5) * rgb[1] * ink,
            F(0.74) * (F(1) - ink) + F(0.5) * rgb[2] * ink)


@inlined
def window(p, half, along_ray, rgb):
    """A pane: sky with clouds over hills, which move as what is far away does, behind two bars.

    Colour of a point, and whether it shines by itself; along_ray: how far the ray goes along y for each metre along x.
    """
    share = F(0.5) + F(0.5) * p[2] / half[2]
    if abs(p[1]) < F(BAR_M) or abs(share - F(0.62)) * F(2) * half[2] < F(BAR_M):
        return F(0.80), F(0.80), F(0.78), False
    far = p[1] + F(2) * min(max(along_ray, F(-3)), F(3))
    hills = F(0.20) + F(0.16) * _smooth(far * F(0.9), F(0.5), 3) + F(0.03) * _smooth(far * F(9), F(0.5), 4)
    if share < hills:
        deep = share / hills
        return F(0.13) + F(0.12) * deep, F(0.24) + F(0.12) * deep, F(0.10) + F(0.16) * deep, True
    up = (share - hills) / (F(1) - hills)
    cloud = F(0.65) * _smooth(far * F(1.3), up * F(3.2), 5) + F(0.35) * _smooth(far * F(3.7), up * F(8), 6)
    cloud = min(F(1), max(F(0), (cloud - F(0.50)) * F(5)))
    return (F(0.62) - F(0.42) * up + cloud * F(0.9) * (F(0.28) + F(0.42) * up), F(0.78) - F(0.34) * up
            + cloud * F(0.9) * (F(0.12) + F(0.34) * up), F(0.92) - F(0.12) * up + cloud * F(0.10), True)

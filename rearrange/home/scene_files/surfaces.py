"""Triangles of boxes and of what is round, counterclockwise from outside."""

from __future__ import annotations

import math

import numpy as np

SIDES = 16  # of what is round
BOX = np.array([(x, y, z) for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])  # corners; half sides of 1
BOX_TRIANGLES = np.array([(0, 1, 3), (0, 3, 2), (4, 7, 5), (4, 6, 7), (0, 5, 1), (0, 4, 5), (2, 3, 7), (2, 7, 6),
                          (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3)])


def turned(outline: list[tuple[float, float]]) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and triangles of the surface that an outline (radius, z), from below upwards, makes about z."""
    turns = np.linspace(0.0, 2 * math.pi, SIDES, endpoint=False)
    vertices = np.array([(r * math.cos(a), r * math.sin(a), z) for r, z in outline for a in turns])
    triangles = []
    for row in range(len(outline) - 1):
        for k in range(SIDES):
            a, b = row * SIDES + k, row * SIDES + (k + 1) % SIDES
            triangles += [(a, b, b + SIDES), (a, b + SIDES, a + SIDES)]
    return vertices, np.array(triangles)

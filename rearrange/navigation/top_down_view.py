"""A home from above, with the shortest way (green), what was driven (blue) and the goal, as is usual in navigation."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from rearrange.home.apartments.floor_grid import CELL_M
from rearrange.home.pictures.raster_kernels import BOX
from rearrange.navigation.home_cache import Home

if TYPE_CHECKING:
    from rearrange.navigation.env import NavigationEnv

SIZE = 512
EDGE = 12  # pixels around the home
OUTSIDE_RGB, FLOOR_RGB, FREE_RGB = (24, 27, 33), (196, 190, 178), (226, 222, 212)
SHORTEST_RGB, DRIVEN_RGB, GOAL_RGB, AGENT_RGB = (46, 160, 87), (52, 120, 220), (226, 74, 51), (20, 40, 90)
HIGHEST_M = 2.0  # what begins higher is left out


def picture(env: NavigationEnv) -> np.ndarray:
    """(SIZE, SIZE, 3) uint8: the episode as it stands, north up."""
    from PIL import Image, ImageDraw

    image = Image.fromarray(_empty(env.home).copy())
    draw = ImageDraw.Draw(image)
    view = View(env.home)
    shortest = getattr(env.task, "shortest", None)
    # The goal of ObjectNav is the nearest view point.
    goal = env.episode.goal or (shortest is not None and tuple(shortest[-1, :2])) or None
    if shortest is not None:
        draw.line([view.at(*point[:2]) for point in shortest], fill=SHORTEST_RGB, width=4)
    if len(env.path) > 1:
        draw.line([view.at(*point) for point in env.path], fill=DRIVEN_RGB, width=3)
    if goal is not None:
        px, py = view.at(*goal)
        draw.ellipse((px - 7, py - 7, px + 7, py + 7), fill=GOAL_RGB, outline=(255, 255, 255))
    x, y, yaw = env.pose
    arrow = [(11, 0.0), (9, 2.5), (4, math.pi), (9, -2.5)]
    px, py = view.at(x, y)
    draw.polygon([(px + r * math.cos(yaw + a), py - r * math.sin(yaw + a)) for r, a in arrow], fill=AGENT_RGB,
                 outline=(255, 255, 255))
    return np.array(image)


class View:
    """Where a point of a home lies in its picture."""

    def __init__(self, home: Home) -> None:
        width, height = home.building.size_m
        self.scale = (SIZE - 2 * EDGE) / max(width, height)  # pixels per metre
        self._left, self._low = (SIZE - self.scale * width) / 2, (SIZE + self.scale * height) / 2

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Column and row of a point (m)."""
        return self._left + self.scale * x, self._low - self.scale * y


@lru_cache(maxsize=16)
def _empty(home: Home) -> np.ndarray:
    """The home without an episode: rooms, where the agent can be, and everything that stands there."""
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (SIZE, SIZE), OUTSIDE_RGB)
    draw, view, s = ImageDraw.Draw(image), View(home), home.shapes
    for low_x, low_y, high_x, high_y in home.building.inside:
        (left, bottom), (right, top) = view.at(low_x, low_y), view.at(high_x, high_y)
        draw.rectangle((left, top, right, bottom), fill=FLOOR_RGB)
    half = view.scale * CELL_M / 2
    for i, j in home.cells:
        px, py = view.at((i + 0.5) * CELL_M, (j + 0.5) * CELL_M)
        draw.rectangle((px - half, py - half, px + half, py + half), fill=FREE_RGB)
    tops = s.centers[:, 2] + s.halves[:, 2]
    for k in np.argsort(tops, kind="stable"):
        x, y, z = s.centers[k]
        hx, hy, hz = s.halves[k, :3]
        if k < 2 or z - hz > HIGHEST_M:  # the first two are floor and ceiling
            continue
        shade = 0.65 + 0.35 * min(max(tops[k], 0.0) / 2.4, 1.0)
        rgb = tuple(int(255 * shade * c) for c in s.rgb[k])
        if s.shapes[k, 0] != BOX:
            px, py = view.at(x, y)
            r = hx * view.scale
            draw.ellipse((px - r, py - r, px + r, py + r), fill=rgb)
            continue
        ax, ay, bx, by = s.rotations[k, 0], s.rotations[k, 3], s.rotations[k, 1], s.rotations[k, 4]
        corners = [(x + u * hx * ax + v * hy * bx, y + u * hx * ay + v * hy * by)
                   for u, v in ((1, 1), (1, -1), (-1, -1), (-1, 1))]
        draw.polygon([view.at(*corner) for corner in corners], fill=rgb)
    return np.array(image)

"""ObjectNav: a category of furniture, success when the agent stops near a piece of it and sees it.

As in Habitat, the goals of an episode are view points: floor within `view_m` of the footprint of an instance, from
which the level camera sees it when it is turned towards it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import gymnasium
import numpy as np

from rearrange.home.apartments.floor_grid import CELL_M
from rearrange.home.apartments.parts import Furniture
from rearrange.home.errors import NoGoal
from rearrange.home.numba_cache import njit
from rearrange.home.pictures.raster_kernels import F
from rearrange.navigation.episodes import LONGEST_M, SHORTEST_M, NavEpisode
from rearrange.navigation.goals import GoalTask
from rearrange.navigation.gps_compass import SPACE, gps_compass
from rearrange.navigation.home_cache import Field, Home
from rearrange.navigation.settings import CATEGORIES, ObjectNavConfig
from rearrange.navigation.shapes import look_for

if TYPE_CHECKING:
    from rearrange.navigation.env import NavigationEnv

LOOK_SIZE = 24  # pixels on a side of the image that tells whether something is seen
SEEN_PIXELS = 6  # of it that show the piece, 1 % of the image
EVERY = 2  # cells between view points
KEPT = 64
_TRIES = 64


class ObjectNav(GoalTask):
    """The task of one environment."""

    def __init__(self, config: ObjectNavConfig, categories: Sequence[str] = tuple(CATEGORIES)) -> None:
        """categories: in the order of the one-hot observation."""
        self.config, self.categories = config, tuple(categories)
        self.spaces = {"objectgoal": gymnasium.spaces.Box(0.0, 1.0, (len(self.categories),), np.float32),
                       "gps_compass": SPACE}
        self.masks = config.segmentation
        self._view = (config.view_m, config.camera_height_m, config.fov_deg)

    def episode(self, home: Home, index: int, goal_rng: np.random.Generator, rng: np.random.Generator) -> NavEpisode:
        """A category that the home has, and a start from which one drives at least 1 m. NoGoal where there is none."""
        name = home.building.name
        kinds = {piece.kind for piece in home.building.furniture}
        there = [category for category in self.config.categories if kinds & set(CATEGORIES[category])]
        for category in goal_rng.permutation(there):
            field = field_of(home, str(category), *self._view)
            if field is None:
                continue
            picked = rng.integers(len(home.cells), size=_TRIES)
            far_m = field.distance_m[home.cells[picked, 0], home.cells[picked, 1]]
            fits = np.flatnonzero((far_m >= SHORTEST_M) & (far_m <= LONGEST_M))
            if len(fits):
                x, y = home.center(int(picked[fits[0]]))
                return NavEpisode(f"{name}/{index}", name, (x, y, float(rng.uniform(-math.pi, math.pi))),
                                  category=str(category))
        raise NoGoal(f"home {name} has nothing of nav.categories=[{','.join(self.config.categories)}] that can be "
                     "seen from a place at least 1 m of driving away: add other categories.")

    def begin(self, env: NavigationEnv) -> None:
        self.look_for(env)
        self._one_hot = np.array([name == env.episode.category for name in self.categories], np.float32)
        super().begin(env)

    def look_for(self, env: NavigationEnv) -> None:
        """Find the view points, and what the mask shows."""
        category = env.episode.category
        self.field = field_of(env.home, category, *self._view)
        kinds = CATEGORIES[category]
        right = np.array([piece.kind in kinds for piece in env.home.building.furniture])
        self.wanted = (env.home.shapes.piece >= 0) & right[env.home.shapes.piece]

    def observe(self, env: NavigationEnv) -> dict[str, np.ndarray]:
        return {"objectgoal": self._one_hot.copy(), "gps_compass": gps_compass(env.episode.start, env.believed_pose)}

    def instructions(self, env: NavigationEnv) -> tuple[str, ...]:
        thing = env.episode.category.replace("_", " ")
        article = "an" if thing[0] in "aeiou" else "a"
        return f"find {article} {thing}", f"go to {article} {thing}", f"look for {article} {thing} and stop before it"

    def status_lines(self) -> list[str]:
        return [f"look for: {self.categories[int(self._one_hot.argmax())].replace('_', ' ')}", *super().status_lines()]


@lru_cache(maxsize=KEPT)
def field_of(home: Home, category: str, view_m: float, height_m: float, fov_deg: float) -> Field | None:
    """The distances to the view points of a category; None where there are none. The last ones are kept."""
    points = [view_points(home, k, view_m, height_m, fov_deg) for k, piece in enumerate(home.building.furniture)
              if piece.kind in CATEGORIES[category]]
    cells = np.concatenate(points) if points else np.empty((0, 2), np.int64)
    return Field(home, cells) if len(cells) else None


def view_points(home: Home, piece: int, view_m: float, height_m: float, fov_deg: float) -> np.ndarray:
    """Cells (n, 2) from which a piece of furniture, by its number, is seen at most `view_m` away."""
    cells = home.cells[(home.cells % EVERY == 0).all(axis=1)]
    away = footprint_distance((cells + 0.5) * CELL_M, home.building.furniture[piece])
    near = cells[away <= view_m].astype(np.int64)
    pitch = 2.0 * math.tan(math.radians(fov_deg) / 2.0) / LOOK_SIZE
    slopes = ((np.arange(LOOK_SIZE) - (LOOK_SIZE - 1) / 2) * pitch).astype(np.float32)
    s, (x, y, *_) = home.shapes, home.building.furniture[piece].footprint
    return near[_seen(near, s.shapes, s.halves, s.centers, s.rotations, s.piece == piece, x, y, height_m, slopes,
                      CELL_M, SEEN_PIXELS)]


def footprint_distance(points: np.ndarray, piece: Furniture) -> np.ndarray:
    """Metres from points (n, 2) to the footprint of a piece, 0 inside."""
    x, y, half_x, half_y, yaw = piece.footprint
    dx, dy = (points - (x, y)).T
    c, s = math.cos(yaw), math.sin(yaw)
    return np.hypot(np.maximum(np.abs(c * dx + s * dy) - half_x, 0), np.maximum(np.abs(c * dy - s * dx) - half_y, 0))


@njit(cache=True, nogil=True)
def _seen(cells, shapes, halves, centers, rotations, wanted, goal_x, goal_y, height, slopes, cell, pixels):
    size = len(slopes)
    inverse, depth = np.empty((size, size), np.float32), np.empty((size, size, 1), np.float32)
    codes, mask = np.empty((size, size), np.int32), np.empty((size, size, 1), np.float32)
    out = np.zeros(len(cells), np.bool_)
    for k in range(len(cells)):
        x, y = (cells[k, 0] + 0.5) * cell, (cells[k, 1] + 0.5) * cell
        yaw = math.atan2(goal_y - y, goal_x - x)
        look_for(shapes, halves, centers, rotations, x, y, height, yaw, slopes, F(0), F(10), inverse, depth, codes,
                 wanted, mask)
        out[k] = mask.sum() >= pixels
    return out

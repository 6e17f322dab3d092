"""Episodes of PointNav by Habitat's rule (habitat-lab, pointnav_generator.py), the same for the same (split, index).

Start and goal lie on one island of floor, 1 to 30 m of driving apart. The start looks anywhere. Nearly straight ways
are rare: if driving is less than 1.1 times as far as flying, an episode is kept with probability 20 (ratio - 0.98)².
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rearrange.home.apartments.floor_grid import CELL_M
from rearrange.navigation.home_cache import Home, field_to

SHORTEST_M, LONGEST_M = 1.0, 30.0
STRAIGHT = 1.1
TRIES = 64  # starts that are drawn at once
_DRAWS = 100  # goals that are tried in a home


@dataclass(frozen=True)
class NavEpisode:
    """id: "<scene>/<index>". start: x, y (m), yaw (rad). goal: x, y (m). category: of furniture. In the home's frame.
    """

    id: str
    scene: str
    start: tuple[float, float, float]
    goal: tuple[float, float] | None = None
    category: str | None = None


def any_start(home: Home, index: int, _: np.random.Generator, rng: np.random.Generator) -> NavEpisode:
    """A start alone."""
    x, y = home.center(int(rng.integers(len(home.cells))))
    return NavEpisode(f"{home.building.name}/{index}", home.building.name,
                      (x, y, float(rng.uniform(-math.pi, math.pi))))


def kept_share(ratio: np.ndarray) -> np.ndarray:
    """With what probability an episode is kept whose way is `ratio` times as long as the straight line."""
    return np.where(ratio < STRAIGHT, np.minimum(20.0 * (ratio - 0.98) ** 2, 1.0), 1.0)


def point_episode(home: Home, index: int, goal_rng: np.random.Generator, rng: np.random.Generator) -> NavEpisode:
    """A goal, drawn from `goal_rng`, and a start, drawn from `rng`."""
    name = home.building.name
    for _ in range(_DRAWS):
        i, j = home.cells[goal_rng.integers(len(home.cells))]
        goal = (float((i + 0.5) * CELL_M), float((j + 0.5) * CELL_M))
        picked = rng.integers(len(home.cells), size=TRIES)
        chance = rng.random(TRIES)
        far_m = field_to(home, int(i), int(j)).distance_m[home.cells[picked, 0], home.cells[picked, 1]]
        starts = (home.cells[picked] + 0.5) * CELL_M
        ratio = far_m / np.maximum(np.hypot(*(starts - goal).T), 1e-6)
        fits = np.flatnonzero((far_m >= SHORTEST_M) & (far_m <= LONGEST_M) & (chance < kept_share(ratio)))
        if len(fits):
            x, y = starts[fits[0]]
            return NavEpisode(f"{name}/{index}", name, (float(x), float(y), float(rng.uniform(-math.pi, math.pi))),
                              goal)
    raise RuntimeError(f"home {name} has no two points {SHORTEST_M:g} m apart")

"""Tasks without a goal: flee from the start, and exploration (DD-PPO, section 6). The action stop stands still."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rearrange.home.apartments.floor_grid import CELL_M
from rearrange.navigation.episodes import NavEpisode, any_start
from rearrange.navigation.gps_compass import SPACE, gps_compass
from rearrange.navigation.home_cache import Home, field_to
from rearrange.navigation.settings import NavigationConfig

if TYPE_CHECKING:
    from rearrange.navigation.env import NavigationEnv

SQUARE_M = 1.0
_CELLS = round(SQUARE_M / CELL_M)
_LEAST = 0.2  # share of a square that is free floor, for it to count


class StartTask:
    """A task of which an episode is a start alone. Success: a share of what is possible, when the time is over."""

    stops = False
    failures = ("time_limit",)
    share: float

    def __init__(self, config: NavigationConfig) -> None:
        self.config, self.spaces = config, {"gps_compass": SPACE}

    def episode(self, home: Home, index: int, goal_rng: np.random.Generator, rng: np.random.Generator) -> NavEpisode:
        return any_start(home, index, goal_rng, rng)

    def success(self, env: NavigationEnv) -> bool:
        return env.steps >= env.max_steps and self.share >= self.config.success_share

    def begins_solved(self, env: NavigationEnv) -> bool:
        """Whether an agent that stands still has success."""
        return self.share >= self.config.success_share

    def observe(self, env: NavigationEnv) -> dict[str, np.ndarray]:
        return {"gps_compass": gps_compass(env.episode.start, env.believed_pose)}


class Flee(StartTask):
    """Get as far away from the start as the home allows. `share`: of the farthest way."""

    def begin(self, env: NavigationEnv) -> None:
        self._from_start = field_to(env.home, int(env.pose[0] // CELL_M), int(env.pose[1] // CELL_M))
        self._farthest_m = max(float(self._from_start.distance_m[env.home.free].max()), CELL_M)
        self.share = 0.0

    def after_step(self, env: NavigationEnv) -> None:
        self._before, self.share = self.share, self._from_start.at(*env.pose[:2]) / self._farthest_m

    def reward_terms(self, env: NavigationEnv, success: bool) -> dict[str, float]:
        return {"share": self.share - self._before}

    def measures(self, env: NavigationEnv, success: bool) -> dict[str, float]:
        return {"fled_share": self.share}

    def instructions(self, env: NavigationEnv) -> tuple[str, ...]:
        return ("get as far away from here as you can", "go to the place that is farthest from here",
                "leave, and go as far as the home allows")

    def status_lines(self) -> list[str]:
        return [f"{self.share:.0%} of the farthest way"]


class Explore(StartTask):
    """Visit as much floor as possible, in squares of 1 m. `share`: of the squares, visited so far."""

    def begin(self, env: NavigationEnv) -> None:
        squares, counts = np.unique(env.home.cells // _CELLS, axis=0, return_counts=True)
        self._squares = {(int(i), int(j)) for (i, j), n in zip(squares, counts) if n >= _LEAST * _CELLS**2}
        self._visited = {self._square(env)} & self._squares
        self._new = False

    def _square(self, env: NavigationEnv) -> tuple[int, int]:
        return int(env.pose[0] // SQUARE_M), int(env.pose[1] // SQUARE_M)

    def after_step(self, env: NavigationEnv) -> None:
        here = self._square(env)
        self._new = here in self._squares and here not in self._visited
        if self._new:
            self._visited.add(here)

    @property
    def share(self) -> float:
        return len(self._visited) / max(len(self._squares), 1)

    def reward_terms(self, env: NavigationEnv, success: bool) -> dict[str, float]:
        return {"new_square": float(self._new)}

    def measures(self, env: NavigationEnv, success: bool) -> dict[str, float]:
        return {"explored_share": self.share, "explored_m2": SQUARE_M**2 * len(self._visited)}

    def instructions(self, env: NavigationEnv) -> tuple[str, ...]:
        return ("see as much of the home as you can", "go through all rooms", "explore the home")

    def status_lines(self) -> list[str]:
        return [f"explored {self.share:.0%} of {len(self._squares)} m²"]

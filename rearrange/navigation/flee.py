"""Flee: get as far away from the start as the home allows (DD-PPO, section 6). The action stop stands still."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rearrange.home.apartments.floor_grid import CELL_M
from rearrange.navigation.episodes import NavEpisode, any_start
from rearrange.navigation.gps_compass import SPACE, gps_compass
from rearrange.navigation.home_cache import Home, field_to
from rearrange.navigation.settings import FleeConfig

if TYPE_CHECKING:
    from rearrange.navigation.env import NavigationEnv


class Flee:
    """The task of one environment."""

    stops = False
    failures = ("time_limit",)

    def __init__(self, config: FleeConfig) -> None:
        self.config, self.spaces = config, {"gps_compass": SPACE}

    def episode(self, home: Home, index: int, goal_rng: np.random.Generator, rng: np.random.Generator) -> NavEpisode:
        return any_start(home, index, goal_rng, rng)

    def begin(self, env: NavigationEnv) -> None:
        self._from_start = field_to(env.home, int(env.pose[0] // CELL_M), int(env.pose[1] // CELL_M))
        self._farthest_m = max(float(self._from_start.distance_m[env.home.free].max()), CELL_M)
        self.share = 0.0

    def after_step(self, env: NavigationEnv) -> None:
        self._before, self.share = self.share, self._from_start.at(*env.pose[:2]) / self._farthest_m

    def success(self, env: NavigationEnv) -> bool:
        return env.steps >= env.max_steps and self.share >= self.config.success_share

    def begins_solved(self, env: NavigationEnv) -> bool:
        """Never: it begins where nothing is fled yet."""
        return False

    def reward_terms(self, env: NavigationEnv, success: bool) -> dict[str, float]:
        return {"share": self.share - self._before}

    def measures(self, env: NavigationEnv, success: bool) -> dict[str, float]:
        return {"fled_share": self.share}

    def observe(self, env: NavigationEnv) -> dict[str, np.ndarray]:
        return {"gps_compass": gps_compass(env.episode.start, env.believed_pose)}

    def instructions(self, env: NavigationEnv) -> tuple[str, ...]:
        return ("get as far away from here as you can", "go to the place that is farthest from here",
                "leave, and go as far as the home allows")

    def status_lines(self) -> list[str]:
        return [f"{self.share:.0%} of the farthest way"]

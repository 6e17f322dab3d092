"""PointNav: a goal by distance and direction, success when the agent stops there."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import gymnasium
import numpy as np

from rearrange.apartments.floor_grid import CELL_M
from rearrange.navigation.distances import path_length, shortest_path
from rearrange.navigation.episodes import NavEpisode, point_episode
from rearrange.navigation.homes_in_use import Field, Home, field_to
from rearrange.navigation.measures import soft_spl, spl
from rearrange.navigation.settings import PointNavConfig

if TYPE_CHECKING:
    from rearrange.navigation.env import NavigationEnv

MOST_M = 60.0  # from anywhere to a goal, as the crow flies


class PointNav:
    """The task of one environment."""

    stops = True  # the agent ends the episode itself

    def __init__(self, config: PointNavConfig) -> None:
        self.config = config
        self.spaces = {"pointgoal": gymnasium.spaces.Box(
            np.array([0.0, 0.0, -1.0, -1.0], np.float32), np.array([MOST_M / 5, 1.0, 1.0, 1.0], np.float32), (4,), np.float32)}

    def episode(self, home: Home, index: int, rng: np.random.Generator) -> NavEpisode:
        return point_episode(home, index, rng)

    def begin(self, env: NavigationEnv) -> None:
        goal = env.episode.goal
        self.goal = goal
        self.field: Field = field_to(env.home, int(goal[0] // CELL_M), int(goal[1] // CELL_M))
        self.start_m = self.left_m = self.field.at(*env.pose[:2])
        self._free, self._start = env.home.free, env.pose[:2]
        self._shortest: np.ndarray | None = None
        self._shortest_m: float | None = None

    def after_step(self, env: NavigationEnv) -> None:
        self._before_m, self.left_m = self.left_m, self.field.at(*env.pose[:2])

    def at_goal(self, x: float, y: float) -> bool:
        """Whether a stop at a point would be a success."""
        return self.field.at(x, y) < self.config.success_m

    def success(self, env: NavigationEnv) -> bool:
        return env.stop_called and self.left_m < self.config.success_m

    @property
    def shortest(self) -> np.ndarray:
        """Corners (n, 2) of the shortest way from the start."""
        if self._shortest is None:
            self._shortest = shortest_path(self.field.distance_m, self._free, *self._start)
        return self._shortest

    @property
    def shortest_m(self) -> float:
        """The shortest way from the start, which is not computed for episodes that nobody finishes."""
        if self._shortest_m is None:
            self._shortest_m = path_length(self.shortest)
        return self._shortest_m

    def reward_terms(self, env: NavigationEnv, success: bool) -> dict[str, float]:
        return {"distance": self._before_m - self.left_m, "slack": 1.0, "success": float(success),
                "spl": spl(True, self.shortest_m, env.driven_m) if success else 0.0}

    def measures(self, env: NavigationEnv, success: bool) -> dict[str, float]:
        return {"spl": spl(success, self.shortest_m, env.driven_m),
                "soft_spl": soft_spl(self.shortest_m, env.driven_m, self.left_m),
                "distance_to_goal_m": self.left_m, "shortest_m": self.shortest_m}

    def observe(self, env: NavigationEnv) -> dict[str, np.ndarray]:
        """Where the goal is from where the agent thinks it stands: distance (in 5 m, and in m up to 1), cosine and sine of the angle
        to the left."""
        x, y, yaw = env.believed_pose
        dx, dy = self.goal[0] - x, self.goal[1] - y
        away, angle = math.hypot(dx, dy), math.atan2(dy, dx) - yaw
        away = min(away, MOST_M)
        return {"pointgoal": np.array([away / 5, min(away, 1.0), math.cos(angle), math.sin(angle)], np.float32)}

    def status_lines(self) -> list[str]:
        return [f"to drive {self.left_m:.2f} m of {self.start_m:.1f}"]

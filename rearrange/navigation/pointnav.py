"""PointNav: a goal by distance and direction, success when the agent stops there."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import gymnasium
import numpy as np

from rearrange.home.apartments.floor_grid import CELL_M
from rearrange.home.geometry import PlanePose, wrap_angle
from rearrange.navigation.episodes import NavEpisode, point_episode
from rearrange.navigation.goals import GoalTask
from rearrange.navigation.home_cache import Field, Home, field_to
from rearrange.navigation.settings import PointNavConfig

if TYPE_CHECKING:
    from rearrange.navigation.env import NavigationEnv

MOST_M = 60.0  # from anywhere to a goal, as the crow flies
GOAL_SPACE = gymnasium.spaces.Box(
    np.array([0.0, 0.0, -1.0, -1.0], np.float32), np.array([MOST_M / 5, 1.0, 1.0, 1.0], np.float32), (4,), np.float32)
"""Of the observation `pointgoal`."""


class PointNav(GoalTask):
    """The task of one environment."""

    def __init__(self, config: PointNavConfig) -> None:
        self.config = config
        self.spaces = {"pointgoal": GOAL_SPACE}

    def episode(self, home: Home, index: int, goal_rng: np.random.Generator, rng: np.random.Generator) -> NavEpisode:
        return point_episode(home, index, goal_rng, rng)

    def begin(self, env: NavigationEnv) -> None:
        self.goal = env.episode.goal
        self.field = self.field_of(env)
        super().begin(env)

    def field_of(self, env: NavigationEnv) -> Field:
        """The distances to the goal."""
        return field_to(env.home, int(self.goal[0] // CELL_M), int(self.goal[1] // CELL_M))

    def instructions(self, env: NavigationEnv) -> tuple[str, ...]:
        x, y, yaw = env.episode.start
        dx, dy = self.goal[0] - x, self.goal[1] - y
        away_m, turn_deg = math.hypot(dx, dy), math.degrees(wrap_angle(math.atan2(dy, dx) - yaw))
        place = f"{away_m:.1f} m away, {abs(turn_deg):.0f} degrees to the {'left' if turn_deg >= 0 else 'right'}"
        return f"go to the point {place}", f"drive to a point that is {place}", f"stop at the point {place}"

    def observe(self, env: NavigationEnv) -> dict[str, np.ndarray]:
        """Where the goal is from where the agent thinks that it stands."""
        return {"pointgoal": polar_goal(env.believed_pose, self.goal)}


def polar_goal(pose: PlanePose, goal: tuple[float, float]) -> np.ndarray:
    """A goal (m) as `pointgoal` shows it from a pose, (4,) float32.

    Distance in 5 m, distance in m up to 1, cosine and sine of the angle to the left.
    """
    x, y, yaw = pose
    dx, dy = goal[0] - x, goal[1] - y
    away, angle = min(math.hypot(dx, dy), MOST_M), math.atan2(dy, dx) - yaw
    return np.array([away / 5, min(away, 1.0), math.cos(angle), math.sin(angle)], np.float32)

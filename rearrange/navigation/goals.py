"""What PointNav and ObjectNav have in common: a place to come to by the shortest way, and to stop at."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from rearrange.navigation.agent import FORWARD, LEFT, RIGHT, STOP
from rearrange.navigation.distances import path_length
from rearrange.navigation.home_cache import Field

if TYPE_CHECKING:
    from rearrange.navigation.env import NavigationEnv


NO_WAY_M = 0.01  # a shorter way is none: brakes let a robot that stands roll by less than a millimetre


class GoalTask:
    """A task whose success is a stop within `config.success_m` of driving to the nearest of some places."""

    stops = True  # the agent ends the episode itself
    failures = ("stopped_elsewhere", "time_limit")
    field: Field

    def begin(self, env: NavigationEnv) -> None:
        """After `field` is there."""
        self.start_m = self.left_m = self.field.at(*env.pose[:2])
        self._start = env.pose[:2]
        self._shortest: np.ndarray | None = None
        self._shortest_m: float | None = None

    def after_step(self, env: NavigationEnv) -> None:
        self._before_m, self.left_m = self.left_m, self.field.at(*env.pose[:2])

    def at_goal(self, x: float, y: float) -> bool:
        """Whether a stop at a point would be a success."""
        return self.field.at(x, y) < self.config.success_m

    def begins_solved(self, env: NavigationEnv) -> bool:
        """Whether a stop where an episode begins is a success."""
        return self.start_m < self.config.success_m

    def best_action(self, env: NavigationEnv) -> int:
        """The number of the discrete action on the shortest way to the goal."""
        if self.at_goal(*env.pose[:2]):
            return STOP
        turns = self.field.turns(*env.pose, math.radians(env.config.turn_deg), env.config.forward_m, env.config.sliding)
        return FORWARD if turns == 0 else LEFT if turns > 0 else RIGHT

    def success(self, env: NavigationEnv) -> bool:
        return env.stop_called and self.left_m < self.config.success_m

    @property
    def shortest(self) -> np.ndarray:
        """Corners (n, 2), or (n, 3) where there are stairs, of the shortest way from the start."""
        if self._shortest is None:
            self._shortest = self.field.shortest(*self._start)
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
        of_way = spl(success, self.shortest_m, env.driven_m)
        return {"spl": of_way,
                "soft_spl": of_way if env.begins_solved else soft_spl(self.shortest_m, env.driven_m, self.left_m),
                "distance_to_goal_m": self.left_m, "shortest_m": self.shortest_m}

    def status_lines(self) -> list[str]:
        return [f"to drive {self.left_m:.2f} m of {self.start_m:.1f}"]


# Measures (Anderson et al., "On Evaluation of Embodied Navigation Agents", 2018; Habitat's SoftSPL)

def spl(success: bool, shortest_m: float, driven_m: float) -> float:
    """Success weighted by path length, at most 1; a success without any way to drive, and without driving, counts as 1.
    """
    longer_m = max(shortest_m, driven_m)
    return 0.0 if not success else shortest_m / longer_m if longer_m > NO_WAY_M else 1.0


def soft_spl(shortest_m: float, driven_m: float, left_m: float) -> float:
    """SPL with the share of the way that was made instead of success; not for episodes that begin at their goal."""
    return max(0.0, 1.0 - left_m / max(shortest_m, 1e-9)) * shortest_m / max(shortest_m, driven_m, 1e-9)

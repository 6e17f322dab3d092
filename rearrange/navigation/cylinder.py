"""Habitat's agent: a cylinder on the free cells of the floor, without physics. An action moves it at once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rearrange.home.apartments.floor_grid import CELL_M
from rearrange.navigation.agent import STILL, NavAgent, moved
from rearrange.navigation.cylinder_motion import drive, motion_noise

if TYPE_CHECKING:
    from rearrange.navigation.env import NavigationEnv


class Cylinder(NavAgent):
    """A velocity is one forward, from none at -1 to `forward_m` a step at 1, and one of the turn, `turn_deg` to the left at 1."""

    def speeds(self, speed: float, turn: float) -> tuple[float, float]:
        share = (speed + 1.0) / 2.0
        if share < STILL and abs(turn) < STILL:
            return 0.0, 0.0
        return share * self.config.forward_m, turn * self.turn_rad

    def move(self, env: NavigationEnv, ahead: float, turn: float) -> None:
        """Turn (rad, to the left), then drive (m)."""
        if not (ahead or turn):
            return
        env.commanded = moved(env.commanded, ahead, 0.0, turn)
        right = 0.0
        if self.config.actuation_noise:
            more, right, about = motion_noise(ahead, turn, self.config.actuation_noise, env.noise_rng)
            ahead, turn = ahead + more, turn + about
        x, y, yaw = env.pose
        to_x, to_y, yaw = moved((x, y, yaw), ahead, right, turn)
        if ahead or right:
            x, y, driven_m, blocked = self.drive(env, to_x - x, to_y - y)
            env.collisions += blocked
            env.driven_m += driven_m
            env.path.append((x, y))
        env.pose = (x, y, yaw)

    def drive(self, env: NavigationEnv, dx: float, dy: float) -> tuple[float, float, float, bool]:
        """Drive so far (m) from where `env` is: -> x, y, the metres that were driven, and whether something was in the way."""
        x, y, _ = env.pose
        new_x, new_y, blocked = drive(env.home.free, CELL_M, x, y, dx, dy, self.config.sliding)
        return new_x, new_y, math.hypot(new_x - x, new_y - y), blocked

"""Habitat's agent: a point on the free cells of the floor grid, without physics. An action moves it at once.

The free cells are to it what the navigation mesh is to Habitat's agent. The noise of its motion is that of Habitat's
PointNav challenge of 2020, which PyRobot measured on a LoCoBot (habitat-sim, pyrobot_noisy_controls.py, LoCoBot,
Proportional). The variances in that file are squared deviations.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from rearrange.home.apartments.floor_grid import CELL_M, interpolate
from rearrange.home.numba_cache import njit
from rearrange.navigation.agent import STILL, NavAgent, moved

if TYPE_CHECKING:
    from rearrange.navigation.env import NavigationEnv

STRIDE_M = 0.01  # a motion is made of strides this long
GAIN = 0.3  # share of a step forward that has to bring the agent nearer
TURN_COSTS_M = 0.02  # what a turn counts as beside a blocked way

# Mean and standard deviation along and across the heading (m) and about the vertical (rad): a step forward, a turn.
FORWARD = ((0.017, 0.007**0.5), (0.042, 0.023**0.5), (0.031, 0.026**0.5))
TURN = ((0.001, 0.001**0.5), (0.005, 0.004**0.5), (0.043, 0.017**0.5))
CUT = 3.0  # standard deviations, beyond which nothing is drawn
LEAST = 0.95  # share of a motion that noise may take away


class Cylinder(NavAgent):
    """A velocity goes forward, from none at -1 to `forward_m` a step at 1, and turns, by `turn_deg` to the left at 1.
    """

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
        """Drive from where `env` is: new x, y, the metres that were driven, and whether something was in the way."""
        x, y, _ = env.pose
        new_x, new_y, blocked = drive(env.home.free, CELL_M, x, y, dx, dy, self.config.sliding)
        return new_x, new_y, math.hypot(new_x - x, new_y - y), blocked


@njit(cache=True, nogil=True)
def drive(free, cell, x, y, dx, dy, slide):
    """Where a motion from a free point (m) ends, and whether something blocked it: x, y, blocked.

    slide: go on along what blocks it, cell side by cell side; else the motion ends there.
    """
    strides = max(1, int(math.ceil(math.hypot(dx, dy) / STRIDE_M - 1e-9)))
    sx, sy = dx / strides, dy / strides
    blocked = False
    for _ in range(strides):
        if _free(free, cell, x, y, x + sx, y + sy):
            x, y = x + sx, y + sy
            continue
        blocked = True
        if not slide:
            break
        if abs(sx) > abs(sy):
            if _free(free, cell, x, y, x + sx, y):
                x += sx
            elif _free(free, cell, x, y, x, y + sy):
                y += sy
            else:
                break
        elif _free(free, cell, x, y, x, y + sy):
            y += sy
        elif _free(free, cell, x, y, x + sx, y):
            x += sx
        else:
            break
    return x, y, blocked


@njit(cache=True, nogil=True)
def _free(free, cell, x, y, to_x, to_y):
    """Whether a stride may be made: onto a free cell, and not between two blocked ones that touch at a corner."""
    i, j = int(to_x / cell), int(to_y / cell)
    if not free[i, j]:
        return False
    a, b = int(x / cell), int(y / cell)
    return i == a or j == b or free[a, j] or free[i, b]


@njit(cache=True, nogil=True)
def turns_to_goal(free, distance_m, cell, x, y, yaw, corner, turn, forward, slide):
    """How many turns (of `turn` rad, to the left) come before the next step forward (m) on the way to a goal.

    They lead to the next corner of the shortest way; where that is blocked, to where a step leads nearest to the goal.
    """
    off = math.atan2(corner[1] - y, corner[0] - x) - yaw
    off -= 2 * math.pi * round(off / (2 * math.pi))
    straight = int(round(off / turn))
    heading = yaw + straight * turn
    to_x, to_y, _ = drive(free, cell, x, y, forward * math.cos(heading), forward * math.sin(heading), slide)
    if interpolate(distance_m, to_x, to_y, cell) < interpolate(distance_m, x, y, cell) - GAIN * forward:
        return straight
    most = int(round(math.pi / turn))
    turns, least = 0, math.inf
    for k in range(-most, most + 1):
        heading = yaw + k * turn
        to_x, to_y, _ = drive(free, cell, x, y, forward * math.cos(heading), forward * math.sin(heading), slide)
        if math.hypot(to_x - x, to_y - y) > cell:  # not nowhere
            cost = interpolate(distance_m, to_x, to_y, cell) + TURN_COSTS_M * abs(k)
            if cost < least:
                turns, least = k, cost
    return turns


def motion_noise(ahead_m: float, turn_rad: float, multiplier: float,
                 rng: np.random.Generator) -> tuple[float, float, float]:
    """What is added to a commanded motion: ahead (m), to the right (m), turned (rad)."""
    forward = ahead_m != 0.0
    ahead, across, about = FORWARD if forward else TURN
    a = _drawn(*ahead, rng, -LEAST * abs(ahead_m) if forward else -math.inf)
    c = _drawn(*across, rng)
    t = _drawn(*about, rng, -math.inf if forward else -LEAST * abs(turn_rad))
    sign = -1.0 if turn_rad < 0.0 else 1.0
    return multiplier * a, multiplier * c, multiplier * t * sign


def usual_motion(ahead_m: float, turn_rad: float,
                 multiplier: float) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """Mean result of a commanded motion, ahead, to the left (m), turned (rad), and its standard deviations."""
    (a, ahead), (c, across), (t, about) = FORWARD if ahead_m else TURN
    sign = -1.0 if turn_rad < 0.0 else 1.0
    return ((ahead_m + multiplier * a, -multiplier * c, turn_rad + sign * multiplier * t),
            (multiplier * ahead, multiplier * across, multiplier * about))


def _drawn(mean: float, deviation: float, rng: np.random.Generator, least: float = -math.inf) -> float:
    """From a normal distribution that is cut off."""
    while True:
        value = mean + deviation * rng.standard_normal()
        if abs(value - mean) <= CUT * deviation and value >= least:
            return value

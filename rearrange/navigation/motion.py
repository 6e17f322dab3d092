"""How the agent moves: a point on the free cells of the floor grid, which is to it what the navigation mesh is to Habitat's."""

from __future__ import annotations

import math

from rearrange.apartments.floor_grid import interpolate
from rearrange.compiled import njit

STRIDE_M = 0.01  # a motion is made of strides this long
GAIN = 0.3  # share of a step forward that has to bring the agent nearer
TURN_COSTS_M = 0.02  # what a turn counts as beside a blocked way


@njit(cache=True, nogil=True)
def drive(free, cell, x, y, dx, dy, slide):
    """Where a motion from a free point (m) ends, and whether something blocked it: -> x, y, blocked. `slide`: along what blocks it,
    cell side by cell side; else it ends there.
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
    """How many turns (of `turn` rad, to the left) come before the next step forward (m) on the way to a goal: those to the next corner
    of the shortest way, or where that is blocked those after which a step leads nearest.
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

"""A way for the base around an obstacle that only the whole robot shows: best-first search over its poses."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable

from rearrange.home.geometry import PlanePose, wrap_angle

_STEP_M, _TURN_RAD = 0.12, math.radians(20)
_CELL_M, _CELL_RAD = 0.12, math.radians(20)
_GREED = 2.0  # what is left counts so often: with 1.5 ways are a twentieth shorter, and the search takes twice as long
# Straight on and back, turns on the spot, and curves: (metres, radians).
_MOVES = tuple((m * _STEP_M, a * _TURN_RAD) for m in (1, -1, 0) for a in (0, 1, -1) if m or a)


def search(start: PlanePose, free: Callable[[PlanePose], bool], reached: Callable[[PlanePose], bool],
           left_m: Callable[[PlanePose], float], speeds: tuple[float, float],
           limit: int = 5000) -> list[PlanePose] | None:
    """Poses of the base, each a small move after the last, to the first one that is a goal; None if none is found.

    Args:
        start: pose (x, y, yaw) where the way begins; it is left out of the result.
        free: whether the robot can stand at a pose.
        reached: whether a pose is a goal.
        left_m: gives at least how many metres are left from a pose.
        speeds: of the base, m/s and rad/s.
        limit: poses that are looked at.
    """
    moves = [(metres, turn, max(abs(metres) / speeds[0], abs(turn) / speeds[1]) + 0.1 * (abs(metres) + abs(turn)))
             for metres, turn in _MOVES]
    queue = [(0.0, 0, 0.0, start)]
    parent: dict[PlanePose, PlanePose | None] = {start: None}
    quickest, closed = {_cell(start): 0.0}, set()
    while queue and len(closed) < limit:
        _, _, cost, pose = heapq.heappop(queue)
        key = _cell(pose)
        if key in closed:
            continue
        closed.add(key)
        if pose is not start and not (free(pose) and free(_between(parent[pose], pose))):
            continue
        if reached(pose):
            return _way(pose, parent)
        for metres, turn, seconds in moves:
            middle = pose[2] + turn / 2
            x, y = pose[0] + metres * math.cos(middle), pose[1] + metres * math.sin(middle)
            after = (x, y, wrap_angle(pose[2] + turn))
            key, later = _cell(after), cost + seconds
            if key in closed or later >= quickest.get(key, math.inf):
                continue
            quickest[key], parent[after] = later, pose
            heapq.heappush(queue, (later + _GREED * left_m(after) / speeds[0], len(parent), later, after))
    return None


def _between(a: PlanePose, b: PlanePose) -> PlanePose:
    """Half of the way: a turn moves the hand farther than the room that is kept."""
    return (a[0] + b[0]) / 2, (a[1] + b[1]) / 2, a[2] + wrap_angle(b[2] - a[2]) / 2


def _cell(pose: PlanePose) -> tuple[int, int, int]:
    return round(pose[0] / _CELL_M), round(pose[1] / _CELL_M), round(pose[2] / _CELL_RAD)


def _way(pose: PlanePose, parent: dict[PlanePose, PlanePose | None]) -> list[PlanePose]:
    way = [pose]
    while (before := parent[way[-1]]) is not None:
        way.append(before)
    return way[-2::-1]

"""A way for the base around an obstacle that only the whole robot shows: best-first search over its poses."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable

from rearrange.home.geometry import wrap_angle
from skills.experts.motion import Pose2

_STEP_M, _TURN_RAD = 0.12, math.radians(20)
_CELL_M, _CELL_RAD = 0.12, math.radians(20)
_GREED = 2.0  # what is left counts so often: with 1.5 ways are a twentieth shorter, and the search takes twice as long
# Straight on and back, turns on the spot, and curves: (metres, radians).
_MOVES = tuple((m * _STEP_M, a * _TURN_RAD) for m in (1, -1, 0) for a in (0, 1, -1) if m or a)


def search(start: Pose2, free: Callable[[Pose2], bool], reached: Callable[[Pose2], bool],
           left_m: Callable[[Pose2], float], speeds: tuple[float, float], limit: int = 5000) -> list[Pose2] | None:
    """Poses from `start` (left out) to the first that is `reached`, each a small move after the last; None if none is
    found within `limit` poses.

    `left_m`: at least so many metres are left. `speeds`: of the base, m/s and rad/s.
    """
    moves = [(metres, turn, max(abs(metres) / speeds[0], abs(turn) / speeds[1]) + 0.1 * (abs(metres) + abs(turn)))
             for metres, turn in _MOVES]
    queue = [(0.0, 0, 0.0, start)]
    parent: dict[Pose2, Pose2 | None] = {start: None}
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


def _between(a: Pose2, b: Pose2) -> Pose2:
    """Half of the way: a turn moves the hand farther than the room that is kept."""
    return (a[0] + b[0]) / 2, (a[1] + b[1]) / 2, a[2] + wrap_angle(b[2] - a[2]) / 2


def _cell(pose: Pose2) -> tuple[int, int, int]:
    return round(pose[0] / _CELL_M), round(pose[1] / _CELL_M), round(pose[2] / _CELL_RAD)


def _way(pose: Pose2, parent: dict[Pose2, Pose2 | None]) -> list[Pose2]:
    way = [pose]
    while (before := parent[way[-1]]) is not None:
        way.append(before)
    return way[-2::-1]

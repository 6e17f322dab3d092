"""Where a spectator stands who watches a robot: on the side from which its hand is seen, nearer while the hand works.

World frame, z up, metres; one call for each step of 1/30 s.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from rearrange.home.plane_geometry import wrap_angle

SIDES_RAD = tuple(math.radians(degrees) for degrees in (136, -136, 95, -95, 55, -55))
"""Around the robot from its heading, left positive; of sides that see the hand as well, the first is taken."""
BETTER = 0.3  # of the sight lines to the hand: another side is taken when so many more are free there ...
PATIENCE = 15  # ... for so many steps
FAR_M, NEAR_M = (2.1, 2.3), (1.35, 1.75)  # floor distance and height while the robot drives, and while the hand works
TURN, MOST_TURN_RAD, SHIFT, APPROACH = 0.06, 0.04, 0.12, 0.03  # shares of what is left that are made up in a step
WORKING_M, DRIVING_M = 0.002, 0.008  # motion in a step at which the hand works, and of the base at which it stops
AHEAD_M, LOOK_AT_M = 0.45, 0.75  # what is looked at while the robot drives
_AROUND_M = 0.1 * np.array([(0, 0, 0), (1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1)])
_TRUNK_M, _TRUNK_BACK_M, _TRUNK_TOP_M = 0.19, 0.06, 1.3  # the robot's own torso and head as a column

Blocked = Callable[[Sequence[float], Sequence[float]], bool]


class SpectatorCamera:
    """Follows one robot through an episode; a new one at the next."""

    def __init__(self) -> None:
        self.side = 0  # of SIDES_RAD
        self._patience = 0
        self._near = 0.0  # 0: as far as while driving, 1: as near as while the hand works
        self._angle: float | None = None  # of the eye around the robot, world
        self._works = False

    def follow(self, base_pose: Sequence[float], hand: Sequence[float],
               blocked: Blocked) -> tuple[np.ndarray, np.ndarray]:
        """Eye and target (world, m).

        Args:
            base_pose: x, y (m), yaw (rad).
            hand: The end-effector.
            blocked: Whether something stands on the straight line between two points.
        """
        x, y, yaw = (float(value) for value in base_pose)
        hand = np.asarray(hand, float)
        base, reach = np.array([x, y]), self._in_base(hand, x, y, yaw)
        first = self._angle is None
        if not first:
            driven, moved = float(np.linalg.norm(base - self._base)), float(np.linalg.norm(reach - self._reach))
            self._works = driven < DRIVING_M and (self._works or moved > WORKING_M)
        self._base, self._reach = base, reach
        self._near += APPROACH * (self._works - self._near)
        self._choose_side(base_pose, hand, blocked, first)
        goal = yaw + SIDES_RAD[self.side]
        if first:
            self._angle = goal
        else:
            self._angle += float(np.clip(TURN * wrap_angle(goal - self._angle), -MOST_TURN_RAD, MOST_TURN_RAD))
        target = self._target(x, y, yaw, hand)
        middle = base + 0.5 * self._near * (hand[:2] - base)
        self._middle, self._at = (middle, target) if first else (
            self._middle + SHIFT * (middle - self._middle), self._at + SHIFT * (target - self._at))
        return self._eye(self._middle, self._angle), self._at.copy()

    @staticmethod
    def _in_base(point: np.ndarray, x: float, y: float, yaw: float) -> np.ndarray:
        c, s, dx, dy = math.cos(yaw), math.sin(yaw), point[0] - x, point[1] - y
        return np.array([c * dx + s * dy, c * dy - s * dx, point[2]])

    def _target(self, x: float, y: float, yaw: float, hand: np.ndarray) -> np.ndarray:
        ahead = np.array([x + AHEAD_M * math.cos(yaw), y + AHEAD_M * math.sin(yaw), LOOK_AT_M])
        return ahead + 0.7 * self._near * (hand - ahead)

    def _eye(self, middle: np.ndarray, angle: float) -> np.ndarray:
        distance, height = np.array(FAR_M) + self._near * np.subtract(NEAR_M, FAR_M)
        return np.array([middle[0] + distance * math.cos(angle), middle[1] + distance * math.sin(angle), height])

    def _choose_side(self, base_pose: Sequence[float], hand: np.ndarray, blocked: Blocked, at_once: bool) -> None:
        """Take the side from which most of the hand is seen, if that has been so for a while."""
        hidden = [self._hidden(side, base_pose, hand, blocked) for side in range(len(SIDES_RAD))]
        best = int(np.argmin(hidden))
        self._patience = self._patience + 1 if hidden[best] <= hidden[self.side] - BETTER else 0
        if self._patience > PATIENCE or at_once:
            self.side, self._patience = best, 0

    def _hidden(self, side: int, base_pose: Sequence[float], hand: np.ndarray, blocked: Blocked) -> float:
        """Share of the sight lines to the hand in whose way something stands, the robot itself among it."""
        x, y, yaw = base_pose
        base = np.array([x, y])
        eye = self._eye(base + 0.5 * self._near * (hand[:2] - base), yaw + SIDES_RAD[side])
        trunk = base - _TRUNK_BACK_M * np.array([math.cos(yaw), math.sin(yaw)])
        return sum(passes_column(eye, point, trunk) or blocked(tuple(eye), tuple(point)) for point in hand
                   + _AROUND_M) / len(_AROUND_M)


def passes_column(start: np.ndarray, end: np.ndarray, middle: np.ndarray, radius_m: float = _TRUNK_M,
                  top_m: float = _TRUNK_TOP_M) -> bool:
    """Whether the line between two points (3,) crosses an upright column at `middle` (2,) from the floor to `top_m`."""
    way, offset = end - start, start[:2] - middle
    a, b, c = float(way[:2] @ way[:2]), float(offset @ way[:2]), float(offset @ offset) - radius_m**2
    if a < 1e-12:
        return c < 0.0 and min(start[2], end[2]) < top_m
    root = b * b - a * c
    if root <= 0.0:
        return False
    enter, leave = max(0.0, (-b - math.sqrt(root)) / a), min(1.0, (-b + math.sqrt(root)) / a)
    return enter < leave and min(start[2] + enter * way[2], start[2] + leave * way[2]) < top_m

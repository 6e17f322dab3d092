"""Whether a base makes progress, by odometry: an obstacle is often too low, or too near, for the head camera."""

from __future__ import annotations

import math
from collections import deque

from rearrange.home.geometry import PlanePose, wrap_angle


class Progress:
    """The last `steps` steps of a drive. It is held up unless it moves by `least_m` or turns by `least_rad`."""

    def __init__(self, steps: int, least_m: float, least_rad: float = math.inf) -> None:
        self._poses: deque[PlanePose] = deque(maxlen=steps + 1)
        self._commands: deque[float] = deque(maxlen=steps)
        self._least_m, self._least_rad = least_m, least_rad

    def step(self, pose: PlanePose, forward: float) -> None:
        """Note where the base is after one more step, and its command: -1 backwards .. 1 forwards."""
        self._poses.append(pose)
        self._commands.append(forward)

    @property
    def held_up(self) -> bool:
        (x, y, yaw), poses = self._poses[-1], self._poses
        return len(poses) == poses.maxlen and all(
            math.dist((x, y), (px, py)) < self._least_m and abs(wrap_angle(yaw - before)) < self._least_rad
            for px, py, before in poses)

    @property
    def way_out(self) -> float:
        """The direction opposite to the drive, where there is room: -1 backwards, 1 forwards."""
        return 1.0 if sum(self._commands) < 0.0 else -1.0

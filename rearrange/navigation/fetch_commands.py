"""Actions of navigation tasks as commands of the Fetch's base, -1..1, one for each 1/30 s."""

from __future__ import annotations

import math

from rearrange.home.geometry import PlanePose, wrap_angle
from rearrange.home.simulation.simulator_interface import STEP_S, SimulatorConfig

_PATIENCE = 3  # times as long as an action should take it may take, when something holds the robot up
_LATE = 0.5  # share of a step's motion that counts as done


class CarriedOut:
    """A step ahead or a turn, at the base's speeds, until odometry says that it is done. ahead_m, turn_rad: one of them is 0. repeat: steps of 1/30 s for which a command holds."""

    def __init__(self, limits: SimulatorConfig, pose: PlanePose, ahead_m: float, turn_rad: float,
                 repeat: int = 1) -> None:
        x, y, yaw = pose
        self._speed_m, self._turn_rad = (speed * STEP_S * repeat
                                         for speed in (limits.base_speed_m_s, limits.base_turn_rad_s))  # of a command
        self._drives = bool(ahead_m)
        self._to = (x + ahead_m * math.cos(yaw), y + ahead_m * math.sin(yaw), wrap_angle(yaw + turn_rad))
        self._left = math.ceil(_PATIENCE * (ahead_m / self._speed_m + abs(turn_rad) / self._turn_rad))

    def command(self, pose: PlanePose) -> tuple[float, float]:
        """Forward and turning command of the base, -1..1, until the next."""
        self._left -= 1
        turn_left = wrap_angle(self._to[2] - pose[2])
        ahead = min(max(self._ahead_left_m(pose) / self._speed_m, 0.0), 1.0) if self._drives else 0.0
        return ahead, min(max(turn_left / self._turn_rad, -1.0), 1.0)

    def is_done(self, pose: PlanePose) -> bool:
        """Whether the base is there, or something has held it up for too long."""
        if self._left <= 0:
            return True
        if self._drives:
            return self._ahead_left_m(pose) < _LATE * self._speed_m
        return abs(wrap_angle(self._to[2] - pose[2])) < _LATE * self._turn_rad

    def _ahead_left_m(self, pose: PlanePose) -> float:
        return math.cos(self._to[2]) * (self._to[0] - pose[0]) + math.sin(self._to[2]) * (self._to[1] - pose[1])


class Held:
    """A velocity, for some steps of 1/30 s."""

    def __init__(self, speeds: tuple[float, float], steps: int) -> None:
        self._speeds, self._left = speeds, steps

    def command(self, pose: PlanePose) -> tuple[float, float]:
        """As of `CarriedOut`."""
        self._left -= 1
        return self._speeds

    def is_done(self, pose: PlanePose) -> bool:
        """Whether that was the last step."""
        return self._left <= 0

"""Who drives in a navigation task: what its actions mean, and how they move it. There are `cylinder` and
`robot_agent`.

Actions are Habitat's: stop 0, forward 1, turn left 2, turn right 3. With `nav.actions=velocity` they are two numbers in
[-1, 1], a forward and a turning speed. Each agent says how fast they are. Both near rest mean stop, as in habitat-lab.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np

from rearrange.home.geometry import PlanePose, wrap_angle
from rearrange.home.simulation.simulator_interface import STEP_S, SimulatorConfig
from rearrange.navigation.settings import NavigationConfig

if TYPE_CHECKING:
    from rearrange.navigation.env import NavigationEnv

ACTIONS = ("stop", "forward", "left", "right")
STOP, FORWARD, LEFT, RIGHT = range(len(ACTIONS))
STILL = 0.1  # share of full speed under which a velocity counts as none; both: stop
_PATIENCE = 3  # times as long as an action should take it may take, when something holds the robot up
_LATE = 0.5  # share of a step's motion that counts as done


class NavAgent(ABC):
    """The agent of one environment, whose `pose`, `commanded`, `driven_m`, `collisions` and `path` it keeps.

    failures: how an episode can end because of it. broken: the episode has to end now. actions_per_s: for videos.
    """

    failures: tuple[str, ...] = ()
    broken = False
    actions_per_s: float = 10

    def __init__(self, task: str, config: NavigationConfig) -> None:
        self._task, self.config = task, config
        self.turn_rad = math.radians(config.turn_deg)
        self.is_discrete = config.actions == "discrete"
        self.action_space = action_space(config)
        self._commands = {STOP: (0.0, 0.0), FORWARD: (config.forward_m, 0.0),
                          LEFT: (0.0, self.turn_rad), RIGHT: (0.0, -self.turn_rad)}

    def begin(self, env: NavigationEnv) -> None:
        """An episode begins, at the pose of `env`."""

    def command(self, action: Any) -> tuple[float, float]:
        """What an action means, for `move`: metres ahead and radians to the left, or speeds; both 0: stop."""
        if self.is_discrete:
            number = np.asarray(action)
            if number.ndim or number.dtype.kind not in "iu" or int(number) not in self._commands:
                raise ValueError(f"an action of {self._task} is a number from 0 to 3 ({', '.join(ACTIONS)}), "
                                 f"not {action!r}.")
            return self.metres_and_radians(int(number))
        given = np.asarray(action)
        if given.shape != (2,) or given.dtype.kind not in "fiu" or not np.isfinite(given).all():
            raise ValueError(f"an action of {self._task} is two finite numbers, shape (2,), not {action!r}.")
        return self.speeds(*(min(max(float(value), -1.0), 1.0) for value in given))

    def metres_and_radians(self, number: int) -> tuple[float, float]:
        """What a discrete action is: metres ahead, radians to the left."""
        return self._commands[number]

    @abstractmethod
    def speeds(self, speed: float, turn: float) -> tuple[float, float]:
        """What a velocity means, for `move`; both numbers are in [-1, 1]."""

    @abstractmethod
    def move(self, env: NavigationEnv, ahead: float, turn: float) -> None:
        """Carry out a command."""


def action_space(config: NavigationConfig) -> gymnasium.Space:
    """That of either agent."""
    return gymnasium.spaces.Discrete(
        4) if config.actions == "discrete" else gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)


def limited(speed: float, turn: float) -> tuple[float, float]:
    """A velocity of a robot as a command of its base, -1..1; both 0, which is stop, where both are nearly."""
    speed, turn = (min(max(float(value), -1.0), 1.0) for value in (speed, turn))
    return (0.0, 0.0) if abs(speed) < STILL and abs(turn) < STILL else (speed, turn)


def moved(pose: PlanePose, ahead: float, right: float = 0.0, turn: float = 0.0) -> PlanePose:
    """A pose after a turn (rad, to the left) and a way ahead and to the right (m)."""
    x, y, yaw = pose[0], pose[1], wrap_angle(pose[2] + turn)
    c, s = math.cos(yaw), math.sin(yaw)
    return x + c * ahead + s * right, y + s * ahead - c * right, yaw


class CarriedOut:
    """A step ahead or a turn, at the base's speeds, until odometry says that it is done.

    Args:
        ahead_m, turn_rad: One of them is 0.
        repeat: Steps of 1/30 s for which a command holds.
    """

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

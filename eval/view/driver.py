"""A person as an agent: the page's buttons, keys and mouse become actions, with the kinematics of the experts.

While nothing is asked for, the driver is idle and time stands still: nobody runs into a time limit while thinking.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from rearrange.home.action_layout import action_size
from rearrange.home.simulation.simulator_interface import Simulator
from skills.experts.arm_model import arm_model
from skills.experts.motion import at_pose, drive, follow, still

HOLD_STEPS = 8  # of the simulator, for which one press of a key or button holds
BRAKE_STEPS = 12  # in which the base comes to rest
GRIP_STEPS = 3  # in which the hand takes hold or lets go
HAND_STEP_M = 0.02  # of one press
ARRIVED_RAD = 0.01
IK_ITERATIONS = 120
# Held up: less progress (m and rad together) than this in so many steps.
HELD_UP_STEPS, HELD_UP = 15, 0.004
BASE_SPEED = 0.6  # of the fastest, driving to a point
FACINGS = {"down": (0.0, 0.0, -1.0), "ahead": (1.0, 0.0, 0.0)}
"""Where the hand can be made to face, base frame."""


class Driver:
    """What is asked for, and the actions that carry it out. grips: whether the hand holds on."""

    def __init__(self) -> None:
        self.grips = False
        self.halt()

    def begin(self, sim: Simulator) -> None:
        """An episode begins."""
        self.halt()
        self.grips = sim.is_holding

    def halt(self) -> None:
        """Forget everything that is under way."""
        self._base, self._base_left = (0.0, 0.0), 0
        self._goal: tuple[float, float, float] | None = None
        self._posture: np.ndarray | None = None  # joint angles that put the hand where it shall be
        self.note = ""  # what cannot be done
        self._wait = 0
        self._calls_stop = False
        self._trail: list[tuple[float, ...]] = []

    # ------------------------------------------------------------------ what is asked for

    def drive(self, forward: float, turn: float) -> None:
        """Base speeds from -1 to 1 for HOLD_STEPS, forward and to the left; pressed again, for as long again."""
        self._goal = None
        self._base, self._base_left = (forward, turn), HOLD_STEPS

    def drive_to(self, sim: Simulator, x: float, y: float) -> None:
        """To a point of the floor (world, m), facing the way it came, as long as nothing holds it up."""
        self._base_left, self._trail = 0, []
        self._goal = (x, y, math.atan2(y - sim.base_pose[1], x - sim.base_pose[0]))

    def move_hand(self, sim: Simulator, forward_m: float, left_m: float, up_m: float) -> None:
        """The hand by this much, base frame, facing as it does."""
        tip, facing = self._hand(sim)
        self._reach(sim, tip + (forward_m, left_m, up_m), facing)

    def hand_to(self, sim: Simulator, point: tuple[float, float, float]) -> None:
        """The tip of the cup to a point (world, m), facing as it does."""
        self._reach(sim, np.array(sim.to_base(point)), self._hand(sim)[1])

    def face(self, sim: Simulator, axis: tuple[float, float, float]) -> None:
        """Turn the cup, where it is, to face along an axis of the base frame."""
        self._reach(sim, self._hand(sim)[0], np.array(axis))

    def _hand(self, sim: Simulator) -> tuple[np.ndarray, np.ndarray]:
        """The place the hand is on its way to, and the direction of the cup there, base frame."""
        arm = arm_model(sim.robot)
        arm.set(sim.arm_targets() if self._posture is None else self._posture)
        return arm.tip.copy(), arm.facing.copy()

    def _reach(self, sim: Simulator, point: np.ndarray, axis: np.ndarray) -> None:
        """Take the nearest posture that faces along the axis, else one that faces elsewhere; else the hand stays."""
        arm = arm_model(sim.robot)
        near = sim.arm_targets().copy() if self._posture is None else self._posture
        for facing, begin in ((axis, near), (axis, arm.start), (None, near), (None, arm.start)):
            found = arm.ik(point, facing, begin, near=near, tolerance_m=0.002, tolerance_rad=0.05,
                           iterations=IK_ITERATIONS)
            if found is not None:
                self._posture, self._trail, self.note = found, [], ""
                return
        self.note = "out of the hand's reach"

    def grip(self, on: bool) -> None:
        """The hand holds on, or lets go."""
        self.grips, self._wait = on, GRIP_STEPS

    def call_stop(self) -> None:
        """The action's stop: the end of Navigate, or of a scenario."""
        self._calls_stop = True

    @property
    def is_busy(self) -> bool:
        """Whether anything is under way."""
        return bool(self._base_left or self._goal or self._posture is not None or self._wait or self._calls_stop)

    # ------------------------------------------------------------------ what is done

    def action(self, sim: Simulator, parts: Mapping[str, slice]) -> np.ndarray:
        """The next action, of these parts."""
        values = {"arm": self._arm(sim), "base": self._base_command(sim), "grip": [1.0 if self.grips else -1.0],
                  "stop": [1.0 if self._calls_stop else -1.0]}
        if self._held_up(sim):
            self._posture = self._goal = None
            self.note = "held up"
        self._wait, self._calls_stop = max(0, self._wait - 1), False
        action = np.zeros(action_size(sim.robot, tuple(parts)), np.float32)
        for name, part in parts.items():
            action[part] = values[name]
        return np.clip(action, -1.0, 1.0)

    def _arm(self, sim: Simulator) -> np.ndarray:
        if self._posture is None:
            return still(sim)
        command = follow(sim, self._posture)
        asked, there = (np.abs(self._posture - joints).max() for joints in (sim.arm_targets(), sim.arm_positions()))
        if asked < 1e-6 and there < ARRIVED_RAD:
            self._posture = None
        return command

    def _base_command(self, sim: Simulator) -> tuple[float, float]:
        if self._goal is not None:
            if not at_pose(sim, self._goal):
                return drive(sim, self._goal, reverse=False, speed=BASE_SPEED)
            self._goal = None
            self._wait = BRAKE_STEPS
        if not self._base_left:
            return 0.0, 0.0
        self._base_left -= 1
        self._wait = BRAKE_STEPS
        return self._base

    def _held_up(self, sim: Simulator) -> bool:
        """Whether the hand, or the base on its way to a point, has made no progress for a while."""
        if self._posture is None and self._goal is None:
            return False
        self._trail.append((*sim.base_pose, *sim.arm_positions().tolist()))
        recent = self._trail[-1 - HELD_UP_STEPS:]
        return len(recent) > HELD_UP_STEPS and math.dist(recent[0], recent[-1]) < HELD_UP

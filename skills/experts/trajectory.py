"""A planned motion: where base and arm are to be at every step, and the commands that keep them there."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rearrange.geometry import wrap_angle
from rearrange.simulator import STEP_S

if TYPE_CHECKING:
    from rearrange.simulator import Simulator, SimulatorConfig
    from skills.experts.motion import Pose2

_CRUISE = 0.9  # of the fastest: the rest is for corrections
_BRAKE_M_S2, _BRAKE_RAD_S2 = 2.5, 8.0  # what the motors of the base can do without sliding past
_LATE_M, _LATE_RAD = 0.06, 0.10  # farther behind the plan than this, the plan waits
_PATIENCE = 20  # steps that it waits in all


@dataclass(frozen=True)
class Motion:
    """References at every step: `base` (n, 3) world poses, `arm` (n, 7) joint angles; the first is the next step."""

    base: np.ndarray
    arm: np.ndarray

    def __len__(self) -> int:
        return len(self.base)

    def then(self, other: Motion) -> Motion:
        """This one, and the other after it."""
        return Motion(np.concatenate([self.base, other.base]), np.concatenate([self.arm, other.arm]))


def move(config: SimulatorConfig, start: tuple[Pose2, np.ndarray], goal: tuple[Pose2, np.ndarray], *,
         base_last: bool = False, joints: str = "even", base_speed: float = 1.0) -> Motion:
    """From one place and posture to another: the base turns, drives straight and turns while the arm moves.

    Where the arm takes longer, the base moves first, or waits and moves last. `joints`: "even" all joints move all
    along, "early" each one moves at full speed and then rests, "late" the other way round. None takes more time.
    """
    base = _base_path(config, start[0], goal[0], base_speed)
    delta = np.asarray(goal[1]) - start[1]
    step = config.max_joint_delta_rad
    n = math.ceil(float(np.abs(delta).max()) / step - 1e-6)
    n = max(n, len(base), 1)
    if base_last:
        base = np.concatenate([np.tile(start[0], (n - len(base), 1)), base])
    else:
        base = np.concatenate([base, np.tile(goal[0], (n - len(base), 1))])
    passed = np.arange(1, n + 1)[:, None]
    if joints == "early":
        arm = start[1] + np.clip(delta, -step * passed, step * passed)
    elif joints == "late":
        arm = np.asarray(goal[1]) - np.clip(delta, -step * (n - passed), step * (n - passed))
    else:
        arm = start[1] + passed / n * delta
    return Motion(base, arm)


def _base_path(config: SimulatorConfig, start: Pose2, goal: Pose2, speed: float) -> np.ndarray:
    """Poses (n, 3) of the base step by step."""
    distance = math.hypot(goal[0] - start[0], goal[1] - start[1])
    poses, yaw = [np.zeros((0, 3))], start[2]
    if distance > 0.005:
        way = math.atan2(goal[1] - start[1], goal[0] - start[0])
        if abs(wrap_angle(way - yaw)) > math.pi / 2:  # drive backwards
            way += math.pi
        turn = wrap_angle(way - yaw)
        poses.append(_turn((start[0], start[1], yaw), turn, config.base_turn_rad_s))
        yaw += turn
        shares = _profile(distance, speed * _CRUISE * config.base_speed_m_s, _BRAKE_M_S2)
        line = np.empty((len(shares), 3))
        line[:, 0], line[:, 1] = start[0] + shares * (goal[0] - start[0]), start[1] + shares * (goal[1] - start[1])
        line[:, 2] = yaw
        poses.append(line)
    poses.append(_turn((goal[0], goal[1], yaw), wrap_angle(goal[2] - yaw), config.base_turn_rad_s))
    return np.concatenate(poses)


def _turn(pose: Pose2, angle_rad: float, fastest_rad_s: float) -> np.ndarray:
    """Poses (n, 3) of a turn on the spot."""
    shares = _profile(abs(angle_rad), _CRUISE * fastest_rad_s, _BRAKE_RAD_S2)
    return np.column_stack([np.full(len(shares), pose[0]), np.full(len(shares), pose[1]), pose[2] + shares * angle_rad])


def _profile(distance: float, speed: float, brake: float) -> np.ndarray:
    """Shares of a way done after each step, (n,): speeding up and braking evenly. Empty for no way."""
    if distance < 1e-4:
        return np.zeros(0)
    top = min(speed, math.sqrt(distance * brake))
    ramp_s = top / brake
    total_s = distance / top + ramp_s
    n = max(1, math.ceil(total_s / STEP_S))
    t = np.arange(1, n + 1) * (total_s / n)
    up, down = 0.5 * brake * np.minimum(t, ramp_s) ** 2, 0.5 * brake * np.maximum(t - (total_s - ramp_s), 0.0) ** 2
    return np.minimum((up + top * np.maximum(t - ramp_s, 0.0) - down) / distance, 1.0)


class Follower:
    """Gives the commands that follow a motion; waits where the robot falls behind."""

    def __init__(self, sim: Simulator, motion: Motion) -> None:
        self.sim, self.motion = sim, motion
        self.at = 0
        self._waited = 0

    @property
    def done(self) -> bool:
        return self.at >= len(self.motion)

    @property
    def stuck(self) -> bool:
        """The robot has not followed for longer than the plan can wait."""
        return self._waited > _PATIENCE

    def command(self) -> tuple[np.ndarray, tuple[float, float]]:
        """Arm (7,) and base (2) command of the next step."""
        sim, i = self.sim, min(self.at, len(self.motion) - 1)
        reference, before = self.motion.base[i], self.motion.base[max(i - 1, 0)]
        arm = (self.motion.arm[i] - sim.arm_targets()) / sim.config.max_joint_delta_rad
        arm /= max(1.0, float(np.abs(arm).max()))
        x, y, yaw = sim.base_pose
        cos, sin = math.cos(yaw), math.sin(yaw)
        ahead = cos * (reference[0] - x) + sin * (reference[1] - y)
        left = cos * (reference[1] - y) - sin * (reference[0] - x)
        late = math.hypot(ahead, left) > _LATE_M or np.abs(self.motion.arm[i] - sim.arm_positions()).max() > _LATE_RAD + 0.05
        if late and self._waited <= _PATIENCE:
            self._waited += 1
            before = reference
        else:
            self.at += 1
        forward = math.cos(reference[2]) * (reference[0] - before[0]) + math.sin(reference[2]) * (reference[1] - before[1])
        turn = reference[2] - before[2]
        # What the plan moves in this step, and a share of what is missing from before it.
        speed = (forward + 0.25 * (ahead - forward)) / STEP_S
        swing = (turn + 0.3 * (wrap_angle(reference[2] - yaw) - turn)) / STEP_S + 4.0 * left * np.sign(forward) * min(1.0, abs(forward) / 0.01)
        return arm, (_unit(speed / sim.config.base_speed_m_s), _unit(swing / sim.config.base_turn_rad_s))


def _unit(value: float) -> float:
    return float(min(max(value, -1.0), 1.0))

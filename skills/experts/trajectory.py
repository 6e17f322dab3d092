"""A planned motion: where base and arm are to be at every step, and the commands that keep them there."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from rearrange.home.geometry import PlanePose, rotate, to_frame, wrap_angle
from rearrange.home.simulation.simulator_interface import STEP_S, Simulator, SimulatorConfig
from skills.experts.motion import limited

Configuration = tuple[PlanePose, np.ndarray]
"""The pose of the robot's base (world) and the posture of its arm (joints,)."""

_CRUISE = 0.9  # of the fastest: the rest is for corrections
_BRAKE_M_S2, _BRAKE_RAD_S2 = 2.5, 8.0  # what the motors of the base can do without sliding past
ARM_LAG = 2.5  # steps, at a steady speed
_LATE_M, _LATE_RAD = 0.06, 0.10  # farther behind the plan than this, the plan waits
_PATIENCE = 20  # steps that it waits in all


@dataclass(frozen=True)
class Motion:
    """Where the robot shall be at every step: `base` (n, 3) world poses, `arm` (n, joints) postures."""

    base: np.ndarray
    arm: np.ndarray

    def __len__(self) -> int:
        return len(self.base)

    def real(self, i: int) -> Configuration:
        """Where the robot will be at step i: the arm follows its motors a little later than the base."""
        if i == len(self) - 1:
            return self.base[i], self.arm[i]
        before = max(i - ARM_LAG, 0.0)
        k, share = int(before), before % 1.0
        return self.base[i], self.arm[k] if share == 0.0 else (1.0 - share) * self.arm[k] + share * self.arm[k + 1]

    def then(self, other: Motion) -> Motion:
        """This motion, and the other after it."""
        return Motion(np.concatenate([self.base, other.base]), np.concatenate([self.arm, other.arm]))


def back_from(pose: PlanePose, way_m: float) -> PlanePose:
    """The pose `way_m` behind another."""
    return pose[0] - way_m * math.cos(pose[2]), pose[1] - way_m * math.sin(pose[2]), pose[2]


def move(sim: Simulator, start: Configuration, goal: Configuration, *, base_last: bool = False,
         joints: str = "even", speed: float = 1.0) -> Motion:
    """From one configuration to another: the base turns, drives straight and turns while the arm moves.

    Args:
        base_last: where the arm takes longer, the base waits and moves last; else it moves first.
        joints: "even" = all joints move all the time; "early" = each joint moves at full speed and then rests; "late" =
            each joint rests and then moves. None of them takes more time.
        speed: 0..1 of the fastest.
    """
    base = _base_path(sim.config.base_speed_m_s, sim.config.base_turn_rad_s, start[0], goal[0], speed)
    (_, start_rad), (_, goal_rad) = start, goal
    delta, step = goal_rad - start_rad, speed * sim.robot.arm.delta
    n = max(math.ceil(float((np.abs(delta) / step).max()) - 1e-6), len(base) - 1, 1)
    waiting = np.empty((n - len(base) + 1, 3))
    if base_last:
        waiting[:] = base[0]
        base = np.concatenate([waiting, base[1:]])
    else:
        waiting[:] = base[-1]
        base = np.concatenate([base[1:], waiting])
    passed = np.arange(1.0, n + 1.0)[:, None]
    if joints == "early":
        arm = start_rad + np.clip(delta, -step * passed, step * passed)
    elif joints == "late":
        arm = goal_rad - np.clip(delta, -step * (n - passed), step * (n - passed))
    else:
        arm = start_rad + passed / n * delta
    return Motion(base[:n], arm)


def variants(sim: Simulator, start: Configuration, goal: Configuration) -> Iterator[Motion]:
    """`move` in every way that takes the same time."""
    for joints in ("even", "late", "early"):
        for base_last in (False, True):
            yield move(sim, start, goal, base_last=base_last, joints=joints)


@lru_cache(maxsize=4)  # `variants` asks for one several times
def _base_path(speed_m_s: float, turn_rad_s: float, start: PlanePose, goal: PlanePose, share: float) -> np.ndarray:
    """Poses (1 + n, 3) of the base: the start, then one for each step. share: of the fastest speed."""
    dx, dy = goal[0] - start[0], goal[1] - start[1]
    distance = math.hypot(dx, dy)
    x, y, yaw = start
    poses = [start]
    if distance > 0.005:
        way = math.atan2(dy, dx)
        if abs(wrap_angle(way - yaw)) > math.pi / 2:  # drive backwards
            way += math.pi
        turn = wrap_angle(way - yaw)
        poses += [(x, y, yaw + done * turn) for done in _turn(turn, turn_rad_s)]
        yaw += turn
        shares = _profile(distance, share * _CRUISE * speed_m_s, _BRAKE_M_S2)
        poses += [(x + done * dx, y + done * dy, yaw) for done in shares]
    turn = wrap_angle(goal[2] - yaw)
    poses += [(goal[0], goal[1], yaw + done * turn) for done in _turn(turn, turn_rad_s)]
    return np.array(poses)


def _turn(angle_rad: float, turn_rad_s: float) -> list[float]:
    """Shares of a turn done after each step."""
    return _profile(abs(angle_rad), _CRUISE * turn_rad_s, _BRAKE_RAD_S2)


def _profile(distance: float, speed: float, brake: float) -> list[float]:
    """Shares of a way done after each step: speeding up and braking evenly. Empty for no way."""
    if distance < 1e-4:
        return []
    top = min(speed, math.sqrt(distance * brake))
    ramp_s = top / brake
    total_s = distance / top + ramp_s
    n = max(1, math.ceil(total_s / STEP_S))
    shares = []
    for k in range(1, n + 1):
        t = k * total_s / n
        up, down = 0.5 * brake * min(t, ramp_s) ** 2, 0.5 * brake * max(t - (total_s - ramp_s), 0.0) ** 2
        shares.append(min((up + top * max(t - ramp_s, 0.0) - down) / distance, 1.0))
    return shares


def along(config: SimulatorConfig, poses: Sequence[PlanePose], arm_rad: np.ndarray,
          shares: Sequence[float] | None = None) -> Motion:
    """Drive through poses with the arm kept still, as fast as the base can.

    It is slower in curves, and stands still where it changes between forwards, backwards and turning.

    Args:
        poses: small moves apart, each of which is straight, curved, or a turn on the spot.
        arm_rad: its posture.
        shares: of the fastest speed, one for each move.
    """
    speed, turn_rate = _CRUISE * config.base_speed_m_s, _CRUISE * config.base_turn_rad_s
    lengths, tops, kinds = [], [], []
    for (x, y, yaw), (x2, y2, yaw2) in zip(poses, poses[1:]):
        metres, turn = math.hypot(x2 - x, y2 - y), wrap_angle(yaw2 - yaw)
        if metres < 1e-3:  # in metres that take as long to brake
            lengths.append(max(abs(turn), 1e-6) * _BRAKE_M_S2 / _BRAKE_RAD_S2)
            tops.append(turn_rate * _BRAKE_M_S2 / _BRAKE_RAD_S2)
            kinds.append(2.0 * np.sign(turn))
        else:
            lengths.append(metres)
            tops.append(min(speed, turn_rate * metres / max(abs(turn), 1e-6)))
            kinds.append(np.sign(to_frame(x2, y2, (x, y, yaw + turn / 2))[0]))  # forwards or backwards
    if shares is not None:
        tops = [top * share for top, share in zip(tops, shares, strict=True)]
    times = np.concatenate([[0.0], np.cumsum(_durations_s(lengths, tops, _speeds(lengths, tops, kinds)))])
    steps = np.arange(1, math.ceil(times[-1] / STEP_S) + 1) * STEP_S
    x, y, yaws = np.transpose(poses)
    base = np.column_stack([np.interp(steps, times, column) for column in (x, y, np.unwrap(yaws))])
    return Motion(base, np.tile(arm_rad, (len(base), 1)))


def _speeds(lengths: Sequence[float], tops: Sequence[float], kinds: Sequence[float]) -> np.ndarray:
    """Speed at each of the n + 1 ends of n moves, as brakes and motors allow; 0 where the kind of move changes."""
    n = len(lengths)
    ends = np.zeros(n + 1)
    for i in range(1, n):
        ends[i] = min(tops[i - 1], tops[i]) if kinds[i - 1] == kinds[i] else 0.0
    for i in range(n):
        ends[i + 1] = min(ends[i + 1], math.sqrt(ends[i] ** 2 + 2 * _BRAKE_M_S2 * lengths[i]))
    for i in range(n - 1, -1, -1):
        ends[i] = min(ends[i], math.sqrt(ends[i + 1] ** 2 + 2 * _BRAKE_M_S2 * lengths[i]))
    return ends


def _durations_s(lengths: Sequence[float], tops: Sequence[float], ends: np.ndarray) -> list[float]:
    """Time that each move takes: speed up, cruise, brake."""
    found = []
    for length, top, v0, v1 in zip(lengths, tops, ends, ends[1:]):
        peak = min(top, math.sqrt((v0 * v0 + v1 * v1) / 2 + _BRAKE_M_S2 * length))
        ramps = (2 * peak * peak - v0 * v0 - v1 * v1) / (2 * _BRAKE_M_S2)
        found.append((2 * peak - v0 - v1) / _BRAKE_M_S2 + max(0.0, length - ramps) / peak)
    return found


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
        """Arm (joints,) and base (2) command of the next step."""
        sim, i = self.sim, min(self.at, len(self.motion) - 1)
        reference, before = self.motion.base[i], self.motion.base[max(i - 1, 0)]
        arm = (self.motion.arm[i] - sim.arm_targets()) / sim.robot.arm.delta
        arm /= max(1.0, float(np.abs(arm).max()))
        ahead, left = to_frame(reference[0], reference[1], sim.base_pose)
        late = abs(ahead) > _LATE_M or np.abs(self.motion.arm[i] - sim.arm_positions()).max() > _LATE_RAD + 0.05
        if late and self._waited <= _PATIENCE:
            self._waited += 1
            before = reference
        else:
            self.at += 1
        forward = rotate(reference[0] - before[0], reference[1] - before[1], -reference[2])[0]
        turn = reference[2] - before[2]
        # What the plan moves in this step, and a share of what is missing from before it.
        speed = (forward + 0.25 * (ahead - forward)) / STEP_S
        swing = ((turn + 0.3 * (wrap_angle(reference[2] - sim.base_pose[2]) - turn)) / STEP_S
                 + 4.0 * left * np.sign(forward) * min(1.0, abs(forward) / 0.01))
        return arm, (limited(speed / sim.config.base_speed_m_s), limited(swing / sim.config.base_turn_rad_s))

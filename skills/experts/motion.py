"""How an expert moves: commands for arm and base that stay within their limits.

Frames: points and directions are in the base frame (x forward, y left, z up, on the floor) unless a name says world.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from rearrange.home.action_layout import ACTION_PARTS
from rearrange.home.geometry import PlanePose, rotate, to_frame, wrap_angle
from rearrange.home.simulation.simulator_interface import STEP_S, Simulator
from skills.experts.arm_model import AXIS_WEIGHT_M, arm_model
from skills.skill import Skill

_STOP_GAIN = 3.5  # 1/s: speed per metre left, so that the base brakes no harder than its motors can
_TURN_GAIN = 5.0  # 1/s
_ALIGNED_RAD = 0.35  # the base drives while it points this well along its way


# ------------------------------------------------------------------ commands

def follow(sim: Simulator, goal_rad: np.ndarray, speed: float = 1.0) -> np.ndarray:
    """Arm command (joints,) straight towards a posture; all joints arrive together. `speed`: 0..1 of the fastest."""
    delta = (np.asarray(goal_rad) - sim.arm_targets()) / sim.robot.arm.delta
    return delta * (speed / max(speed, float(np.abs(delta).max())))


def still(sim: Simulator) -> np.ndarray:
    """Arm command (joints,) that moves nothing."""
    return np.zeros(len(sim.robot.arm.joints))


def servo(sim: Simulator, world_point: np.ndarray, step_m: float = 0.01, axis: np.ndarray | None = None) -> np.ndarray:
    """Arm command (joints,) that moves the hand straight towards a world point, by at most `step_m` in a step.

    With `axis` (3,), a unit vector of the world, the hand also turns to face along it. The hand moves more slowly where
    a joint would have to be faster than it can.
    """
    arm = arm_model(sim.robot)
    arm.set(sim.arm_positions())
    linear, angular = arm.jacobian()
    off = np.array(sim.to_base(tuple(world_point))) - arm.tip
    off *= min(1.0, step_m / max(float(np.linalg.norm(off)), 1e-9))
    if axis is None:
        jacobian, error = linear, off
    else:
        turn = np.cross(arm.facing, turned(axis, -sim.base_pose[2]))
        jacobian = np.vstack([linear, AXIS_WEIGHT_M * angular])
        error = np.concatenate([off, AXIS_WEIGHT_M * np.clip(turn, -0.05, 0.05)])
    damping = 1e-4 * np.eye(len(error))
    dq = jacobian.T @ np.linalg.solve(jacobian @ jacobian.T + damping, error) / sim.robot.arm.delta
    return dq / max(1.0, float(np.abs(dq).max()))


def servo_driving(sim: Simulator, velocity_m_s: np.ndarray, axis: np.ndarray | None = None,
                  turning: bool = False) -> tuple[np.ndarray, tuple[float, float]]:
    """Commands of arm (joints,) and base that move the hand with a velocity (3,), and turn it to face along an axis.

    Both are in the world. The base drives, and turns where it may: with it, an arm of five joints that reaches to the
    side keeps its direction. All are slower where one would have to be faster than it can.
    """
    arm, yaw = arm_model(sim.robot), sim.base_pose[2]
    arm.set(sim.arm_positions())
    linear, angular = arm.jacobian(turning=True)
    most = np.concatenate([[sim.config.base_speed_m_s, sim.config.base_turn_rad_s * turning], sim.robot.arm.delta])
    most[:2] *= STEP_S
    jacobian, error = np.column_stack([(1.0, 0.0, 0.0), linear]) * most, STEP_S * turned(velocity_m_s, -yaw)
    if axis is not None:
        turn = np.clip(np.cross(arm.facing, turned(axis, -yaw)), -0.05, 0.05)
        jacobian = np.vstack([jacobian, AXIS_WEIGHT_M * np.column_stack([np.zeros(3), angular]) * most])
        error = np.concatenate([error, AXIS_WEIGHT_M * turn])
    shares = jacobian.T @ np.linalg.solve(jacobian @ jacobian.T + 1e-8 * np.eye(len(error)), error)
    shares /= max(1.0, float(np.abs(shares).max()))
    return shares[2:], (float(shares[0]), float(shares[1]))


def turned(vector: np.ndarray, yaw_rad: float) -> np.ndarray:
    """A vector (3,) turned about the vertical."""
    return np.array([*rotate(vector[0], vector[1], yaw_rad), vector[2]])


def drive(sim: Simulator, goal: PlanePose, *, near_m: float = 0.02, reverse: bool | None = None,
          speed: float = 1.0) -> tuple[float, float]:
    """Base command (forward, turn) in -1..1 towards a world pose: turn towards it, drive straight, turn to its yaw.

    It keeps no state and looks for no obstacles: call it at every step.

    Args:
        near_m: within this distance of the goal it turns to its yaw.
        reverse: True drives backwards, False forwards, None whichever needs the smaller turn.
        speed: 0..1 of the fastest.
    """
    turn_rad_s = sim.config.base_turn_rad_s
    ahead, left = to_frame(goal[0], goal[1], sim.base_pose)
    left_to_turn = wrap_angle(goal[2] - sim.base_pose[2])
    distance = math.hypot(ahead, left)
    if distance < near_m or (abs(ahead) < near_m and abs(left) < 3 * near_m and abs(left_to_turn) < 0.1):
        forward = limited(_STOP_GAIN * ahead / sim.config.base_speed_m_s, speed)
        return forward, limited(_TURN_GAIN * left_to_turn / turn_rad_s)
    backwards = abs(math.atan2(left, ahead)) > math.pi / 2 if reverse is None else reverse
    sign = -1.0 if backwards else 1.0
    bearing = math.atan2(sign * left, sign * ahead)
    aligned = max(0.0, 1.0 - abs(bearing) / _ALIGNED_RAD)
    forward = sign * min(_STOP_GAIN * distance / sim.config.base_speed_m_s, speed) * aligned
    return limited(forward, speed), limited(_TURN_GAIN * bearing / turn_rad_s)


def at_pose(sim: Simulator, goal: PlanePose, tolerance_m: float = 0.03, tolerance_rad: float = 0.04) -> bool:
    """True when the base stands at a world pose."""
    x, y, yaw = sim.base_pose
    return math.hypot(goal[0] - x, goal[1] - y) < tolerance_m and abs(wrap_angle(goal[2] - yaw)) < tolerance_rad


def drive_steps(sim: Simulator, start: PlanePose, goal: PlanePose) -> float:
    """About how many steps `drive` needs from one pose to another: turn, straight, turn."""
    distance = math.hypot(goal[0] - start[0], goal[1] - start[1])
    turn = abs(wrap_angle(goal[2] - start[2]))
    if distance > 0.02:
        way = math.atan2(goal[1] - start[1], goal[0] - start[0])
        turn = min(abs(wrap_angle(way + back - start[2])) + abs(wrap_angle(goal[2] - way - back))
                   for back in (0.0, math.pi))
    seconds = distance / sim.config.base_speed_m_s + turn / sim.config.base_turn_rad_s
    return seconds / STEP_S + (8.0 if distance > 0.02 else 0.0) + (5.0 if turn > 0.05 else 0.0)


def limited(value: float, limit: float = 1.0) -> float:
    """A value within -limit..limit."""
    return min(max(value, -limit), limit)


def assemble(skill: Skill, command: Mapping[str, Any]) -> np.ndarray:
    """The action that commands these parts, in the order of the skill; parts that it does not own are left out."""
    parts = [np.atleast_1d(command[name]) for name in ACTION_PARTS if name in skill.action_parts]
    return np.clip(np.concatenate(parts), -1.0, 1.0).astype(np.float32)

"""How an expert moves: inverse kinematics of the arm, and commands for arm and base that stay within their limits.

Frames: points and directions are in the base frame (x forward, y left, z up, on the floor) unless a name says world.
The arm moves at most 0.0125 rad a step in every joint, the base 1 m/s, so a good posture is one that is near in the
joint that has farthest to go; `ik` looks for that one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import mujoco
import numpy as np

from rearrange.home.action_layout import ACTION_SIZES
from rearrange.home.geometry import PlanePose, rotate, to_frame, wrap_angle
from rearrange.home.numba_cache import float64, njit
from rearrange.home.robot import fetch
from rearrange.home.simulation.simulator_interface import STEP_S, Simulator
from skills.skill import Skill

LOW_RAD, HIGH_RAD = (np.array(bound) for bound in zip(*fetch.ARM_LIMITS_RAD))
START_RAD = np.array(fetch.ARM_START_RAD)
_AXIS_WEIGHT_M = 0.3  # metres of position error that weigh as much as one radian of direction error
_MARGIN_RAD = 0.02  # kept from joint limits

_STOP_GAIN = 3.5  # 1/s: speed per metre left, so that the base brakes no harder than its motors can
_TURN_GAIN = 5.0  # 1/s
_ALIGNED_RAD = 0.35  # the base drives while it points this well along its way


@dataclass(frozen=True)
class Tool:
    """What the hand brings somewhere: a point and a direction (3,) in the end-effector frame."""

    point_m: np.ndarray
    pointer: np.ndarray


CUP = Tool(np.zeros(3), np.array([1.0, 0.0, 0.0]))


class ArmModel:
    """The robot alone, at the origin, for kinematics: MuJoCo's poses and Jacobians of the arm in the base frame."""

    def __init__(self) -> None:
        robot = fetch.robot_body("", "", prisms=False)
        mjcf = f"<mujoco><compiler angle='radian' autolimits='true'/><worldbody>{robot}</worldbody></mujoco>"
        self.model = mujoco.MjModel.from_xml_string(mjcf)
        self.data = mujoco.MjData(self.model)
        self._site = self.model.site("end_effector").id
        self._gripper = self.model.body("gripper").id
        first, last = (self.model.joint(name).qposadr[0] for name in (fetch.JOINT_NAMES[0], fetch.JOINT_NAMES[-1]))
        self._arm = slice(first, last + 1)
        self._yaw = int(self.model.joint(fetch.BASE_JOINT_NAMES[2]).qposadr[0])
        self._turning = np.array([self._yaw, *range(first, last + 1)])
        self.data.qpos[self.model.joint(fetch.TORSO_JOINT_NAME).qposadr[0]] = fetch.TORSO_START_M
        self._linear, self._angular = np.zeros((3, self.model.nv)), np.zeros((3, self.model.nv))
        self.tip = self.data.site_xpos[self._site]
        self.facing = self.data.site_xmat[self._site, ::3]  # first column: the way the cup faces
        self._matrix = self.data.site_xmat[self._site]

    def set(self, arm_rad: np.ndarray, yaw_rad: float = 0.0) -> None:
        """Put the arm at these angles, the base turned by `yaw_rad`; `tip` and `facing` are then those of the cup."""
        self.data.qpos[self._arm] = arm_rad
        self.data.qpos[self._yaw] = yaw_rad
        mujoco.mj_kinematics(self.model, self.data)

    def hand(self, arm_rad: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Position (3,) and rotation matrix (3, 3) of the end-effector frame at these angles."""
        self.set(arm_rad)
        return self.tip.copy(), self._matrix.reshape(3, 3).copy()

    def at(self, tool: Tool) -> tuple[np.ndarray, np.ndarray]:
        """Point and direction (3,) of a tool at the angles that were set."""
        matrix = self._matrix.reshape(3, 3)
        return self.tip + matrix @ tool.point_m, matrix @ tool.pointer

    def jacobian(self, turning: bool = False, point: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Linear and angular Jacobian (3, 7) of a point of the hand, by default the cup's tip, at the present angles.

        `turning` adds a first column for the turn of the base: (3, 8).
        """
        mujoco.mj_comPos(self.model, self.data)
        point = self.tip if point is None else point
        mujoco.mj_jac(self.model, self.data, self._linear, self._angular, point, self._gripper)
        of = self._turning if turning else self._arm  # all joints have one degree of freedom: columns are as in qpos
        return self._linear[:, of], self._angular[:, of]


@cache
def arm_model() -> ArmModel:
    """The robot's arm, one for the process."""
    return ArmModel()


# ------------------------------------------------------------------ inverse kinematics

def ik(point: np.ndarray, axis: np.ndarray | None = None, start_rad: np.ndarray = START_RAD, *,
       near_rad: np.ndarray | None = None, tolerance_m: float = 0.005, tolerance_rad: float = 0.12,
       iterations: int = 40, tool: Tool = CUP) -> np.ndarray | None:
    """Joint angles (7,) within their limits that bring the cup to a point; None when the tolerances are not met.

    Damped least squares. The turn about the axis is free, so two degrees of freedom are left (four without an axis).
    They keep the joint that is farthest from `near_rad` as near as possible.

    Args:
        point: where the cup's tip shall be, (3,), base frame.
        axis: unit vector (3,) along which the cup shall face; None = any.
        start_rad: angles (7,) at which the search begins.
        near_rad: angles (7,) to stay near to; None = `start_rad`.
        tool: point and direction of the hand that are brought there instead of the cup's.
    """
    start = np.array(start_rad, float)
    near = start.copy() if near_rad is None else np.array(near_rad, float)
    return _descend(point, axis, start, near, _ARM_BOUNDS, (tolerance_m, tolerance_rad), iterations, tool)


def ik_turning(point: np.ndarray, axis: np.ndarray, start_rad: np.ndarray = START_RAD, *, tolerance_m: float = 0.005,
               tolerance_rad: float = 0.12, iterations: int = 30, tool: Tool = CUP) -> tuple[float, np.ndarray] | None:
    """Like `ik`, but the base may also turn on its spot: its turn (rad) and the joint angles (7,), or None.

    `point` and `axis` are in the frame of the base before it turns. The turn of the base counts less than that of a
    joint, because the base is faster.
    """
    start = np.concatenate([[0.0], start_rad])
    q = _descend(point, axis, start, start.copy(), _TURNING_BOUNDS, (tolerance_m, tolerance_rad), iterations, tool)
    return None if q is None else (float(q[0]), q[1:])


def _descend(point: np.ndarray, axis: np.ndarray | None, q: np.ndarray, near: np.ndarray, bounds: np.ndarray,
             tolerance: tuple[float, float], iterations: int, tool: Tool) -> np.ndarray | None:
    """The descent of `ik` (7 variables) and `ik_turning` (8, the base's turn first); writes into q."""
    arm, target, turning = arm_model(), np.asarray(point, float), len(q) == 8
    wanted = np.zeros(3) if axis is None else np.asarray(axis, float)
    weight = 0.0 if axis is None else _AXIS_WEIGHT_M
    close, cosine = tolerance[0], math.cos(tolerance[1])
    for i in range(iterations + 1):
        arm.set(q[-7:], q[0] if turning else 0.0)
        tip, pointer = (arm.tip, arm.facing) if tool is CUP else arm.at(tool)
        bias = 0.1 * max(0.0, 1.0 - i / (0.7 * iterations))  # at the end the target alone counts
        if bias == 0.0 and math.dist(tip, target) < close and (axis is None or float(pointer @ wanted) > cosine):
            return q
        if i == iterations // 2 and np.abs(tip - target).max() > 0.4:
            return None  # out of reach
        linear, angular = arm.jacobian(turning, tip)
        _step(q, linear, angular, target, tip, wanted, pointer, weight, near, bias, bounds)
    return None


# Lowest and highest angle of each variable, and how much its way counts: joints alike, the faster base less.
_ARM_BOUNDS = np.array([LOW_RAD + _MARGIN_RAD, HIGH_RAD - _MARGIN_RAD, np.ones(7)])
_TURNING_BOUNDS = np.column_stack([[-math.pi, math.pi, 0.3], _ARM_BOUNDS])
_VECTOR, _ROWS = float64[:], float64[:, :]


@njit((float64[:, ::1], float64[::1]), cache=True, nogil=True)
def _solve(matrix, right):
    """Solve a small positive definite system in place, after Cholesky: numba has np.linalg.solve only beside SciPy."""
    n = right.shape[0]
    for i in range(n):
        for j in range(i + 1):
            total = matrix[i, j]
            for k in range(j):
                total -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = math.sqrt(max(total, 1e-12)) if i == j else total / matrix[j, j]
    for i in range(n):
        for k in range(i):
            right[i] -= matrix[i, k] * right[k]
        right[i] /= matrix[i, i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            right[i] -= matrix[k, i] * right[k]
        right[i] /= matrix[i, i]
    return right


@njit((float64[::1], _ROWS, _ROWS, _VECTOR, _VECTOR, _VECTOR, _VECTOR, float64, _VECTOR, float64, _ROWS),
      cache=True, nogil=True)
def _step(q, linear, angular, target, tip, axis, facing, axis_weight, near, bias, bounds):
    """One Gauss-Newton step on |position error|^2 + |direction error|^2 + bias * |q - near|^p, written into q, (7,) or
    (8,).

    The power p = 6 of the joint distances is handled by weights that grow with the distance (iteratively reweighted
    least squares), which approaches the largest distance.
    """
    n = q.shape[0]
    jacobian, error = np.zeros((6, n)), np.zeros(6)
    jacobian[:3] = linear
    error[:3] = target - tip
    for k in range(3):
        a, b = (k + 1) % 3, (k + 2) % 3
        error[3 + k] = axis_weight * (facing[a] * axis[b] - facing[b] * axis[a])
        jacobian[3 + k] = axis_weight * angular[k]
    if facing[0] * axis[0] + facing[1] * axis[1] + facing[2] * axis[2] < 0.0:  # the sine falls again beyond a quarter
        size = math.sqrt(error[3] ** 2 + error[4] ** 2 + error[5] ** 2)
        if size > 1e-9:
            error[3:] *= axis_weight / size
    long = math.sqrt(error[0] ** 2 + error[1] ** 2 + error[2] ** 2)
    if long > 0.15:
        error[:3] *= 0.15 / long
    if error[3] ** 2 + error[4] ** 2 + error[5] ** 2 > 0.15**2:
        error[3:] *= 0.15 / math.sqrt(error[3] ** 2 + error[4] ** 2 + error[5] ** 2)
    largest = 0.2
    for i in range(n):
        largest = max(largest, bounds[2, i] * abs(q[i] - near[i]))
    normal, right = np.zeros((n, n)), np.zeros(n)
    for i in range(n):
        for j in range(n):
            for k in range(6):
                normal[i, j] += jacobian[k, i] * jacobian[k, j]
        for k in range(6):
            right[i] += jacobian[k, i] * error[k]
    for i in range(n):
        weight = bias * bounds[2, i] ** 2 * ((bounds[2, i] * abs(q[i] - near[i]) / largest) ** 4 + 0.02)
        normal[i, i] += weight + 2e-4
        right[i] += weight * (near[i] - q[i])
    dq = _solve(normal, right)
    for i in range(n):
        q[i] = min(max(q[i] + min(max(dq[i], -0.25), 0.25), bounds[0, i]), bounds[1, i])


def arm_steps(start_rad: np.ndarray, goal_rad: np.ndarray, delta_rad: float = fetch.ARM_DELTA_RAD) -> float:
    """Fewest steps in which the arm gets from one posture to another."""
    return float(np.abs(np.asarray(goal_rad) - start_rad).max()) / delta_rad


# ------------------------------------------------------------------ commands

def follow(sim: Simulator, goal_rad: np.ndarray, speed: float = 1.0) -> np.ndarray:
    """Arm command (7,) straight towards a posture; all joints arrive together. `speed`: 0..1 of the fastest."""
    delta = (np.asarray(goal_rad) - sim.arm_targets()) / sim.config.max_joint_delta_rad
    return delta * (speed / max(speed, float(np.abs(delta).max())))


def servo(sim: Simulator, world_point: np.ndarray, step_m: float = 0.01, axis: np.ndarray | None = None) -> np.ndarray:
    """Arm command (7,) that moves the cup's tip straight towards a world point, by at most `step_m` in a step.

    With `axis` (3,), a unit vector of the world, the cup also turns to face along it. The hand moves more slowly where
    a joint would have to be faster than it can.
    """
    arm = arm_model()
    arm.set(sim.arm_positions())
    linear, angular = arm.jacobian()
    off = np.array(sim.to_base(tuple(world_point))) - arm.tip
    off *= min(1.0, step_m / max(float(np.linalg.norm(off)), 1e-9))
    if axis is None:
        jacobian, error = linear, off
    else:
        turn = np.cross(arm.facing, turned(axis, -sim.base_pose[2]))
        jacobian = np.vstack([linear, _AXIS_WEIGHT_M * angular])
        error = np.concatenate([off, _AXIS_WEIGHT_M * np.clip(turn, -0.05, 0.05)])
    damping = 1e-4 * np.eye(len(error))
    dq = jacobian.T @ np.linalg.solve(jacobian @ jacobian.T + damping, error) / sim.config.max_joint_delta_rad
    return dq / max(1.0, float(np.abs(dq).max()))


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
    parts = [np.atleast_1d(command[name]) for name in ACTION_SIZES if name in skill.action_parts]
    return np.clip(np.concatenate(parts), -1.0, 1.0).astype(np.float32)

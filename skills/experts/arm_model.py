"""The kinematics of a robot's arm, for experts: where the hand is, and which posture brings it somewhere.

Frames: points and directions are in the base frame. A good posture is one that is near in the joint that has farthest
to go, counted in the steps that it takes; `ArmModel.ik` looks for that one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property

import mujoco
import numpy as np

from rearrange.home.numba_cache import float64, njit, njit_when_called
from rearrange.home.robot.robot import BASE_JOINTS, Robot

AXIS_WEIGHT_M = 0.3  # metres of position error that weigh as much as one radian of direction error
_MARGIN = 0.02  # kept from joint limits (rad, m)
_DRAWN_IN_M = (0.15, 0.3, 0.45)
_TURN_COUNTS = 0.3  # of the base, which is faster than a joint


@dataclass(frozen=True)
class Tool:
    """What the hand brings somewhere: a point and a direction (3,) in the hand's frame, and how exactly."""

    point_m: np.ndarray
    pointer: np.ndarray
    within_m: float = 0.005
    within_rad: float = 0.12


HAND = Tool(np.zeros(3), np.array([1.0, 0.0, 0.0]))


class ArmModel:
    """A robot alone, at the origin, for kinematics: MuJoCo's poses and Jacobians of the arm in the base frame."""

    def __init__(self, robot: Robot) -> None:
        there, arm = robot.mjcf("", ""), robot.arm
        mjcf = (f"<mujoco><compiler angle='radian' autolimits='true'/><asset>{there.assets}</asset>"
                f"<worldbody>{there.body}</worldbody></mujoco>")
        self.model = mujoco.MjModel.from_xml_string(mjcf)
        self.data = mujoco.MjData(self.model)
        self.robot, self.start = robot, np.array(arm.start)
        """start: the posture in which episodes begin, (joints,)."""
        self._site, self._hand = self.model.site(robot.hand.site).id, self.model.body(robot.hand.body).id
        first, last = (self.model.joint(name).qposadr[0] for name in (arm.names[0], arm.names[-1]))
        self._arm = slice(first, last + 1)
        self._yaw = int(self.model.joint(BASE_JOINTS[2]).qposadr[0])
        self._turning = np.array([self._yaw, *range(first, last + 1)])
        for name, value in arm.still.items():
            self.data.qpos[self.model.joint(name).qposadr[0]] = value
        self._linear, self._angular = np.zeros((3, self.model.nv)), np.zeros((3, self.model.nv))
        self.tip = self.data.site_xpos[self._site]
        self.facing = self.data.site_xmat[self._site, ::3]  # first column: the way the hand reaches out
        self._matrix = self.data.site_xmat[self._site]
        # Lowest and highest position of each variable, and how much its way counts: in steps, the faster base less.
        self._bounds = np.array([arm.low + _MARGIN, arm.high - _MARGIN, arm.delta[0] / arm.delta])
        self._turning_bounds = np.column_stack([[-math.pi, math.pi, _TURN_COUNTS], self._bounds])

    def set(self, posture: np.ndarray, yaw_rad: float = 0.0) -> None:
        """Put the arm into a posture, the base turned by `yaw_rad`; `tip` and `facing` are then those of the hand."""
        self.data.qpos[self._arm] = posture
        self.data.qpos[self._yaw] = yaw_rad
        mujoco.mj_kinematics(self.model, self.data)

    def hand(self, posture: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Position (3,) and rotation matrix (3, 3) of the hand's frame in a posture."""
        self.set(posture)
        return self.tip.copy(), self._matrix.reshape(3, 3).copy()

    def _roll_rad(self, across: np.ndarray) -> float:
        """By how much the hand, as it was set, has to turn about its axis until its fingers close along a direction."""
        matrix = self._matrix.reshape(3, 3)
        return math.remainder(math.atan2(float(matrix[:, 2] @ across), float(matrix[:, 1] @ across)), math.pi)

    def is_of_arm(self, body: int) -> bool:
        """Whether a body of the model hangs on the first joint of the arm."""
        first = self.model.jnt_bodyid[self.model.joint(self.robot.arm.names[0]).id]
        while body > first:
            body = int(self.model.body_parentid[body])
        return body == first

    def at(self, tool: Tool) -> tuple[np.ndarray, np.ndarray]:
        """Point and direction (3,) of a tool in the posture that was set."""
        matrix = self._matrix.reshape(3, 3)
        return self.tip + matrix @ tool.point_m, matrix @ tool.pointer

    def jacobian(self, turning: bool = False, point: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Linear and angular Jacobian (3, joints) of a point of the hand, by default its origin, as it was set.

        `turning` adds a first column for the turn of the base: (3, 1 + joints).
        """
        mujoco.mj_comPos(self.model, self.data)
        point = self.tip if point is None else point
        mujoco.mj_jac(self.model, self.data, self._linear, self._angular, point, self._hand)
        of = self._turning if turning else self._arm  # all joints have one degree of freedom: columns are as in qpos
        return self._linear[:, of], self._angular[:, of]

    def steps(self, start: np.ndarray, goal: np.ndarray) -> float:
        """Fewest steps in which the arm gets from one posture to another."""
        return float((np.abs(np.asarray(goal) - start) / self.robot.arm.delta).max())

    @cached_property
    def aside_m(self) -> float:
        """How far to the left of the middle of the base the hand is in the start posture, seen along the arm."""
        (x, y, _), bearing = self.hand(self.start)[0], self.robot.arm.bearing_rad
        return float(math.cos(bearing) * y - math.sin(bearing) * x)

    def drawn_in(self, posture: np.ndarray) -> list[np.ndarray]:
        """Postures in which the hand is drawn back along the arm, a little and more, and faces as in a posture."""
        tip, matrix = self.hand(posture)
        bearing = self.robot.arm.bearing_rad
        back = -np.array([math.cos(bearing), math.sin(bearing), 0.0])
        found = [self.ik(tip + way_m * back, matrix[:, 0], posture, tolerance_m=0.02, tolerance_rad=0.2,
                         across=matrix[:, 1]) for way_m in _DRAWN_IN_M]
        return [drawn for drawn in found if drawn is not None]

    # ------------------------------------------------------------------ at rest

    @cached_property
    def rest(self) -> np.ndarray:
        """Posture at rest, near that in which episodes begin."""
        return self.rest_posture(self.start)

    def rest_posture(self, near: np.ndarray, rest_m: tuple[float, float, float] | None = None,
                     within_m: float = 0.11) -> np.ndarray:
        """Posture near another one with the hand within `within_m` of its resting place, None for the robot's own."""
        point, usual = np.array(self.robot.arm.rest_m if rest_m is None else rest_m), self._usual_rest
        found = [self.ik(point, None, seed, near=near, tolerance_m=within_m) for seed in (near, usual)]
        postures = [posture for posture in found if posture is not None] or [usual]
        return min(postures, key=lambda posture: self.steps(near, posture))

    @cached_property
    def _usual_rest(self) -> np.ndarray:
        found = self.ik(np.array(self.robot.arm.rest_m))
        return self.start if found is None else found

    # ------------------------------------------------------------------ inverse kinematics

    def ik(self, point: np.ndarray, axis: np.ndarray | None = None, start: np.ndarray | None = None, *,
           near: np.ndarray | None = None, tolerance_m: float = 0.005, tolerance_rad: float = 0.12,
           iterations: int = 40, tool: Tool = HAND, across: np.ndarray | None = None) -> np.ndarray | None:
        """Posture (joints,) within the limits that brings the hand to a point; None when the tolerances are not met.

        Damped least squares. The turn about the axis is free, so of seven joints two degrees of freedom are left (four
        without an axis). They keep the joint that is farthest from `near` as near as possible.

        Args:
            point: where the hand shall be, (3,), base frame.
            axis: unit vector (3,) along which it shall reach out; None = any.
            start: posture at which the search begins; None = that of episodes.
            near: posture to stay near to; None = `start`.
            tool: point and direction of the hand that are brought there instead of its own.
            across: unit vector (3,) along which fingers shall close, either way; None = any.
        """
        q = np.array(self.start if start is None else start, float)
        near = q.copy() if near is None else np.array(near, float)
        return self._descend(point, axis, q, near, self._bounds, (tolerance_m, tolerance_rad), iterations, tool,
                             across)

    def ik_turning(self, point: np.ndarray, axis: np.ndarray, start: np.ndarray, *, tolerance_m: float = 0.005,
                   tolerance_rad: float = 0.12, iterations: int = 30, tool: Tool = HAND,
                   across: np.ndarray | None = None) -> tuple[float, np.ndarray] | None:
        """Like `ik`, but the base may also turn on its spot: its turn (rad) and the posture, or None.

        `point` and `axis` are in the frame of the base before it turns. The turn of the base counts less than that of a
        joint, because the base is faster.
        """
        q = np.concatenate([[0.0], start])
        tolerance = tolerance_m, tolerance_rad
        q = self._descend(point, axis, q, q.copy(), self._turning_bounds, tolerance, iterations, tool, across)
        return None if q is None else (float(q[0]), q[1:])

    def _descend(self, point: np.ndarray, axis: np.ndarray | None, q: np.ndarray, near: np.ndarray,
                 bounds: np.ndarray, tolerance: tuple[float, float], iterations: int, tool: Tool,
                 across: np.ndarray | None) -> np.ndarray | None:
        """The descent of `ik`, and of `ik_turning`, which has the base's turn first; writes into q."""
        joints, target = len(self.start), np.asarray(point, float)
        turning = len(q) > joints
        wanted = np.zeros(3) if axis is None else np.asarray(axis, float)
        weight = 0.0 if axis is None else AXIS_WEIGHT_M
        close, cosine = tolerance[0], math.cos(tolerance[1])
        for i in range(iterations + 1):
            self.set(q[-joints:], q[0] if turning else 0.0)
            tip, pointer = (self.tip, self.facing) if tool is HAND else self.at(tool)
            roll = 0.0 if across is None else self._roll_rad(across)
            bias = 0.1 * max(0.0, 1.0 - i / (0.7 * iterations))  # at the end the target alone counts
            there = math.dist(tip, target) < close and abs(roll) < tolerance[1]
            if bias == 0.0 and there and (axis is None or float(pointer @ wanted) > cosine):
                return q
            if i == iterations // 2 and np.abs(tip - target).max() > 0.4:
                return None  # out of reach
            linear, angular = self.jacobian(turning, tip)
            _step(q, linear, angular, target, tip, wanted, pointer, weight, near, bias, bounds, roll)
        return None


@cache
def arm_model(robot: Robot) -> ArmModel:
    """The arm of a robot, one for the process."""
    return ArmModel(robot)


_VECTOR, _ROWS = float64[:], float64[:, :]


@njit(cache=True, nogil=True)
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


@njit_when_called((float64[::1], _ROWS, _ROWS, _VECTOR, _VECTOR, _VECTOR, _VECTOR, float64, _VECTOR, float64, _ROWS,
                   float64))
def _step(q, linear, angular, target, tip, axis, facing, axis_weight, near, bias, bounds, roll):
    """One Gauss-Newton step on |position error|^2 + |direction error|^2 + bias * |q - near|^p, written into q, the
    joints, or the turn of the base before them. roll: the error of the turn about `facing` (rad).

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
    for k in range(3):
        error[3 + k] += axis_weight * roll * facing[k]
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

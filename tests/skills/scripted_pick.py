"""A scripted picker for tests: inverse kinematics by damped least squares, executed through the ordinary actions only.

It sees the simulator's state. It plans by trying directions of approach and places of the base until a posture of the
arm touches nothing but the object, drives and moves there, presses until the suction holds, goes back the same way and
rests.
"""

from __future__ import annotations

import math

import mujoco
import numpy as np

from rearrange.fetch import ARM_LIMITS_RAD, ARM_START_RAD, REST_POSITION_M

STANDOFF_M = 0.10  # from the object before the straight approach
BACK_UP_M = 0.25  # with the object in the hand
DELTA_RAD = 0.0125  # a joint's target moves this far at full action
TILTS_RAD = [math.radians(a) for a in (90, 70, 55, 40, 20, 0)]  # of the cup below the horizontal
TURNS_RAD = [math.radians(a) for a in (0, 30, -30)]  # of the approach to the side
DRIVES_M = (0.0, 0.08, -0.08, 0.16, -0.16, -0.25, -0.35, -0.45, -0.55)


class ScriptedPicker:
    """Give it the environment after a reset; call `act()` before every step."""

    def __init__(self, env) -> None:
        self.env, self.sim = env.unwrapped, env.unwrapped.sim
        self.model = self.sim.model
        self.scratch = mujoco.MjData(self.model)
        mujoco.mj_copyData(self.scratch, self.model, self.sim.data)
        self.parts = dict(self.env.action_parts)
        self.site = self.model.site("end_effector").id
        self.start_x, self.start_y, self.yaw = self.sim.base_pose
        self.plan = self._plan()
        self.path = list(self.plan[1]) if self.plan else []
        self.drive_m = self.plan[0] if self.plan else 0.0
        self.leaving = False

    # ------------------------------------------------------------------ acting

    def act(self) -> np.ndarray:
        action = np.zeros(self.env.action_space.shape, np.float32)
        if self.plan is None:
            return action
        sim = self.sim
        if sim.held is not None and not self.leaving:
            self.leaving = True
            self.path = self._way_out()
        action[self.parts["grip"]] = 1.0
        off = self._drive(action, self.drive_m)
        q = np.array(sim._target_rad)
        close_m = 0.1 if len(self.path) == len(self.plan[1]) else 0.03  # postures are for this place of the base
        if off > close_m and not self.leaving:
            return action
        if self.path:
            delta = (np.array(self.path[0]) - q) / DELTA_RAD
            action[self.parts["arm"]] = delta / max(1.0, np.abs(delta).max())
            if np.abs(delta).max() <= 1.0 and np.abs(np.array(self.path[0]) - sim.arm_positions()).max() < 0.05:
                if len(self.path) > 1 or self.leaving:
                    self.path.pop(0)
        if not self.leaving and len(self.path) <= 1:
            action[self.parts["arm"]] = self._towards(sim.object_position(self.env.skill.target), 0.012)
        elif self.leaving and not self.path:
            action[self.parts["arm"]] = self._towards(sim.from_base(REST_POSITION_M), 0.03)
        return action

    def _drive(self, action: np.ndarray, goal_m: float) -> float:
        """Command forward speed towards a place on the line of the start heading; returns the distance left."""
        x, y, yaw = self.sim.base_pose
        along = (x - self.start_x) * math.cos(self.yaw) + (y - self.start_y) * math.sin(self.yaw)
        turn = (self.yaw - yaw + math.pi) % (2 * math.pi) - math.pi
        action[self.parts["base"]] = (np.clip(4.0 * (goal_m - along), -1.0, 1.0), np.clip(2.0 * turn, -0.5, 0.5))
        return abs(goal_m - along)

    def _towards(self, goal: tuple[float, float, float], step_m: float) -> np.ndarray:
        """Arm action that moves the tip straight towards a point, by the arm's Jacobian."""
        data = self.sim.data
        step = np.array(goal) - data.site_xpos[self.site]
        step *= step_m / max(np.linalg.norm(step), 1e-6)
        jacobian = self._jacobian(data)[0]
        dq = jacobian.T @ np.linalg.solve(jacobian @ jacobian.T + 1e-3 * np.eye(3), step) / DELTA_RAD
        return dq / max(1.0, np.abs(dq).max())

    def _way_out(self) -> list[np.ndarray]:
        """Back along the way in, away from the furniture, and to rest."""
        before = self.plan[1][0]
        seeds = [w * before + (1 - w) * np.array(ARM_START_RAD) for w in (0.0, 0.5, 0.8, 1.0)]
        rests = [rest for rest in map(self._rest_posture, seeds) if rest is not None]
        if self.plan[2] < math.radians(60):  # reached in from the front: the hand needs room to turn
            self.drive_m -= BACK_UP_M
        return [before, *sorted(rests, key=lambda rest: np.abs(rest - before).max())[:1]]

    # ------------------------------------------------------------------ planning

    def _plan(self) -> tuple[float, list[np.ndarray], float] | None:
        """Base displacement (m), postures of the arm before the object and at it, and tilt of the cup (rad)."""
        i = self.env.skill.target
        center, half = np.array(self.sim.object_position(i)), np.array(self.sim.object_half_extents(i))
        best = None
        for drive in DRIVES_M:
            if not self._place_base(drive):
                continue
            to = math.atan2(center[1] - self.scratch.qpos[self.sim.home.base_qpos][1],
                            center[0] - self.scratch.qpos[self.sim.home.base_qpos][0])
            for tilt in TILTS_RAD:
                for turn in TURNS_RAD if tilt < 1.5 else (0.0,):
                    level = math.cos(tilt)
                    axis = np.array([level * math.cos(to + turn), level * math.sin(to + turn), -math.sin(tilt)])
                    depth = abs(axis[2]) * half[2] + math.hypot(axis[0], axis[1]) * min(half[0], half[1])
                    touch = center - axis * depth
                    before = self._ik(touch - STANDOFF_M * axis, axis, np.array(ARM_START_RAD))
                    if before is None or self._touches(before, None):
                        continue
                    at = self._ik(touch, axis, before)
                    if at is None or self._touches(at, i) or self._touches((at + before) / 2, i):
                        continue
                    first = np.array(ARM_START_RAD)
                    if any(self._touches(first + w * (before - first), None) for w in (0.33, 0.67, 0.85)):
                        continue
                    cost = np.abs(before - ARM_START_RAD).max() + 1.5 * abs(drive)
                    if best is None or cost < best[0]:
                        best = (cost, drive, [before, at], tilt)
        return None if best is None else best[1:]

    def _place_base(self, drive: float) -> bool:
        """Move the scratch robot along its heading; False when the base or the arm touches something there."""
        x, y = self.start_x + drive * math.cos(self.yaw), self.start_y + drive * math.sin(self.yaw)
        self.scratch.qpos[self.sim.home.base_qpos] = (x, y, self.yaw)
        return not self._touches(np.array(ARM_START_RAD), None)

    def _touches(self, q: np.ndarray, allowed: int | None) -> bool:
        """True when the scratch robot touches anything but the object `allowed` in posture q."""
        data = self.scratch
        data.qpos[self.sim.home.arm_qpos] = q
        mujoco.mj_fwdPosition(self.model, data)
        role, owner = self.sim.home.geom_role, self.sim.home.object_of_geom
        slot = -2 if allowed is None else self.sim._slots[allowed]
        for (a, b), distance in zip(data.contact.geom, data.contact.dist):
            robot, other = (a, b) if role[a] else (b, a)
            if role[robot] and distance < 0 and owner[other] != slot:
                return True
        return False

    def _ik(self, target: np.ndarray, axis: np.ndarray, q0: np.ndarray) -> np.ndarray | None:
        """Arm posture with the tip at `target`, facing `axis`; None when there is none near."""
        data, q = self.scratch, q0.copy()
        for _ in range(60):
            data.qpos[self.sim.home.arm_qpos] = q
            mujoco.mj_kinematics(self.model, data)
            mujoco.mj_comPos(self.model, data)
            tip, facing = data.site_xpos[self.site], data.site_xmat[self.site, ::3]
            error = np.concatenate([target - tip, 0.3 * np.cross(facing, axis)])
            if np.linalg.norm(target - tip) < 0.004 and facing @ axis > 0.97:
                return q
            position, rotation = self._jacobian(data)
            jacobian = np.vstack([position, 0.3 * rotation])
            dq = jacobian.T @ np.linalg.solve(jacobian @ jacobian.T + 4e-4 * np.eye(6), error)
            q = np.clip(q + np.clip(dq, -0.2, 0.2), *np.array(ARM_LIMITS_RAD).T)
        return None

    def _rest_posture(self, q: np.ndarray) -> np.ndarray | None:
        """A posture near q with the tip near its resting place, whichever way it faces."""
        data, x_y_yaw = self.scratch, self.scratch.qpos[self.sim.home.base_qpos]
        cos, sin = math.cos(x_y_yaw[2]), math.sin(x_y_yaw[2])
        x, y, z = REST_POSITION_M
        goal = np.array([x_y_yaw[0] + cos * x - sin * y, x_y_yaw[1] + sin * x + cos * y, z])
        for _ in range(60):
            data.qpos[self.sim.home.arm_qpos] = q
            mujoco.mj_kinematics(self.model, data)
            mujoco.mj_comPos(self.model, data)
            error = goal - data.site_xpos[self.site]
            if np.linalg.norm(error) < 0.1:
                return q
            jacobian = self._jacobian(data)[0]
            q = q + np.clip(jacobian.T @ np.linalg.solve(jacobian @ jacobian.T + 1e-3 * np.eye(3), error), -0.1, 0.1)
            q = np.clip(q, *np.array(ARM_LIMITS_RAD).T)
        return None

    def _jacobian(self, data: mujoco.MjData) -> tuple[np.ndarray, np.ndarray]:
        position, rotation = np.zeros((3, self.model.nv)), np.zeros((3, self.model.nv))
        mujoco.mj_jacSite(self.model, data, position, rotation, self.site)
        return position[:, self.sim.home.arm_dofs], rotation[:, self.sim.home.arm_dofs]

"""Experts at a handle: they take it and pull a drawer or the fridge's door open, and press a drawer shut."""

from __future__ import annotations

import math

import numpy as np

from rearrange.home.geometry import PlanePose, from_frame, wrap_angle
from rearrange.home.simulation.simulator_interface import STEP_S, Simulator
from skills.articulated import Articulated
from skills.experts.arm_model import ArmModel, arm_model
from skills.experts.clearance import Clearance
from skills.experts.handle_from_side import (
    AROUND_BAR_M,
    BEFORE_M,
    BLOCKED_STEPS,
    DOOR_TURNS_RAD,
    NEAR_TIPS_M,
    SideArm,
)
from skills.experts.handle_path import HandlePath
from skills.experts.motion import assemble, follow, servo, servo_driving, turned
from skills.experts.reach_plan import facing_axis

_CLOSING_M = 0.03  # from the end of the way, where fingers begin to close
_AT_TIPS_M = 0.025  # of a door's, to which a hand that pulls ahead comes more and more aslant
_BESIDE_BAR_OPEN_M = 0.014  # of fingers that come to a bar, on either side
_CLEAR_M = 0.01  # kept from everything on the way
_TILTS_RAD = tuple(math.radians(a) for a in (0, 20, 40, 60, 80))  # of the cup below the horizontal
_FINGER_TILTS_RAD = tuple(math.radians(a) for a in (0, 8, 16, 24, 40, 60, 80))  # of fingers
_TURNS_RAD = tuple(math.radians(a) for a in (0, 25, -25, 50, -50))  # of the cup to the side
# Of the base before the hand takes the handle: forward (m) and to the left (rad).
_BASE_MOVES = tuple((m, 0.0) for m in (0.0, 0.07, -0.07, 0.14, -0.14, -0.22)) + tuple(
    (m, a) for m in (0.0, -0.14) for a in (0.35, -0.35, 0.7, -0.7))
_READY_RAD = 0.08  # from the posture in which the hand is ready
_SPEED_M_S = 0.5  # of the handle
_DOOR_BAR_M_S = 0.42  # with fingers around the bar of a door
_SLIPPED_GAIN = 3.0  # 1/s, of the way that fingers have slipped along a bar
_STANDS_RAD_S = 0.4
_PULL_PARTS = 14
_SWING_STEPS = 40.0  # per radian that the base turns before fingers take a drawer: it then pulls along a curve
_ASKEW_RAD, _ASKEW_STEPS = 1.1, 120.0  # of fingers to a door, at the end: the palm would pry them off its bar
_STAND_BACK_M = 0.03  # of a drawer, while it is looked what else the hand at its front would meet
_BESIDE_M = 0.14  # the handle, where the hand presses on a drawer
_BESIDE_BAR_M, _BELOW_BAR_M = 0.07, 0.10  # the end of its bar; the bar, where there is no room beside it
_FIST_UP_M = 0.05  # from the middle, where fingers press: from there the way home is short
_LEAVE_M = 0.36  # the hand goes this far from where it was at the start, base frame
_MARGIN_M, _MARGIN_RAD = 0.015, 0.15  # it opens or closes by this much more than it must


class HandleExpert:
    """Base of the experts at a handle: the hand gets ready before a point, touches it, moves along with it, and comes
    back to rest.
    """

    grip = 1.0  # while it touches
    sense = 1.0  # of the way: opening +1, closing -1

    def __init__(self, sim: Simulator, skill: Articulated) -> None:
        self.sim, self.skill, self.handle = sim, skill, skill.target_handle
        self.path = HandlePath(sim, self.handle)
        self.start, self.start_hand, self.left_m = sim.base_pose, np.array(sim.ee_in_base), 0.0
        self._drives, self.arm = "base" in skill.action_parts, arm_model(sim.robot)
        self.side: SideArm | None = None
        if sim.robot.arm.reaches_ahead:
            (self.drive_m, self.turn_rad), self.before, self.axis = self._plan()
        else:
            self.side = SideArm(sim, skill.config, self.path, self.sense, self._point(), self._across,
                                self._arm_blocked)
            (self.drive_m, self.turn_rad), self.before, self.axis = (0.0, 0.0), self.side.before, self.side.axis
            self.start = self.side.pose
        self.ready = self.done = self.closing = False
        self.closed_m = 0.0  # of a finger
        around_door = self._across(self.axis) is not None and not self.path.slides
        self.around_door = around_door and self.side is None and self._drives
        self.speed_m_s = _DOOR_BAR_M_S if around_door else _SPEED_M_S
        self.rest: np.ndarray | None = None

    def act(self) -> np.ndarray:
        """The next action."""
        sim = self.sim
        opening = sim.joint_position(self.handle)
        self.done = self.done or self._far_enough(opening)
        self.left_m = max(self.left_m, math.dist(sim.ee_in_base, self.start_hand))
        if self.done:
            return self._go_to_rest()
        if self._touches(opening):
            return self._move_along(opening)
        if self.side is not None and not self.side.is_there:
            return self._action(*self.side.come())
        base = self._approach()
        if not self.ready:
            off = float(np.abs(sim.arm_positions() - self.before).max())
            self.ready = off < _READY_RAD and abs(self._drive_left()) < 0.03 and abs(self._turn_left()) < 0.05
            return self._action(follow(sim, self.before), self._around(), base)
        return self._action(servo(sim, self._ends_at(), 0.01, self.axis), self._taking(), base)

    # ------------------------------------------------------------------ what differs

    def _point(self) -> np.ndarray:
        """World point that the tip of the cup is to touch."""
        return np.array(self.sim.handle_position(self.handle))

    def _touches(self, opening: float) -> bool:
        """The hand can move along now."""
        return self.sim.held_handle is not None

    def _far_enough(self, opening: float) -> bool:
        config = self.skill.config
        over = opening - (config.target_opening - config.opening_tolerance)
        if self.path.slides:
            return over > _MARGIN_M
        if self.around_door:
            return over > 0.0
        stands = self.sim.joint_velocity(self.handle) < _STANDS_RAD_S  # the hand meets the door at a shallow angle
        return over > _MARGIN_RAD or (stands and over > 0.3 * _MARGIN_RAD)

    def _taking(self) -> float:
        """The grip on the way to the handle: fingers close as it comes between them."""
        there = math.dist(self.sim.ee_position, self._ends_at()) < _CLOSING_M
        self.closing = self.closing or there or not self.sim.robot.hand.fingers
        return self.grip if self.closing else self._around()

    def _around(self) -> float:
        """The grip before that: fingers that will take a bar are only as far apart as that needs."""
        hand, share = self.sim.robot.hand, -1.0
        if self._across(self.axis) is not None:
            wide_m = hand.opening_m - 2 * self.closed_m - self.path.bar_m
            share = 1.0 if wide_m > 2 * (_BESIDE_BAR_OPEN_M + hand.speed_m_s * STEP_S) else -1.0
        self.closed_m = max(0.0, self.closed_m + share * hand.speed_m_s * STEP_S)
        return share

    def _ends_at(self) -> np.ndarray:
        """World point where the way of the hand ends: fingers hold a bar near their tips, as a front is behind it."""
        if self._across(self.axis) is None:
            return self._point()
        return self._point() - self._before_middle_m * self.axis

    @property
    def _before_middle_m(self) -> float:
        """How far before the middle between the fingers they hold a bar."""
        return _AT_TIPS_M if self.sim.robot.arm.reaches_ahead and not self.path.slides else NEAR_TIPS_M

    def _across(self, axis: np.ndarray) -> np.ndarray | None:
        """Direction (3,) along which fingers close on the bar, where the hand faces along `axis`."""
        if not (self.sim.robot.hand.fingers and self.path.has_bar and self.sense > 0):
            return None
        bar = np.array([-self.path.out[1], self.path.out[0], 0.0]) if self.path.slides else np.array([0.0, 0.0, 1.0])
        across = np.cross(bar, axis)
        return across / max(float(np.linalg.norm(across)), 1e-6)

    # ------------------------------------------------------------------ phases

    def _drive_left(self) -> float:
        (x0, y0, yaw), (x, y, _) = self.start, self.sim.base_pose
        return self.drive_m - (x - x0) * math.cos(yaw) - (y - y0) * math.sin(yaw)

    def _turn_left(self) -> float:
        return wrap_angle(self.start[2] + self.turn_rad - self.sim.base_pose[2])

    def _approach(self) -> tuple[float, float]:
        return float(np.clip(3.5 * self._drive_left(), -1.0, 1.0)), 3.0 * self._turn_left()

    def _move_along(self, opening: float) -> np.ndarray:
        """Moves the tip of the cup along the handle's path: the base as far as it can, the arm the rest."""
        sim = self.sim
        if self.side is not None:
            bar = None if self._across(self.axis) is None else self._ends_at()
            arm, base = self.side.move_along(opening, bar)
            return self._action(arm, self.grip, base)
        velocity = self.sense * self.speed_m_s * self.path.direction(opening)
        if self.around_door:
            slipped_m = self._ends_at() - sim.ee_position
            arm, base = servo_driving(sim, velocity + _SLIPPED_GAIN * slipped_m, self._facing(opening), turning=True)
            return self._action(arm, self.grip, base)
        x, y, yaw = sim.base_pose
        ahead, left = np.array([math.cos(yaw), math.sin(yaw), 0.0]), np.array([-math.sin(yaw), math.cos(yaw), 0.0])
        tip = np.array(sim.ee_position)
        arm = tip - (x, y, 0.0)
        turn = float(velocity @ left) / max(0.3, float(arm @ ahead)) if self._drives else 0.0
        forward = float(velocity @ ahead) + turn * float(arm @ left) if self._drives else 0.0
        rest = velocity - forward * ahead - turn * np.array([-arm[1], arm[0], 0.0])
        base = forward / sim.config.base_speed_m_s, turn / sim.config.base_turn_rad_s
        held = tip if self._across(self.axis) is None else self._ends_at()  # fingers slip a little
        return self._action(servo(sim, held + rest * STEP_S + 0.02 * rest, 0.02, self._facing(opening)), self.grip,
                            base)

    def _facing(self, opening: float) -> np.ndarray | None:
        """The cup's axis (3,) while it moves along: on a front without a bar it turns with the door. Fingers around the
        bar of a door turn by half: their palm would meet the door, or the wrist come to its end.
        """
        if self.path.slides or self.path.has_bar and not self.around_door:
            return None
        share = 0.5 if self.around_door else 1.0
        return turned(self.axis, share * self.path.sign * (opening - self.path.first_opening))

    def _go_to_rest(self) -> np.ndarray:
        sim = self.sim
        if self.rest is None:
            rest_m, within_m = np.array(self.skill.rest_m(sim)), 0.13
            if self.left_m < _LEAVE_M and self.side is None:  # to its far side: else it would not be over in a plan
                way = rest_m - self.start_hand
                rest_m, within_m = self.start_hand + max(1.0, _LEAVE_M / float(np.linalg.norm(way))) * way, 0.02
            self.rest = self.arm.rest_posture(sim.arm_positions(), tuple(rest_m), within_m=within_m)
        near = math.dist(sim.ee_position, self._point()) < 0.25
        if self.side is not None:
            leaving = self.side.leave(self._point())
            return self._action(*(leaving or (follow(sim, self.rest), -1.0, (0.0, 0.0))))
        return self._action(follow(sim, self.rest), -1.0, (-0.5 if near else 0.0, 0.0))

    def _action(self, arm: np.ndarray, grip: float, base: tuple[float, float]) -> np.ndarray:
        return assemble(self.skill, {"arm": arm, "grip": grip, "base": base})

    # ------------------------------------------------------------------ planning

    def _plan(self) -> tuple[tuple[float, float], np.ndarray, np.ndarray]:
        """The fastest way: drive (m) and turn (rad) of the base, the posture before the point, the cup's axis."""
        clearance, arm = Clearance(self.sim), self.arm
        point = self._point()
        yaw_in = math.atan2(-self.path.out[1], -self.path.out[0])
        best = (math.inf, (0.0, 0.0), arm.start, -self.path.out)
        turns = _TURNS_RAD if self.path.slides else [self.path.sign * turn for turn in DOOR_TURNS_RAD]
        rest = arm.rest_posture(arm.start, self.skill.rest_m(self.sim))
        for drive, swing in _BASE_MOVES if self._drives else ((0.0, 0.0),):
            base = (*from_frame(drive, 0.0, self.start), self.start[2] + swing)
            if clearance.distance(base, arm.start, base_only=True) < _CLEAR_M:
                continue
            for tilt in _FINGER_TILTS_RAD if self.sim.robot.hand.fingers else _TILTS_RAD:
                for turn in turns:
                    axis = facing_axis(yaw_in + turn, tilt)
                    across = self._across(axis)
                    end = point if across is None else point - self._before_middle_m * axis
                    found = _postures(arm, base, end, axis, across)
                    if found is None or across is not None and clearance.distance(base, found[1]) < AROUND_BAR_M:
                        continue
                    cost = max(arm.steps(arm.start, found[0]), 10 + 40 * abs(drive) + 20 * abs(swing))
                    cost += arm.steps(*found) + 0.5 * arm.steps(found[1], rest)
                    cost += _SWING_STEPS * abs(swing) * (across is not None and self.path.slides)
                    if cost < best[0] and self.sense > 0:
                        blocked, base_rad = self._pull(base, clearance)
                        cost += BLOCKED_STEPS * blocked
                        if across is not None and not self.path.slides:
                            askew = abs(turn + base_rad - self.path.sign * self.skill.config.target_opening)
                            cost += _ASKEW_STEPS * max(0.0, askew - _ASKEW_RAD)
                    if self.path.slides:
                        cost += BLOCKED_STEPS * (cost < best[0] and self._hand_blocked(base, found[1], clearance))
                    if cost < best[0] and _free(clearance, base, arm.start, found[0]):
                        best = (cost, (drive, swing), found[0], axis)
        return best[1:]

    def _arm_blocked(self, pose: PlanePose, at: np.ndarray, moved: np.ndarray, clearance: Clearance) -> bool:
        """Whether the arm meets something at a drawer while the base stands still: in the posture at its front, or at
        the end of its way.
        """
        return self.path.slides and self._hand_blocked(pose, at, clearance)

    def _hand_blocked(self, base: PlanePose, posture: np.ndarray, clearance: Clearance) -> bool:
        """Whether the hand meets a panel or a worktop where it touches the front of a drawer."""
        clearance.set_joint(self.handle, self.path.first_opening - _STAND_BACK_M)
        try:
            return clearance.distance(base, posture) < 0.0
        finally:
            clearance.set_joint(self.handle, self.path.first_opening)

    def _pull(self, base: PlanePose, clearance: Clearance) -> tuple[bool, float]:
        """Whether the base would run into something while it pulls, the arm stiff, and by how much it turns (rad)."""
        x, y, yaw = base
        first, config, blocked = self.path.first_opening, self.skill.config, False
        openings = np.linspace(first, config.target_opening, _PULL_PARTS + 1)
        for before, after in zip(openings, openings[1:]):
            tip, way = self.path.at(before) - (x, y, 0.0), self.path.at(after) - self.path.at(before)
            c, s = math.cos(yaw), math.sin(yaw)
            turn = (c * way[1] - s * way[0]) / max(0.3, c * tip[0] + s * tip[1])
            forward = c * way[0] + s * way[1] + turn * (c * tip[1] - s * tip[0])
            x, y, yaw = x + forward * c, y + forward * s, yaw + turn
            blocked = blocked or clearance.distance((x, y, yaw), self.arm.start, base_only=True) < 0.02
        return blocked, yaw - base[2]


class OpenExpert(HandleExpert):
    """Takes the handle, pulls it along its path, lets go and brings the hand back to rest."""


class CloseDrawerExpert(HandleExpert):
    """Presses the hand on the front of a drawer beside its handle and drives forward until it is shut."""

    grip, sense = -1.0, -1.0

    def _point(self) -> np.ndarray:
        path = self.path
        side, beside = np.array([-path.out[1], path.out[0], 0.0]), max(_BESIDE_M, path.bar_half_m + _BESIDE_BAR_M)
        has_room = beside < path.half_width_m - 0.03
        up = _FIST_UP_M if self.sim.robot.hand.fingers else 0.0
        down = path.above_middle_m - up if has_room else max(path.above_middle_m, _BELOW_BAR_M)
        on_front = np.array(self.sim.handle_position(self.handle)) - path.stands_out_m * path.out
        return on_front + has_room * beside * side - (0.0, 0.0, down)

    def _hand_blocked(self, base: PlanePose, posture: np.ndarray, clearance: Clearance) -> bool:
        """Likewise, where the drawer is shut; the arm is stiff while the base drives there."""
        x, y, yaw = base
        shut = (x - self.path.first_opening * self.path.out[0], y - self.path.first_opening * self.path.out[1], yaw)
        clearance.set_joint(self.handle, -_STAND_BACK_M)
        try:
            return clearance.distance(shut, posture) < 0.0
        finally:
            clearance.set_joint(self.handle, self.path.first_opening)

    def _arm_blocked(self, pose: PlanePose, at: np.ndarray, moved: np.ndarray, clearance: Clearance) -> bool:
        clearance.set_joint(self.handle, -_STAND_BACK_M)
        try:
            return clearance.distance(pose, moved) < 0.0
        finally:
            clearance.set_joint(self.handle, self.path.first_opening)

    def _touches(self, opening: float) -> bool:
        return self.ready and (self.sim.cup_touches() or opening < self.path.first_opening - 0.01)

    def _far_enough(self, opening: float) -> bool:
        return opening < self.skill.config.opening_tolerance - _MARGIN_M


def _free(clearance: Clearance, base: PlanePose, start: np.ndarray, posture: np.ndarray) -> bool:
    """Whether the arm touches nothing in a posture and on the second half of its way there from another."""
    way = posture - start
    return all(clearance.distance(base, start + share * way) > _CLEAR_M for share in (1.0, 0.75, 0.5))


def _postures(arm: ArmModel, base: PlanePose, point: np.ndarray, axis: np.ndarray,
              across: np.ndarray | None) -> tuple[np.ndarray, np.ndarray] | None:
    """Postures before a world point and at it, the hand facing along `axis`, its fingers closing along `across`."""
    c, s = math.cos(base[2]), math.sin(base[2])
    turn = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
    there, way = turn @ (point - (base[0], base[1], 0.0)), turn @ axis
    across = None if across is None else turn @ across
    before = arm.ik(there - BEFORE_M * way, way, across=across)
    at = None if before is None else arm.ik(there, way, before, across=across)
    return None if at is None else (before, at)

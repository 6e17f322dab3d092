"""Two fingers that slide together: they hold what both press, by friction alone."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from rearrange.home.simulation.mujoco.contacts import NO_OWNER, cup_touches
from rearrange.home.simulation.simulator_interface import STEP_S

if TYPE_CHECKING:
    from rearrange.home.settings.environment import SimulatorConfig
    from rearrange.home.simulation.mujoco.compiled_home import CompiledHome

_LEAD_M = 0.012  # of a target before its finger: its servo pushes with all its force then
_INTO_M = 1e-4  # of a finger in what is put between them: they touch it from the first step on
_PRESSED = 0.5  # share of its force with which a finger presses what is held
_LOST_STEPS = 4  # in which one finger does not touch what was held: a jolt lifts it for one or two
_FACING = 0.7  # least cosine between the way a finger closes and the surface that it presses


class Fingers:
    """The `rearrange.home.simulation.mujoco.hands.HandInHome` of a robot with two fingers."""

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData, home: CompiledHome) -> None:
        self._model, self._data, self._home = model, data, home
        hand = home.robot.hand
        self._pads = [model.geom(name).id for name in hand.pads]
        self._joints = [model.joint(name).id for name in hand.fingers]
        self._qpos = model.jnt_qposadr[self._joints]
        self._motors = [model.actuator(name).id for name in hand.fingers]
        self._shut_m = float(model.jnt_range[self._joints[0], 1])
        self._pressed_n = _PRESSED * float(model.actuator_forcerange[self._motors[0], 1])
        self._step_m = hand.speed_m_s * STEP_S
        self._gripper = model.body(hand.body).id
        self._object_qpos = [int(model.joint(f"object_{slot}").qposadr[0]) for slot in range(len(home.objects))]
        self._jacobian = np.zeros((3, model.nv))  # its change per second
        self._touched = np.zeros(16, np.int32)
        self._held_point = np.zeros(3)  # of the held thing, in the frame of its body
        self._hand_point = np.zeros(3)  # where that was when the hold began, in the frame of the gripper
        self._held_body = 0
        self._loose_steps = 0
        self.slot: int | None = None
        self.handle: str | None = None
        self.broken = self.released = False

    def configure(self, config: SimulatorConfig) -> None:
        """It has no settings."""

    def before_step(self, grip: float | None) -> None:
        """Move the targets of both motors one step on."""
        if grip is None:
            return
        at, target = float(self._data.qpos[self._qpos].mean()), float(self._data.ctrl[self._motors[0]])
        if grip >= 0.0:
            target = min(max(target, at) + self._step_m, at + _LEAD_M)
        else:
            target = max(min(target, at) - self._step_m, 0.0)
        self._data.ctrl[self._motors] = target

    def after_step(self, grip: float | None, wanted_slot: int | None, wanted_handle: str | None) -> None:
        """Say what both fingers press, and whether it was let go or slipped out."""
        self.broken = self.released = False
        if grip is not None and grip < 0.0:
            self.released = self.slot is not None or self.handle is not None
            self.release()
        elif self.slot is not None or self.handle is not None:
            self._loose_steps = 0 if self._still_pressed() else self._loose_steps + 1
            if self._loose_steps < _LOST_STEPS:
                self._turn_along()
            else:
                self.broken = True
                self.release()
        elif self._data.ncon and self._presses():
            self._hold_pressed(wanted_slot, wanted_handle)

    def touches(self) -> list[int]:
        """Geoms that a finger touches, also with its tip."""
        return [geom for pad in range(len(self._pads)) for geom in self._touched_by(pad, least_cosine=-2.0)]

    def hold_object(self, slot: int) -> None:
        """Close the fingers at once on an object where it is now."""
        self._close_on([self._model.geom(f"object_{slot}").id])
        self._begin(self._model.body(f"object_{slot}").id)
        self.slot = slot

    def hold_handle(self, name: str) -> None:
        """Close the fingers at once on a handle."""
        handle = self._home.handles.index(name)
        self._close_on(np.flatnonzero(self._home.handle_of_geom == handle).tolist())
        self._begin(self._model.body(name).id)
        self.handle = name

    def release(self) -> None:
        """Hold nothing. The fingers open in the steps that command it."""
        self.slot = self.handle = None
        self._loose_steps = 0

    def stretch_m(self) -> float:
        """How far the held thing has slipped; 0 when nothing is held."""
        if self.slot is None and self.handle is None:
            return 0.0
        return math.dist(self._place_of(self._held_body, self._held_point),
                         self._place_of(self._gripper, self._hand_point))

    def _turn_along(self) -> None:
        """Take back what the integrator moves a held object outwards where the hand moves along an arc.

        In a substep it moves a free body straight ahead, and the hand along its arc, which no friction between them
        sees: 3 mm/s where the base turns at 1 rad/s with the arm stretched out.
        """
        if self.slot is None:
            return
        model, data = self._model, self._data
        mujoco.mj_jacDot(model, data, self._jacobian, None, data.xpos[self._held_body], self._gripper)
        at = self._object_qpos[self.slot]
        data.qpos[at:at + 3] += 0.5 * model.opt.timestep * STEP_S * (self._jacobian @ data.qvel)

    # ------------------------------------------------------------------ contacts

    def _touched_by(self, pad: int, least_cosine: float = _FACING) -> list[int]:
        contact, data = self._data.contact, self._data
        axis = data.xaxis[self._joints[pad]]
        count = cup_touches(contact.geom, contact.frame, contact.dist, self._pads[pad], axis, least_cosine,
                            self._touched)
        return self._touched[:count].tolist()

    def _presses(self) -> bool:
        """Both motors push against something between the fingers."""
        return bool((self._data.actuator_force[self._motors] > self._pressed_n).all()
                    and (self._data.qpos[self._qpos] < self._shut_m).all())

    def _between(self) -> set[tuple[int, int]]:
        """Slots and handles that both fingers touch, NO_OWNER for either."""
        home, sides = self._home, []
        for pad in range(len(self._pads)):
            sides.append({(int(home.object_of_geom[geom]), int(home.handle_of_geom[geom]))
                          for geom in self._touched_by(pad)})
        return set.intersection(*sides) - {(NO_OWNER, NO_OWNER)}

    def _still_pressed(self) -> bool:
        held = (self.slot, NO_OWNER) if self.slot is not None else (NO_OWNER, self._home.handles.index(self.handle))
        return held in self._between()

    def _hold_pressed(self, wanted_slot: int | None, wanted_handle: str | None) -> None:
        """Hold what both fingers press: the wanted thing if it is among that."""
        between = self._between()
        if not between:
            return
        handles = self._home.handles
        slot, handle = min(between, key=lambda held: (
            held[0] != wanted_slot, held[1] == NO_OWNER or handles[held[1]] != wanted_handle, held))
        if slot != NO_OWNER:
            self._begin(self._model.body(f"object_{slot}").id)
            self.slot = slot
        else:
            self._begin(self._model.body(handles[handle]).id)
            self.handle = handles[handle]

    # ------------------------------------------------------------------ holding

    def _close_on(self, geoms: list[int]) -> None:
        """Put the fingers against geoms, pushing."""
        model, data = self._model, self._data
        data.qpos[self._qpos] = 0.0
        mujoco.mj_kinematics(model, data)
        gap_m = min(mujoco.mj_geomDistance(model, data, pad, geom, self._shut_m, None)
                    for pad in self._pads for geom in geoms)
        closed_m = min(max(gap_m, 0.0) + _INTO_M, self._shut_m)
        data.qpos[self._qpos], data.ctrl[self._motors] = closed_m, closed_m + self._step_m
        mujoco.mj_forward(model, data)

    def _begin(self, body: int) -> None:
        """Remember where the middle between the fingers is on what is held."""
        middle = self._data.geom_xpos[self._pads].mean(axis=0)
        self._held_body = body
        for point, frame in ((self._hand_point, self._gripper), (self._held_point, body)):
            point[:] = self._data.xmat[frame].reshape(3, 3).T @ (middle - self._data.xpos[frame])

    def _place_of(self, frame: int, point: np.ndarray) -> np.ndarray:
        return self._data.xpos[frame] + self._data.xmat[frame].reshape(3, 3) @ point

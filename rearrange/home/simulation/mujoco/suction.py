"""The suction cup: it holds what it touches, an object by a weld or a handle by a ball joint, until told to release."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from rearrange.home.simulation.mujoco.contacts import cos_limit, cup_touches

if TYPE_CHECKING:
    from rearrange.home.settings.environment import SimulatorConfig
    from rearrange.home.simulation.mujoco.compiled_home import CompiledHome


class Suction:
    """The `rearrange.home.simulation.mujoco.hands.HandInHome` of a robot with a suction cup."""

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData, home: CompiledHome) -> None:
        self._model, self._data = model, data
        self._handles = handles = home.handles
        self._object_of_geom, self._handle_of_geom = home.object_of_geom, home.handle_of_geom
        slots = int(self._object_of_geom.max()) + 1
        self._object_bodies = [model.body(f"object_{slot}").id for slot in range(slots)]
        self._handle_bodies = [model.body(name).id for name in handles]
        self._handle_sites = [model.site(f"{name}_handle").id for name in handles]
        self._handle_reach_m = home.handle_reach_m
        self._silent = [list(geoms) for geoms in home.silent_while_held]
        self._bits = [(model.geom_contype[geoms].copy(), model.geom_conaffinity[geoms].copy())
                      for geoms in self._silent]
        self._welds = [model.equality(f"hold_object_{slot}").id for slot in range(slots)]
        self._joints = [model.equality(f"hold_{name}").id for name in handles]
        hand = home.robot.hand
        self._gripper = model.body(hand.body).id
        self._site = model.site(hand.site).id
        (cup,) = hand.pads
        self._cup, self._break_m = model.geom(cup).id, hand.break_m
        self.max_angle_rad: float | None = None  # between cup and surface; None holds at any touch
        self._touched = np.zeros(16, np.int32)  # room for the geoms that a small cup can touch at once
        self._constraint = -1
        self._held_point = np.zeros(3)  # where the hold is, in the frame of what is held
        self._hand_point = np.zeros(3)  # the same point in the frame of the gripper
        self.slot: int | None = None
        self.handle: str | None = None
        self.broken = self.released = False

    def configure(self, config: SimulatorConfig) -> None:
        self.max_angle_rad = config.suction_max_angle_rad

    def before_step(self, grip: float | None) -> None:
        """A cup has no motors."""

    def after_step(self, grip: float | None, wanted_slot: int | None, wanted_handle: str | None) -> None:
        """Tear off, let go, or hold what the cup touches."""
        self.broken = self.released = False
        if self.holding:
            if self.stretch_m() > self._break_m:
                self.broken = True
                self.release()
            elif grip is not None and grip < 0.0:
                self.released = True
                self.release()
        elif grip is not None and grip >= 0.0 and self._data.ncon:
            self.hold_touched(wanted_slot, wanted_handle)

    @property
    def holding(self) -> bool:
        return self._constraint >= 0

    def touches(self) -> list[int]:
        """Geoms that the cup touches now."""
        contact = self._data.contact
        axis = self._data.site_xmat[self._site, ::3]  # first column: the way the cup faces
        count = cup_touches(contact.geom, contact.frame, contact.dist, self._cup, axis, cos_limit(self.max_angle_rad),
                            self._touched)
        return self._touched[:count].tolist()

    def hold_touched(self, wanted_slot: int | None, wanted_handle: str | None) -> None:
        """Hold what the cup touches: the wanted thing if it is among that, else the first."""
        first = None
        for geom in self.touches():
            slot, handle = int(self._object_of_geom[geom]), self._handle_at(geom)
            if slot >= 0 and slot == wanted_slot:
                return self.hold_object(slot)
            if handle >= 0 and self._handles[handle] == wanted_handle:
                return self.hold_handle(wanted_handle)
            if first is None and (slot >= 0 or handle >= 0):
                first = (slot, handle)
        if first is not None and first[0] >= 0:
            self.hold_object(first[0])
        elif first is not None:
            self.hold_handle(self._handles[first[1]])

    def _handle_at(self, geom: int) -> int:
        """The handle that a touched geom is a part of; -1 for none, or if the cup is too far from its middle."""
        handle = int(self._handle_of_geom[geom])
        if handle >= 0 and self._handle_reach_m[handle] < math.inf:
            where = self._data.site_xpos
            if math.dist(where[self._site].tolist(), where[self._handle_sites[handle]].tolist()) \
                    > self._handle_reach_m[handle]:
                return -1
        return handle

    def hold_object(self, slot: int) -> None:
        """Weld an object to the gripper where it is now."""
        body, weld = self._object_bodies[slot], self._welds[slot]
        data, eq_data = self._data, self._model.eq_data
        inverse, position, rotation = np.zeros(4), np.zeros(3), np.zeros(4)
        mujoco.mju_negQuat(inverse, data.xquat[self._gripper])
        mujoco.mju_rotVecQuat(position, data.xpos[body] - data.xpos[self._gripper], inverse)
        mujoco.mju_mulQuat(rotation, inverse, data.xquat[body])
        eq_data[weld, 0:3] = 0.0  # anchor: the middle of the object
        eq_data[weld, 3:6] = position
        eq_data[weld, 6:10] = rotation
        eq_data[weld, 10] = 1.0  # torque scale, m
        self._held_point[:] = 0.0
        self._hand_point[:] = position
        self._start(weld)
        self.slot = slot

    def hold_handle(self, name: str) -> None:
        """Join the tip of the cup to the point of the handle's body that it touches, free to turn.

        The handle, or the cup where the handle is a part of a larger front, touches nothing then: the rim of a stiff
        cup, which turns about its middle, would press against the bar with more than a kilonewton.
        """
        k = self._handles.index(name)
        body, joint, data = self._handle_bodies[k], self._joints[k], self._data
        tip = data.site_xpos[self._site]
        for point, frame in ((self._hand_point, self._gripper), (self._held_point, body)):
            point[:] = data.xmat[frame].reshape(3, 3).T @ (tip - data.xpos[frame])
        self._model.eq_data[joint, 0:3] = self._hand_point
        self._model.eq_data[joint, 3:6] = self._held_point
        self._start(joint)
        self._model.geom_contype[self._silent[k]] = self._model.geom_conaffinity[self._silent[k]] = 0
        self.handle = name

    def release(self) -> None:
        """Let go of whatever is held."""
        if self._constraint >= 0:
            self._data.eq_active[self._constraint] = 0
        if self.handle is not None:
            k = self._handles.index(self.handle)
            self._model.geom_contype[self._silent[k]], self._model.geom_conaffinity[self._silent[k]] = self._bits[k]
        self._constraint, self.slot, self.handle = -1, None, None

    def stretch_m(self) -> float:
        """How far the held thing has been pulled from its place in the hand; 0 when nothing is held."""
        if self._constraint < 0:
            return 0.0
        body = self._handle_bodies[self._handles.index(self.handle)] if self.slot is None else \
            self._object_bodies[self.slot]
        ends = []
        for frame, point in ((self._gripper, self._hand_point), (body, self._held_point)):
            m, (x, y, z), p = self._data.xmat[frame].tolist(), point.tolist(), self._data.xpos[frame].tolist()
            ends.append([p[i] + m[3 * i] * x + m[3 * i + 1] * y + m[3 * i + 2] * z for i in range(3)])
        return math.dist(*ends)

    def _start(self, constraint: int) -> None:
        self.release()
        self._constraint = constraint
        self._data.eq_active[constraint] = 1

"""The expert of Pick: stand and reach in, touch, pull back, rest."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from skills.experts.clearance import Clearance
from skills.experts.motion import servo
from skills.experts.pick_or_place import ReachingExpert
from skills.experts.reach_plan import NARROW, Aim, Reach, Target, plan_reach

if TYPE_CHECKING:
    from rearrange.home.simulation.simulator_interface import Simulator


class PickExpert(ReachingExpert):
    """Picks the object `skill.target`."""

    _pressed = 0  # steps for which the cup has been pressed on without a hold

    def command(self) -> dict[str, np.ndarray | tuple | float]:
        """The parts of the next action by name."""
        sim = self.sim
        self._plan(done=sim.held == self.skill.target)
        arm, base = np.zeros(7), (0.0, 0.0)
        grip = 1.0 if self._leaving or self._may_hold() else -1.0
        if self._follower is not None and not self._follower.done:
            arm, base = self._follower.command()
        elif self._leaving:
            arm = servo(sim, np.array(sim.from_base(self.skill.config.rest_position_m)), 0.02)
        elif self._follower is not None and self._ready:
            arm = servo(sim, np.array(sim.object_position(self.skill.target)), 0.01)
            self._pressed += 1
            if self._pressed > 20:
                self._follower, self._pressed = None, 0
        return {"arm": arm, "grip": grip, "base": base}

    def _may_hold(self) -> bool:
        """The cup touches the object, or is about to and touches nothing else: it takes nothing on the way, and lets go
        of what is not meant.
        """
        sim, follower = self.sim, self._follower
        touched = sim.touched_objects()
        near = follower is not None and self._ready and len(follower.motion) - follower.at <= _LAST_STEPS
        return self.skill.target in touched or (near and not touched)

    def _ways_in(self) -> Iterator[Reach | None]:
        sim, target = self.sim, self.skill.target
        middle = tuple(sim.object_position(target)[:2])
        for room, tilts in itertools.product((1.0, NARROW), (_TILTS_RAD, _MORE_TILTS_RAD)):
            yield plan_reach(sim, Clearance(sim), middle, surface_aim(sim, target, tilts), touching=sim.twin.slot_of(target),
                             may_drive=self._may_drive, room=room)


_TILTS_RAD = tuple(math.radians(a) for a in (90, 78, 66, 54, 42, 30))  # of the cup below the horizontal
_MORE_TILTS_RAD = tuple(math.radians(a) for a in (84, 72, 60, 48, 36, 18, 6))  # tried next
_LAST_STEPS = 12  # of a way in
_INTO_M = 0.004  # the cup aims at a point this far below the surface


def surface_aim(sim: Simulator, i: int, tilts_rad: Sequence[float]) -> Aim:
    """Aims the cup at the middle of object i, at the place where it meets the surface, from above and from the side."""
    position = np.array(sim.object_position(i))
    twin = sim.twin
    rotation = twin.data.body(f"object_{twin.slot_of(i)}").xmat.reshape(3, 3).copy()
    geom = twin.model.geom(f"object_{twin.slot_of(i)}").id
    size, kind = twin.model.geom_size[geom].copy(), int(twin.model.geom_type[geom])

    def depth_m(axis: np.ndarray) -> float:
        """From the surface to the middle along `axis`."""
        local = np.abs(rotation.T @ axis) + 1e-9
        if kind == mujoco.mjtGeom.mjGEOM_SPHERE:
            return float(size[0])
        if kind == mujoco.mjtGeom.mjGEOM_CYLINDER:
            return min(size[0] / math.hypot(local[0], local[1]), size[1] / local[2])
        return float((size / local).min())

    def aim(heading: float) -> Iterator[Target]:
        for tilt in tilts_rad:
            level = math.cos(tilt)
            axis = np.array([level * math.cos(heading), level * math.sin(heading), -math.sin(tilt)])
            yield Target(position - (depth_m(axis) - _INTO_M) * axis, axis, -axis)

    return aim

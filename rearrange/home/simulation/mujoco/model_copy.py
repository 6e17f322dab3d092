"""A home that one simulator steps: its own model and state, and the views of them that are read at every step.

The model is copied because what is held, and what is near, is written into it. Making a copy costs more than anything
else in a reset, so one that has been left waits with its home for the next simulator of the process.

Two things are done to MuJoCo's insides to make it faster: `collision_filter`, and the clock below. Each has its gain,
and a test that the states are the same bit for bit without it (tests/rearrange/test_collision_filter.py).
REARRANGE_PLAIN_MUJOCO=1 leaves MuJoCo as it is.
"""

from __future__ import annotations

import copy
import math
import os
import weakref
from collections.abc import Sequence

import mujoco
import numpy as np

from rearrange.home.numba_cache import cfunc, float64
from rearrange.home.pictures.raster import Poses
from rearrange.home.simulation.mujoco.collision_filter import Everything, NearOnly
from rearrange.home.simulation.mujoco.compiled_home import CompiledHome
from rearrange.home.simulation.mujoco.contacts import touches_sleeping
from rearrange.home.simulation.mujoco.hands import hand_of

_SOLID_GROUPS = np.array([1, 1, 0, 0, 0, 0], np.uint8)  # of geoms: building and furniture, drawers and doors
_SHORTEST_M = 1e-9  # of a line: MuJoCo stops at a shorter one
PLAIN = "REARRANGE_PLAIN_MUJOCO"


@cfunc(float64(), cache=True)
def _no_time():
    return 0.0


def _stop_clock() -> None:
    """Do without MuJoCo's profiler: it reads the clock thirty times per substep, for `data.timer`, which nobody reads.

    The clock is a setting of the whole process, so that other users of MuJoCo in it find timers of 0 as well; one that
    somebody has set stays. Gain: 1.02 times the steps per second of a core, 1.01 to 1.08 (measured as that of
    `collision_filter`).
    """
    if mujoco.get_mjcb_time() is None:
        mujoco.set_mjcb_time(_no_time.ctypes)


class HomeCopy:
    """Model and data of a home, the robot's hand, and views into both. Who uses it keeps the home."""

    def __init__(self, home: CompiledHome) -> None:
        is_plain = os.environ.get(PLAIN, "") not in ("", "0")
        if not is_plain:
            _stop_clock()
        # The home keeps copies that wait, and they must not keep it: a home that is no longer cached would then wait
        # for Python's search for cycles, which a worker that steps for hours reaches after thousands of homes.
        self.home = home = weakref.proxy(home)
        self.model = model = copy.copy(home.model)
        self.data = data = copy.copy(home.parked)  # half the time and memory of making one from the model
        self.hand = hand_of(model, data, home)
        self.elliptic = model.opt.cone == mujoco.mjtCone.mjCONE_ELLIPTIC
        self.body_of_slot = [model.body(f"object_{slot}").id for slot in range(len(home.objects))]
        self.qpos_of_slot = [int(model.joint(f"object_{slot}").qposadr[0]) for slot in range(len(home.objects))]
        self.base_qpos, self.base_ctrl = data.qpos[home.base_qpos], data.ctrl[home.base_ctrl]
        self.arm_qpos, self.arm_ctrl = data.qpos[home.arm_qpos], data.ctrl[home.arm_ctrl]
        self.qvel, self.xpos, self.poses = data.qvel, data.xpos, Poses.of(data)
        self.arm_qvel = data.qvel[home.arm_dofs]
        first, *_, last = model.dof_jntid[home.arm_dofs]
        self.arm_anchors = data.xanchor[first:last + 1]
        self._tree_of_geom, self._hit = model.body_treeid[model.geom_bodyid], np.zeros(1, np.int32)
        site = model.site(home.robot.hand.site).id
        self.ee_xpos, self.ee_xmat = data.site_xpos[site], data.site_xmat[site]
        self.handle_xpos = {name: data.site_xpos[model.site(f"{name}_handle").id] for name in home.handles}
        self.handle_qpos = {name: int(model.joint(name).qposadr[0]) for name in home.handles}
        self.handle_dof = {name: int(model.joint(name).dofadr[0]) for name in home.handles}
        self.collision_test = Everything() if is_plain else NearOnly(home.nearness, model, data)

    def find_contacts(self) -> None:
        """Compute positions and contacts, as mj_forward does first; what is touched wakes, as there."""
        mujoco.mj_kinematics(self.model, self.data)
        self.collision_test.narrow(0.0)
        try:
            mujoco.mj_collision(self.model, self.data)
        finally:
            self.collision_test.widen()
        if self.data.ncon and touches_sleeping(self.data.contact.geom, self._tree_of_geom, self.data.tree_asleep):
            mujoco.mj_forward(self.model, self.data)

    def is_between(self, start: Sequence[float], end: Sequence[float]) -> bool:
        """Whether building, furniture, drawers or doors cross the straight line between two points."""
        way = [b - a for a, b in zip(start, end)]
        if math.hypot(*way) < _SHORTEST_M:
            return False
        return 0.0 <= mujoco.mj_ray(self.model, self.data, start, way, _SOLID_GROUPS, 1, -1, self._hit) < 1.0


def take(home: CompiledHome) -> HomeCopy:
    """A copy of a home in the state that the last user left."""
    return home.spare.pop() if home.spare else HomeCopy(home)


def give_back(used: HomeCopy) -> None:
    """Keep a copy for the next who takes one; of each home one copy waits."""
    used.hand.release()
    if not used.home.spare:
        used.home.spare.append(used)

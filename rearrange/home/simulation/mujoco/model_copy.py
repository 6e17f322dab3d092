"""A home that one simulator steps: its own model and state, and the views of them that are read at every step.

The model is copied because what is held, and what is near, is written into it. Making a copy costs more than anything
else in a reset, so one that has been left waits with its home for the next simulator of the process.
"""

from __future__ import annotations

import copy

import mujoco

from rearrange.home.pictures.raster import Poses
from rearrange.home.simulation.mujoco.collision_filter import collision_test
from rearrange.home.simulation.mujoco.compiled_home import CompiledHome
from rearrange.home.simulation.mujoco.fast_paths import stop_clock
from rearrange.home.simulation.mujoco.suction import Suction


class HomeCopy:
    """Model and data of a home, its suction cup, and views into both."""

    def __init__(self, home: CompiledHome) -> None:
        stop_clock()
        self.home = home
        self.model = model = copy.copy(home.model)
        self.data = data = mujoco.MjData(model)
        self.suction = Suction(model, data, home)
        self.elliptic = model.opt.cone == mujoco.mjtCone.mjCONE_ELLIPTIC
        self.body_of_slot = [model.body(f"object_{slot}").id for slot in range(len(home.objects))]
        self.qpos_of_slot = [int(model.joint(f"object_{slot}").qposadr[0]) for slot in range(len(home.objects))]
        self.base_qpos, self.base_ctrl = data.qpos[home.base_qpos], data.ctrl[home.base_ctrl]
        self.arm_qpos, self.arm_ctrl = data.qpos[home.arm_qpos], data.ctrl[home.arm_ctrl]
        self.qvel, self.xpos, self.poses = data.qvel, data.xpos, Poses.of(data)
        self.arm_qvel = data.qvel[home.arm_dofs]
        site = model.site("end_effector").id
        self.ee_xpos, self.ee_xmat = data.site_xpos[site], data.site_xmat[site]
        self.handle_xpos = {name: data.site_xpos[model.site(f"{name}_handle").id] for name in home.handles}
        self.handle_qpos = {name: int(model.joint(name).qposadr[0]) for name in home.handles}
        self.handle_dof = {name: int(model.joint(name).dofadr[0]) for name in home.handles}
        self.collision_test = collision_test(home.nearness, model, data)


def take(home: CompiledHome) -> HomeCopy:
    """A copy of a home in the state that the last user left."""
    return home.spare.pop() if home.spare else HomeCopy(home)


def give_back(used: HomeCopy) -> None:
    """Keep a copy for the next who takes one; of each home one copy waits."""
    used.suction.release()
    if not used.home.spare:
        used.home.spare.append(used)

"""How deep a robot is in what surrounds it, measured without the simulator's own judgement."""

from __future__ import annotations

import mujoco
import numpy as np

from rearrange.home.simulation.mujoco.simulator import MujocoSimulator

_POINTS = np.linspace(-1.0, 1.0, 9)  # along the axis of each capsule


def robot_depth_m(sim: MujocoSimulator) -> float:
    """The deepest contact of the robot, or how deep the axis of a capsule of its arm lies in a box, whichever is more.

    MuJoCo reports a contact of a few micrometres, or none, of a capsule whose axis is in a thin box, such as a wall.
    """
    contact = sim.data.contact
    robot = sim.home.geom_role[contact.geom].any(axis=1) if contact.geom.size else np.zeros(0, bool)
    return max(-contact.dist[robot].min(initial=0.0), arm_axis_depth_m(sim))


def arm_axis_depth_m(sim: MujocoSimulator) -> float:
    """How deep the axis of a capsule of the arm lies in a wall or a piece of furniture; 0 outside of all."""
    model, data, home = sim.model, sim.data, sim.home
    solid = model.geom_contype > 0
    capsule, box = (model.geom_type == kind for kind in (mujoco.mjtGeom.mjGEOM_CAPSULE, mujoco.mjtGeom.mjGEOM_BOX))
    arms = np.flatnonzero((home.geom_role == 2) & capsule & solid)
    boxes = np.flatnonzero((home.geom_role == 0) & (home.object_of_geom < 0) & box & solid)
    assert arms.size >= 4 and boxes.size > 20
    axes = data.geom_xmat[arms].reshape(-1, 3, 3)[:, :, 2] * model.geom_size[arms, 1:2]
    points = (data.geom_xpos[arms][:, None] + axes[:, None] * _POINTS[:, None]).reshape(-1, 3)
    rotation = data.geom_xmat[boxes].reshape(-1, 3, 3)
    in_box = np.einsum("bji,bpj->bpi", rotation, points - data.geom_xpos[boxes][:, None])
    return max(0.0, (model.geom_size[boxes][:, None] - np.abs(in_box)).min(axis=-1).max())

"""Which links of the robot are near furniture: only those are tested for collision with it.

MuJoCo tests every link against the furniture of the whole home, four times in an environment step; most links are far
from all of it. A test of boxes around both, once in a step, is enough to leave those out. It changes no result: a link
is left out only when it cannot reach anything before the next step.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
from numba import float64, int32, njit

FURNITURE_BIT, FLOOR_BIT = 1, 16  # collision classes of `rearrange.home`

_SLACK_M = 0.06  # more than what the motors can add to the present speed, over a step


@dataclass(frozen=True, eq=False)
class Nearness:
    """What `reachable` needs of a home."""

    furniture: np.ndarray  # (pieces, 6) low and high corner of the box around each (m)
    links: slice  # bodies of the robot, base first
    dofs: slice  # joint velocities of the robot
    reach_m: np.ndarray  # (dofs,) how far at most a point moves per unit of each joint; 1 for a sliding one
    link_of_dof: np.ndarray  # (dofs,)
    geoms: np.ndarray  # (geoms, 2) those of the robot that collide, and the row of `links` to which each belongs
    boxes: np.ndarray  # (geoms, 6) middle and half size, in the geom's frame (m)
    bits: np.ndarray  # (links,) what each collides with when it is near everything


def measure(model: mujoco.MjModel, base_joint: str) -> Nearness:
    """Prepare a home whose robot is the tree of bodies that begins with `base_joint`: a single chain."""
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    furniture = np.flatnonzero((model.geom_contype & FURNITURE_BIT) > 0)
    rotation = data.geom_xmat[furniture].reshape(-1, 3, 3)
    middle = data.geom_xpos[furniture] + np.einsum("nij,nj->ni", rotation, model.geom_aabb[furniture, :3])
    half = np.einsum("nij,nj->ni", np.abs(rotation), model.geom_aabb[furniture, 3:])
    root = int(model.joint(base_joint).bodyid[0])
    tree = np.flatnonzero(model.body_treeid == model.body_treeid[root])
    links = slice(int(tree[0]), int(tree[-1]) + 1)
    of_robot = (model.geom_bodyid >= links.start) & (model.geom_bodyid < links.stop)
    geoms = np.flatnonzero(of_robot & (model.geom_conaffinity > 0))
    dofs = np.flatnonzero(model.dof_treeid == model.body_treeid[root])
    return Nearness(
        furniture=np.hstack([middle - half, middle + half]), links=links,
        dofs=slice(int(dofs[0]), int(dofs[-1]) + 1), reach_m=_reach_m(model, dofs, geoms),
        link_of_dof=(model.dof_bodyid[dofs] - links.start).astype(np.int32),
        geoms=np.column_stack([geoms, model.geom_bodyid[geoms] - links.start]).astype(np.int32),
        boxes=model.geom_aabb[geoms].copy(), bits=model.body_conaffinity[links].copy())


def _reach_m(model: mujoco.MjModel, dofs: np.ndarray, geoms: np.ndarray) -> np.ndarray:
    """For each joint the longest way along the links to the end of a geom that it moves (m); 1 for a sliding joint."""
    reach = np.ones(len(dofs))
    for k, dof in enumerate(dofs):
        joint = model.dof_jntid[dof]
        if model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_SLIDE:
            continue
        first = model.jnt_bodyid[joint]
        way = {int(first): 0.0}
        for body in range(first + 1, model.geom_bodyid[geoms].max() + 1):
            way[body] = way[int(model.body_parentid[body])] + float(np.linalg.norm(model.body_pos[body]))
        moved = [g for g in geoms if int(model.geom_bodyid[g]) in way]
        reach[k] = max(way[int(model.geom_bodyid[g])] + np.linalg.norm(model.geom_pos[g]) + model.geom_rbound[g]
                       for g in moved)
    return reach


@njit(cache=True, nogil=True, inline="always")
def _overlap(a, b):
    return a[0] <= b[3] and a[3] >= b[0] and a[1] <= b[4] and a[4] >= b[1] and a[2] <= b[5] and a[5] >= b[2]


@njit((float64[:, ::1], float64[:, ::1], float64[:, ::1], int32[:, ::1], float64[:, ::1], float64[::1], float64[::1],
       int32[::1], float64, int32[::1], float64[:, ::1], int32[::1]), cache=True, nogil=True)
def reachable(furniture, xpos, xmat, geoms, boxes, velocity, reach, link_of_dof, duration_s, bits, corners, out):
    """Write into `out` (links,) what each link can touch in the next `duration_s`: its `bits`, without the one for
    furniture or floor that it cannot reach.

    furniture, geoms, boxes, reach, link_of_dof, bits: of Nearness. xpos, xmat: poses of all geoms. velocity: (dofs,) of the
    robot. corners: (links, 7) room for work.
    """
    corners[:, :3] = np.inf
    corners[:, 3:6] = -np.inf
    corners[:, 6] = _SLACK_M  # how far the link can move: every joint before it adds to that
    for k in range(velocity.shape[0]):
        corners[link_of_dof[k]:, 6] += duration_s * reach[k] * abs(velocity[k])
    for k in range(geoms.shape[0]):
        g, link = geoms[k]
        for i in range(3):
            a, b, c = xmat[g, 3 * i], xmat[g, 3 * i + 1], xmat[g, 3 * i + 2]
            middle = xpos[g, i] + a * boxes[k, 0] + b * boxes[k, 1] + c * boxes[k, 2]
            half = abs(a) * boxes[k, 3] + abs(b) * boxes[k, 4] + abs(c) * boxes[k, 5] + corners[link, 6]
            corners[link, i] = min(corners[link, i], middle - half)
            corners[link, i + 3] = max(corners[link, i + 3], middle + half)
    around = np.empty(6)
    for i in range(3):
        around[i], around[i + 3] = corners[:, i].min(), corners[:, i + 3].max()
    for link in range(out.shape[0]):
        out[link] = bits[link] & ~FURNITURE_BIT
        if corners[link, 2] > 0.0:
            out[link] &= ~FLOOR_BIT
    for piece in furniture:
        if not _overlap(around, piece):
            continue
        for link in range(out.shape[0]):
            if _overlap(corners[link], piece):
                out[link] |= bits[link] & FURNITURE_BIT

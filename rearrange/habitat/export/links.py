"""Bodies of a MuJoCo model as links with shapes: what becomes a GLB file or a link of a URDF file.

The shapes are the geoms that physics and depth camera use; nothing describes furniture or robot a second time. Metres,
kilograms; frames z up, as in the model.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import mujoco
import numpy as np

KINDS = {
    mujoco.mjtGeom.mjGEOM_PLANE: "plane",
    mujoco.mjtGeom.mjGEOM_SPHERE: "sphere",
    mujoco.mjtGeom.mjGEOM_CAPSULE: "capsule",
    mujoco.mjtGeom.mjGEOM_CYLINDER: "cylinder",
    mujoco.mjtGeom.mjGEOM_BOX: "box",
}


@dataclass(frozen=True, eq=False)
class Shape:
    """One primitive in the frame of its link."""

    name: str
    kind: str  # of KINDS; the axis of cylinder and capsule is z of its own frame
    half_size_m: tuple[float, ...]  # box: half x, y, z; plane: x, y; sphere: radius; others: radius, half length
    position_m: np.ndarray  # (3,)
    rotation: np.ndarray  # (3, 3), columns: its axes
    rgb: tuple[float, float, float]
    seen: bool  # drawn by the depth camera
    solid: bool  # takes part in contacts


@dataclass(frozen=True)
class Joint:
    """How a link moves against its parent."""

    name: str
    kind: str = "fixed"  # fixed, revolute, continuous or prismatic
    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)
    range_m_or_rad: tuple[float, float] = (0.0, 0.0)
    dry_friction_n_or_nm: float = 0.0
    max_force_n_or_nm: float = 0.0


@dataclass(frozen=True, eq=False)
class Link:
    """A rigid part with its joint; position and rotation: of its frame in its parent's, with the joint at 0."""

    name: str
    parent: str | None
    joint: Joint | None
    shapes: tuple[Shape, ...] = ()
    position_m: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rotation: np.ndarray = field(default_factory=lambda: np.eye(3))
    mass_kg: float = 0.0
    center_of_mass_m: tuple[float, float, float] = (0.0, 0.0, 0.0)
    # About the centre of mass, along the axes of the link.
    inertia_kg_m2: np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))


def rotation_of(quat: np.ndarray) -> np.ndarray:
    """Matrix (3, 3) of a quaternion (w, x, y, z)."""
    matrix = np.empty(9)
    mujoco.mju_quat2Mat(matrix, quat)
    return matrix.reshape(3, 3)


def shapes_of(model: mujoco.MjModel, body: str | int) -> tuple[Shape, ...]:
    """The geoms of a body, in its frame.

    A disc is one cylinder here; in the model it is drawn as a cylinder and touched as the prism after it.
    """
    is_prism = np.append(model.geom_type == mujoco.mjtGeom.mjGEOM_MESH, False)
    found = []
    for geom in np.flatnonzero((model.geom_bodyid == model.body(body).id) & ~is_prism[:-1]).tolist():
        kind = KINDS[mujoco.mjtGeom(model.geom_type[geom])]
        sizes = {"box": 3, "sphere": 1}.get(kind, 2)
        found.append(Shape(
            model.geom(geom).name, kind, tuple(model.geom_size[geom][:sizes].tolist()), model.geom_pos[geom].copy(),
            rotation_of(model.geom_quat[geom]), tuple(model.geom_rgba[geom][:3].round(4).tolist()),
            seen=bool(model.geom_rgba[geom][3] > 0),
            solid=bool(is_prism[geom + 1] or model.geom_contype[geom] or model.geom_conaffinity[geom])))
    return tuple(found)


def link_of(model: mujoco.MjModel, body: str, parent: str | None, name: str, joint: str = "",
            limited: bool = True) -> Link:
    """A body as a link called `name`, and its joint, if it has one, as `joint`; not `limited`: it turns without end."""
    i = model.body(body).id
    principal = rotation_of(model.body_iquat[i])
    return Link(
        name, parent, _joint(model, i, joint, limited) if parent else None, shapes_of(model, i),
        tuple(model.body_pos[i].tolist()), rotation_of(model.body_quat[i]), float(model.body_mass[i]),
        tuple(model.body_ipos[i].tolist()), principal @ np.diag(model.body_inertia[i]) @ principal.T)


def _joint(model: mujoco.MjModel, body: int, name: str, limited: bool) -> Joint:
    if model.body_jntnum[body] == 0:
        return Joint(name)
    i, dof = model.body_jntadr[body], model.body_dofadr[body]
    slides = model.jnt_type[i] == mujoco.mjtJoint.mjJNT_SLIDE
    kind = "prismatic" if slides else "revolute" if limited and model.jnt_limited[i] else "continuous"
    forces = [abs(model.actuator_forcerange[a][1]) for a in range(model.nu) if model.actuator_trnid[a][0] == i]
    return Joint(name, kind, tuple(model.jnt_axis[i].tolist()), tuple(model.jnt_range[i].tolist()),
                 float(model.dof_frictionloss[dof]), float(max(forces, default=0.0)))

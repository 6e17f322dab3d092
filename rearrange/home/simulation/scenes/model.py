"""A scene as a MuJoCo model, with the robot and the objects of an episode in it as in our homes.

What stands still belongs to the world's body. Geom groups: 0 what stands still, 1 what can be opened, both unseen,
because the scene's own meshes are drawn instead; 2 to 4 as in `rearrange.home.simulation.mujoco.build_model`.
"""

from __future__ import annotations

from collections.abc import Mapping

import mujoco
import numpy as np

from rearrange.home.apartments.layouts import Layout
from rearrange.home.apartments.objects import STANDARD_SET
from rearrange.home.errors import UserError
from rearrange.home.geometry import matrix_quat
from rearrange.home.robot import robot_named
from rearrange.home.robot.robot import Robot
from rearrange.home.scene_files.surfaces import transform
from rearrange.home.simulation.mujoco.build_model import FLOOR_TYPE, home_mjcf
from rearrange.home.simulation.mujoco.compiled_home import THING
from rearrange.home.simulation.scenes.convex_parts import Solid
from rearrange.home.simulation.scenes.objects import OwnObject
from rearrange.home.simulation.scenes.scene_parts import FREE, MOST_DAMPING, STILL, THIN_M, Part, Pieces

_FLOOR_M = 0.01
OWN_GROUP = 5  # of objects with meshes of their own
UNSEEN_GROUPS = (0, 1, 4, OWN_GROUP)
# contype, conaffinity, as in our homes; what is free collides as objects do
_BITS = {"still": (1, 0), "opened": (2, 0), "floor": (FLOOR_TYPE, 0), FREE: (8, 31)}
_KINDS = {"box": mujoco.mjtGeom.mjGEOM_BOX, "cylinder": mujoco.mjtGeom.mjGEOM_CYLINDER,
          "capsule": mujoco.mjtGeom.mjGEOM_CAPSULE, "sphere": mujoco.mjtGeom.mjGEOM_SPHERE}
# At least as much as in our homes, so that what is left open stays open. HAB drives its joints with weak motors for it.
_LEAST_DAMPING, _LEAST_FRICTION, _ARMATURE = {"slide": 6.0, "hinge": 2.0}, {"slide": 2.0, "hinge": 0.6}, 0.2
_STUCK = 1e-6  # m or rad, of a joint that cannot move: MuJoCo has no range of nothing


def part_names(pieces: Pieces, named: Mapping[str, tuple[str, str]]) -> list[str]:
    """Names of the parts in the model: of drawers and doors (`named`: name -> object and link), else numbered."""
    names = {where: name for name, where in named.items()}
    return [names.get((part.handle, part.link), f"part_{number}") for number, part in enumerate(pieces.parts)]


def compile_scene(scene: str, pieces: Pieces, size_m: tuple[float, float], origin: np.ndarray, objects: tuple[str, ...],
                  names: list[str], handles: Mapping[str, np.ndarray],
                  own: Mapping[int, OwnObject] = {},
                  robot: Robot | None = None) -> mujoco.MjModel:
    """The model of a scene.

    Args:
        scene: Its name.
        pieces: What it consists of.
        size_m: Of its floor.
        origin: (3,) by which everything is moved towards 0 (m).
        objects: Name of the object in each slot.
        names: Of the parts.
        handles: Name of a part -> point (3,) of its handle in the moved world, everything closed.
        own: Slot -> object with a mesh of its own, in place of a primitive.
        robot: None for the usual one.
    """
    bare = Layout(scene, -1, size_m, (), (), (), (), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.5, 0.5, 0.5))
    primitives = tuple(STANDARD_SET[0] if slot in own else name for slot, name in enumerate(objects))
    robot = robot or robot_named()
    spec = mujoco.MjSpec.from_string(home_mjcf(bare, primitives, robot))
    world = spec.worldbody
    for slot, thing in own.items():
        _become(spec, f"object_{slot}", thing)
    # A plane is the floor.
    above_floor = [wall for wall in pieces.walls if wall.corners()[:, 2].max() > origin[2] + _FLOOR_M]
    for solid in (*above_floor, *pieces.solids):
        is_thin = (solid.corners()[:, 2] - origin[2]).max() < THIN_M  # a robot drives over it
        kind = "floor" if is_thin else "still"
        _add_geom(spec, world, solid.moved(transform(None, -origin)), kind, 0)
    bodies: list[mujoco.MjsBody] = []
    for name, part in zip(names, pieces.parts):
        above = np.eye(4) if part.parent == STILL else pieces.parts[part.parent].frame
        frame = np.linalg.inv(above) @ part.frame
        if part.parent == STILL:
            frame[:3, 3] -= origin
        body = (world if part.parent == STILL else bodies[part.parent]).add_body(
            name=name, pos=frame[:3, 3], quat=matrix_quat(frame[:3, :3]), gravcomp=float(part.kind != FREE))
        bodies.append(body)
        _add_joint(body, name, part)
        for solid in part.solids:
            _add_geom(spec, body, solid, FREE if part.kind == FREE else "opened", 1)
        for thing, mark in part.things.items():
            body.add_site(name=f"{THING}{thing}", pos=mark[:3, 3], quat=matrix_quat(mark[:3, :3]), size=[0.01] * 3)
        if name in handles:
            local = np.linalg.inv(part.frame) @ (*(handles[name] + origin), 1.0)
            body.add_site(name=f"{name}_handle", pos=local[:3], size=[0.01] * 3)
            if robot.hand.kind == "suction":
                spec.add_equality(
                    name=f"hold_{name}", type=mujoco.mjtEq.mjEQ_CONNECT, name1=robot.hand.body, name2=name,
                    active=False, objtype=mujoco.mjtObj.mjOBJ_BODY, data=_padded(0.05), solref=[0.02, 1.0])
    for name, part in zip(names, pieces.parts):
        if part.follows is not None:
            leader, terms = part.follows
            spec.add_equality(name=f"follow_{name}", type=mujoco.mjtEq.mjEQ_JOINT, name1=name, name2=names[leader],
                              active=True, data=_padded(*terms))
    try:
        return spec.compile()
    except ValueError as error:
        raise UserError(f"MuJoCo cannot simulate scene {scene}: {' '.join(str(error).split())}") from None


def _become(spec: mujoco.MjSpec, name: str, thing: OwnObject) -> None:
    """Give a free body that is a primitive the convex parts and the mass of an object instead. Its contacts stay."""
    body = spec.body(name)
    (old,) = body.geoms
    contact = {key: getattr(old, key) for key in ("contype", "conaffinity", "priority", "condim")}
    contact |= {key: np.array(getattr(old, key)) for key in ("solref", "solimp", "friction")}
    spec.delete(old)
    for number, solid in enumerate(thing.solids):
        geom = _add_geom(spec, body, solid, "still", OWN_GROUP)
        geom.name = name if number == 0 else f"{name}_{number}"
        for key, value in contact.items():
            setattr(geom, key, value)
    body.pos[2] = -thing.low[2]
    _weigh(body, thing.low, thing.high, thing.mass_kg)


def _padded(*data: float) -> list[float]:
    """Data of a constraint, as many numbers as MuJoCo has for one."""
    return [*data, *[0.0] * (mujoco.mjNEQDATA - len(data))]


def _weigh(body: mujoco.MjsBody, low: np.ndarray, high: np.ndarray, mass_kg: float) -> None:
    """Give a body the inertia of a box of evenly spread mass, with these corners (3,) (m)."""
    x, y, z = np.maximum(high - low, 0.01) ** 2
    body.explicitinertial, body.mass, body.ipos = True, mass_kg, (low + high) / 2
    body.inertia = mass_kg / 12.0 * np.array([y + z, x + z, x + y])


def _add_joint(body: mujoco.MjsBody, name: str, part: Part) -> None:
    """The joint, and mass as if the link were a box of even weight."""
    if part.kind == FREE:
        body.add_freejoint(name=name)
    else:
        kind = mujoco.mjtJoint.mjJNT_SLIDE if part.kind == "slide" else mujoco.mjtJoint.mjJNT_HINGE
        limited, (low, high) = bool(np.isfinite(part.range).all()), part.range
        body.add_joint(
            name=name, type=kind, axis=part.axis, limited=limited,
            range=(low, max(high, low + _STUCK)) if limited else (0.0, 0.0),
            damping=np.full(3, min(max(part.damping, _LEAST_DAMPING[part.kind]), MOST_DAMPING[part.kind])),
            frictionloss=max(part.friction, _LEAST_FRICTION[part.kind]), armature=_ARMATURE)
    points = np.concatenate([solid.corners() for solid in part.solids] or [np.zeros((1, 3))])
    _weigh(body, points.min(axis=0), points.max(axis=0), part.mass_kg)


def _add_geom(spec: mujoco.MjSpec, body: mujoco.MjsBody, solid: Solid, kind: str, group: int) -> mujoco.MjsGeom:
    contype, conaffinity = _BITS[kind]
    common = dict(contype=contype, conaffinity=conaffinity, group=group, mass=0.0)
    if solid.kind == "hull":
        middle = solid.points.mean(axis=0)
        mesh = spec.add_mesh(name=f"hull_{len(spec.meshes)}", uservert=(solid.points - middle).ravel(),
                             inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_CONVEX)
        return body.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname=mesh.name, pos=middle, **common)
    return body.add_geom(type=_KINDS[solid.kind], size=(*solid.size, 0.0, 0.0)[:3], pos=solid.frame[:3, 3],
                         quat=matrix_quat(solid.frame[:3, :3]), **common)

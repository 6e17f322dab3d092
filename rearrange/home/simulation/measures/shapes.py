"""What there is to measure in a home, ours or an external scene, in one form: triangles, joints and floor.

Points are world points (m, z up) of the home with everything closed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

import mujoco
import numpy as np

from rearrange.home.apartments.floor_grid import CELL_M, blocked_cells
from rearrange.home.apartments.kept_layouts import scene_layout
from rearrange.home.apartments.layouts import Layout
from rearrange.home.apartments.parts import Body, Part, box
from rearrange.home.episodes.generator import SceneLacks
from rearrange.home.geometry import rotate
from rearrange.home.scene_files.surfaces import moved, surface, transform
from rearrange.home.simulation.mujoco.build_model import CEILING_M, compile_home, handle_part
from rearrange.home.simulation.scenes import floor
from rearrange.home.simulation.scenes.model import compile_scene
from rearrange.home.simulation.scenes.scene import load_scene
from rearrange.home.simulation.scenes.scene_layout import FRIDGE_DOOR, SceneHome
from rearrange.home.simulation.scenes.scene_parts import STILL, THIN_M
from rearrange.home.simulation.scenes.scene_parts import Part as LinkPart
from rearrange.home.simulation.scenes.scene_selection import usable

ABOVE_FURNITURE_M = 2.2  # at this height only walls stand
_BELOW_TOP_M = 0.05  # of lower walls, which pieces of furniture stand as high as
_WORLD = "world"
_GROUPS, _CONTYPES = (0, 1), (1, 2)  # of what stands still or opens, and collides
_KINDS = {int(mujoco.mjtGeom.mjGEOM_BOX): "box", int(mujoco.mjtGeom.mjGEOM_CYLINDER): "cylinder",
          int(mujoco.mjtGeom.mjGEOM_CAPSULE): "capsule", int(mujoco.mjtGeom.mjGEOM_SPHERE): "sphere"}
_LEAST_M_OR_RAD = {"slide": 0.15, "hinge": 0.5}  # what moves less is no drawer or door


@dataclass(frozen=True, eq=False)
class Opening:
    """A drawer, a door or anything else with one joint, closed. A skill opens the fridge door that `is_fridge`.

    axis: (3,) unit, so that a positive position opens. origin: (3,) a point on the axis of a hinge. opens_m_or_rad: the
    end of its range. seen, touched: (n, 3, 3) triangles of what is drawn and of what collides; where there is none, of
    the other. handle: (3,) where the cup takes it; None where no skill opens it. friction: of its joint (N or Nm), as
    run and as its file has it.
    """

    name: str
    kind: str
    is_fridge: bool
    axis: np.ndarray
    origin: np.ndarray
    opens_m_or_rad: float
    seen: np.ndarray
    touched: np.ndarray
    handle: np.ndarray | None
    friction: float
    friction_in_file: float
    mass_kg: float


@dataclass(frozen=True, eq=False)
class HomeShapes:
    """layout: with the receptacles that the arm reaches. still_seen, still_touched: as of an opening, of all that is
    none. walls_at_m: the height (m) at which rooms end. obstacles: (cells in x, cells in y) over which something stands
    below the robot's head.
    """

    layout: Layout
    openings: tuple[Opening, ...]
    still_seen: np.ndarray
    still_touched: np.ndarray
    obstacles: np.ndarray
    walls_at_m: float = ABOVE_FURNITURE_M


def shapes_of_apartment(scene: str) -> HomeShapes:
    """A home of ours, such as train/17."""
    layout = scene_layout(scene)
    model = compile_home(layout, ())
    touched = touched_triangles(model)
    (x, y), z = layout.size_m, layout.ceiling_m
    above = [] if z is None else [box((0.0, 0.0, z), (x, y, z + CEILING_M), (1.0, 1.0, 1.0))]
    seen = _joined([triangles_of(part) for part in (*layout.parts, *above) if part.solid])
    obstacles = blocked_cells(layout.size_m, layout.parts, layout.bodies, radius_m=CELL_M / 2, above_m=THIN_M)
    openings = tuple(_opening_of_body(body, touched[body.name], model) for body in layout.bodies)
    top_m = min((part.top_m for part in layout.parts if part.name == "wall_0"), default=math.inf)
    return HomeShapes(layout, openings, seen, touched[_WORLD], obstacles, min(ABOVE_FURNITURE_M, top_m - _BELOW_TOP_M))


def shapes_of_scene(path: Path, name: str) -> HomeShapes:
    """A scene of a data set. Raises UserError where it cannot be used."""
    loaded = load_scene.__wrapped__(path, name)  # not kept: each is looked at once
    layout, pieces, origin = _reached(loaded.home), loaded.pieces, np.array(loaded.home.origin_m)
    model = compile_scene(name, pieces, layout.size_m, origin, (), loaded.names, {})
    touched = touched_triangles(model)
    meshes = {number: _joined([mesh.vertices[mesh.triangles] for mesh in pieces.meshes if mesh.row == number])
              for number in range(STILL, len(pieces.parts))}
    joints = {link: joint for joint, link in loaded.home.links.items()}
    openings, still_seen, still_touched = [], [meshes[STILL] - origin], [touched[_WORLD]]
    for number, (part, called) in enumerate(zip(pieces.parts, loaded.names, strict=True)):
        drawn = moved(meshes[number].reshape(-1, 3), part.frame).reshape(-1, 3, 3) - origin
        solid = touched[called]
        if _opens(part) and len(drawn) + len(solid):
            shapes = drawn if len(drawn) else solid, solid if len(solid) else drawn
            known = _body_of(layout, joints.get((part.handle, part.link)))
            openings.append(_opening_of_part(part, known, shapes, origin, _as_run(called, model)))
        else:
            still_seen.append(drawn)
            still_touched.append(solid)
    height, low, high = floor.floor_of(pieces, name)
    obstacles = floor.blocked_cells(pieces, height, low, high, radius_m=CELL_M / 2, shut=True)
    seen, solid = _joined(still_seen), _joined(still_touched)
    return HomeShapes(layout, tuple(openings), seen if len(seen) else solid, solid, obstacles)


def _reached(home: SceneHome) -> Layout:
    try:
        return usable(home)
    except SceneLacks:
        return replace(home.layout, receptacles=())


def touched_triangles(model: mujoco.MjModel) -> dict[str, np.ndarray]:
    """Name of a body -> (n, 3, 3) triangles of what collides of it, everything closed; without robot and floor."""
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    found: dict[str, list[np.ndarray]] = {model.body(number).name: [] for number in range(model.nbody)}
    for geom in np.flatnonzero(np.isin(model.geom_group, _GROUPS) & np.isin(model.geom_contype, _CONTYPES)).tolist():
        if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_MESH:
            mesh = model.mesh(int(model.geom_dataid[geom]))
            first, count = int(mesh.vertadr[0]), int(mesh.vertnum[0])
            vertices = model.mesh_vert[first:first + count]
            triangles = model.mesh_face[int(mesh.faceadr[0]):int(mesh.faceadr[0]) + int(mesh.facenum[0])]
        else:
            vertices, triangles = surface(_KINDS[int(model.geom_type[geom])], model.geom_size[geom])
        placed = moved(vertices, transform(data.geom_xmat[geom], data.geom_xpos[geom]))
        found[model.body(int(model.geom_bodyid[geom])).name].append(placed[triangles])
    return {name: _joined(triangles) for name, triangles in found.items()}


def triangles_of(part: Part) -> np.ndarray:
    """(n, 3, 3) of one primitive."""
    vertices, triangles = surface(part.shape, part.half_size_m)
    if part.shape == "capsule" and part.axis == "y":
        vertices = vertices[:, (0, 2, 1)]
        triangles = triangles[:, ::-1]
    c, s = math.cos(part.yaw_rad), math.sin(part.yaw_rad)
    turn = np.array([(c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0)])
    return moved(vertices, transform(turn, part.center_m))[triangles]


def _joined(triangles: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.empty((0, 3, 3)), *triangles])


def _opening_of_body(body: Body, touched: np.ndarray, model: mujoco.MjModel) -> Opening:
    friction, mass_kg = _as_run(body.name, model)
    axis = (*rotate(1.0, 0.0, body.yaw_rad), 0.0) if body.joint == "slide" else (0.0, 0.0, body.hinge_sign)
    seen = _joined([triangles_of(part) for part in body.parts_at()])
    return Opening(body.name, body.joint, body.name == FRIDGE_DOOR, np.array(axis), np.array(body.position_m),
                   body.range_m_or_rad[1], seen, touched, _handle_point(body), friction, friction, mass_kg)


def _opening_of_part(part: LinkPart, known: Body | None, shapes: tuple[np.ndarray, np.ndarray], origin: np.ndarray,
                     as_run: tuple[float, float]) -> Opening:
    """An opening of an external scene.

    Args:
        part: The link and its joint.
        known: What skills know it as, if they do.
        shapes: Triangles of what is seen and of what is touched, in our world.
        origin: (3,) of our world in the scene's.
        as_run: Friction of its joint and its mass in the simulator's model.
    """
    name, is_fridge, handle = part.link, False, None
    if known is not None:
        name, is_fridge, handle = known.name, known.name == FRIDGE_DOOR, _handle_point(known)
    sign = 1.0 if part.range[1] >= -part.range[0] else -1.0
    friction, mass_kg = as_run
    return Opening(name, part.kind, is_fridge, sign * part.frame[:3, :3] @ part.axis, part.frame[:3, 3] - origin,
                   max(-part.range[0], part.range[1]), *shapes, handle, friction, part.friction, mass_kg)


def _as_run(name: str, model: mujoco.MjModel) -> tuple[float, float]:
    """Dry friction (N or Nm) of the joint that moves a body of that name, and its mass (kg)."""
    return float(model.joint(name).frictionloss[0]), float(model.body(name).mass[0])


def _handle_point(body: Body) -> np.ndarray:
    x, y, z = handle_part(body).center_m
    return np.array(body.position_m) + (*rotate(x, y, body.yaw_rad), z)


def _opens(part: LinkPart) -> bool:
    """Whether a part that nothing else moves has a range like that of a drawer or door."""
    least = _LEAST_M_OR_RAD[part.kind]
    return part.parent == STILL and part.follows is None and least < max(-part.range[0], part.range[1]) < 10.0


def _body_of(layout: Layout, name: str | None) -> Body | None:
    return next((body for body in layout.bodies if body.name == name), None)

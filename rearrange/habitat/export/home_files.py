"""One apartment as files of a Habitat scene data set: stage, articulated counter and fridge, scene instance.

What stands still is the stage: one mesh that is seen, one that collides (rugs, windows and the ceiling do not). Drawers
and the fridge door are links of `kitchen_counter` and `fridge`, HAB's names, whose empty root stands where the layout
says the counter and the fridge stand. Frames of files are y up; metres.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

import mujoco
import numpy as np

from rearrange.habitat.export.json_files import write_json
from rearrange.habitat.export.links import Link, link_of, shapes_of
from rearrange.habitat.export.meshes import solid, write_glb
from rearrange.habitat.export.urdf import FRICTION, turned, write_articulated
from rearrange.home.apartments.containers import kind_of
from rearrange.home.apartments.layouts import Layout
from rearrange.home.apartments.parts import Receptacle
from rearrange.home.axis_conventions import AXES, Point, to_y_up
from rearrange.home.geometry import PlanePose, quat_matrix, to_frame, yaw_quat
from rearrange.home.scene_files.urdf import tree_order
from rearrange.home.simulation.mujoco.build_model import compile_home, handle_part

MARGIN_M = 0.001  # Habitat's default of 0.04 lets things float four centimetres
BODIES = {"drawer": "kitchen_counter", "fridge": "fridge"}
"""Kind of joint -> the articulated object that it belongs to."""
LIGHTING = "rearrange"
_ROOT = "body"
_RECEPTACLE_HALF_M = 0.005  # half height of the box above a surface


@dataclass(frozen=True)
class HomeFiles:
    """What was written of a home, as episodes need it."""

    scene: str  # ours: "val/3"
    name: str  # Habitat's: "val_0003"
    links: dict[str, int]  # joint -> number of its link in its articulated object
    handles: dict[str, Point]  # joint -> its handle, y up, in the frame Habitat gives the link


def scene_name(scene: str) -> str:
    """"val/3" -> "val_0003": padded, because Habitat looks for names by a part of them."""
    split, _, index = scene.rpartition("/")
    return f"{split.replace('/', '_')}_{int(index):04d}"


def write_home(folder: Path, layout: Layout) -> HomeFiles:
    """All files of one home, into the folder of the data set."""
    model, name = compile_home(layout, ()), scene_name(layout.name)
    _write_stage(folder, name, layout, model)
    numbers, handles = {}, {}
    for kind, body in BODIES.items():
        links = _links(layout, model, kind)
        centers = {link.name: link.center_of_mass_m for link in links}
        notes = {f"receptacle_aabb_{r.name}": _receptacle(r, centers[r.parent]) | {"parent_link": r.parent}
                 for r in layout.receptacles if r.parent in centers}
        write_articulated(folder / "articulated" / name / body, links, set(centers), notes)
        order = tree_order(_ROOT, [(link.parent, link.joint.name, link.name) for link in links[1:]])
        numbers |= {link.name: order.index(link.name) - 1 for link in links[1:]}
        handles |= {link.name: _handle(layout, link) for link in links[1:]}
    _write_instance(folder, name, layout)
    return HomeFiles(layout.name, name, numbers, handles)


def _write_stage(folder: Path, name: str, layout: Layout, model: mujoco.MjModel) -> None:
    stages, shapes = folder / "stages", shapes_of(model, 0)
    write_glb(stages / f"{name}.glb", [shape for shape in shapes if shape.seen], AXES)
    # What collides is the floor of the home to who reads it; the ground beyond is only seen.
    solids = [solid(shape, layout.ground_m) for shape in shapes if shape.solid]
    write_glb(stages / f"{name}.collision.glb", solids, AXES)
    write_json(stages / f"{name}.stage_config.json", {
        "render_asset": f"{name}.glb", "collision_asset": f"{name}.collision.glb",
        "up": [0, 1, 0], "front": [0, 0, -1], "origin": [0, 0, 0], "units_to_meters": 1.0,
        "shader_type": "phong", "margin": MARGIN_M, "friction_coefficient": FRICTION, "restitution_coefficient": 0.0,
        "user_defined": {f"receptacle_aabb_{receptacle.name}": _receptacle(receptacle)
                         for receptacle in layout.receptacles if receptacle.parent is None}})


def _receptacle(receptacle: Receptacle, origin: Point = (0.0, 0.0, 0.0)) -> dict:
    """As habitat-lab reads it: a thin box above the surface, its middle counted from `origin` (y up)."""
    x, y, z = receptacle.center_m
    half_x, half_y = receptacle.half_extents_m
    middle = np.subtract(to_y_up((x, y, z + _RECEPTACLE_HALF_M)), origin)
    box = {"name": f"receptacle_aabb_{receptacle.name}", "position": middle,
           "scale": [half_x, _RECEPTACLE_HALF_M, half_y], "up": [0.0, 1.0, 0.0]}
    return box | ({"rotation": _up_quat(receptacle.yaw_rad)} if receptacle.parent is None else {})


def _links(layout: Layout, model: mujoco.MjModel, kind: str) -> list[Link]:
    """An empty root at the piece of furniture, and its drawers or its door."""
    root, links = root_pose(layout, kind), [Link(_ROOT, None, None)]
    to_root = quat_matrix(yaw_quat(-root[2]))
    for body in layout.bodies:
        if kind_of(body.name) == kind:
            link = link_of(model, body.name, _ROOT, body.name, body.name)
            x, y = to_frame(*link.position_m[:2], root)
            links.append(replace(link, position_m=(x, y, link.position_m[2]), rotation=to_root @ link.rotation))
    return turned(links, {link.name for link in links})


def root_pose(layout: Layout, kind: str) -> PlanePose:
    """Where the root of an articulated object stands."""
    return layout.counter_pose if kind == "drawer" else layout.fridge_pose


def _handle(layout: Layout, link: Link) -> Point:
    """Of a link from its centre of mass, which Habitat takes for the origin of its frame."""
    body = next(body for body in layout.bodies if body.name == link.name)
    return tuple(np.subtract(to_y_up(handle_part(body).center_m), link.center_of_mass_m).tolist())


def _write_instance(folder: Path, name: str, layout: Layout) -> None:
    articulated = []
    for kind, body in BODIES.items():
        x, y, yaw = root_pose(layout, kind)
        articulated.append({
            "template_name": f"articulated/{name}/{body}", "translation_origin": "COM", "fixed_base": True,
            "auto_clamp_joint_limits": True, "motion_type": "DYNAMIC", "translation": to_y_up((x, y, 0.0)),
            "rotation": _up_quat(yaw)})
    write_json(folder / "scenes" / f"{name}.scene_instance.json", {
        "stage_instance": {"template_name": f"stages/{name}"}, "default_lighting": f"lighting/{LIGHTING}",
        "object_instances": [], "articulated_object_instances": articulated,
        "user_defined": {"home": layout.name, "size_m": layout.size_m}})


def _up_quat(yaw_rad: float) -> tuple[float, float, float, float]:
    """(w, x, y, z) of a turn about up, which is y."""
    return math.cos(yaw_rad / 2), 0.0, math.sin(yaw_rad / 2), 0.0

"""Links as URDF files for Habitat, one GLB file for what is seen of each link, primitives for what collides.

Habitat puts the frame of a link at the origin of its <inertial>, so that markers, cameras and hands are found relative
to the centre of mass; its axes are those of the link.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from rearrange.habitat.export.json_files import write_json
from rearrange.habitat.export.links import Joint, Link, Shape
from rearrange.habitat.export.meshes import write_glb
from rearrange.home.axis_conventions import AXES
from rearrange.home.simulation.mujoco.build_model import TIMESTEP_S

ARTICULATED = {"base_type": "fixed", "inertia_source": "urdf", "shader_type": "phong"}
"""How Habitat loads an articulated object."""
# One of Habitat's collision groups: what is "kinematic" meets robots and objects, but neither the building nor other
# kinematic things. Of ours: drawers and doors do not touch the furniture that they are in, the base not the floor.
KINEMATIC_GROUP = 4
FRICTION = 1.0  # Bullet multiplies the coefficients of the two that touch: an object's, 0.7, is to count, as in MuJoCo
# Makes Habitat draw with its Phong shader. It adds ambient and diffuse light, both of this colour times the mesh's own.
_MATERIAL = '<material name="phong"><color rgba="0.5 0.5 0.5 1"/><specular rgb="0 0 0"/></material>'
_SPEED_LIMIT = 40.0  # m/s or rad/s; URDF asks for one


def turned(links: list[Link], names: set[str]) -> list[Link]:
    """The same links with the frames of those in `names` turned from z up to y up."""
    turns = {link.name: AXES if link.name in names else np.eye(3) for link in links}
    return [_turned(link, turns[link.name], turns.get(link.parent, np.eye(3))) for link in links]


def _turned(link: Link, own: np.ndarray, parents: np.ndarray) -> Link:
    shapes = tuple(replace(shape, position_m=own @ shape.position_m, rotation=own @ shape.rotation)
                   for shape in link.shapes)
    return replace(
        link, shapes=shapes, joint=link.joint and replace(link.joint, axis=tuple((own @ link.joint.axis).tolist())),
        position_m=tuple((parents @ link.position_m).tolist()), rotation=parents @ link.rotation @ own.T,
        center_of_mass_m=tuple((own @ link.center_of_mass_m).tolist()), inertia_kg_m2=own @ link.inertia_kg_m2 @ own.T)


def write_articulated(place: Path, links: list[Link], kinematic: set[str], notes: dict[str, Any] | None = None) -> Path:
    """An articulated object: `place`.urdf, .ao_config.json, and a mesh `place`_<link>.glb of every link that is seen.

    Args:
        place: path without an ending; its last part is the name of the object.
        links: its links, the root first.
        kinematic: names of the links in that collision group.
        notes: what the configuration says beside Habitat's own settings.

    Returns: the URDF file.
    """
    name, path = place.name, place.with_name(f"{place.name}.urdf")
    config = {"urdf_filepath": path.name} | ARTICULATED | ({} if notes is None else {"user_defined": notes})
    write_json(place.with_name(f"{name}.ao_config.json"), config)
    lines = ['<?xml version="1.0"?>', "<!-- metres, radians, kilograms -->", f"<robot name={quoteattr(name)}>"]
    for link in links:
        mesh = path.with_name(f"{name}_{link.name}.glb")
        seen = [shape for shape in link.shapes if shape.seen]
        if seen:
            write_glb(mesh, seen, np.eye(3))
        group = f' group="{KINEMATIC_GROUP}"' if link.name in kinematic else ""
        lines += _link(link, mesh.name if seen else None, group)
    for link in links:
        if link.joint is not None:
            lines += _joint(link, link.joint)
    path.write_text("\n".join([*lines, "</robot>", ""]), encoding="utf-8")
    return path


def _link(link: Link, mesh: str | None, group: str) -> list[str]:
    inertia = {f"i{a}{b}": link.inertia_kg_m2["xyz".index(a), "xyz".index(b)]
               for a, b in ("xx", "xy", "xz", "yy", "yz", "zz")}
    lines = [
        f'  <link name="{link.name}">',
        f'    <contact><lateral_friction value="{_text([FRICTION])}"/></contact>',
        f'    <inertial>{_origin(link.center_of_mass_m)}<mass value="{_text([link.mass_kg])}"/>',
        "      <inertia " + " ".join(f'{key}="{_text([value])}"' for key, value in inertia.items()) + "/></inertial>",
    ]
    if mesh:
        lines.append(f'    <visual>{_origin()}<geometry><mesh filename="{mesh}"/></geometry>{_MATERIAL}</visual>')
    for shape in link.shapes:
        if shape.solid:
            place = _origin(shape.position_m, shape.rotation)
            name = f' name="{shape.name}"' if shape.name else ""
            lines.append(f"    <collision{name}{group}>{place}<geometry>{_geometry(shape)}</geometry></collision>")
    return [*lines, "  </link>"]


def _geometry(shape: Shape) -> str:
    if shape.kind == "box":
        return f'<box size="{_text([2 * half for half in shape.half_size_m])}"/>'
    if shape.kind == "sphere":
        return f'<sphere radius="{_text(shape.half_size_m)}"/>'
    radius, half = shape.half_size_m
    return f'<{shape.kind} radius="{_text([radius])}" length="{_text([2 * half])}"/>'


def _joint(link: Link, joint: Joint) -> list[str]:
    lines = [
        f'  <joint name="{joint.name}" type="{joint.kind}">{_origin(link.position_m, link.rotation)}'
        f'<parent link="{link.parent}"/><child link="{link.name}"/>',
    ]
    if joint.kind != "fixed":
        # Habitat takes the damping as the impulse, per physics step, with which a motor holds the joint still.
        impulse = joint.dry_friction_n_or_nm * TIMESTEP_S
        low, high = joint.range_m_or_rad
        span = "" if joint.kind == "continuous" else f'lower="{_text([low])}" upper="{_text([high])}" '
        lines.append(
            f'    <axis xyz="{_text(joint.axis)}"/><dynamics damping="{_text([impulse])}" friction="0"/>'
            f'<limit {span}effort="{_text([joint.max_force_n_or_nm])}" velocity="{_text([_SPEED_LIMIT])}"/>')
    return [*lines, "  </joint>"]


def _origin(position: tuple[float, ...] | np.ndarray = (0.0, 0.0, 0.0), rotation: np.ndarray = np.eye(3)) -> str:
    return f'<origin xyz="{_text(position)}" rpy="{_text(roll_pitch_yaw(rotation))}"/>'


def roll_pitch_yaw(rotation: np.ndarray) -> tuple[float, float, float]:
    """Angles (rad) about x, then y, then z of the fixed frame, as URDF has them."""
    pitch = math.asin(float(np.clip(-rotation[2, 0], -1.0, 1.0)))
    if abs(rotation[2, 0]) > 1.0 - 1e-12:  # roll and yaw turn about the same axis
        return 0.0, pitch, math.atan2(-rotation[0, 1], rotation[1, 1])
    return math.atan2(rotation[2, 1], rotation[2, 2]), pitch, math.atan2(rotation[1, 0], rotation[0, 0])


def _text(values) -> str:
    return " ".join(f"{round(float(value), 9) + 0.0:.9g}" for value in values)

"""The Fetch of habitat-lab on a base that drives: its URDF with two slides and a turn before the first link.

habitat-lab moves its robot's base from place to place, so that it feels no contact and stops at the edge of a
navigation mesh. Here, as in the embedded simulator, force-limited motors push it along the floor until furniture
stops it. The base frame of habitat-lab's URDF files is y up, x forward.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

from rearrange.home.errors import UserError

BASE_JOINTS = (("base_x", "prismatic", "1 0 0"), ("base_y", "prismatic", "0 0 -1"), ("base_yaw", "continuous", "0 1 0"))
"""Name, kind and axis (y up) of the joints: our x, our y, and a left turn."""
SHIFT = len(BASE_JOINTS)
"""By so much the numbers of links are higher than in habitat-lab."""
_FARTHEST_M = 1000.0
_SLIDE_KG = 0.01  # Bullet divides by the mass of what moves


def with_driving_base(text: str, folder: Path) -> str:
    """The URDF document `text`, whose meshes lie below `folder`, on slides. Raises UserError if it is not one."""
    try:
        robot = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise UserError(f"the robot's URDF in {folder} cannot be read: {error}.") from None
    children = {joint.find("child").get("link") for joint in robot.findall("joint")}
    roots = [link.get("name") for link in robot.findall("link") if link.get("name") not in children]
    if len(roots) != 1:
        raise UserError(f"the robot's URDF in {folder} should have one link that is no joint's child, not "
                        f"{len(roots)}.")
    for mesh in robot.iter("mesh"):
        mesh.set("filename", str((folder / mesh.get("filename")).resolve()))
    for collision in next(link for link in robot.findall("link") if link.get("name") == roots[0]).findall("collision"):
        collision.attrib.pop("group", None)  # that of a base which nothing stops
    parents = ["floor", *(f"{name}_slide" for name, _, _ in BASE_JOINTS[:-1])]
    for parent in parents:
        robot.append(_empty_link(parent))
    for (name, kind, axis), parent, child in zip(BASE_JOINTS, parents, [*parents[1:], roots[0]]):
        robot.append(_joint(name, kind, axis, parent, child))
    return ElementTree.tostring(robot, encoding="unicode")


def _empty_link(name: str) -> ElementTree.Element:
    tiny = str(1e-3 * _SLIDE_KG)
    return ElementTree.fromstring(
        f'<link name="{name}"><inertial><mass value="{_SLIDE_KG}"/>'
        f'<inertia ixx="{tiny}" iyy="{tiny}" izz="{tiny}" ixy="0" ixz="0" iyz="0"/></inertial></link>')


def _joint(name: str, kind: str, axis: str, parent: str, child: str) -> ElementTree.Element:
    joint = ElementTree.Element("joint", name=name, type=kind)
    span = {"lower": str(-_FARTHEST_M), "upper": str(_FARTHEST_M)} if kind == "prismatic" else {}
    for tag, given in (("parent", {"link": parent}), ("child", {"link": child}), ("axis", {"xyz": axis}),
                       ("dynamics", {"damping": "0", "friction": "0"}),
                       ("limit", span | {"effort": "0", "velocity": "40"})):
        ElementTree.SubElement(joint, tag, given)
    return joint

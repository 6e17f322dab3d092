"""URDF documents: whether links and joints are one tree, in which order they are, and what of a document is not used.

`_READ` lists every element and attribute that is used; a document says of all others that it has them (`Urdf.unused`).
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from rearrange.home.scene_files.check_complete import need_urdf
from rearrange.home.scene_files.urdf_elements import FIXED, Document, Joint, Link

_READ = {  # element -> its attributes
    "robot": ("name", "version"), "link": ("name",), "joint": ("name", "type"), "inertial": (), "mass": ("value",),
    "origin": ("xyz", "rpy"), "visual": ("name",), "collision": ("name",), "geometry": (), "box": ("size",),
    "cylinder": ("radius", "length"), "capsule": ("radius", "length"), "sphere": ("radius",), "mesh": ("filename", "scale"),
    "material": ("name",), "color": ("rgba",), "parent": ("link",), "child": ("link",), "axis": ("xyz",),
    "limit": ("lower", "upper"), "dynamics": ("damping", "friction"), "mimic": ("joint", "multiplier", "offset")}


@dataclass(frozen=True, eq=False)
class Urdf:
    """joints: each after the joint of its parent's link. unused: elements and attributes of the document that nobody here reads."""

    path: Path
    root: str
    links: dict[str, Link]
    joints: tuple[Joint, ...]
    unused: tuple[str, ...] = ()

    def numbers(self) -> dict[str, int]:
        """By which Habitat, and HAB's episodes, call the links."""
        order = tree_order(self.root, [(joint.parent, joint.name, joint.child) for joint in self.joints])
        return {name: number for number, name in enumerate(order, -1)}


def tree_order(root: str, joints: Iterable[tuple[str, str, str]]) -> list[str]:
    """Names of links in Habitat's order: the root, whose number is -1, then 0, 1, 2 ... Habitat walks the tree depth first, from
    each link to its children in the order of their joints' names. joints: names (link above, joint, link below).
    """
    below: dict[str, list[tuple[str, str]]] = {}
    for parent, joint, child in joints:
        below.setdefault(parent, []).append((joint, child))

    order, left = [], [root]
    while left:
        order.append(left.pop())
        left += [child for _, child in sorted(below.get(order[-1], ()), reverse=True)]
    return order


@lru_cache(maxsize=128)
def read_urdf(path: Path) -> Urdf:
    """Raises UserError, naming the file and the reason, unless it is one tree of links and joints with all meshes there."""
    robot = need_urdf(path)
    document = Document(path, robot)
    links = {link.name: link for link in map(document.link, robot.findall("link"))}
    joints = [document.joint(element, links) for element in robot.findall("joint")]
    _check_mimics(document, joints)
    above: dict[str, Joint] = {}
    for joint in joints:
        if joint.child in above:
            document.fail(f"link {joint.child!r} is the child of two joints, {above[joint.child].name!r} and {joint.name!r}")
        above[joint.child] = joint
    roots = [name for name in links if name not in above]
    if not roots:
        document.fail(f"its joints form a circle through link {joints[0].child!r}")
    if len(roots) > 1:
        document.fail(f"links {roots[0]!r} and {roots[1]!r} both hang on no joint; it should be one tree")
    below: dict[str, list[int]] = {}
    for number, joint in enumerate(joints):
        below.setdefault(joint.parent, []).append(number)
    ordered, reached, level = [], {roots[0]}, below.get(roots[0], [])
    while level:
        ordered += [joints[number] for number in level]
        children = [joints[number].child for number in level]
        reached.update(children)
        level = sorted(number for child in children for number in below.get(child, ()))
    missing = [name for name in links if name not in reached]
    if missing:
        document.fail(f"its joints form a circle through link {missing[0]!r}")
    return Urdf(path, roots[0], links, tuple(ordered), _unused(robot))


def _check_mimics(document: Document, joints: list[Joint]) -> None:
    """Refuse a joint that follows one that there is not, or that does not move, or itself in the end."""
    followed = {joint.name: joint.mimic[0] for joint in joints if joint.mimic is not None}
    moving = {joint.name for joint in joints if joint.kind != FIXED}
    for name, other in followed.items():
        if name not in moving or other not in moving:
            document.fail(f"joint {name!r} mimics {other!r}, but {other if name in moving else name!r} is no joint that moves")
        seen = {name}
        while other in followed and other not in seen:
            seen.add(other)
            other = followed[other]
        if other in seen:
            document.fail(f"joint {name!r} mimics itself through {followed[name]!r}")


def _unused(robot: ElementTree.Element) -> tuple[str, ...]:
    """Elements and attributes that are not in `_READ`, in order; nothing that lies in such an element."""
    found, todo = set[str](), [robot]
    while todo:
        element = todo.pop()
        found.update(f"<{element.tag} {key}=>" for key in element.attrib if key not in _READ[element.tag])
        if element.tag == "visual" and element.find("geometry/mesh") is not None and element.find("material") is not None:
            found.add("<material> of a mesh")
        for child in element:
            if child.tag in _READ:
                todo.append(child)
            elif isinstance(child.tag, str):  # no comment
                found.add(f"<{child.tag}>")
    return tuple(sorted(found))

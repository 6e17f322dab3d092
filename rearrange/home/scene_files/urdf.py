"""URDF documents: one tree of links and joints, the order of the links, and what of a document is not used.

`_READ` lists every element and attribute that is used; a document says of all others that it has them (`Urdf.unused`).

yourdfpy is no substitute. Of the 25 documents, without those that name wrong meshes, that the tests of ours refuse, it
reads 22 without a word: joints in a circle, two links of one name, a limit that is no number, XML that is cut off. It
does not tell what it left out, and brings lxml, trimesh and their packages.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from rearrange.home.errors import UserError
from rearrange.home.scene_files.reading import beside, need_mesh, scene_bytes
from rearrange.home.scene_files.urdf_elements import FIXED, Document, Joint, Link

_READ = {  # element -> its attributes
    "robot": ("name", "version"), "link": ("name",), "joint": ("name", "type"), "inertial": (), "mass": ("value",),
    "origin": ("xyz", "rpy"), "visual": ("name",), "collision": ("name",), "geometry": (), "box": ("size",),
    "cylinder": ("radius", "length"), "capsule": ("radius", "length"), "sphere": ("radius",),
    "mesh": ("filename", "scale"), "material": ("name",), "color": ("rgba",), "parent": ("link",), "child": ("link",),
    "axis": ("xyz",), "limit": ("lower", "upper"), "dynamics": ("damping", "friction"),
    "mimic": ("joint", "multiplier", "offset")}


@dataclass(frozen=True, eq=False)
class Urdf:
    """joints: each after the joint of its parent's link. unused: elements and attributes that nobody here reads."""

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
    """Names of links in Habitat's order: the root, which has the number -1, then 0, 1, 2 ...

    Habitat walks the tree depth first, from each link to its children in the order of their joints' names.
    joints: names (link above, joint, link below).
    """
    below: dict[str, list[tuple[str, str]]] = {}
    for parent, joint, child in joints:
        below.setdefault(parent, []).append((joint, child))

    order, left = [], [root]
    while left:
        order.append(left.pop())
        left += [child for _, child in sorted(below.get(order[-1], ()), reverse=True)]
    return order


def need_urdf(path: Path, what: str = "the data set's URDF") -> ElementTree.Element:
    """The root of a URDF document whose meshes are all there. Raises UserError."""
    raw = scene_bytes(path, what)
    try:
        robot = ElementTree.fromstring(raw)
    except (ElementTree.ParseError, ValueError, LookupError) as error:  # LookupError: of an encoding that there is not
        raise UserError(f"{what} {path} is not a URDF document ({error}): it should be XML, one <robot>.") from None
    if robot.tag != "robot" or robot.find("link") is None:
        raise UserError(f"{what} {path} is not a URDF document: it should be XML, one <robot> with links.")
    for mesh in robot.iter("mesh"):
        if "://" not in (name := mesh.get("filename", "")):
            need_mesh(beside(path, name), path)
    return robot


@lru_cache(maxsize=128)
def read_urdf(path: Path) -> Urdf:
    """Raises UserError, naming the file and the reason, unless it is one tree of links and joints with all meshes."""
    robot = need_urdf(path)
    document = Document(path, robot)
    links = {link.name: link for link in map(document.link, robot.findall("link"))}
    joints = [document.joint(element, links) for element in robot.findall("joint")]
    _check_mimics(document, joints)
    above: dict[str, Joint] = {}
    for joint in joints:
        if joint.child in above:
            names = f"{above[joint.child].name!r} and {joint.name!r}"
            document.fail(f"link {joint.child!r} is the child of two joints, {names}")
        above[joint.child] = joint
    roots = [name for name in links if name not in above]
    if not roots:
        document.fail(f"its joints form a circle through link {joints[0].child!r}")
    if len(roots) > 1:
        document.fail(f"links {roots[0]!r} and {roots[1]!r} both hang on no joint; it should be one tree")
    below: dict[str, list[int]] = {}
    for number, joint in enumerate(joints):
        below.setdefault(joint.parent, []).append(number)
    ordered, level = [], below.get(roots[0], [])
    while level:
        ordered += [joints[number] for number in level]
        level = sorted(child for number in level for child in below.get(joints[number].child, ()))
    reached = {roots[0], *(joint.child for joint in ordered)}
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
            still = other if name in moving else name
            document.fail(f"joint {name!r} mimics {other!r}, but {still!r} is no joint that moves")
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
        is_mesh = element.tag == "visual" and element.find("geometry/mesh") is not None
        if is_mesh and element.find("material") is not None:
            found.add("<material> of a mesh")
        for child in element:
            if child.tag in _READ:
                todo.append(child)
            elif isinstance(child.tag, str):  # no comment
                found.add(f"<{child.tag}>")
    return tuple(sorted(found))

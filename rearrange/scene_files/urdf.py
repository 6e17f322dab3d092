"""URDF documents: links with their shapes, and the joints between them. Frames and lengths are the document's own, not scaled."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from rearrange.errors import UserError
from rearrange.scene_files.whole import need_urdf

FIXED, SLIDE, HINGE = "fixed", "slide", "hinge"
_KINDS = {"fixed": FIXED, "prismatic": SLIDE, "revolute": HINGE, "continuous": HINGE}
_SIZES = {"box": ("size",), "cylinder": ("radius", "length"), "capsule": ("radius", "length"), "sphere": ("radius",)}


@dataclass(frozen=True, eq=False)
class Shape:
    """kind: box (sides), cylinder or capsule along z (radius, length), sphere (radius), or mesh (scale along its axes) from a file.
    frame: (4, 4) in its link.
    """

    kind: str
    frame: np.ndarray
    size: tuple[float, ...]
    file: Path | None = None


@dataclass(frozen=True, eq=False)
class Link:
    """mass_kg is 0 where none is given. inertial: (4, 4) of its centre of mass in the link."""

    name: str
    mass_kg: float
    inertial: np.ndarray
    visuals: tuple[Shape, ...]
    collisions: tuple[Shape, ...]


@dataclass(frozen=True, eq=False)
class Joint:
    """kind: FIXED, SLIDE or HINGE. frame: (4, 4) of the child's link in the parent's, at 0. axis: unit, in the child's link. range:
    m or rad; without limits minus to plus infinity. damping: N s/m or N m s/rad; friction: N or N m.
    """

    name: str
    kind: str
    parent: str
    child: str
    frame: np.ndarray
    axis: np.ndarray
    range: tuple[float, float]
    damping: float
    friction: float


@dataclass(frozen=True, eq=False)
class Urdf:
    """joints: each after that of its parent's link."""

    path: Path
    root: str
    links: dict[str, Link]
    joints: tuple[Joint, ...]

    def numbers(self) -> dict[str, int]:
        """By which Habitat, and HAB's episodes, call the links."""
        order = tree_order(self.root, [(joint.parent, joint.name, joint.child) for joint in self.joints])
        return {name: number for number, name in enumerate(order, -1)}


def tree_order(root: str, joints: Iterable[tuple[str, str, str]]) -> list[str]:
    """Names of links in Habitat's order: the root, whose number is -1, then 0, 1, 2 ... Habitat walks the tree depth first, from each
    link to its children in the order of their joints' names. joints: (name of the link above, of the joint, of the link below).
    """
    below: dict[str, list[tuple[str, str]]] = {}
    for parent, joint, child in joints:
        below.setdefault(parent, []).append((joint, child))

    def walk(name: str) -> list[str]:
        return [name, *(link for _, child in sorted(below.get(name, ())) for link in walk(child))]

    return walk(root)


@lru_cache(maxsize=128)
def read_urdf(path: Path) -> Urdf:
    """Raises UserError, naming the file and the reason, if it is not one tree of links and joints whose meshes are all there."""
    document = _Document(path)
    robot = need_urdf(path)
    links = {link.name: link for link in map(document.link, robot.findall("link"))}
    joints = [document.joint(element, links) for element in robot.findall("joint")]
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
    ordered, reached = [], {roots[0]}
    while left := [joint for joint in joints if joint.parent in reached and joint.child not in reached]:
        ordered += left
        reached.update(joint.child for joint in left)
    missing = [name for name in links if name not in reached]
    if missing:
        document.fail(f"its joints form a circle through link {missing[0]!r}")
    return Urdf(path, roots[0], links, tuple(ordered))


class _Document:
    """Reads elements of one file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def fail(self, why: str) -> None:
        raise UserError(f"{self._path} cannot be used: {why}.")

    def link(self, element: ElementTree.Element) -> Link:
        name, inertial = element.get("name", ""), element.find("inertial")
        mass = inertial.find("mass") if inertial is not None else None
        return Link(
            name, 0.0 if mass is None else self._numbers(mass, "value", 1, f"the mass of link {name!r}")[0],
            np.eye(4) if inertial is None else self._frame(inertial, name),
            tuple(self._shapes(element.findall("visual"), name)), tuple(self._shapes(element.findall("collision"), name)))

    def _shapes(self, elements: list[ElementTree.Element], link: str) -> Iterator[Shape]:
        for element in elements:
            geometry = element.find("geometry")
            for shape in () if geometry is None else geometry:
                frame, what = self._frame(element, link), f"a {shape.tag} of link {link!r}"
                if shape.tag == "mesh":
                    name = shape.get("filename", "").removeprefix("file://").removeprefix("package://")
                    scale = self._numbers(shape, "scale", 3, what) if shape.get("scale") else [1.0, 1.0, 1.0]
                    yield Shape("mesh", frame, tuple(scale), self._path.parent / name)
                elif shape.tag in _SIZES:
                    size = [value for key in _SIZES[shape.tag]
                            for value in self._numbers(shape, key, 3 if shape.tag == "box" else 1, what)]
                    yield Shape(shape.tag, frame, tuple(size))
                else:
                    self.fail(f"link {link!r} has the shape {shape.tag!r}; there are {', '.join(_SIZES)} and mesh")

    def joint(self, element: ElementTree.Element, links: dict[str, Link]) -> Joint:
        name, kind = element.get("name", ""), element.get("type", "")
        if kind not in _KINDS:
            self.fail(f"joint {name!r} has the type {kind!r}; there are {', '.join(_KINDS)}")
        ends = []
        for end in ("parent", "child"):
            found = element.find(end)
            ends.append("" if found is None else found.get("link", ""))
            if ends[-1] not in links:
                self.fail(f"joint {name!r} has the {end} {ends[-1]!r}, which is no link")
        what = f"joint {name!r}"
        axis, limit, dynamics = element.find("axis"), element.find("limit"), element.find("dynamics")
        along = np.array([1.0, 0.0, 0.0] if axis is None else self._numbers(axis, "xyz", 3, what))
        if _KINDS[kind] != FIXED and np.linalg.norm(along) < 1e-6:
            self.fail(f"joint {name!r} has an axis without length")
        bounds = (-math.inf, math.inf)
        if limit is not None and kind != "continuous":
            bounds = tuple(self._numbers(limit, key, 1, what)[0] if limit.get(key) else 0.0 for key in ("lower", "upper"))
        if bounds[0] > bounds[1]:
            self.fail(f"joint {name!r} moves from {bounds[0]:g} to {bounds[1]:g}, which is less")
        damping, friction = ((self._numbers(dynamics, key, 1, what)[0] if dynamics is not None and dynamics.get(key) else 0.0)
                             for key in ("damping", "friction"))
        return Joint(name, _KINDS[kind], ends[0], ends[1], self._frame(element, name), along / max(np.linalg.norm(along), 1e-9),
                     bounds, damping, friction)

    def _frame(self, element: ElementTree.Element, of: str) -> np.ndarray:
        """(4, 4) of its <origin>."""
        frame, origin = np.eye(4), element.find("origin")
        if origin is None:
            return frame
        what = f"the origin of {of!r}"
        if origin.get("xyz"):
            frame[:3, 3] = self._numbers(origin, "xyz", 3, what)
        if origin.get("rpy"):
            (a, b, c), (sa, sb, sc) = (map(f, self._numbers(origin, "rpy", 3, what)) for f in (math.cos, math.sin))
            frame[:3, :3] = (np.array([(c, -sc, 0.0), (sc, c, 0.0), (0.0, 0.0, 1.0)])
                             @ np.array([(b, 0.0, sb), (0.0, 1.0, 0.0), (-sb, 0.0, b)])
                             @ np.array([(1.0, 0.0, 0.0), (0.0, a, -sa), (0.0, sa, a)]))
        return frame

    def _numbers(self, element: ElementTree.Element, key: str, count: int, what: str) -> list[float]:
        words = element.get(key, "").replace(",", " ").split()
        try:
            values = [float(word) for word in words]
        except ValueError:
            values = []
        if len(values) != count or not all(map(math.isfinite, values)):
            self.fail(f"{what} has {key}={element.get(key)!r}, which should be {count} finite number{'s' if count > 1 else ''}")
        return values

"""Links, shapes and joints of a URDF document, each read from its XML element. Frames and lengths are not scaled."""

from __future__ import annotations

import math
import os
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rearrange.home.errors import UserError
from rearrange.home.scene_files.reading import MOST_NUMBER, beside, shown
from rearrange.home.scene_files.surfaces import transform

FIXED, SLIDE, HINGE = "fixed", "slide", "hinge"
_KINDS = {"fixed": FIXED, "prismatic": SLIDE, "revolute": HINGE, "continuous": HINGE}
_PACKAGE = "package://"
_SIZES = {"box": ("size",), "cylinder": ("radius", "length"), "capsule": ("radius", "length"), "sphere": ("radius",)}


@dataclass(frozen=True, eq=False)
class Shape:
    """kind, with what `size` is: box (sides), cylinder or capsule along z (radius, length), sphere (radius), or mesh
    (scale along its axes) from a file. frame: (4, 4) in its link. rgba: of its material; None where it has none, and of
    a mesh, which has colours of its own.
    """

    kind: str
    frame: np.ndarray
    size: tuple[float, ...]
    file: Path | None = None
    rgba: tuple[float, ...] | None = None


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
    """kind: FIXED, SLIDE or HINGE. frame: (4, 4) of the child's link in the parent's, at 0. axis: unit, in the child's
    link. range: m or rad; without limits minus to plus infinity. damping: N s/m or N m s/rad; friction: N or N m.
    mimic: name of the joint that it follows, and how many m or rad it moves for each m or rad of that joint.
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
    mimic: tuple[str, float] | None = None


class Document:
    """Reads elements of one file. Raises UserError, naming the file and the reason, for what cannot be used."""

    def __init__(self, path: Path, robot: ElementTree.Element) -> None:
        self._path = path
        for tag in ("link", "joint", "material"):
            names = [element.get("name", "") for element in robot.findall(tag)]
            if not all(names):
                self.fail(f"a {tag} has no name")
            if twice := sorted(name for name, times in Counter(names).items() if times > 1):
                self.fail(f"it has two {tag}s of the name {twice[0]!r}")
        named = (*reversed(robot.findall("link/visual/material")), *robot.findall("material"))  # the last counts
        self._materials = {element.get("name"): self._color(element) for element in named
                           if element.find("color") is not None}

    def fail(self, why: str) -> None:
        raise UserError(f"{self._path} cannot be used: {why}.")

    def link(self, element: ElementTree.Element) -> Link:
        name, inertial = element.get("name", ""), element.find("inertial")
        mass, mass_kg = inertial.find("mass") if inertial is not None else None, 0.0
        if mass is not None:
            (mass_kg,) = self._numbers(mass, "value", 1, f"the mass of link {name!r}", 0.0)
        frame = np.eye(4) if inertial is None else self._frame(inertial, name)
        return Link(name, mass_kg, frame, *(tuple(self._shapes(element.findall(tag), name))
                                            for tag in ("visual", "collision")))

    def _shapes(self, elements: list[ElementTree.Element], link: str) -> Iterator[Shape]:
        for element in elements:
            geometry, material = element.find("geometry"), element.find("material")
            rgba = None if material is None else self._color(material) or self._materials.get(material.get("name"))
            for shape in () if geometry is None else geometry:
                frame, what = self._frame(element, link), f"a {shape.tag} of link {link!r}"
                if shape.tag == "mesh":
                    scale = self._numbers(shape, "scale", 3, what) if shape.get("scale") else [1.0, 1.0, 1.0]
                    yield Shape("mesh", frame, tuple(scale), self._mesh_file(shape.get("filename", "")))
                elif shape.tag in _SIZES:
                    size = [value for key in _SIZES[shape.tag]
                            for value in self._numbers(shape, key, 3 if shape.tag == "box" else 1, what, 0.0)]
                    yield Shape(shape.tag, frame, tuple(size), rgba=rgba)
                else:
                    self.fail(f"link {link!r} has the shape {shape.tag!r}; there are {', '.join(_SIZES)} and mesh")

    def _mesh_file(self, name: str) -> Path:
        """package://NAME/... lies in a folder NAME: beside the document, above it, or beside one of those above it."""
        named = beside(self._path, name.removeprefix("file://"))
        if not name.startswith(_PACKAGE):
            return named
        package, _, rest = name.removeprefix(_PACKAGE).partition("/")
        folders = self._path.absolute().parents
        places = [folders[0] / package / rest,
                  *((folder if folder.name == package else folder / package) / rest for folder in folders)]
        return next((place for place in places if os.path.exists(place)), places[0])

    def _color(self, material: ElementTree.Element) -> tuple[float, ...] | None:
        color = material.find("color")
        return None if color is None else tuple(self._numbers(color, "rgba", 4, f"material {material.get('name')!r}"))

    def _mimic(self, element: ElementTree.Element) -> tuple[str, float] | None:
        mimic, what = element.find("mimic"), f"the <mimic> of joint {element.get('name', '')!r}"
        if mimic is None:
            return None
        times, offset = (self._numbers(mimic, key, 1, what)[0] if mimic.get(key) else default
                         for key, default in (("multiplier", 1.0), ("offset", 0.0)))
        if offset:
            self.fail(f"{what} has the offset {offset:g}; only 0 can be used: put it into the <origin> and <limit> of "
                      "the joint")
        return mimic.get("joint", ""), times

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
            bounds = tuple(self._numbers(limit, key, 1, what, -math.inf, math.inf)[0] if limit.get(key) else 0.0
                           for key in ("lower", "upper"))
        if bounds[0] > bounds[1]:
            self.fail(f"joint {name!r} moves from {bounds[0]:g} to {bounds[1]:g}, which is less")
        has = {} if dynamics is None else dynamics
        damping, friction = (self._numbers(dynamics, key, 1, what, 0.0)[0] if has.get(key) else 0.0
                             for key in ("damping", "friction"))
        return Joint(name, _KINDS[kind], *ends, self._frame(element, name), along / max(np.linalg.norm(along), 1e-9),
                     bounds, damping, friction, self._mimic(element))

    def _frame(self, element: ElementTree.Element, of: str) -> np.ndarray:
        """(4, 4) of its <origin>."""
        turn, position, origin, what = None, None, element.find("origin"), f"the origin of {of!r}"
        if origin is not None and origin.get("xyz"):
            position = self._numbers(origin, "xyz", 3, what)
        if origin is not None and origin.get("rpy"):
            (a, b, c), (sa, sb, sc) = (map(f, self._numbers(origin, "rpy", 3, what)) for f in (math.cos, math.sin))
            turn = (np.array([(c, -sc, 0.0), (sc, c, 0.0), (0.0, 0.0, 1.0)])
                    @ np.array([(b, 0.0, sb), (0.0, 1.0, 0.0), (-sb, 0.0, b)])
                    @ np.array([(1.0, 0.0, 0.0), (0.0, a, -sa), (0.0, sa, a)]))
        return transform(turn, position)

    def _numbers(self, element: ElementTree.Element, key: str, count: int, what: str, least: float = -MOST_NUMBER,
                 most: float = MOST_NUMBER) -> list[float]:
        words = element.get(key, "").replace(",", " ").split()
        try:
            values = [float(word) for word in words]
        except ValueError:
            values = []
        if len(values) != count or not all(math.isfinite(value) and least <= value <= most for value in values):
            bounds = f"from {least:g} to {most:g}" if math.isfinite(most) else "of any size"
            self.fail(f"{what} has {key}={shown(element.get(key))}, which should be {count} finite number"
                      f"{'s' if count > 1 else ''} {bounds}")
        return values

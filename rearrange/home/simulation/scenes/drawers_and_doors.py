"""What a robot can use of an external scene: drawers, fridge doors and receptacles.

Points are world points with z up, unless said otherwise.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from rearrange.home.apartments.containers import opens_far
from rearrange.home.apartments.episodes import Marker
from rearrange.home.apartments.parts import Body, Part
from rearrange.home.geometry import PlanePose, to_frame
from rearrange.home.scene_files.templates import BOX
from rearrange.home.simulation.scenes.handles import handle_and_front, turned

HANDLE_HALF_M = 0.1
"""A marker is a point, and nothing says how large the handle is that it stands for."""
HANDLE_INSET_M = 0.05  # of a door without a marker, from its edge
_FRIDGES = ("fridge", "frige", "refrigerator")  # words in the names of articulated objects; the second is ReplicaCAD's
_LEAST = {"slide": 0.15, "hinge": 0.5}  # m, rad: what moves less is no drawer or door
_CLOSED = 0.05  # m or rad: a joint whose least opening is farther from 0 is none that HAB's predicates understand
_UPRIGHT = 0.95  # cosine
_RGB = (0.7, 0.7, 0.7)
_FRIDGE_DEPTH_M, _BELOW_M = 1.0, 0.05  # at most so far behind its door, or below, is the inside of a fridge


@dataclass(frozen=True, eq=False)
class MovingLink:
    """A link with one joint, closed. kind: slide (along `axis`) or hinge (about `axis` through `origin`)."""

    handle: str  # of the articulated object
    number: int  # by which HAB's episodes call it
    name: str
    kind: str
    axis: np.ndarray  # (3,) unit, so that the opening is positive
    origin: np.ndarray  # (3,)
    range_m_or_rad: tuple[float, float]
    corners: np.ndarray  # (8, 3) of the box around it
    frame: np.ndarray  # (4, 4) of the link, its own axes as Habitat has them, its origin at its centre of mass
    seen: np.ndarray = field(default_factory=lambda: np.empty((0, 3)))  # (n, 3) corners of what is seen of it
    solids: tuple[np.ndarray, ...] = ()  # (n, 3) corners of each convex piece that collides

    def shifted(self, by: np.ndarray) -> MovingLink:
        """The same link elsewhere."""
        frame = self.frame.copy()
        frame[:3, 3] += by
        return replace(self, origin=self.origin + by, corners=self.corners + by, frame=frame, seen=self.seen + by,
                       solids=tuple(solid + by for solid in self.solids))


@dataclass(frozen=True, eq=False)
class FoundReceptacle:
    """A receptacle as Habitat-Lab declares it, a box above a surface, in our world, everything closed; or one that is
    found from shape.
    """

    name: str  # without the prefix
    handle: str | None  # of the object that it belongs to; None for the stage
    link: int | str | None  # of an articulated object, as its simulator counts or calls it
    middle_m: tuple[float, float, float]  # of its box
    half_m: tuple[float, float, float]
    yaw_rad: float
    clearance_m: float | None = None
    """Room over the surface, of one that is found from shape; None: it is declared."""

    @property
    def is_declared(self) -> bool:
        return self.clearance_m is None


def found_receptacle(name: str, handle: str | None, link: int | str | None, middle: np.ndarray, half: np.ndarray,
                     frame: np.ndarray, scale: float | np.ndarray = 1.0) -> FoundReceptacle:
    """From what a file declares: middle and half size (3,) of the box in `frame` (4, 4), without its `scale`."""
    middle, half = scale * middle, np.abs(scale * half)
    up = int(np.argmax(np.abs(frame[2, :3])))  # the axis of the box that is upright in the world
    across, along = (axis for axis in range(3) if axis != up)
    return FoundReceptacle(
        name.removeprefix(BOX), handle, link, tuple((frame @ (*middle, 1.0))[:3].tolist()),
        (float(half[across]), float(half[along]), float(half[up])), math.atan2(frame[1, across], frame[0, across]))


def plain_name(handle: str) -> str:
    """`sofa` of a handle such as `objects/sofa_:0003`."""
    return handle.rpartition("/")[2].partition(":")[0].removesuffix("_")


def is_fridge(handle: str) -> bool:
    """Whether an articulated object is a fridge, by its name."""
    return any(word in handle.lower() for word in _FRIDGES)


def is_opening(kind: str, span: tuple[float, float]) -> bool:
    """Whether a joint with this range is one of a drawer or door."""
    return abs(span[0]) < _CLOSED and _LEAST[kind] < span[1] < 10.0


def drawers_of(links: Iterable[MovingLink]) -> list[MovingLink]:
    """The links that slide out level."""
    return [link for link in links if link.kind == "slide" and abs(link.axis[2]) < 1.0 - _UPRIGHT]


def fridge_doors(links: Iterable[MovingLink]) -> list[MovingLink]:
    """The doors of a fridge; the first is the one that HAB's tasks are about, the upper."""
    doors = [link for link in links if link.kind == "hinge" and is_fridge(link.handle) and abs(link.axis[2]) > _UPRIGHT]
    return sorted(doors, key=lambda link: -link.corners[:, 2].mean())


def upright_doors(links: Iterable[MovingLink]) -> list[MovingLink]:
    """Doors that turn about an upright hinge and open as far as skills open that of a fridge, whatever they are
    called.
    """
    return [link for link in links
            if link.kind == "hinge" and abs(link.axis[2]) > _UPRIGHT and opens_far("fridge", link.range_m_or_rad[1])]


def front_of(door: MovingLink) -> PlanePose:
    """Middle of the front of a closed door, and which of its level axes points to where it begins to open."""
    way = np.cross(door.axis, door.corners.mean(axis=0) - door.origin)
    axes = [sign * axis for axis in door.frame[:3, :3].T for sign in (1.0, -1.0)]
    out = max(axes, key=lambda axis: float(axis[:2] @ way[:2]))
    yaw = math.atan2(out[1], out[0])
    local = turned(door.corners, yaw)
    low, high = local.min(axis=0), local.max(axis=0)
    x, y, _ = turned(np.array([(high[0], (low[1] + high[1]) / 2, 0.0)]), -yaw)[0].tolist()
    return x, y, yaw


def is_behind(door: MovingLink, point: Iterable[float], frame: PlanePose) -> bool:
    """Whether a point is in the compartment that a closed door shuts. frame: its x axis points out of the door."""
    corners = np.array([(*to_frame(x, y, frame), z) for x, y, z in door.corners])
    low, high = corners.min(axis=0), corners.max(axis=0)
    x, y, z = point
    x, y = to_frame(x, y, frame)
    return low[2] - _BELOW_M < z < high[2] and low[1] < y < high[1] and high[0] - _FRIDGE_DEPTH_M < x < high[0]


def names_for(drawers: list[MovingLink]) -> list[str]:
    """Names as ours, which begin with drawer_: drawer3 is drawer_3, drawer1_top is drawer_1_top."""
    return named_apart(["drawer_" + (re.sub(r"^drawer_?", "", link.name) or "1") for link in drawers])


def named_apart(wanted: Iterable[str]) -> list[str]:
    """Names, of which the second of a kind ends in _2, the third in _3."""
    names: list[str] = []
    for stem in wanted:
        name, number = stem, 2
        while name in names:
            name, number = f"{stem}_{number}", number + 1
        names.append(name)
    return names


def drawer_body(name: str, link: MovingLink, markers: Iterable[Marker]) -> Body:
    """A drawer with its frame in the middle of its front, at its floor, x outwards."""
    yaw = math.atan2(link.axis[1], link.axis[0])
    local = turned(link.corners, yaw)
    low, high = local.min(axis=0), local.max(axis=0)
    handle, front_m = handle_and_front(link, markers, yaw, high[0])
    front = np.array((front_m, (low[1] + high[1]) / 2, low[2]))
    handle = np.array((high[0], front[1], (low[2] + high[2]) / 2)) if handle is None else handle
    position = turned(front[None], -yaw)[0]
    parts = (*_pieces(link, yaw, front), _handle(name, handle - front))
    return Body(name, "slide", 1.0, link.range_m_or_rad, tuple(position.tolist()), yaw, parts)


def door_body(name: str, link: MovingLink, front_yaw: float, markers: Iterable[Marker]) -> Body:
    """A door with its frame at its hinge, on the floor, x out of the closed front."""
    local = turned(link.corners, front_yaw)
    hinge = turned(link.origin[None], front_yaw)[0] * (1.0, 1.0, 0.0)
    low, high = local.min(axis=0), local.max(axis=0)
    handle, _ = handle_and_front(link, markers, front_yaw, high[0])
    if handle is None:  # near the edge away from the hinge, half way up
        far = high[1] - HANDLE_INSET_M if abs(high[1] - hinge[1]) > abs(low[1] - hinge[1]) else low[1] + HANDLE_INSET_M
        handle = np.array((high[0], far, (low[2] + high[2]) / 2))
    position = turned(hinge[None], -front_yaw)[0]
    parts = (*_pieces(link, front_yaw, hinge), _handle(name, handle - hinge))
    sign = math.copysign(1.0, link.axis[2])
    return Body(name, "hinge", sign, link.range_m_or_rad, (position[0], position[1], 0.0), front_yaw, parts)


def _pieces(link: MovingLink, yaw: float, origin: np.ndarray) -> list[Part]:
    """Boxes around what collides of a link, or around all of it; in axes turned by `yaw`, from `origin` (3,) in those.

    One box around a whole drawer would not tell its front from its back.
    """
    spans = [(local.min(axis=0) - origin, local.max(axis=0) - origin)
             for local in (turned(points, yaw) for points in link.solids or [link.corners])]
    return [Part("box", tuple(((low + high) / 2).tolist()), tuple(((high - low) / 2).tolist()), _RGB)
            for low, high in spans]


def _handle(name: str, center: np.ndarray) -> Part:
    """Where the cup may hold it; nothing is there."""
    return Part("box", tuple(center.tolist()), (HANDLE_HALF_M,) * 3, _RGB, name=f"{name}_handle", solid=False)

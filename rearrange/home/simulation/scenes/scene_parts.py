"""What a scene of a data set consists of, collected from its files: what is seen, what collides, what moves, where
things can stand.

Frames: world, z up, with the origin of the scene's file; links keep the axes that their documents give them. Metres,
radians.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from rearrange.home.apartments.episodes import Marker
from rearrange.home.axis_conventions import AXES
from rearrange.home.errors import UserError
from rearrange.home.pictures.meshes import Mesh
from rearrange.home.scene_files.data_set import Scene
from rearrange.home.scene_files.glb import Piece, read_glb
from rearrange.home.scene_files.scene_entries import Placed, PlacedArticulated, turn_of
from rearrange.home.scene_files.surfaces import box_around, facing_out, moved, surface, transform, upward
from rearrange.home.scene_files.templates import BOX
from rearrange.home.scene_files.urdf_elements import FIXED, SLIDE, Joint, Shape
from rearrange.home.simulation.scenes.convex_parts import Solid, flat_pieces, hull
from rearrange.home.simulation.scenes.drawers_and_doors import (
    FoundReceptacle,
    MovingLink,
    found_receptacle,
    is_opening,
    plain_name,
)
from rearrange.home.simulation.scenes.reach import limit_leaders

STAGE = 0  # the owner of what belongs to the stage
STILL = -1  # the number of what does not move
MOST_SOLIDS = 20_000  # of a scene
FREE = "free"  # the kind of a part that hangs on nothing
THIN_M = 0.05  # what lies on the floor and is not thicker, as a rug, a Fetch drives over
# What a hand overcomes: 20 N at 0.5 m/s, 0.6 m from a hinge. No more is used: files damp joints for motors.
MOST_DAMPING = {"slide": 40.0, "hinge": 15.0, FREE: 0.0}
_RGBA = (0.5, 0.5, 0.5, 1.0)  # of a shape without a material
_LINK_KG = 2.0  # of a link whose document gives no mass


@dataclass(eq=False)
class Part:
    """A link that moves, with all that is fixed to it. parent: number of the part that it hangs on, or STILL. kind:
    slide, hinge, or free, of a thing to be moved. frame: (4, 4) of the link in the world, everything closed. axis:
    unit, in the link.
    """

    handle: str
    link: str
    parent: int
    kind: str
    frame: np.ndarray
    axis: np.ndarray
    range: tuple[float, float]
    damping: float
    friction: float
    mass_kg: float = 0.0
    mass_center: np.ndarray = field(default_factory=lambda: np.zeros(3))  # (3,) in the link, as its document has it
    number: int = 0  # by which HAB's episodes call the link
    follows: tuple[int, tuple[float, ...]] | None = None  # number of a part, and the polynomial of its opening
    things: dict[str, np.ndarray] = field(default_factory=dict)  # name -> mark (4, 4) in the link, of one to be moved
    solids: list[Solid] = field(default_factory=list)  # in the link


@dataclass(eq=False)
class Standing:
    """A thing that stands still: its handle (None: the stage), what collides of it, and whether its file, or that of
    something it belongs to, declares receptacles.
    """

    handle: str | None
    solids: list[Solid] = field(default_factory=list)
    declares: bool = False


@dataclass(eq=False)
class Pieces:
    """solids: what does not move. walls: those of them that are of the stage. meshes: `row` is the number of a part, or
    STILL; `owner` is STAGE or a number of its own for each other thing. floor: upward triangles (n, 3, 3) of the stage.
    markers: of handles, where the scene's own file has them. owners: what each owner but the stage is called, as
    `frl_apartment_sofa`. standing: `solids` and `walls`, thing by thing.
    """

    solids: list[Solid] = field(default_factory=list)
    walls: list[Solid] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    meshes: list[Mesh] = field(default_factory=list)
    receptacles: list[FoundReceptacle] = field(default_factory=list)
    roots: dict[str, np.ndarray] = field(default_factory=dict)
    floor: np.ndarray = field(default_factory=lambda: np.empty((0, 3, 3)))
    markers: list[Marker] = field(default_factory=list)
    owners: dict[int, str] = field(default_factory=dict)
    standing: list[Standing] = field(default_factory=list)

    def moving_links(self) -> list[MovingLink]:
        """What can be opened, in the order of objects and links."""
        found = []
        for part in self.parts:
            if part.parent == STILL and part.follows is None and not part.things and is_opening(part.kind, part.range):
                world = part.frame.copy()
                world[:3, 3] += part.frame[:3, :3] @ part.mass_center
                found.append(MovingLink(
                    part.handle, part.number, part.link, part.kind, part.frame[:3, :3] @ part.axis, part.frame[:3, 3],
                    part.range, self._corners(part), world, moved(self._seen(part), part.frame),
                    tuple(solid.moved(part.frame).corners() for solid in part.solids)))
        return sorted(found, key=lambda link: link.handle)

    def _seen(self, part: Part) -> np.ndarray:
        """(n, 3) in the link."""
        number = self.parts.index(part)
        return np.concatenate([np.empty((0, 3)), *(mesh.vertices for mesh in self.meshes if mesh.row == number)])

    def _corners(self, part: Part) -> np.ndarray:
        """(8, 3) in the world, of the box, along the axes of the link, around what collides of it, which the cup can
        touch, or else around what is seen.
        """
        points = np.concatenate([solid.corners() for solid in part.solids] or [self._seen(part)])
        return moved(box_around(points if len(points) else np.zeros((1, 3))), part.frame)


def collect(scene: Scene) -> Pieces:
    """The pieces of a scene. Raises UserError for one that is too large."""
    found = Pieces()
    if scene.stage is not None:
        _add_stage(found, scene.stage)
    for number, placed in enumerate(scene.objects, 1):
        _add_object(found, placed, number)
        found.owners[number] = Path(placed.template.name).name
    for number, body in enumerate(scene.articulated, 1 + len(scene.objects)):
        _add_articulated(found, body, number)
        found.owners[number] = plain_name(body.handle)
    limit_leaders(found.parts)
    for thing in found.standing:  # Habitat itself knows no other than those: a scene has the same in both simulators
        thing.declares = bool(found.receptacles)
    found.receptacles.sort(key=lambda receptacle: (receptacle.name, receptacle.handle or ""))
    check_size(found, scene.name, "give its stage, or its largest object, a coarser collision_asset")
    return found


def check_size(found: Pieces, scene: str, advice: str = "give it fewer geoms that collide") -> None:
    """Raise UserError for a scene of more pieces than are simulated."""
    if (count := len(found.solids) + len(found.walls)) > MOST_SOLIDS:
        raise UserError(f"scene {scene} has {count:,} pieces that collide, more than {MOST_SOLIDS:,}: {advice}.")


def _upright(frame: np.ndarray) -> np.ndarray:
    """(4, 4) from a template's frame to the world, z up, for a frame in the scene, y up."""
    world = np.eye(4)
    world[:3] = AXES.T @ frame[:3]
    return world


def _mesh(piece: Piece, frame: np.ndarray, row: int, owner: int) -> Mesh:
    """What is seen of a piece."""
    vertices, triangles = moved(piece.vertices, frame), facing_out(piece.triangles, frame)
    return Mesh(row, vertices, triangles, lambda: piece.rgb, owner, piece.two_sided)


def _add_stage(found: Pieces, placed: Placed) -> None:
    frame, template = _upright(placed.frame), placed.template
    found.meshes += [_mesh(piece, frame, STILL, STAGE) for piece in template.seen if piece.visible]
    floor = [found.floor]
    for piece in template.solid or template.seen:
        points, triangles = moved(piece.vertices, frame), facing_out(piece.triangles, frame)
        floor.append(upward(points[triangles]))
        if template.collides:
            found.walls += filter(None, map(hull, flat_pieces(points, triangles)))
    found.standing.append(Standing(None, found.walls))
    found.floor = np.concatenate(floor)
    rigid, scale = _without_scale(frame)
    _add_receptacles(found, template.receptacles, None, lambda _: (None, rigid), scale)


def _add_object(found: Pieces, placed: Placed, owner: int) -> None:
    frame, template = _upright(placed.frame), placed.template
    found.meshes += [_mesh(piece, frame, STILL, owner) for piece in template.seen if piece.visible]
    solids = list(filter(None, (hull(moved(points, frame)) for points in template.hulls())))
    found.solids += solids
    found.standing.append(Standing(template.name, solids))
    rigid, scale = _without_scale(frame)
    _add_receptacles(found, template.receptacles, template.name, lambda _: (None, rigid), scale)


def _without_scale(frame: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A frame (4, 4) with axes of length 1, and the lengths (3,) that they had."""
    scale, rigid = np.linalg.norm(frame[:3, :3], axis=0), frame.copy()
    rigid[:3, :3] /= scale
    return rigid, scale


def _add_articulated(found: Pieces, body: PlacedArticulated, owner: int) -> None:
    """Links that hang on the root by fixed joints alone stand still.

    The scale of an articulated object is that of its lengths, as in Habitat-Sim: origins of joints, shapes and centres
    of mass, sizes, and limits of sliding joints. Angles and their limits, axes, masses, damping and friction stay.
    """
    urdf, scale, numbers = body.urdf, body.scale, body.urdf.numbers()
    frames, part_of = {urdf.root: _upright(body.frame)}, {urdf.root: STILL}
    found.roots[body.handle] = frames[urdf.root]
    for joint in urdf.joints:
        frames[joint.child] = frames[joint.parent] @ _longer(joint.frame, scale)
        if joint.kind == FIXED:
            part_of[joint.child] = part_of[joint.parent]
        else:
            part_of[joint.child] = len(found.parts)
            found.parts.append(_part(body, joint, frames[joint.child], part_of[joint.parent], numbers[joint.child]))
    _link_mimics(found, body, part_of)
    still = Standing(body.handle)
    found.standing.append(still)
    for name, link in urdf.links.items():
        number = part_of[name]
        in_part = frames[name] if number == STILL else np.linalg.inv(found.parts[number].frame) @ frames[name]
        for shape in link.visuals:
            found.meshes += [_mesh(piece, in_part @ _of_mesh(shape, scale), number, owner)
                             for piece in _pieces_of(body, shape) if piece.visible]
            if shape.file is None and (shape.rgba is None or shape.rgba[3] > 0.0):
                found.meshes += [_solid_mesh(solid.moved(in_part), shape.rgba or _RGBA, number, owner)
                                 for solid in _solids(body, shape, scale)]
        solids = still.solids if number == STILL else found.parts[number].solids
        solids += [solid.moved(in_part) for shape in link.collisions for solid in _solids(body, shape, scale)]

    found.solids += still.solids

    def link_of(values: dict) -> tuple[str | None, np.ndarray | None]:
        """Receptacles and markers are given from a link's centre of mass, where Habitat has the link's frame."""
        name = values.get("parent_link")
        if name not in urdf.links:
            return name, None
        frame = frames[name].copy()
        frame[:3, 3] += frame[:3, :3] @ (scale * urdf.links[name].inertial[:3, 3])
        return name, frame

    _add_receptacles(found, body.receptacles, body.handle, link_of, scale)


def _longer(frame: np.ndarray, scale: float) -> np.ndarray:
    """(4, 4) with its position times a scale."""
    return transform(frame[:3, :3], scale * frame[:3, 3])


def _part(body: PlacedArticulated, joint: Joint, frame: np.ndarray, parent: int, number: int) -> Part:
    link = body.urdf.links[joint.child]
    low, high = (body.scale * bound if joint.kind == SLIDE else bound for bound in joint.range)
    return Part(body.handle, joint.child, parent, joint.kind, frame, joint.axis, (low, high), joint.damping,
                joint.friction, body.mass_scale * (link.mass_kg or _LINK_KG), body.scale * link.inertial[:3, 3], number)


def _link_mimics(found: Pieces, body: PlacedArticulated, part_of: dict[str, int]) -> None:
    """Tell parts whose joints mimic others which ones; a scale changes the ratio of a slide to a hinge."""
    joints = {joint.name: joint for joint in body.urdf.joints}
    for joint in joints.values():
        if joint.mimic is not None:
            leader, times = joints[joint.mimic[0]], joint.mimic[1]
            for kind, factor in ((joint.kind, body.scale), (leader.kind, 1.0 / body.scale)):
                times *= factor if kind == SLIDE else 1.0
            found.parts[part_of[joint.child]].follows = part_of[leader.child], (0.0, times)


def _solid_mesh(solid: Solid, rgba: tuple[float, ...], row: int, owner: int) -> Mesh:
    """What is seen of a box, sphere, cylinder or capsule."""
    vertices, triangles = surface(solid.kind, np.array(solid.size))
    return Mesh(row, moved(vertices, solid.frame), triangles, lambda: np.array(rgba[:3]), owner)


def _of_mesh(shape: Shape, scale: float) -> np.ndarray:
    """(4, 4) from the file of a mesh to the link."""
    return _longer(shape.frame, scale) @ np.diag([*(scale * np.array(shape.size)), 1.0])


def _pieces_of(body: PlacedArticulated, shape: Shape) -> tuple[Piece, ...]:
    return () if shape.file is None else read_glb(shape.file, body.urdf.path)


def _solids(body: PlacedArticulated, shape: Shape, scale: float) -> Iterator[Solid]:
    """Of a collision shape, in its link."""
    if shape.kind == "mesh":
        points = (piece.vertices[np.unique(piece.triangles)] for piece in _pieces_of(body, shape))
        yield from filter(None, (hull(moved(each, _of_mesh(shape, scale))) for each in points))
        return
    sizes = [scale * value for value in shape.size]
    if shape.kind == "box":
        sizes = [value / 2 for value in sizes]
    elif len(sizes) == 2:
        sizes[1] /= 2
    if min(sizes) > 0.0:
        yield Solid(shape.kind, _longer(shape.frame, scale), tuple(sizes))


def _add_receptacles(found: Pieces, declared: dict[str, dict], handle: str | None, link_of,
                     scale: float | np.ndarray) -> None:
    """What a file declares. link_of: name and frame (4, 4) of the link that a receptacle is on; None: there is none."""
    for key, values in declared.items():
        link, frame = link_of(values)
        if not key.startswith(BOX) or frame is None or values.get("position") is None or values.get("scale") is None:
            continue
        middle, half = np.array(values["position"], float), np.array(values["scale"], float)
        if handle is None and values.get("rotation"):  # of a stage, about its middle
            turn = turn_of(values)
            frame = frame @ transform(turn, scale * middle - turn @ (scale * middle))
        name = str(values.get("name", key))
        found.receptacles.append(found_receptacle(name, handle, link, middle, half, frame, scale))

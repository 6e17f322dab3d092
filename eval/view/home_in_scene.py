"""A home as a scene of viser: what stands still, what moves in the embedded simulator, and the marks of videos.

Every box, ball and cylinder is an instance of one unit mesh. So a browser draws three things for what stands still and
three for what moves, whose places are sent when they have changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import mujoco
import numpy as np
import trimesh
import viser

from rearrange.home.apartments.segmentation import BUILDING, numbers_of
from rearrange.home.pictures.meshes import MeshTable
from rearrange.home.pictures.picture import Ghost, Sphere, WireBox
from rearrange.home.pictures.raster_kernels import KINDS
from rearrange.home.simulation.mujoco.build_model import things_of_shell
from rearrange.home.simulation.mujoco.cameras import CEILING_GROUP
from rearrange.home.simulation.mujoco.simulator import MujocoSimulator
from rearrange.navigation.home_cache import Home

# Heights left where walls and furniture are cut down, so that one can look into the rooms from above.
LOW_WALL_M, LOW_FURNITURE_M = 0.9, 1.3
FIXED_GROUPS = (0, 1)  # of geoms: the building, furniture, and its drawers and doors
FLAT_M = 0.025  # what is lower lies on the floor, like a rug
FLOOR_M = 0.02  # thickness of what stands for a plane
_BUILT = [BUILDING[name] for name in ("wall", "door", "window")]
_SHAPES = {mujoco.mjtGeom.mjGEOM_BOX: "box", mujoco.mjtGeom.mjGEOM_SPHERE: "ball",
           mujoco.mjtGeom.mjGEOM_CYLINDER: "cylinder", mujoco.mjtGeom.mjGEOM_CAPSULE: "capsule",
           mujoco.mjtGeom.mjGEOM_PLANE: "plane"}
_UNIT = {"box": trimesh.creation.box(extents=(2, 2, 2)), "ball": trimesh.creation.icosphere(subdivisions=3, radius=1),
         "cylinder": trimesh.creation.cylinder(radius=1, height=2, sections=40)}
_NEARER_M = 1e-4  # what has moved less is not sent again


@dataclass(frozen=True)
class _Piece:
    """An instance of a unit mesh: its geom, offset along the geom's z axis, half sizes, colour (sRGB, 0..255)."""

    shape: str
    geom: int
    offset_m: float
    half_m: tuple[float, float, float]
    rgb: tuple[int, int, int]


def _pieces(shape: str, geom: int, size: Sequence[float], color: Sequence[float]) -> list[_Piece]:
    """A geom as instances of unit meshes; a capsule is three of them.

    Args:
        shape: one of _SHAPES.
        geom: its number.
        size: as MuJoCo has it (m).
        color: sRGB, 0..1.
    """
    a, b, c = (float(value) for value in size)
    rgb = tuple(int(round(255 * min(max(value, 0.0), 1.0))) for value in color)
    if shape == "capsule":
        ends = [_Piece("ball", geom, side * b, (a, a, a), rgb) for side in (-1, 1)]
        return [_Piece("cylinder", geom, 0.0, (a, a, b), rgb), *ends]
    if shape == "plane":
        return [_Piece("box", geom, -FLOOR_M / 2, (a, b, FLOOR_M / 2), rgb)]
    half = {"box": (a, b, c), "ball": (a, a, a), "cylinder": (a, a, b)}[shape]
    return [_Piece(shape, geom, 0.0, half, rgb)]


class _Batch:
    """Instances of the unit meshes that move together with their geoms."""

    def __init__(self, scene: viser.SceneApi, name: str, pieces: Sequence[_Piece], data: mujoco.MjData,
                 cast_shadow: bool = True) -> None:
        self._parts = []
        for shape, mesh in _UNIT.items():
            if not (mine := [piece for piece in pieces if piece.shape == shape]):
                continue
            geoms, offsets = np.array([piece.geom for piece in mine]), np.array([piece.offset_m for piece in mine])
            places, turns = _poses(geoms, offsets, data)
            handle = scene.add_batched_meshes_simple(f"{name}/{shape}", mesh.vertices, mesh.faces, turns, places,
                                                     batched_scales=np.array([piece.half_m for piece in mine]),
                                                     batched_colors=np.array([piece.rgb for piece in mine], np.uint8),
                                                     flat_shading=shape != "ball", lod="off", cast_shadow=cast_shadow)
            self._parts.append([handle, geoms, offsets, places, turns])

    def move(self, data: mujoco.MjData) -> None:
        """Send the places that have changed."""
        for part in self._parts:
            handle, geoms, offsets, places, turns = part
            new_places, new_turns = _poses(geoms, offsets, data)
            if max(np.abs(new_places - places).max(), np.abs(new_turns - turns).max()) > _NEARER_M:
                handle.batched_positions, handle.batched_wxyzs = new_places, new_turns
                part[3:] = new_places, new_turns

    def remove(self) -> None:
        for handle, *_ in self._parts:
            handle.remove()


def _poses(geoms: np.ndarray, offsets: np.ndarray, data: mujoco.MjData) -> tuple[np.ndarray, np.ndarray]:
    """Places (N, 3) and orientations (N, 4), world frame."""
    turns = np.empty((len(geoms), 4))
    for row, geom in enumerate(geoms):
        mujoco.mju_mat2Quat(turns[row], data.geom_xmat[geom])
    places = data.geom_xpos[geoms] + offsets[:, None] * data.geom_xmat[geoms].reshape(-1, 3, 3)[:, :, 2]
    return places.astype(np.float32), turns.astype(np.float32)


class HomeInScene:
    """Shows one home after another in a scene of viser."""

    def __init__(self, scene: viser.SceneApi) -> None:
        self._scene = scene
        self.low_walls = True
        self._shown: tuple[Any, ...] | None = None
        self._moving: _Batch | None = None
        self._batches: list[_Batch] = []
        self._meshes: list[tuple[Any, int]] = []  # of scenes of a data set, with the bodies that they move with
        self._marks: list[Any] = []
        self._kinds: list[tuple[Any, ...]] = []

    def show(self, twin: MujocoSimulator, marks: Sequence[WireBox | Sphere | Ghost]) -> None:
        """The state of a simulator now; the home is sent anew where it is another one."""
        home = (twin.home, tuple(twin.slot_of(i) for i in range(len(twin.episode.objects))), self.low_walls)
        if self._shown != home:
            self._load(twin, home[1])
            self._shown = home
        else:
            self._moving.move(twin.data)
        for handle, body in self._meshes:
            _place(handle, twin.data.xpos[body], twin.data.xquat[body])
        self._show_marks(marks)

    def show_still(self, home: Home, marks: Sequence[WireBox | Sphere | Ghost]) -> None:
        """A home of navigation tasks, in which nothing moves but the marks."""
        if self._shown != (home, self.low_walls):
            self._load_still(home)
            self._shown = (home, self.low_walls)
        self._show_marks(marks)

    def _clear(self) -> None:
        for node in (*self._batches, *(handle for handle, _ in self._meshes)):
            node.remove()
        self._batches, self._meshes = [], []

    def _load_still(self, home: Home) -> None:
        self._clear()
        floor, still, places = _still_pieces(home, self.low_walls)
        self._batches = [_Batch(self._scene, "/still", still, places),
                         _Batch(self._scene, "/floor", floor, places, cast_shadow=False)]
        if (found := home.meshes) is not None:
            for handle, row in _mesh_nodes(self._scene, found.table, found.positions, found.rotations,
                                           np.full(len(found.positions), self.low_walls)):
                quat = np.empty(4)
                mujoco.mju_mat2Quat(quat, found.rotations[row])
                _place(handle, found.positions[row], quat)
                self._meshes.append((handle, row))

    def _load(self, twin: MujocoSimulator, slots: tuple[int, ...]) -> None:
        self._clear()
        floor, still, moving = self._split(twin, slots)
        self._moving = _Batch(self._scene, "/moving", moving, twin.data)
        # The floor's own shadow would lie on it in stripes.
        self._batches = [self._moving, _Batch(self._scene, "/still", still, twin.data),
                         _Batch(self._scene, "/floor", floor, twin.data, cast_shadow=False)]
        meshes = twin.home.meshes
        if meshes is not None:
            self._meshes = _mesh_nodes(self._scene, meshes, twin.data.xpos, twin.data.xmat,
                                       self.low_walls & (twin.model.body_weldid == 0))

    def _split(self, twin: MujocoSimulator, slots: tuple[int, ...]) -> tuple[list[_Piece], list[_Piece], list[_Piece]]:
        """The floor with what lies flat on it, what else stands still, and what moves; without what is not seen."""
        model, home = twin.model, twin.home
        hidden = home.unseen_groups or (CEILING_GROUP,)
        cuts = self.low_walls and bool(home.layout.parts)  # a scene without parts does not say what a wall is
        walls = _walls(home) if cuts else frozenset()
        floor, still, moving = [], [], []
        for geom in range(model.ngeom):
            slot, kind = int(home.object_of_geom[geom]), mujoco.mjtGeom(model.geom_type[geom])
            waits = slot >= 0 and slot not in slots
            if waits or model.geom_group[geom] in hidden or model.geom_rgba[geom, 3] == 0 or kind not in _SHAPES:
                continue
            pieces = _pieces(_SHAPES[kind], geom, model.geom_size[geom], model.geom_rgba[geom, :3])
            if cuts and model.geom_group[geom] in FIXED_GROUPS:
                pieces = _cut(pieces, float(twin.data.geom_xpos[geom, 2]),
                              LOW_WALL_M if geom in walls else LOW_FURNITURE_M)
            if model.body_weldid[model.geom_bodyid[geom]] != 0:
                moving += pieces
            elif _SHAPES[kind] == "plane" or twin.data.geom_xpos[geom, 2] + model.geom_size[geom, 2] < FLAT_M:
                floor += pieces
            else:
                still += pieces
        return floor, still, moving

    def _show_marks(self, marks: Sequence[WireBox | Sphere | Ghost]) -> None:
        kinds = [_kind(mark) for mark in marks]
        if kinds != self._kinds:
            for handle in self._marks:
                handle.remove()
            self._kinds, self._marks = kinds, [_mark_node(self._scene, f"/marks/{i}", mark)
                                               for i, mark in enumerate(marks)]
        for handle, mark in zip(self._marks, marks, strict=True):
            at = mark.position_m if isinstance(mark, Ghost) else mark.center_m
            _place(handle, at, (1.0, 0.0, 0.0, 0.0) if isinstance(mark, Sphere) else mark.quat)


def _place(handle: Any, position: Any, quat: Any) -> None:
    """Place a node, world frame; viser sends only what has changed."""
    handle.position, handle.wxyz = np.asarray(position, float), np.asarray(quat, float)


def _walls(home: Any) -> frozenset[int]:
    """Geoms of walls, windows and the front door."""
    (numbers, _), first = numbers_of(home.layout), len(things_of_shell(home.layout))
    return frozenset(first + i for i, number in enumerate(numbers) if number in _BUILT)


def _cut(pieces: list[_Piece], height_m: float, top_m: float) -> list[_Piece]:
    """What is left below the top of a geom whose middle is at this height; only upright boxes and cylinders are cut."""
    left = []
    for piece in pieces:
        bottom = height_m + piece.offset_m - piece.half_m[2]
        half = (min(bottom + 2 * piece.half_m[2], top_m) - bottom) / 2
        if half > 0.0:
            left.append(replace(piece, offset_m=piece.offset_m + half - piece.half_m[2],
                                half_m=(*piece.half_m[:2], half)) if piece.shape != "ball" else piece)
    return left


def _still_pieces(home: Home, low: bool) -> tuple[list[_Piece], list[_Piece], Any]:
    """The floor, what stands on it, and the places of both, of a home of navigation tasks. low: walls are cut down."""
    s, rooms = home.shapes, np.array(home.building.inside).reshape(-1, 2, 2)
    names, still = {number: name for name, number in KINDS.items()}, []
    for k in np.flatnonzero(s.shapes[:, 0] != KINDS["plane"]):
        shape, (a, b, c) = names[int(s.shapes[k, 0])], s.halves[k, :3]
        size = {"box": (a, b, c), "sphere": (a, a, a)}.get(shape, (a, c - a if shape == "capsule" else c, 0.0))
        found = _pieces("ball" if shape == "sphere" else shape, int(k), size, s.rgb[k])
        still += _cut(found, float(s.centers[k, 2]), LOW_WALL_M if s.things[k] in _BUILT
                      else LOW_FURNITURE_M) if low else found
    middles = np.column_stack([rooms.mean(axis=1), np.zeros(len(rooms))])
    places = SimpleNamespace(geom_xpos=np.concatenate([s.centers, middles]),
                             geom_xmat=np.concatenate([s.rotations, np.tile(np.eye(3).ravel(), (len(rooms), 1))]))
    floor = [piece for k, half in enumerate((rooms[:, 1] - rooms[:, 0]) / 2)
             for piece in _pieces("plane", len(s.centers) + k, (*half, 0.0), s.rgb[0])]
    return floor, still, places


def _mesh_nodes(scene: viser.SceneApi, table: MeshTable, places: np.ndarray, turns: np.ndarray,
                low: np.ndarray) -> list[tuple[Any, int]]:
    """The meshes of a scene of a data set, those of one body together.

    Args:
        scene: of viser.
        table: the meshes.
        places, turns: of bodies, world frame, (n, 3) and (n, 9).
        low: of bodies, whether they are cut down, (n,) bool.
    """
    nodes = []
    for row in np.unique(table.rows):
        chosen = np.flatnonzero(table.rows == row)
        corners = table.vertices[table.triangles[chosen]]
        colors = np.round(255 * table.rgb[chosen] ** 2.2).astype(np.uint8)  # linear
        if low[row]:
            turn, place = turns[row].reshape(3, 3), places[row]
            corners, of = below(corners @ turn.T + place, LOW_FURNITURE_M)
            corners, colors = (corners - place) @ turn, colors[of]
        if not len(corners):
            continue
        shades = np.column_stack([np.repeat(colors, 3, axis=0), np.full(3 * len(colors), 255, np.uint8)])
        mesh = trimesh.Trimesh(corners.reshape(-1, 3), np.arange(3 * len(corners)).reshape(-1, 3), process=False,
                               vertex_colors=shades)
        content = trimesh.exchange.gltf.export_glb(trimesh.Scene(mesh), tree_postprocessor=_dull)
        nodes.append((scene.add_glb(f"/meshes/{row}", content, cast_shadow=False), int(row)))
    return nodes


def _dull(tree: dict[str, Any]) -> None:
    """A material that is no metal, which glTF takes where none is said, and seen from both sides."""
    tree["materials"] = [{"pbrMetallicRoughness": {"metallicFactor": 0.0, "roughnessFactor": 1.0}, "doubleSided": True}]
    for mesh in tree["meshes"]:
        for part in mesh["primitives"]:
            part["material"] = 0


def below(corners: np.ndarray, top_m: float) -> tuple[np.ndarray, np.ndarray]:
    """The part of triangles (N, 3, 3) below a height: triangles (M, 3, 3), and of which given one each is (M,)."""
    under = corners[:, :, 2] < top_m
    kept, of = [corners[under.all(axis=1)]], [np.flatnonzero(under.all(axis=1))]
    for count in (1, 2):  # corners below
        which = np.flatnonzero(under.sum(axis=1) == count)
        lone = np.argmax(under[which] == (count == 1), axis=1)  # the corner that is alone on its side
        a, b, c = (corners[which, (lone + k) % 3] for k in range(3))
        to_b, to_c = (a + ((top_m - a[:, 2]) / (end[:, 2] - a[:, 2]))[:, None] * (end - a) for end in (b, c))
        parts = [(a, to_b, to_c)] if count == 1 else [(to_b, b, c), (to_b, c, to_c)]
        kept += [np.stack(part, axis=1) for part in parts]
        of += [which] * count
    return np.concatenate(kept), np.concatenate(of)


def _kind(mark: WireBox | Sphere | Ghost) -> tuple[Any, ...]:
    """The looks of a mark, without its place."""
    if isinstance(mark, WireBox):
        return ("wire", *np.round(mark.half_size_m, 4).tolist(), *mark.rgb)
    if isinstance(mark, Sphere):
        return ("ball", mark.radius_m, *mark.rgb, mark.alpha)
    return (mark.shape, *mark.size, *mark.rgb, mark.alpha)


def _mark_node(scene: viser.SceneApi, name: str, mark: WireBox | Sphere | Ghost) -> Any:
    color = tuple(int(round(255 * value)) for value in mark.rgb)
    if isinstance(mark, WireBox):
        corners = np.array([[1 - 2 * (k >> bit & 1) for bit in range(3)]
                            for k in range(8)]) * np.asarray(mark.half_size_m)
        edges = [(a, b) for a in range(8) for b in range(a + 1, 8) if (a ^ b).bit_count() == 1]
        return scene.add_line_segments(name, corners[np.array(edges)], color, thickness=3.0, thickness_units="screen")
    seen = {"opacity": mark.alpha, "cast_shadow": False, "receive_shadow": False}
    if isinstance(mark, Sphere):
        return scene.add_icosphere(name, mark.radius_m, color, **seen)
    if mark.shape == "sphere":
        return scene.add_icosphere(name, mark.size[0], color, **seen)
    if mark.shape == "box":
        return scene.add_box(name, color, tuple(2 * value for value in mark.size), **seen)
    return scene.add_cylinder(name, mark.size[0],
                              2 * mark.size[1] + (2 * mark.size[0] if mark.shape == "capsule" else 0.0), color, **seen)


def light(scene: viser.SceneApi, towards_sun: Sequence[float]) -> None:
    """The sun of the videos and an even sky, instead of the lights of viser."""
    scene.configure_default_lights(False)
    scene.configure_environment_map(None)
    scene.add_light_hemisphere("/sky", sky_color=(255, 255, 255), ground_color=(150, 140, 130), intensity=1.9)
    scene.add_light_directional("/sun", color=(255, 247, 235), intensity=1.7, cast_shadow=True,
                                position=tuple(float(value) for value in towards_sun))

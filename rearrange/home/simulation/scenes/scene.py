"""A scene of a data set, loaded once per process: read, found out about, compiled."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

import mujoco
import numpy as np

from rearrange.home.apartments import segmentation
from rearrange.home.apartments.episodes import Marker
from rearrange.home.apartments.shell import GROUND_M
from rearrange.home.axis_conventions import Point
from rearrange.home.errors import UserError
from rearrange.home.geometry import rotate
from rearrange.home.pictures.meshes import Mesh, MeshTable, mesh_table
from rearrange.home.robot import robot_named
from rearrange.home.robot.robot import Robot
from rearrange.home.scene_files.data_set import ENDING, DataSet
from rearrange.home.scene_files.surfaces import transform
from rearrange.home.simulation.mujoco.build_model import handle_part
from rearrange.home.simulation.mujoco.collision_filter import measure
from rearrange.home.simulation.mujoco.compiled_home import FRONT_REACH_M, CompiledHome, addresses
from rearrange.home.simulation.scenes.floor import blocked_cells, floor_of
from rearrange.home.simulation.scenes.found_surfaces import found_receptacles
from rearrange.home.simulation.scenes.mjcf import ENDING as MJCF_ENDING
from rearrange.home.simulation.scenes.mjcf import MjcfHomes, is_mjcf
from rearrange.home.simulation.scenes.model import UNSEEN_GROUPS, compile_scene, part_names
from rearrange.home.simulation.scenes.objects import OwnObject, own_object
from rearrange.home.simulation.scenes.scene_layout import FoundScene, SceneHome, home_of
from rearrange.home.simulation.scenes.scene_parts import STAGE, STILL, Pieces, collect

KEPT_SCENES = 32

_RAY_GROUPS = np.array([1, 1, 0, 0, 0, 0], np.uint8)
_GROUND_RGB = (0.6, 0.58, 0.55)
_SEEN_SHARE = 0.3  # of the floor, where it is seen; rugs are less
_LEVEL, _FLOOR_M, _CEILING_M = 0.9, 0.1, 2.0  # uprightness of a level normal, highest floor, lowest ceiling


@dataclass(frozen=True, eq=False)
class LoadedScene:
    """What does not depend on the objects of an episode."""

    pieces: Pieces
    home: SceneHome
    names: list[str]  # of its parts


@dataclass(frozen=True, eq=False)
class CompiledScene(CompiledHome):
    """As a compiled home of ours, and what is known of the scene.

    own: objects with meshes of their own, by slot. owners: what owns triangles, by its number. followers: by joint,
    which others follow it, and by which polynomial.
    """

    scene: SceneHome = None  # type: ignore[assignment] # behind fields with defaults
    own: Mapping[int, OwnObject] = field(default_factory=dict)
    owners: Mapping[int, str] = field(default_factory=dict)
    followers: Mapping[str, list[tuple[str, tuple[float, ...]]]] = field(default_factory=dict)

    def things_of_triangles(self, index_of_slot: Mapping[int, int]) -> np.ndarray:
        """After the objects of an episode come furniture, in the order of the scene's file, then drawers and doors."""
        meshes, first = self.meshes, segmentation.OBJECT + len(index_of_slot)
        of_owner = {owner: first + k for k, owner in enumerate(self.owners)}
        of_body = {name: first + len(self.owners) + k for k, name in enumerate(self.handles)}
        of_body |= {f"object_{slot}": segmentation.OBJECT + index for slot, index in index_of_slot.items()}
        things = np.array([of_owner.get(int(owner), segmentation.NOTHING) for owner in meshes.owners], np.int32)
        for row in np.unique(meshes.rows):
            name = self.model.body(int(row)).name
            if name in of_body:
                things[meshes.rows == row] = of_body[name]
        stage = meshes.owners == STAGE
        height_m, up = meshes.vertices[meshes.triangles][:, :, 2].mean(axis=1), meshes.normals[:, 2]
        things[stage] = segmentation.BUILDING["wall"]
        things[stage & (abs(up) > _LEVEL) & (height_m > _CEILING_M)] = segmentation.BUILDING["ceiling"]
        things[stage & (up > _LEVEL) & (height_m < _FLOOR_M)] = segmentation.BUILDING["floor"]
        return np.where(things <= segmentation.MOST, things, segmentation.NOTHING)

    def names_of_things(self, objects: Sequence[str]) -> dict[int, str]:
        names, first = [*segmentation.numbered(self.owners.values()), *self.handles], segmentation.OBJECT + len(objects)
        return segmentation.robot_and_objects(objects) | {
            number: f"furniture/{name}" for number, name in enumerate(names, first) if number <= segmentation.MOST}


@lru_cache(maxsize=4)
def data_set(path: Path) -> DataSet | MjcfHomes:
    """The Habitat data set of a configuration, or homes in MJCF; opened once."""
    return MjcfHomes(path) if is_mjcf(path) else DataSet(path)


def name_of(path: Path, scene: str) -> str:
    """What a scene of a data set is called in episodes: replicaCAD/apt_0."""
    return f"{short_name(path)}/{scene}"


def short_name(path: Path) -> str:
    """What a data set is called: replicaCAD."""
    return path.resolve().name.removesuffix(ENDING).removesuffix(MJCF_ENDING)


def matching(path: Path, wanted: str, setting: str) -> list[str]:
    """The scenes of a data set that match a pattern of `wanted` ("v3_sc1_*,apt_0"), which `setting` gave.

    Raises UserError for a pattern that none matches.
    """
    names = data_set(path).scenes
    patterns = [pattern.strip() for pattern in wanted.split(",") if pattern.strip()]
    lacking = [pattern for pattern in patterns if not any(fnmatchcase(name, pattern) for name in names)]
    if lacking or not patterns:
        known = ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
        first = lacking[0] if lacking else ""
        raise UserError(f"{setting}={wanted}: no scene of {path} is called {first!r}; there are {known} (rearrange "
                        f"scenes list dataset={path}).")
    return [name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)]


@lru_cache(maxsize=KEPT_SCENES)
def load_scene(path: Path, name: str, markers: tuple[Marker, ...] = ()) -> LoadedScene:
    """A scene by its name in the data set; raises UserError where it cannot be used. `markers`: of its episodes."""
    pieces = pieces_of(path, name)
    height, low, high = floor_of(pieces, name)
    origin = np.array((*low, height))
    moving = [link.shifted(-origin) for link in pieces.moving_links()]
    places = [*pieces.receptacles, *found_receptacles(pieces, pieces.moving_links(), height)]
    found = FoundScene(
        name_of(path, name), origin, blocked_cells(pieces, height, low, high), moving,
        [replace(place, middle_m=tuple((np.array(place.middle_m) - origin).tolist())) for place in places],
        {handle: transform(root[:3, :3], root[:3, 3] - origin) for handle, root in pieces.roots.items()},
        _Rays(name, pieces, origin, high - low))
    home = home_of(found, (*markers, *pieces.markers))
    return LoadedScene(pieces, home, part_names(pieces, home.links))


def pieces_of(path: Path, name: str) -> Pieces:
    """What a scene is made of, by its name in the data set. UserError for one that is missing, or a file of it."""
    data = data_set(path)
    if isinstance(data, MjcfHomes):
        return data.pieces(name)
    scene, problems = data.read(name)
    if problems:
        more = f" (and {len(problems) - 1} more: rearrange scenes check dataset={path})" if len(problems) > 1 else ""
        raise UserError(f"{problems[0].rstrip('.')}{more}.")
    return collect(scene)


class _Rays:
    """Asks the scene, without objects and with everything closed, which share of a straight way is free."""

    def __init__(self, scene: str, pieces: Pieces, origin: np.ndarray, size: np.ndarray) -> None:
        self._given = scene, pieces, tuple(size.tolist()), origin, (), part_names(pieces, {})
        self._model: mujoco.MjModel | None = None

    def __call__(self, start: Point, end: Point) -> float:
        if self._model is None:
            self._model = compile_scene(*self._given, {})
            self._data = mujoco.MjData(self._model)
            mujoco.mj_forward(self._model, self._data)
        way = np.subtract(end, start)
        nearest = np.zeros(1, np.int32)
        hit = mujoco.mj_ray(self._model, self._data, np.array(start, float), way, _RAY_GROUPS, 1, -1, nearest)
        return hit if 0.0 <= hit < 1.0 else 1.0


@lru_cache(maxsize=KEPT_SCENES)
def mesh_table_of(path: Path, name: str, markers: tuple[Marker, ...], bodies: tuple[int, ...],
                  own: tuple[tuple[int, Path], ...]) -> MeshTable:
    """What is drawn of a scene; shared by all models in which its parts are these bodies.

    own: body and file of each object with a mesh of its own.
    """
    loaded = load_scene(path, name, markers)
    shift = -np.array(loaded.home.origin_m)
    scene = [replace(mesh, row=0, vertices=mesh.vertices + shift) if mesh.row == STILL else
             replace(mesh, row=bodies[mesh.row]) for mesh in loaded.pieces.meshes]
    first = 1 + max((mesh.owner for mesh in scene), default=0)
    if not _shows_floor(loaded):
        scene.append(_ground(loaded.home.layout.size_m))
    return mesh_table([*scene, *(replace(mesh, row=body, owner=first + k) for k, (body, file) in enumerate(own)
                                 for mesh in own_object(file, path).meshes)])


def _shows_floor(loaded: LoadedScene) -> bool:
    """Whether cameras see anything of the floor: what collides may be all that a file has of it."""
    still = [mesh.vertices[mesh.triangles] for mesh in loaded.pieces.meshes if mesh.row == STILL]
    triangles = np.concatenate([np.empty((0, 3, 3)), *still]) - loaded.home.origin_m
    low = triangles[np.abs(triangles[:, :, 2]).max(axis=1) < _FLOOR_M]
    doubled = np.cross(low[:, 1] - low[:, 0], low[:, 2] - low[:, 0])[:, 2]
    return float(np.abs(doubled).sum()) / 2 > _SEEN_SHARE * math.prod(loaded.home.layout.size_m)


def _ground(size_m: tuple[float, float]) -> Mesh:
    """What the robot stands on, 12 m around the floor of a scene that shows none."""
    low, (x, y) = -GROUND_M, (size + GROUND_M for size in size_m)
    corners = np.array([(low, low, 0.0), (x, low, 0.0), (x, y, 0.0), (low, y, 0.0)])
    return Mesh(0, corners, np.array([(0, 1, 2), (0, 2, 3)]), lambda: np.array(_GROUND_RGB), STAGE)


@lru_cache(maxsize=KEPT_SCENES)
def compiled_scene(path: Path, name: str, objects: tuple[str, ...], markers: tuple[Marker, ...] = (),
                   files: tuple[Path | None, ...] = (), robot: Robot | None = None) -> CompiledScene:
    """A scene with these objects in its slots and a robot, None for the usual one.

    files: of those that have a mesh of their own.
    """
    robot = robot or robot_named()
    loaded = load_scene(path, name, markers)
    home, names = loaded.home, loaded.names
    handles = {}
    for body in home.layout.bodies:
        x, y, z = handle_part(body).center_m
        handles[body.name] = np.array(body.position_m) + (*rotate(x, y, body.yaw_rad), z)
    own_files = {slot: file for slot, file in enumerate(files) if file is not None}
    own = {slot: own_object(file, path) for slot, file in own_files.items()}
    model = compile_scene(name, loaded.pieces, home.layout.size_m, np.array(home.origin_m), objects, names, handles,
                          own, robot)
    geoms = tuple(tuple(np.flatnonzero(model.geom_bodyid == model.body(handle).id).tolist()) for handle in handles)
    pads = tuple(model.geom(pad).id for pad in robot.hand.pads)
    bodies = tuple(model.body(part).id for part in names)
    trees = sorted({int(model.body_treeid[body]) for body in bodies})
    own_bodies = tuple((model.body(f"object_{slot}").id, file) for slot, file in own_files.items())
    meshes = mesh_table_of(path, name, markers, bodies, own_bodies)
    followers: dict[str, list] = {}
    for part, name in zip(loaded.pieces.parts, names):
        if part.follows is not None:
            followers.setdefault(names[part.follows[0]], []).append((name, part.follows[1]))
    return CompiledScene(
        followers=followers, things=tuple(thing for part in loaded.pieces.parts for thing in part.things),
        robot=robot, layout=home.layout, silent_while_held=(pads,) * len(handles),
        handle_reach_m=(FRONT_REACH_M,) * len(handles), meshes=meshes, unseen_groups=UNSEEN_GROUPS, scene=home, own=own,
        owners=loaded.pieces.owners, **addresses(model, robot, objects, tuple(handles), geoms, trees, measure(model)))

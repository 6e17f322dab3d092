"""Templates of a Habitat data set: stages, objects and articulated objects, under the data set's defaults.

The rules are those of Habitat-Sim 0.3.3 (docs/pages/attributesJSON.rst, and the sources named below).
docs/habitat_keys.md lists what is used of each configuration; `unused` tells of everything else.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from rearrange.home.errors import UserError
from rearrange.home.geometry import quat_matrix
from rearrange.home.scene_files.glb import Piece, glb_notes, read_glb
from rearrange.home.scene_files.glb_materials import GREY
from rearrange.home.scene_files.reading import MOST_NUMBER, beside, flag, need_json, numbers, shown, word
from rearrange.home.scene_files.surfaces import box_around, facing_out, habitat_shape
from rearrange.home.scene_files.urdf import Urdf, read_urdf

STAGES, OBJECTS, ARTICULATED = "stages", "objects", "articulated_objects"
RECEPTACLE = "receptacle_"  # begins the keys of receptacles in `user_defined`
BOX = f"{RECEPTACLE}aabb_"  # of those that are used
_TAG = "%%CONFIG_NAME_AS_ASSET_FILENAME%%"  # stands in defaults for the name of a configuration
_MESH = (".glb", ".gltf", ".obj", ".stl", ".ply", ".dae")  # endings; other assets are Habitat's own shapes
_OF_BOTH = {"render_asset", "collision_asset", "render_asset_type", "collision_asset_type", "user_defined", "scale",
            "up", "front", "is_collidable"}
_OF_OBJECTS = {"collision_asset_size", "use_bounding_box_for_collision", "join_collision_meshes", "COM", "mass"}
_USED = {STAGES: _OF_BOTH, OBJECTS: _OF_BOTH | _OF_OBJECTS,
         ARTICULATED: {"urdf_filepath", "uniform_scale", "mass_scale", "user_defined"}}
_SAME = {  # values with which a key that is not used changes nothing
    "units_to_meters": (1,), "margin": (0,), "origin": ([0, 0, 0],), "base_type": ("fixed",),
    "render_mode": ("default", "link_visuals"), "link_order": ("tree_traversal",),
    "collision_asset_size": ([1, 1, 1],), "render_asset": ("",), "fixed_base": (True,),
    "non_uniform_scale": ([1, 1, 1],), "is_instance_visible": (True,)}
_KINDS = {STAGES: "stages", OBJECTS: "objects", ARTICULATED: "articulated objects"}


@dataclass(frozen=True, eq=False)
class Template:
    """A stage or an object. What an object consists of lies in its frame, y up (m): turned by `up` and `front` of its
    configuration, then stretched by its `scale`. A stage's lies in its file's frame.

    solid: meshes that collide, each as its convex hull, or all as one where they are `joined`; () where it is the box
    around what is `seen`, or, where `is_boxed` is not set, what is seen. center: what an object is placed by unless a
    scene says otherwise. is_primitive: it collides as a shape of Habitat's own, as cubeSolid. turn: (3, 3) that turns
    and stretches a stage. mass_kg: None where none is given. receptacles: as the file has them, stretched. unused: what
    of its files is not used.
    """

    name: str
    path: Path
    seen: tuple[Piece, ...]
    solid: tuple[Piece, ...]
    receptacles: dict[str, dict]
    is_boxed: bool = False
    joined: bool = False
    collides: bool = True
    is_primitive: bool = False
    center: np.ndarray | None = None
    turn: np.ndarray = field(default_factory=lambda: np.eye(3))
    mass_kg: float | None = None
    unused: frozenset[str] = frozenset()

    def hulls(self) -> list[np.ndarray]:
        """Corners (n, 3) of each convex part that collides."""
        pieces = self.solid or self.seen
        if not self.collides or not pieces:
            return []
        points = [piece.vertices[np.unique(piece.triangles)] for piece in pieces]
        if self.is_boxed:
            return [box_around(np.concatenate(points))]
        return [np.concatenate(points)] if self.joined else points


def merged(default: dict, own: dict) -> dict:
    """A configuration over the `default_attributes` of its data set. Of `user_defined` each value counts by itself."""
    found = default | {key: value for key, value in own.items() if value is not None}
    if isinstance(default.get("user_defined"), dict) and isinstance(own.get("user_defined"), dict):
        found["user_defined"] = default["user_defined"] | own["user_defined"]
    return found


def read_template(path: Path, kind: str, default: dict | None = None) -> Template:
    """A stage or an object, of `STAGES` or `OBJECTS`, from its configuration, or from its mesh alone.

    Raises UserError if it cannot be used. default: the `default_attributes` of its data set.
    """
    name, is_bare = path.name.partition(".")[0], path.suffix == ".glb"
    content = merged(default or {}, {} if is_bare else need_json(path))
    if is_bare and not content.get("render_asset"):
        content = content | {"render_asset": path.name}
    notes = set(unused_keys(content, _USED[kind], _KINDS[kind]))
    turn = np.diag(_scale(path, content)) @ _upright(path, content, is_bare and kind == STAGES, notes)
    is_boxed = flag(path, content, "use_bounding_box_for_collision", False) and kind == OBJECTS
    seen, solid = (_pieces(path, content, key, notes) for key in ("render_asset", "collision_asset"))
    joined, collides = flag(path, content, "join_collision_meshes", False), flag(path, content, "is_collidable", True)
    asset, mass = content.get("collision_asset"), numbers(path, content, "mass", 1)
    receptacles = _receptacles(path, content)
    notes.update(_unused_receptacles(receptacles, kind))
    made = Template(
        name, path, seen or solid, () if is_boxed else solid, receptacles, is_boxed, joined, collides,
        is_primitive=isinstance(asset, str) and habitat_shape(asset) is not None, unused=frozenset(notes),
        mass_kg=None if mass is None or mass[0] <= 0.0 else float(mass[0]))
    return replace(made, turn=turn) if kind == STAGES else _in_own_frame(made, content, turn)


def _in_own_frame(made: Template, content: dict, turn: np.ndarray) -> Template:
    """An object, turned and stretched. Of what collides, shapes of Habitat's own and joined hulls also have
    `collision_asset_size` (BulletRigidObject::constructCollisionShape). COM is given as the object is turned
    (RigidObject::finalizeObject).
    """
    path, scale = made.path, _scale(made.path, content)
    size = numbers(path, content, "collision_asset_size", 3)
    of_solid = turn if size is None or not (made.is_primitive or made.joined) else np.diag(size) @ turn
    seen = tuple(_moved(piece, turn, path) for piece in made.seen)
    solid = tuple(_moved(piece, of_solid, path) for piece in made.solid)
    center = numbers(path, content, "COM", 3)
    if center is not None:
        center = scale * center
    elif seen:
        center = box_around(np.concatenate([piece.vertices for piece in seen])).mean(axis=0)
    receptacles = {key: values | {name: (scale * value).tolist() for name, value in values.items()
                                  if name in ("position", "scale") and value is not None}
                   for key, values in made.receptacles.items()}
    return replace(made, seen=seen, solid=solid, center=center, receptacles=receptacles)


def read_articulated(path: Path, default: dict) -> tuple[Urdf, dict[str, dict], float, float, frozenset[str]]:
    """The URDF, its receptacles, the scales of its lengths and its masses, and what is not used of them.

    path: of the URDF, or of its configuration, which may stand beside it. The meshes are read, too.
    """
    config = path if path.suffix == ".json" else path.with_name(path.stem + ".ao_config.json")
    content = merged(default, need_json(config) if config.is_file() else {})
    named, urdf = content.get("urdf_filepath"), path
    if path.suffix == ".json" or isinstance(named, str) and config.is_file():
        own = config.with_name(config.name.replace(".ao_config.json", ".urdf"))
        urdf = beside(config, named.replace(_TAG, config.name.partition(".")[0])) if isinstance(named, str) else own
        urdf = own if isinstance(named, str) and _TAG in named and not urdf.exists() else urdf
    robot = read_urdf(urdf)
    notes = set(unused_keys(content, _USED[ARTICULATED], _KINDS[ARTICULATED]))
    notes.update(f"{what} of URDFs" for what in robot.unused)
    for link in robot.links.values():
        for shape in (*link.visuals, *link.collisions):
            if shape.file is not None:
                notes |= glb_notes(shape.file, urdf)
    given = [numbers(config, content, key, 1) for key in ("uniform_scale", "mass_scale")]
    scales = [1.0 if value is None else float(value[0]) for value in given]
    if min(scales) <= 0.0:
        said = f"{scales[0]:g} and {scales[1]:g}"
        raise UserError(f"{config}: uniform_scale and mass_scale should be above 0, not {said}.")
    receptacles = _receptacles(config, content)
    notes.update(_unused_receptacles(receptacles, ARTICULATED, robot.links))
    return robot, receptacles, *scales, frozenset(notes)


def unused_keys(content: dict, used: set[str], of: str) -> Iterator[str]:
    """Keys of a configuration that are not used, of those whose values would change something."""
    for key, value in content.items():
        values = value.values() if isinstance(value, dict) else value if isinstance(value, list) else [value]
        is_rest = key.startswith("initial_joint_") and not any(values)  # drawers and doors begin closed here
        if key not in used and value is not None and value not in _SAME.get(key, ()) and not is_rest:
            yield f"{word(key)} of {of}"


def _scale(path: Path, content: dict) -> np.ndarray:
    """(3,), along the axes of the template's frame after it is turned."""
    scale = numbers(path, content, "scale", 3)
    if scale is not None and not scale.all():
        raise UserError(f"{path}: scale should not be 0, as in {shown(content['scale'])}.")
    return np.ones(3) if scale is None else scale


def _upright(path: Path, content: dict, is_bare_stage: bool, notes: set[str]) -> np.ndarray:
    """(3, 3) that turns a template whose file has these directions so that `up` is y and `front` is -z.

    Where nothing is said, y is up in the file, and z in a stage without a configuration
    (StageAttributesManager::setDefaultAssetNameBasedAttributes). Two directions that are not square to each other count
    as none (ResourceManager::buildFrameFromAttributes).
    """
    up, front = (numbers(path, content, key, 3) for key in ("up", "front"))
    if is_bare_stage and up is None and front is None:
        up, front = np.array((0.0, 0.0, 1.0)), np.array((0.0, 1.0, 0.0))
    given = up is not None or front is not None
    up, front = (0.0, 1.0, 0.0) if up is None else up, (0.0, 0.0, -1.0) if front is None else front
    if not np.any(up) or not np.any(front):
        raise UserError(f"{path}: up and front should be directions, not {up} and {front}.")
    if abs(np.dot(up, front)) > 1e-6 * np.linalg.norm(up) * np.linalg.norm(front):
        if given:
            notes.add("up and front that are not square to each other (in Habitat neither)")
        return np.eye(3)
    first = _between((0.0, 1.0, 0.0), up)
    return (_between(first @ (0.0, 0.0, -1.0), front) @ first).T


def _between(start: Any, end: Any) -> np.ndarray:
    """(3, 3), the shortest turn from one direction to another."""
    a, b = (np.asarray(v, float) / (np.linalg.norm(v) or 1.0) for v in (start, end))
    half = np.array([1.0 + a @ b, *np.cross(a, b)])
    if half[0] < 1e-9:  # opposite: half a turn about anything square to it
        half = np.array([0.0, *np.cross(a, np.eye(3)[int(np.argmin(np.abs(a)))])])
    return quat_matrix(half / np.linalg.norm(half))


def _moved(piece: Piece, turn: np.ndarray, path: Path) -> Piece:
    """A piece, turned and stretched; what is turned inside out by it is turned back."""
    vertices = piece.vertices @ turn.T
    if len(vertices) and np.abs(vertices).max() > MOST_NUMBER:
        raise UserError(f"{path} reaches further than {MOST_NUMBER:g} m: its scale should be smaller.")
    return replace(piece, vertices=vertices, triangles=np.ascontiguousarray(facing_out(piece.triangles, turn)))


def _pieces(path: Path, content: dict, key: str, notes: set[str]) -> tuple[Piece, ...]:
    """Of an asset that a configuration names: a mesh, or a shape of Habitat's own."""
    asset = content.get(key)
    if asset is None or asset == "":
        return ()
    if not isinstance(asset, str):
        raise UserError(f"{path}: {key} should be the name of a file, not {shown(asset)}.")
    if (made := habitat_shape(asset)) is not None:
        return (Piece(made[0], made[1].astype(np.int32), np.full(3, GREY)),)
    if Path(asset).suffix.lower() not in _MESH:
        is_neither = "is neither a mesh file nor a shape of Habitat's own, as cubeSolid"
        raise UserError(f"{path}: {key} {shown(asset)} {is_neither}.")
    file = beside(path, asset.replace(_TAG, path.name.partition(".")[0])).resolve()
    if _TAG in asset and not file.exists():
        return ()
    notes |= glb_notes(file, path)
    return read_glb(file, path)


def _receptacles(path: Path, content: dict) -> dict[str, dict]:
    """What the file declares, by its keys. Raises UserError for a box (receptacle_aabb_...) that is none."""
    given = content.get("user_defined")
    given = given if isinstance(given, dict) else {}
    found = {key: value for key, value in given.items() if key.startswith(RECEPTACLE)}
    for key, value in found.items():
        if not isinstance(value, dict):
            raise UserError(f"{path}: {shown(key)} should be an object with position and scale.")
        for name in ("position", "scale", "rotation", "up"):
            numbers(path, value, name, 4 if name == "rotation" else 3)
        if not isinstance(link := value.get("parent_link", ""), str):
            raise UserError(f"{path}: parent_link of {shown(key)} should be the name of a link, not {shown(link)}.")
    return found


def _unused_receptacles(declared: dict[str, dict], kind: str, links: Container[str] = ()) -> Iterator[str]:
    """Which of the declared receptacles are not used, and which turns of them."""
    these = f"receptacles of {_KINDS[kind]}"
    for key, values in declared.items():
        if not key.startswith(BOX):
            yield f"{these} that are no boxes ({BOX}...)"
        elif values.get("position") is None or values.get("scale") is None:
            yield f"{these} without position or scale"
        elif kind == ARTICULATED and values.get("parent_link") not in links:
            yield f"{these} whose parent_link is no link"
        elif kind != STAGES and values.get("rotation") is not None:
            yield f"rotation of {these}"

"""A Habitat scene data set: which scenes and templates it has, and what a scene consists of.

A template is found as Habitat finds it: by the name of its file without the ending, with or without folders, or by a part of that name.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rearrange.errors import UserError
from rearrange.geometry import quat_matrix
from rearrange.scene_files.glb import Piece, read_glb
from rearrange.scene_files.urdf import HINGE, SLIDE, Urdf, read_urdf
from rearrange.scene_files.whole import need_json

ENDING = ".scene_dataset_config.json"
SCENE_FILE = ".scene_instance.json"
OUR_SCENE = re.compile(r"(train|val|test|unseen)/(\d+)")  # how episodes call homes of ours; in a data set they are val_0003
RECEPTACLE = "receptacle_"  # begins the keys of receptacles in `user_defined`
_ENDINGS = {"stages": (".stage_config.json", ".glb"), "objects": (".object_config.json", ".glb"),
            "articulated_objects": (".ao_config.json", ".urdf"), "scene_instances": (SCENE_FILE,)}
_SINGULAR = {"stages": "stage", "objects": "object", "articulated_objects": "articulated object", "scene_instances": "scene"}
_MESH = (".glb", ".gltf", ".obj", ".stl", ".ply", ".dae")  # endings; other assets are Habitat's own shapes, as cubeSolid


@dataclass(frozen=True, eq=False)
class Template:
    """A stage or an object, in its file's frame, y up (m).

    solid: meshes that collide, each as its convex hull, or all as one where they are `joined`; () where it is the box around what is
    `seen`, its own shape, or, where `is_boxed` is not set, what is seen. center: what an object is placed by unless a scene says
    otherwise. is_primitive: it collides as a shape of Habitat's own, as cubeSolid. turn: (3, 3) of a stage. mass_kg: None where none
    is given. receptacles: as the file has them.
    """

    name: str
    path: Path
    seen: tuple[Piece, ...]
    solid: tuple[Piece, ...]
    receptacles: dict[str, dict]
    is_boxed: bool = False
    joined: bool = True
    collides: bool = True
    is_primitive: bool = False
    center: np.ndarray | None = None
    turn: np.ndarray | None = None
    mass_kg: float | None = None

    def hulls(self) -> list[np.ndarray]:
        """Corners (n, 3) of each convex part that collides."""
        pieces = self.solid or self.seen
        if not self.collides or not pieces:
            return []
        points = [piece.vertices[np.unique(piece.triangles)] for piece in pieces]
        if self.is_boxed:
            return [_box_around(np.concatenate(points))]
        return [np.concatenate(points)] if self.joined else points


@dataclass(frozen=True, eq=False)
class Placed:
    """A stage or an object in a scene. frame: (4, 4) from the template's frame to the scene's, y up, with its scale."""

    template: Template
    frame: np.ndarray
    moves: bool = False


@dataclass(frozen=True, eq=False)
class PlacedArticulated:
    """An articulated object in a scene. handle: its name there, as Habitat counts: fridge_:0000. frame: (4, 4) of its root, without
    the scale, which is that of every length in its document.
    """

    handle: str
    urdf: Urdf
    receptacles: dict[str, dict]
    frame: np.ndarray
    scale: float


@dataclass(frozen=True, eq=False)
class Scene:
    """stage: None where the scene has none."""

    name: str
    stage: Placed | None
    objects: tuple[Placed, ...]
    articulated: tuple[PlacedArticulated, ...]


@dataclass(frozen=True)
class Figures:
    """How many of each are in a scene. movable: of the objects, those that a simulator may let move. collision_meshes: those of their own."""

    objects: int
    movable: int
    articulated: int
    slides: int
    hinges: int
    receptacles: int
    triangles: int
    collision_meshes: int


class DataSet:
    """Opened by its configuration. Raises UserError, naming the file and the reason, for whatever cannot be used."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.name.endswith(ENDING) or not self.path.is_file():
            raise UserError(f"dataset={path} should be a file *{ENDING}, as ReplicaCAD has one and rearrange scenes export "
                            "writes one, or a folder of MuJoCo XML files.")
        config = need_json(self.path, "dataset:")
        self._files = {kind: list(self._listed(config, kind, endings))[::-1] for kind, endings in _ENDINGS.items()}

    @property
    def scenes(self) -> list[str]:
        """Names of all scenes, in order."""
        return sorted({place.name for place, _ in self._files["scene_instances"]})

    def read(self, name: str) -> tuple[Scene, list[str]]:
        """What of a scene can be used, and a sentence for each file of it that is missing or cannot be."""
        path = self._called("scene_instances", name)
        if path is None:
            raise UserError(f"dataset={self.path} has no scene {name!r}; it has {', '.join(self.scenes[:5])}"
                            f"{', ...' if len(self.scenes) > 5 else ''}.")
        content = need_json(path)
        problems: list[str] = []

        def read(kind: str, entry: Any, make: Any) -> Any:
            try:
                _check_instance(path, entry)
                return make(self._file(kind, entry["template_name"], name))
            except UserError as error:
                if str(error) not in problems:
                    problems.append(str(error))
                return None

        stage, objects, articulated, seen = content.get("stage_instance"), [], [], Counter[str]()
        origin = content.get("translation_origin")
        for entry in _entries(path, content, "object_instances"):
            if (made := read("objects", entry, _template)) is not None:
                moves = str(entry.get("motion_type", "DYNAMIC")).upper() == "DYNAMIC"
                objects.append(Placed(made, _frame(entry, made.center, origin) @ _scaled(entry), moves))
        for entry in _entries(path, content, "articulated_object_instances"):
            if (made := read("articulated_objects", entry, _articulated)) is not None:
                stem = made[0].path.stem
                handle = f"{stem}_:{seen[stem]:04d}"
                seen[stem] += 1
                articulated.append(PlacedArticulated(handle, *made, _frame(entry), float(entry.get("uniform_scale") or 1.0)))
        bare = not isinstance(stage, dict) or stage.get("template_name") in (None, "", "NONE")
        of_stage = None if bare else read("stages", stage, _template)
        placed = None if of_stage is None else Placed(of_stage, _frame(stage) @ _turned(of_stage.turn))
        return Scene(name, placed, tuple(objects), tuple(articulated)), problems

    def figures(self, name: str) -> tuple[Figures | None, list[str]]:
        """What is in a scene, None unless all of its files can be used, and a sentence for each that cannot."""
        try:
            scene, problems = self.read(name)
        except UserError as error:
            return None, [str(error)]
        return None if problems else _figures(scene), problems

    def unused(self, name: str) -> list[str]:
        """What the files of a scene say and nobody here reads."""
        return sorted({f"{what} of a URDF" for body in self.read(name)[0].articulated for what in body.urdf.unused})

    def object_file(self, name: str) -> Path | None:
        """The configuration, or the mesh, of an object of this very name; None when the data set has none."""
        return self._called("objects", name)

    def _called(self, kind: str, name: str) -> Path | None:
        """The file of this very name; None when there is none."""
        return next((file for place, file in self._files[kind] if place.name == name), None)

    def _file(self, kind: str, template: str, scene: str) -> Path:
        """The file of a template: its folders say which of several with one name."""
        known, parts = self._files[kind], Path(template).parts or (template,)
        whole = next((file for place, file in known if place.parts[-len(parts):] == parts), None)
        if found := whole or self._called(kind, parts[-1]):
            return found
        for place, file in sorted(known):
            if parts[-1] and parts[-1] in place.name:
                return file
        raise UserError(f"scene {scene} needs the {_SINGULAR[kind]} {template!r}, which dataset={self.path} does not have.")

    def _listed(self, config: dict, kind: str, endings: tuple[str, ...]) -> Iterator[tuple[Path, Path]]:
        """Everything of a kind that the data set's paths lead to, without the ending and with it; of two endings, the first counts."""
        section = config.get(kind)
        paths = section.get("paths") if isinstance(section, dict) else None
        patterns = [pattern for listed in (paths.values() if isinstance(paths, dict) else ()) if isinstance(listed, list)
                    for pattern in listed if isinstance(pattern, str)]
        for ending in reversed(endings):
            for pattern in patterns:
                for place in sorted(_matching(self.path.parent, pattern)):
                    for file in sorted(place.iterdir()) if place.is_dir() else [place]:
                        if file.name.endswith(ending):
                            yield file.with_name(file.name.removesuffix(ending)), file


def _figures(scene: Scene) -> Figures:
    templates = [placed.template for placed in (*scene.objects, *([scene.stage] if scene.stage else []))]
    kinds = Counter(joint.kind for body in scene.articulated for joint in body.urdf.joints)
    places = [thing.receptacles for thing in (*templates, *scene.articulated)]
    return Figures(
        len(scene.objects), sum(placed.moves for placed in scene.objects), len(scene.articulated), kinds[SLIDE], kinds[HINGE],
        sum(map(len, places)), sum(len(piece.triangles) for template in templates for piece in template.seen),
        sum(len(template.solid) for template in templates))


def _matching(folder: Path, pattern: str) -> Iterator[Path]:
    """Files and folders that a path with wildcards leads to, which may begin with `..`."""
    parts = Path(pattern).parts
    while parts and parts[0] == "..":
        folder, parts = folder.parent, parts[1:]
    if not parts:
        yield folder
    elif not Path(*parts).is_absolute():
        yield from folder.glob(str(Path(*parts)))


def _entries(path: Path, content: dict, key: str) -> list:
    entries = content.get(key) or []
    if not isinstance(entries, list):
        raise UserError(f"{path}: {key} should be a list.")
    return entries


def _check_instance(path: Path, entry: Any) -> None:
    """Raises UserError unless an entry of a scene has a template and stands somewhere."""
    if not isinstance(entry, dict) or not isinstance(entry.get("template_name"), str):
        raise UserError(f"{path}: an entry has no template_name.")
    for key, count in (("translation", 3), ("rotation", 4), ("non_uniform_scale", 3)):
        values = entry.get(key)
        if values is not None and not (isinstance(values, list) and len(values) == count and all(map(_is_number, values))):
            raise UserError(f"{path}: {key} of {entry['template_name']!r} should be {count} finite numbers, not {values}.")
    if not _is_number(entry.get("uniform_scale", 1.0)):
        raise UserError(f"{path}: uniform_scale of {entry['template_name']!r} should be a finite number.")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _frame(entry: dict, center: np.ndarray | None = None, origin: Any = None) -> np.ndarray:
    """(4, 4) of an entry of a scene, without its scale. `center`: of an object, which stands where the entry says if its origin, or
    that of the scene, is "COM".
    """
    frame = np.eye(4)
    quat = np.array(entry.get("rotation") or (1.0, 0.0, 0.0, 0.0), float)
    frame[:3, :3] = quat_matrix(quat / (np.linalg.norm(quat) or 1.0))
    frame[:3, 3] = entry.get("translation") or (0.0, 0.0, 0.0)
    if center is not None and str(entry.get("translation_origin") or origin).upper() == "COM":
        frame[:3, 3] -= frame[:3, :3] @ (_scaled(entry)[:3, :3] @ center)
    return frame


def _scaled(entry: dict) -> np.ndarray:
    """(4, 4) of the scale of an entry."""
    size = float(entry.get("uniform_scale") or 1.0) * np.array(entry.get("non_uniform_scale") or (1.0, 1.0, 1.0), float)
    return np.diag([*size, 1.0])


def _turned(turn: np.ndarray | None) -> np.ndarray:
    frame = np.eye(4)
    frame[:3, :3] = np.eye(3) if turn is None else turn
    return frame


def _box_around(points: np.ndarray) -> np.ndarray:
    """Corners (8, 3)."""
    low, high = points.min(axis=0), points.max(axis=0)
    return np.array([[(low, high)[i >> axis & 1][axis] for axis in range(3)] for i in range(8)])


def read_object(path: Path) -> Template:
    """An object from its configuration, or from its mesh alone. Raises UserError if it cannot be used."""
    return _template(path)


def _template(path: Path) -> Template:
    """A stage or an object from its configuration, or from its mesh alone."""
    name = path.name.partition(".")[0]
    if path.suffix == ".glb":
        return Template(name, path, read_glb(path, path), (), {}, turn=_upright(None, None))
    content = need_json(path)
    seen = _pieces(path, content.get("render_asset"))
    is_boxed = bool(content.get("use_bounding_box_for_collision"))
    solid = () if is_boxed else _pieces(path, content.get("collision_asset"))
    up, front, mass = (_numbers(path, content, key, count) for key, count in (("up", 3), ("front", 3), ("mass", 1)))
    if (center := _numbers(path, content, "COM", 3)) is None and seen:
        center = _box_around(np.concatenate([piece.vertices for piece in seen])).mean(axis=0)
    return Template(
        name, path, seen, solid, _receptacles(path, content), is_boxed, content.get("join_collision_meshes", True) is not False,
        content.get("is_collidable", True) is not False, _is_primitive(content.get("collision_asset")), center,
        _upright(up, front),
        None if mass is None or mass[0] <= 0.0 else float(mass[0]))


def _numbers(path: Path, content: dict, key: str, count: int) -> np.ndarray | None:
    """Numbers of a configuration; None where there are none."""
    value = content.get(key)
    if value is None:
        return None
    values = value if isinstance(value, list) else [value]
    if len(values) != count or not all(map(_is_number, values)):
        raise UserError(f"{path}: {key} should be {count} finite number{'s' if count > 1 else ''}, not {value}.")
    return np.array(values, float)


def _upright(up: np.ndarray | None, front: np.ndarray | None) -> np.ndarray:
    """(3, 3) that turns a stage whose file has these directions so that up is y and front is -z, as Habitat does it; Habitat takes z
    for up where a file does not say.
    """
    first = _between((0.0, 1.0, 0.0), (0.0, 0.0, 1.0) if up is None else up)
    return first.T if front is None else (_between(first @ (0.0, 0.0, -1.0), front) @ first).T


def _between(start: Any, end: Any) -> np.ndarray:
    """(3, 3), the shortest turn from one direction to another."""
    a, b = (np.asarray(v, float) / (np.linalg.norm(v) or 1.0) for v in (start, end))
    half = np.array([1.0 + a @ b, *np.cross(a, b)])
    if half[0] < 1e-9:  # opposite: half a turn about anything square to it
        half = np.array([0.0, *np.cross(a, np.eye(3)[int(np.argmin(np.abs(a)))])])
    return quat_matrix(half / np.linalg.norm(half))


def _is_primitive(asset: Any) -> bool:
    return isinstance(asset, str) and Path(asset).suffix.lower() not in _MESH


def _pieces(path: Path, asset: Any) -> tuple[Piece, ...]:
    """Of an asset that a configuration names."""
    if not isinstance(asset, str) or Path(asset).suffix.lower() not in _MESH:
        return ()
    return read_glb((path.parent / asset).resolve(), path)


def _articulated(path: Path) -> tuple[Urdf, dict[str, dict]]:
    """The URDF and its receptacles, from the URDF or its configuration, which may stand beside it; its meshes are read, too."""
    config, urdf = {}, path
    if path.suffix != ".json" and (beside := path.with_name(path.stem + ".ao_config.json")).is_file():
        config = need_json(beside)
    if path.suffix == ".json":
        config = need_json(path)
        named = config.get("urdf_filepath")
        urdf = path.parent / named if isinstance(named, str) and "%" not in named else _beside(path)
    robot = read_urdf(urdf)
    for link in robot.links.values():
        for shape in (*link.visuals, *link.collisions):
            if shape.file is not None:
                read_glb(shape.file, urdf)
    return robot, _receptacles(path, config)


def _beside(path: Path) -> Path:
    return path.with_name(path.name.replace(".ao_config.json", ".urdf"))


def _receptacles(path: Path, content: dict) -> dict[str, dict]:
    """What the file declares, by its keys. Raises UserError for a box (receptacle_aabb_...) that is none."""
    given = content.get("user_defined")
    found = {key: value for key, value in given.items() if key.startswith(RECEPTACLE)} if isinstance(given, dict) else {}
    for key, value in found.items():
        if not isinstance(value, dict):
            raise UserError(f"{path}: {key} should be an object with position and scale.")
        for name in ("position", "scale", "rotation"):
            _numbers(path, value, name, 4 if name == "rotation" else 3)
    return found

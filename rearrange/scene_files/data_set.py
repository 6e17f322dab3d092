"""A Habitat scene data set: which scenes and templates it has, and what a scene consists of.

A template is found as Habitat finds it: by the name of its file without the ending, or by a part of that name.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rearrange.errors import UserError
from rearrange.scene_files.glb import Piece, read_glb
from rearrange.scene_files.urdf import Urdf, read_urdf
from rearrange.scene_files.whole import need_json

ENDING = ".scene_dataset_config.json"
RECEPTACLE = "receptacle_"  # begins the keys of receptacles in `user_defined`
_ENDINGS = {"stages": (".stage_config.json", ".glb"), "objects": (".object_config.json", ".glb"),
            "articulated_objects": (".ao_config.json", ".urdf"), "scene_instances": (".scene_instance.json",)}
_SINGULAR = {"stages": "stage", "objects": "object", "articulated_objects": "articulated object", "scene_instances": "scene"}
_MESH = (".glb", ".gltf", ".obj", ".stl", ".ply", ".dae")  # endings; other assets are Habitat's own shapes, as cubeSolid


@dataclass(frozen=True, eq=False)
class Template:
    """A stage or an object. solid: meshes that collide; () where its box does, or its own shape."""

    name: str
    path: Path
    seen: tuple[Piece, ...]
    solid: tuple[Piece, ...]
    receptacles: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Scene:
    """stage: None where the scene has none. objects: with whether each can be moved. articulated: with their receptacles."""

    name: str
    stage: Template | None
    objects: tuple[tuple[Template, bool], ...]
    articulated: tuple[tuple[Urdf, tuple[str, ...]], ...]


class DataSet:
    """Opened by its configuration. Raises UserError, naming the file and the reason, for whatever cannot be used."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.name.endswith(ENDING) or not self.path.is_file():
            raise UserError(f"dataset={path} should be a file *{ENDING}, as ReplicaCAD has one and rearrange scenes export "
                            "writes one.")
        config = need_json(self.path, "dataset:")
        self._files = {kind: dict(self._listed(config, kind, endings)) for kind, endings in _ENDINGS.items()}

    @property
    def scenes(self) -> list[str]:
        """Names of all scenes, in order."""
        return sorted(self._files["scene_instances"])

    def read(self, name: str) -> tuple[Scene, list[str]]:
        """What of a scene can be used, and a sentence for each file of it that is missing or cannot be."""
        path = self._files["scene_instances"].get(name)
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

        stage, objects, articulated = content.get("stage_instance"), [], []
        for entry in _entries(path, content, "object_instances"):
            if (made := read("objects", entry, _template)) is not None:
                objects.append((made, str(entry.get("motion_type", "DYNAMIC")).upper() == "DYNAMIC"))
        for entry in _entries(path, content, "articulated_object_instances"):
            if (made := read("articulated_objects", entry, _articulated)) is not None:
                articulated.append(made)
        bare = not isinstance(stage, dict) or stage.get("template_name") in (None, "", "NONE")
        of_stage = None if bare else read("stages", stage, _template)
        return Scene(name, of_stage, tuple(objects), tuple(articulated)), problems

    def _file(self, kind: str, template: str, scene: str) -> Path:
        """The file of a template."""
        known, wanted = self._files[kind], Path(template).name
        for name in (wanted, *sorted(known)):
            if name in known and wanted in name:
                return known[name]
        raise UserError(f"scene {scene} needs the {_SINGULAR[kind]} {template!r}, which dataset={self.path} does not have.")

    def _listed(self, config: dict, kind: str, endings: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
        """Name and file of everything of a kind that the data set's paths lead to; of two files, that of the first ending."""
        section = config.get(kind)
        paths = section.get("paths") if isinstance(section, dict) else None
        patterns = [pattern for listed in (paths.values() if isinstance(paths, dict) else ()) if isinstance(listed, list)
                    for pattern in listed if isinstance(pattern, str)]
        for ending in reversed(endings):
            for pattern in patterns:
                for place in sorted(_matching(self.path.parent, pattern)):
                    for file in sorted(place.iterdir()) if place.is_dir() else [place]:
                        if file.name.endswith(ending):
                            yield file.name.removesuffix(ending), file


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


def _template(path: Path) -> Template:
    """A stage or an object from its configuration, or from its mesh alone."""
    name = path.name.partition(".")[0]
    if path.suffix == ".glb":
        return Template(name, path, read_glb(path, path), (), ())
    content = need_json(path)
    seen = _pieces(path, content.get("render_asset"))
    solid = () if content.get("use_bounding_box_for_collision") else _pieces(path, content.get("collision_asset"))
    return Template(name, path, seen, solid, _receptacles(content))


def _pieces(path: Path, asset: Any) -> tuple[Piece, ...]:
    """Of an asset that a configuration names."""
    if not isinstance(asset, str) or Path(asset).suffix.lower() not in _MESH:
        return ()
    return read_glb((path.parent / asset).resolve(), path)


def _articulated(path: Path) -> tuple[Urdf, tuple[str, ...]]:
    """The URDF and its receptacles, from the URDF or its configuration; its meshes are read, too."""
    config, urdf = {}, path
    if path.suffix == ".json":
        config = need_json(path)
        named = config.get("urdf_filepath")
        urdf = path.parent / named if isinstance(named, str) and "%" not in named else _beside(path)
    robot = read_urdf(urdf)
    for link in robot.links.values():
        for shape in (*link.visuals, *link.collisions):
            if shape.file is not None:
                read_glb(shape.file, urdf)
    return robot, _receptacles(config)


def _beside(path: Path) -> Path:
    return path.with_name(path.name.replace(".ao_config.json", ".urdf"))


def _receptacles(content: dict) -> tuple[str, ...]:
    given = content.get("user_defined")
    return tuple(key for key in given if key.startswith(RECEPTACLE)) if isinstance(given, dict) else ()

"""A Habitat scene data set: which scenes and templates it has, and what a scene consists of.

A template is found as Habitat finds it: by the name of its file without the ending, with or without folders, or by a
part of that name.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from rearrange.home.errors import UserError
from rearrange.home.scene_files import scene_entries
from rearrange.home.scene_files.reading import need_json, shown
from rearrange.home.scene_files.scene_entries import SINGULAR, Placed, PlacedArticulated
from rearrange.home.scene_files.templates import (
    ARTICULATED,
    OBJECTS,
    STAGES,
    Template,
    merged,
    read_articulated,
    read_template,
    unused_keys,
)
from rearrange.home.scene_files.urdf_elements import HINGE, SLIDE

ENDING = ".scene_dataset_config.json"
SCENE_FILE = ".scene_instance.json"
OUR_SCENE = re.compile(r"((?:wide/)?(?:train|val|test|unseen))/(\d+)")
"""A home of ours in episodes; a data set calls val/3 val_0003."""
MOST_PLACES = 500_000  # entries of folders that the paths of a data set lead through
MOST_ENTRIES = 20_000  # of a list of a scene
_SCENES = "scene_instances"
_ENDINGS = {STAGES: (".stage_config.json", ".glb"), OBJECTS: (".object_config.json", ".glb"),
            ARTICULATED: (".ao_config.json", ".urdf"), _SCENES: (SCENE_FILE,)}
_NAMED_BY_SCENES = {"light_setups", "navmesh_instances", "semantic_scene_descriptor_instances", "user_defined"}
_IN_SCENE = {"stage_instance", "object_instances", "articulated_object_instances", "translation_origin", "user_defined"}


@dataclass(frozen=True, eq=False)
class Scene:
    """stage: None where the scene has none. unused: what its files have and is not used."""

    name: str
    stage: Placed | None
    objects: tuple[Placed, ...]
    articulated: tuple[PlacedArticulated, ...]
    unused: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Figures:
    """How many of each are in a scene. movable: objects that a simulator may let move. collision_meshes: of objects."""

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
            raise UserError(f"dataset={path} should be a file *{ENDING}, as ReplicaCAD has one and rearrange scenes "
                            "export writes one, or a folder of MuJoCo XML files.")
        config = need_json(self.path, "dataset:")
        self._defaults = {kind: _default_attributes(self.path, config, kind) for kind in _ENDINGS}
        sections = {kind: config[kind] for kind in _ENDINGS if isinstance(config.get(kind), dict)}
        self._unused = {*unused_keys(config, {*_ENDINGS, *_NAMED_BY_SCENES}, "the data set"),
                        *(note for kind, section in sections.items()
                          for note in unused_keys(section, {"paths", "default_attributes"}, kind))}
        self._looked_at = 0
        self._files = {kind: list(self._listed(config, kind, endings))[::-1] for kind, endings in _ENDINGS.items()}

    @property
    def scenes(self) -> list[str]:
        """Names of all scenes, in order."""
        return sorted({place.name for place, _ in self._files[_SCENES]})

    def read(self, name: str) -> tuple[Scene, list[str]]:
        """What of a scene can be used, and a sentence for each file of it that is missing or cannot be."""
        path = self._called(_SCENES, name)
        if path is None:
            raise UserError(f"dataset={self.path} has no scene {name!r}; it has {', '.join(self.scenes[:5])}"
                            f"{', ...' if len(self.scenes) > 5 else ''}.")
        content, default = need_json(path), self._defaults[_SCENES]
        whole, problems, notes, made = merged(default, content), list[str](), set(self._unused), dict[Path, Any]()
        notes.update(unused_keys(whole, _IN_SCENE, "scenes"))
        origin = scene_entries.origin_of(path, whole)

        def read(kind: str, entry: Any) -> Any:
            """The template that an entry names, each read once; None where it or the entry cannot be used."""
            try:
                scene_entries.check_entry(path, entry, kind)
                file = self._file(kind, entry["template_name"], name)
                if file not in made:
                    made[file] = read_articulated(file, self._defaults[kind]) if kind == ARTICULATED else \
                        read_template(file, kind, self._defaults[kind])
            except UserError as error:
                if str(error) not in problems:
                    problems.append(str(error))
                return None
            notes.update(scene_entries.unused_of(entry, kind))
            notes.update(made[file][-1] if kind == ARTICULATED else made[file].unused)
            return made[file]

        objects, articulated, seen = [], [], Counter[str]()
        for entry in (entry for given in (default, content) for entry in _entries(path, given, "object_instances")):
            if (template := read(OBJECTS, entry)) is not None:
                by = scene_entries.origin_of(path, entry) or origin
                objects.append(thing := scene_entries.placed(template, entry, OBJECTS, by))
                notes.update(scene_entries.tilted(template.receptacles, thing.template.receptacles, OBJECTS))
        key = "articulated_object_instances"
        for entry in (entry for given in (default, content) for entry in _entries(path, given, key)):
            if (found := read(ARTICULATED, entry)) is not None:
                stem = found[0].path.stem
                body = scene_entries.placed_articulated(f"{stem}_:{seen[stem]:04d}", found, entry)
                articulated.append(body)
                notes.update(scene_entries.tilted(found[1], body.receptacles, ARTICULATED))
                seen[stem] += 1
        entry = whole.get("stage_instance")
        is_bare = not isinstance(entry, dict) or entry.get("template_name") in (None, "", "NONE")
        template = None if is_bare else read(STAGES, entry)
        stage = None if template is None else scene_entries.placed(template, entry, STAGES, origin)
        if stage is not None:
            notes.update(scene_entries.tilted(template.receptacles, stage.template.receptacles, STAGES))
        return Scene(name, stage, tuple(objects), tuple(articulated), frozenset(notes)), problems

    def figures(self, name: str) -> tuple[Figures | None, list[str]]:
        """What is in a scene, None unless all of its files can be used, and a sentence for each that cannot."""
        try:
            scene, problems = self.read(name)
        except UserError as error:
            return None, [str(error)]
        return None if problems else _figures(scene), problems

    def unused(self, name: str) -> list[str]:
        """What the files of a scene say and nobody here reads."""
        return sorted(self.read(name)[0].unused)

    def object_file(self, name: str) -> Path | None:
        """The configuration, or the mesh, of an object of this very name; None when the data set has none."""
        return self._called(OBJECTS, name)

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
        needed = f"the {SINGULAR[kind]} {shown(template)}"
        raise UserError(f"scene {scene} needs {needed}, which dataset={self.path} does not have.")

    def _listed(self, config: dict, kind: str, endings: tuple[str, ...]) -> Iterator[tuple[Path, Path]]:
        """All of a kind that the data set has, without the ending and with it; of two endings the first counts."""
        section = config.get(kind)
        paths = section.get("paths") if isinstance(section, dict) else None
        lists = paths.values() if isinstance(paths, dict) else ()
        patterns = [each for listed in lists if isinstance(listed, list) for each in listed if isinstance(each, str)]
        for ending in reversed(endings):
            for pattern in patterns:
                try:
                    files = [file for place in sorted(self._matching(pattern))
                             for file in (sorted(self._inside(place)) if place.is_dir() else [place])
                             if file.name.endswith(ending)]
                except (OSError, ValueError) as error:
                    why = getattr(error, "strerror", None) or error
                    raise UserError(f"dataset={self.path} has {shown(pattern)} among the paths of {kind}, which cannot "
                                    f"be looked through ({why}).") from None
                yield from ((file.with_name(file.name.removesuffix(ending)), file) for file in files)

    def _matching(self, pattern: str) -> set[Path]:
        """Files and folders that a path with wildcards leads to, from the data set's folder or the root.

        As `Path.glob`, but each is gone through once: `**/**` leads to a folder in as many ways as it is deep, and
        links can lead in circles.
        """
        found = {self.path.parent}
        for part in Path(pattern).parts:
            if part == "**":
                todo, found = list(found), set()
                while todo:
                    if (place := todo.pop()) not in found and place.is_dir():
                        found.add(place)
                        todo += [each for each in self._inside(place) if not each.is_symlink()]
            elif any(char in part for char in "*?["):
                found = {each for place in found if place.is_dir() for each in self._inside(place)
                         if fnmatchcase(each.name, part)}
            else:
                found = {place / part for place in found if os.path.lexists(place / part)}
        return found

    def _inside(self, folder: Path) -> Iterator[Path]:
        """The entries of a folder; none of one that cannot be read. Raises ValueError after `MOST_PLACES` in all."""
        try:
            for each in folder.iterdir():
                self._looked_at += 1
                if self._looked_at > MOST_PLACES:
                    raise ValueError(f"its paths lead through more than {MOST_PLACES:,} files and folders")
                yield each
        except (PermissionError, FileNotFoundError):
            return


def _figures(scene: Scene) -> Figures:
    templates = [placed.template for placed in (*scene.objects, *([scene.stage] if scene.stage else []))]
    kinds = Counter(joint.kind for body in scene.articulated for joint in body.urdf.joints)
    places = [thing.receptacles for thing in (*templates, *scene.articulated)]
    return Figures(
        objects=len(scene.objects), movable=sum(placed.moves for placed in scene.objects),
        articulated=len(scene.articulated), slides=kinds[SLIDE], hinges=kinds[HINGE], receptacles=sum(map(len, places)),
        triangles=sum(len(piece.triangles) for template in templates for piece in template.seen),
        collision_meshes=sum(len(template.solid) for template in templates))


def _entries(path: Path, content: dict, key: str) -> list:
    entries = content.get(key) or []
    if not isinstance(entries, list):
        raise UserError(f"{path}: {key} should be a list.")
    if len(entries) > MOST_ENTRIES:
        raise UserError(f"{path}: {key} has {len(entries):,} entries, more than {MOST_ENTRIES:,}.")
    return entries


def _default_attributes(path: Path, config: dict, kind: str) -> dict:
    """What every configuration of a kind has in a data set unless it says otherwise."""
    section = config.get(kind)
    default = section.get("default_attributes") if isinstance(section, dict) else None
    if default is not None and not isinstance(default, dict):
        raise UserError(f"dataset={path}: default_attributes of {kind} should be an object, not {shown(default)}.")
    return default or {}


def read_object(path: Path, dataset: Path | None = None) -> Template:
    """An object from its configuration, or from its mesh alone, under the defaults of a Habitat data set.

    Raises UserError if it cannot be used.
    """
    if dataset is None or not dataset.name.endswith(ENDING):
        return read_template(path, OBJECTS)
    return read_template(path, OBJECTS, _default_attributes(dataset, need_json(dataset, "dataset:"), OBJECTS))

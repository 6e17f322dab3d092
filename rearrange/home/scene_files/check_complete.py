"""Whether files of a scene data set are there and whole; needs no Habitat.

Habitat answers a damaged file with a failed assertion, an exception, or the end of the process.
"""

from __future__ import annotations

import struct
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

from rearrange.home.errors import UserError
from rearrange.home.files import open_regular
from rearrange.home.scene_files.reading import AGAIN, beside, need_json, scene_bytes

_ASSETS = ("render_asset", "collision_asset")  # of a stage's or an object's configuration
_PLACEHOLDER = "%%"  # Habitat puts the configuration's own name there


def need_mesh(path: Path, of: Path) -> None:
    """Raises UserError unless a mesh, named by the file `of`, is there and, if it is a GLB, as long as it says."""
    try:
        with open_regular(path) as file:
            head = file.read(12)
        size = path.stat().st_size
    except (OSError, ValueError) as error:  # ValueError: of a name with a null character
        why = getattr(error, "strerror", None) or error
        raise UserError(f"{path}, which {of} names, cannot be read ({why}): {AGAIN}.") from None
    if path.suffix.lower() == ".glb" and (len(head) < 12 or head[:4] != b"glTF" or struct.unpack("<I", head[8:])[0] > size):
        raise UserError(f"{path}, which {of} names, is a damaged GLB file ({size} bytes are there): {AGAIN}.")


def need_urdf(path: Path, what: str = "the data set's URDF") -> ElementTree.Element:
    """The root of a URDF document whose meshes are all there. Raises UserError."""
    try:
        robot = ElementTree.fromstring(scene_bytes(path, what))
    except UserError:
        raise
    except (ElementTree.ParseError, ValueError, LookupError) as error:  # LookupError: of an encoding that there is not
        raise UserError(f"{what} {path} is not a URDF document ({error}): it should be XML, one <robot>.") from None
    if robot.tag != "robot" or robot.find("link") is None:
        raise UserError(f"{what} {path} is not a URDF document: it should be XML, one <robot> with links.")
    for mesh in robot.iter("mesh"):
        if "://" not in (name := mesh.get("filename", "")):
            need_mesh(beside(path, name), path)
    return robot


def need_template(path: Path) -> None:
    """Raises UserError unless the configuration of a stage, an object or an articulated object, and what it names, is whole."""
    if path.suffix == ".urdf":
        need_urdf(path)
    elif path.suffix == ".json":
        content = need_json(path)
        named = {key: value for key, value in content.items() if isinstance(value, str) and _PLACEHOLDER not in value}
        for key in _ASSETS:
            if Path(named.get(key, "")).suffix:  # others are Habitat's own shapes, as cubeSolid
                need_mesh(path.parent / named[key], path)
        if "urdf_filepath" in named:
            need_urdf(path.parent / named["urdf_filepath"])


def templates_of(scene: dict) -> Iterator[tuple[str, str]]:
    """(kind, name) of the stage and the articulated objects of a scene's file, without which Habitat ends the process."""
    entries = [("stage", scene.get("stage_instance"))]
    entries += [("ao", entry) for entry in scene.get("articulated_object_instances") or ()]
    for kind, entry in entries:
        name = entry.get("template_name") if isinstance(entry, dict) else None
        if isinstance(name, str) and name not in ("", "NONE"):
            yield kind, name


def files_called(folder: Path, name: str, ending: str) -> list[Path]:
    """The files below a folder of which `name` is a part, as Habitat looks for them."""
    return sorted(path for path in folder.rglob(f"*{ending}") if name in str(path.relative_to(folder)))


def scene_name(path: str) -> str:
    """A scene's name in its data set: of "data/scenes/apt_0.scene_instance.json" apt_0."""
    return path.rpartition("/")[2].partition(".")[0]

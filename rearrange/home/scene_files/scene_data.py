"""Files that `sim=habitat` reads: which they are, and whether they are there and whole; needs no Habitat."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rearrange.home.errors import UserError
from rearrange.home.scene_files.reading import need_json, need_mesh
from rearrange.home.scene_files.urdf import need_urdf

if TYPE_CHECKING:
    from rearrange.home.apartments.episodes import Episode

_ENDING = ".scene_dataset_config.json"
_SHOULD = f"a *{_ENDING}: ReplicaCAD's, or one made by rearrange scenes export"
_ASSETS = ("render_asset", "collision_asset")  # of a stage's or an object's configuration
_PLACEHOLDER = "%%"  # Habitat puts the configuration's own name there


def scenes_of(split: str, num_layouts: int, listed: Sequence[Episode] | None = None) -> Iterator[str]:
    """The scenes of the episodes of a file, or else of those that are generated."""
    if listed is None:
        yield from (f"{split}/{index}" for index in range(num_layouts))
    else:
        yield from dict.fromkeys(episode.scene for episode in listed)


def is_exported(scene_dataset: Path) -> bool:
    """Whether a data set is one of `rearrange scenes export`, which holds our homes; others hold external scenes."""
    return (scene_dataset.parent / "export.json").is_file()


@dataclass(frozen=True)
class SceneData:
    """Where the data is.

    Args:
        scene_dataset: A *.scene_dataset_config.json.
        robot_urdf: URDF of the Fetch; None: the data set's own, or else ours.
        gpu_device: Number of the GPU, -1 for the CPU, None for what there is.
        scenes: Those that episodes take place in, which the data set must have; read once.
        seen: Images that the robot's cameras will take beside depth, `camera_size` pixels wide and high.
        mixed: Episodes also take place in our homes, which are not of the data set.
    """

    scene_dataset: str | None
    robot_urdf: str | None = None
    gpu_device: int | None = None
    scenes: Iterable[str] = ()
    seen: tuple[str, ...] = ()
    camera_size: int = 128
    mixed: bool = False

    def robot_file(self) -> Path | None:
        """The robot's URDF; None where neither this nor the data set has one. Raises UserError when it is not there."""
        own = Path(self.scene_dataset).parent / "robots" / "fetch.urdf"
        has_own = own.is_file() or is_exported(Path(self.scene_dataset))
        path = Path(self.robot_urdf) if self.robot_urdf else own if has_own else None
        if path is not None and not path.is_file():
            asked = f"sim.robot_urdf={self.robot_urdf or 'null'}"
            raise UserError(f"{asked}: there is no file {path}; it should be the URDF of the Fetch.")
        return path

    def check(self) -> None:
        """Raises UserError when the data set is not there."""
        if self.scene_dataset is None:
            raise UserError("sim=habitat needs sim.scene_dataset=, the path of " + _SHOULD + ".")
        path = Path(self.scene_dataset)
        if not path.is_file():
            raise UserError(f"sim.scene_dataset={self.scene_dataset} is not a file; it should be {_SHOULD}, or "
                            "with sim=mujoco a folder of homes in MuJoCo's XML (MJCF), or one such file.")
        if not path.name.endswith(_ENDING):
            raise UserError(f"sim.scene_dataset={self.scene_dataset} should end in {_ENDING}.")
        need_json(path, "sim.scene_dataset:")


def need_template(path: Path) -> None:
    """Raises UserError unless the configuration of a stage or an object, or a URDF, and what it names, is whole."""
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
    """(kind, name) of a scene's stage and articulated objects, without which Habitat ends the process."""
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

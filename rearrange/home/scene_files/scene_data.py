"""Which files `sim=habitat` reads; needs no Habitat."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rearrange.home.errors import UserError
from rearrange.home.scene_files.reading import need_json

if TYPE_CHECKING:
    from rearrange.home.apartments.episodes import Episode


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
    """Where the data is. scene_dataset: a *.scene_dataset_config.json. robot: URDF of the Fetch; None: the data set's own, or else ours.
    gpu_device: number of the GPU, -1 for the CPU, None for what there is. seen, camera_size: images that the robot's cameras will take
    beside depth, and their pixels.
    scenes: those that episodes take place in, which the data set must have; read once. mixed: episodes also take place in our homes,
    which are not of the data set.
    """

    scene_dataset: str | None
    robot: str | None = None
    gpu_device: int | None = None
    scenes: Iterable[str] = ()
    seen: tuple[str, ...] = ()
    camera_size: int = 128
    mixed: bool = False

    def robot_file(self) -> Path | None:
        """The robot's URDF; None where neither this nor the data set has one. Raises UserError when it is not there."""
        own = Path(self.scene_dataset).parent / "robots" / "fetch.urdf"
        path = Path(self.robot) if self.robot else own if own.is_file() or is_exported(Path(self.scene_dataset)) else None
        if path is not None and not path.is_file():
            raise UserError(f"sim.robot={self.robot or 'null'}: there is no file {path}; it should be the URDF of the Fetch.")
        return path

    def check(self) -> None:
        """Raises UserError when the data set is not there."""
        if self.scene_dataset is None:
            raise UserError("sim=habitat needs sim.scene_dataset=, the path of a *.scene_dataset_config.json: ReplicaCAD's, or one "
                            "made by rearrange scenes export.")
        path = Path(self.scene_dataset)
        if not path.is_file():
            raise UserError(f"sim.scene_dataset={self.scene_dataset} is not a file; it should be a *.scene_dataset_config.json: "
                            "ReplicaCAD's, or one made by rearrange scenes export.")
        if not path.name.endswith(".scene_dataset_config.json"):
            raise UserError(f"sim.scene_dataset={self.scene_dataset} should end in .scene_dataset_config.json.")
        need_json(path, "sim.scene_dataset:")

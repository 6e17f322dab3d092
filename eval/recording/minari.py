"""A folder as a Minari data set (github.com/Farama-Foundation/Minari), without loss.

    data/metadata.json                spaces and counts
    data/<episode>/part-0.parquet     observations by name, one more than actions; rewards, ends, infos
    data/<episode>/metadata.json      seed, success, the task in words
    meta/rearrange/...                ours: how each episode begins again (eval/recording/folder.py)
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np

from eval.recording.features import ACTION, STATE, Feature, features_of, numbers_of
from eval.recording.folder import read_starts, starts_file
from eval.recording.tape import Recorded
from rearrange.home.errors import UserError
from rearrange.home.files import open_regular, read_json
from trainer.logs.printable import first_line

if TYPE_CHECKING:
    from minari.dataset.minari_storage import MinariStorage

DATA, METADATA = "data", "metadata.json"
REWARD, DONE, SUCCESS = "next.reward", "next.done", "next.success"
BOUNDS = {"depth": (0.0, 1.0), "video": (0, 255), "image": (0, 65535)}  # of an image's pixels; of all else none


class MinariFiles:
    """The format minari. fps: steps per second, which its metadata say."""

    packages = ("minari", "pyarrow")
    raw = True

    def __init__(self, folder: Path, features: Mapping[str, Feature], fps: float) -> None:
        self.folder, self.features, self.fps = folder.resolve(), dict(features), fps  # Minari takes whole paths

    def remove_from(self, number: int) -> None:
        kept = sum(len(read_starts(self.folder / starts_file(each))) for each in range(number))
        for path in (self.folder / DATA).glob("*/"):
            if path.name.isdigit() and int(path.name) >= kept:
                shutil.rmtree(path)

    def add(self, number: int, episodes: Sequence[Recorded], first_episode: int, first_frame: int,
            tasks: Mapping[str, int]) -> list[Path]:
        from minari.data_collector import EpisodeBuffer

        storage = self._storage()
        # Minari would write the metadata for every episode; `of_all` writes it.
        storage.update_metadata = lambda values: None
        for index, episode in enumerate(episodes, first_episode):
            columns = episode.columns
            done = np.asarray(columns[DONE], bool).reshape(-1)
            success = np.asarray(columns[SUCCESS], bool).reshape(-1)
            storage.update_episodes([EpisodeBuffer(
                id=index, seed=episode.start["seed"], observations=self._observations(columns), actions=columns[ACTION],
                rewards=np.asarray(columns[REWARD], np.float64).reshape(-1),
                terminations=done & (not episode.truncated), truncations=done & episode.truncated,
                infos={"success": [False, *success.tolist()]})])
            storage.update_episode_metadata([{"task": episode.task, "success": episode.success}], [index])
        folders = (self.folder / DATA / str(index) for index in range(first_episode, first_episode + len(episodes)))
        return [file.relative_to(self.folder) for folder in folders for file in sorted(folder.iterdir())]

    def of_all(self, files: int, episodes: int, frames: int, tasks: Mapping[str, int]) -> dict[Path, bytes]:
        storage = self._storage()
        path = self.folder / DATA / METADATA
        known = read_json(path)
        about = {"total_episodes": episodes, "total_steps": frames, "dataset_size": float(storage.get_size())}
        return {path: json.dumps(known | about).encode()}

    def _observations(self, columns: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """What was seen, by the names that the environment has."""
        seen = {feature.of[0]: np.asarray(columns[name]) for name, feature in self.features.items() if feature.of
                and name != STATE}
        vectors = numbers_of(self.features[STATE]) if STATE in self.features else {}
        return seen | {key: np.asarray(columns[STATE])[:, where] for key, where in vectors.items()}

    def _storage(self) -> MinariStorage:
        """The data set, begun where there is none."""
        from minari import __version__
        from minari.dataset.minari_storage import MinariStorage

        path = self.folder / DATA
        try:
            return MinariStorage.read(path)
        except ValueError:  # none yet, or one whose making was interrupted
            (path / METADATA).unlink(missing_ok=True)
        path.mkdir(parents=True, exist_ok=True)
        action = self.features[ACTION]
        storage = MinariStorage.new(path, self._space(), gymnasium.spaces.Box(-1.0, 1.0, action.shape, np.float32),
                                    data_format="parquet", jpeg_encoding=False)
        name = re.sub(r"[^-\w]", "_", self.folder.name)
        storage.update_metadata({"dataset_id": name if re.search(r"-v\d+$", name) else f"{name}-v0",
                                 "minari_version": __version__, "action_names": list(action.names),
                                 "steps_per_s": self.fps})
        return storage

    def _space(self) -> gymnasium.spaces.Dict:
        boxes = {key: gymnasium.spaces.Box(-np.inf, np.inf, (len(where),), np.float32)
                 for key, where in (numbers_of(self.features[STATE]) if STATE in self.features else {}).items()}
        for name, feature in self.features.items():
            if feature.of and name != STATE:
                low, high = BOUNDS.get(feature.kind, (-np.inf, np.inf))
                boxes[feature.of[0]] = gymnasium.spaces.Box(low, high, feature.shape, np.dtype(feature.dtype))
        return gymnasium.spaces.Dict(boxes)

    @classmethod
    def described(cls, folder: Path) -> dict[str, tuple[tuple[int, ...], tuple[str, ...]]]:
        return {name: (feature.shape, feature.names or ()) for name, feature in _features(_read(folder)).items()}

    @classmethod
    def read(cls, folder: Path, number: int, columns: Sequence[str] | None = None) -> Iterator[dict[str, np.ndarray]]:
        lengths = {start["episode_index"]: start["steps"] for start in read_starts(folder / starts_file(number))}
        storage = _read(folder)
        features = _features(storage)
        for index, length in lengths.items():
            try:
                for file in (folder / DATA / str(index)).iterdir():
                    open_regular(file).close()
                episode = next(iter(storage.get_episodes([index])))
                found = _columns(episode, features)
                for name, column in found.items():
                    shape = (length, *features[name].shape)
                    if column.shape != shape or column.dtype.kind not in "biuf":
                        raise ValueError(f"its {name} has the shape {column.shape} instead of {shape}")
            except Exception as error:  # whatever Arrow and Minari raise for a file that is not what they wrote
                why = getattr(error, "strerror", None) or first_line(error)
                raise UserError(f"{folder / DATA / str(index)} is damaged: {why}.") from error
            yield {name: column for name, column in found.items() if columns is None or name in columns}


def _columns(episode: Mapping[str, Any], features: Mapping[str, Feature]) -> dict[str, np.ndarray]:
    """The columns of a recording, of an episode as Minari gives it."""
    seen = {key: np.asarray(value)[:-1] for key, value in episode["observations"].items()}
    found = {name: np.concatenate([seen[key] for key in feature.of], 1) if name == STATE else seen[feature.of[0]]
             for name, feature in features.items() if feature.of}
    ends = np.asarray(episode["terminations"]) | np.asarray(episode["truncations"])
    return found | {ACTION: np.asarray(episode["actions"]), REWARD: np.asarray(episode["rewards"])[:, None],
                    DONE: ends[:, None], SUCCESS: np.asarray(episode["infos"]["success"])[1:, None]}


def _read(folder: Path) -> MinariStorage:
    """A data set with our metadata: those that name an environment would have it imported. UserError."""
    from minari.dataset.minari_storage import MinariStorage

    path = folder / DATA / METADATA
    try:
        about = read_json(path)
        spaces = about["observation_space"], about["action_space"]
        if "env_spec" in about or not all(isinstance(space, str) for space in spaces) or (
                about["data_format"], about["jpeg_encoding"]) != ("parquet", False):
            raise ValueError
        return MinariStorage.read(folder.resolve() / DATA)
    except Exception as error:  # of many kinds, as its spaces are made from text
        raise UserError(f"{path} is damaged or missing: repeat the command that recorded {folder}.") from error


def _features(storage: MinariStorage) -> dict[str, Feature]:
    names = read_json(storage.data_path / METADATA).get("action_names", ())
    try:
        return features_of(storage.observation_space, tuple(map(str, names)))
    except (TypeError, AttributeError) as error:
        raise UserError(f"{storage.data_path / METADATA} is damaged or missing: repeat the command that "
                        "recorded it.") from error

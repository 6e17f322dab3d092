"""One episode while it is recorded, and when it is over."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from eval.recording.features import ACTION, STATE, VIDEOS, Feature, as_image_file, depth_codes, state_of
from eval.recording.statistics import Pixels, Stats
from eval.recording.video import Stream
from rearrange.home.apartments.episodes import Episode, Handoff, Marker
from rearrange.home.robot.robot import RANGE_M


@dataclass(frozen=True)
class Recorded:
    """An episode. columns: a row, or an image file's content, for every frame. streams: H.264. pixels: statistics."""

    attempt: int
    start: dict[str, Any]  # how it begins again: the episode, exactly, and the seed
    task: str  # in words
    success: bool
    failure: str | None
    steps: int  # actions, which are frames
    reward: float
    truncated: bool = False  # its time was over
    columns: dict[str, np.ndarray | list[bytes]] = field(default_factory=dict, repr=False)
    streams: dict[str, bytes] = field(default_factory=dict, repr=False)
    pixels: dict[str, Stats] = field(default_factory=dict, repr=False)

    @property
    def size(self) -> int:
        """Bytes that it takes at most."""
        rows = sum(sum(map(len, column)) if isinstance(column, list) else column.nbytes
                   for column in self.columns.values())
        return rows + sum(map(len, self.streams.values()))


class Tape:
    """Takes the frames of an episode; images are encoded as they come, so that a long one fits into memory.

    raw: images stay arrays instead, and there is one more observation than actions: what the last action led to.
    """

    def __init__(self, features: Mapping[str, Feature], fps: float, raw: bool = False) -> None:
        self._features, self._raw = features, raw
        self._rows: dict[str, list[Any]] = {name: [] for name, feature in features.items()
                                            if raw or feature.kind not in VIDEOS}
        self._streams = {} if raw else {name: Stream(feature.shape, fps)
                                        for name, feature in features.items() if feature.kind in VIDEOS}
        self._pixels = {} if raw else {name: Pixels() for name, feature in features.items()
                                       if feature.kind in (*VIDEOS, "depth", "image")}
        self._reward, self._truncated = 0.0, False

    def frame(self, observation: Mapping[str, Any], action: np.ndarray, reward: float, terminated: bool,
              truncated: bool, success: bool) -> None:
        """One frame: what was seen, what was done, and what came of it."""
        for name, feature in self._features.items():
            if not feature.of:
                continue
            if name == STATE:
                self._rows[name].append(state_of(feature, observation))
                continue
            value = observation[feature.of[0]]
            if feature.kind == "array" or self._raw:
                self._rows[name].append(np.array(value))
                continue
            self._pixels[name].add(value)
            if feature.kind in VIDEOS:
                self._streams[name].add(depth_codes(value) if feature.kind == "depth_video" else value)
            else:
                self._rows[name].append(as_image_file(feature, value))
        self._rows[ACTION].append(np.array(action, np.float32))
        for name, value in (("next.reward", reward), ("next.done", terminated or truncated), ("next.success", success)):
            self._rows[name].append(value)
        self._reward += reward
        self._truncated = truncated and not terminated

    def recorded(self, attempt: int, start: dict[str, Any], task: str, success: bool, failure: str | None,
                 last: Mapping[str, Any]) -> Recorded:
        """The episode, which is over. OSError if a video could not be encoded.

        Args:
            attempt: its number.
            start: how it begins again.
            task: in words.
            success: of the episode.
            failure: why it failed; None where it did not.
            last: what is seen at the end, which is kept where images are arrays.
        """
        if self._raw:
            for name, feature in self._features.items():
                if feature.of:
                    self._rows[name].append(state_of(feature, last) if name == STATE else np.array(last[feature.of[0]]))
        columns = {name: rows if self._features[name].kind in ("depth", "image") and not self._raw
                   else np.array(rows, self._features[name].dtype) for name, rows in self._rows.items()}
        streams = {name: stream.content() for name, stream in self._streams.items()}
        pixels = {name: of.stats(RANGE_M if self._features[name].kind == "depth_video" else
                                 1 / 255 if self._features[name].dtype == "uint8" else 1.0)
                  for name, of in self._pixels.items()}
        return Recorded(attempt, start, task, success, failure, len(self._rows[ACTION]), self._reward, self._truncated,
                        columns, streams, pixels)

    def close(self) -> None:
        """Give it up."""
        for stream in self._streams.values():
            stream.close()


def plain(episode: Episode) -> dict[str, Any]:
    """An episode as JSON holds it, to the last digit; files for Habitat hold poses as matrices, which are rounded."""
    return dataclasses.asdict(episode)


def episode_from(values: Mapping[str, Any]) -> Episode:
    """The episode that `plain` made such values of, which have been JSON since."""
    def by_index(of: Mapping[Any, Any], make: Any) -> dict[int, Any]:
        return {int(key): make(value) for key, value in of.items()}

    start, handoff = values["robot_start"], values["handoff"]
    return Episode(**{
        **values, "objects": tuple(values["objects"]), "start_poses": tuple(map(tuple, values["start_poses"])),
        "targets": by_index(values["targets"], tuple), "labels": by_index(values["labels"], str),
        "target_receptacles": tuple(values["target_receptacles"]),
        "goal_receptacles": tuple(values["goal_receptacles"]),
        "markers": tuple(Marker(**{**marker, "offset": tuple(marker["offset"])}) for marker in values["markers"]),
        "robot_start": None if start is None else tuple(start),
        "handoff": None if handoff is None else Handoff(**handoff), "object_paths": tuple(values["object_paths"])})

"""A folder as a LeRobotDataset v3.0 (github.com/huggingface/lerobot).

    data/chunk-000/file-000.parquet             frames of some episodes
    videos/<camera>/chunk-000/file-000.mp4      their colours, one episode after another
    meta/episodes/chunk-000/file-000.parquet    where each of these episodes is, and its statistics
    meta/tasks.parquet, stats.json, info.json   of all
    meta/rearrange/...                          ours: how each episode begins again (eval/recording/folder.py)

The files of one number are written together and never changed after. Before the last three are written again, they are
complete.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from eval.recording.features import NEAREST_M, SHIFT_M, VIDEOS, Feature, depth_of_codes
from eval.recording.folder import read_starts, starts_file
from eval.recording.statistics import of_rows, together
from eval.recording.tape import Recorded
from eval.recording.video import pixels_of, read_mp4, write_mp4
from rearrange.home.errors import UserError
from rearrange.home.files import open_regular, read_json
from rearrange.home.robot import DEFAULT
from rearrange.home.robot.robot import RANGE_M
from trainer.logs.printable import first_line, printable

if TYPE_CHECKING:
    import pyarrow as pa

VERSION = "v3.0"
FILES_IN_CHUNK = 1000
FILE = "chunk-{chunk_index:03d}/file-{file_index:03d}"
DATA, VIDEO, EPISODES = f"data/{FILE}.parquet", f"videos/{{video_key}}/{FILE}.mp4", f"meta/episodes/{FILE}.parquet"
DATA_MB, VIDEO_MB = 100, 200  # LeRobot's usual sizes of files, which it goes by where it adds episodes
MOST_UNPACKED = 4 << 30  # bytes of the frames of one file
INDICES = {"timestamp": "float32", "frame_index": "int64", "episode_index": "int64", "index": "int64",
           "task_index": "int64"}


def placed(pattern: str, number: int, **names: str) -> str:
    """The path of the file of a number."""
    return pattern.format(chunk_index=number // FILES_IN_CHUNK, file_index=number % FILES_IN_CHUNK, **names)


class LeRobotFiles:
    """The format lerobot. fps: frames per second; fewer where an action holds for several steps.

    LeRobot's own writer is not used: it comes with its policies and torchvision, and an interrupted recording has to
    go on, and a full disk has to leave what was there, which its writer does not promise.
    """

    packages = ("pyarrow",)
    raw = False
    robot_type = DEFAULT

    def __init__(self, folder: Path, features: Mapping[str, Feature], fps: float) -> None:
        self.folder, self.features, self.fps = folder, dict(features), fps
        self._videos = [name for name, feature in features.items() if feature.kind in VIDEOS]
        self._images = [name for name, feature in features.items() if feature.kind in (*VIDEOS, "depth", "image")]

    def remove_from(self, number: int) -> None:
        for base in ("data", "meta/episodes", *(f"videos/{name}" for name in self._videos)):
            for path in (self.folder / base).glob("chunk-*/file-*"):
                chunk, file = path.parent.name.removeprefix("chunk-"), path.stem.removeprefix("file-")
                if int(chunk) * FILES_IN_CHUNK + int(file.partition(".")[0]) >= number:
                    path.unlink()

    def add(self, number: int, episodes: Sequence[Recorded], first_episode: int, first_frame: int,
            tasks: Mapping[str, int]) -> list[Path]:
        lengths = [episode.steps for episode in episodes]
        rows = self._rows(episodes, lengths, first_episode, first_frame, tasks)
        made = [self._write_table(DATA, number, self._frames(rows, episodes))]
        for name in self._videos:
            path = self.folder / placed(VIDEO, number, video_key=name)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_mp4(path, [episode.streams[name] for episode in episodes], self.fps,
                      self.features[name].kind == "depth_video")
            made.append(path.relative_to(self.folder))
        return [*made, self._write_table(EPISODES, number,
                                         self._episodes(number, rows, episodes, lengths, first_episode, first_frame))]

    def _rows(self, episodes: Sequence[Recorded], lengths: Sequence[int], first_episode: int, first_frame: int,
              tasks: Mapping[str, int]) -> dict[str, np.ndarray]:
        """The numbers of all frames, by column."""
        frame = np.concatenate([np.arange(length) for length in lengths])
        each = {"timestamp": (frame / self.fps).astype(np.float32), "frame_index": frame,
                "episode_index": np.repeat(np.arange(first_episode, first_episode + len(lengths)), lengths),
                "index": np.arange(first_frame, first_frame + len(frame)),
                "task_index": np.repeat([tasks[episode.task] for episode in episodes], lengths)}
        numbers = {name: np.concatenate([episode.columns[name] for episode in episodes])
                   for name, feature in self.features.items() if feature.kind in ("vector", "array")}
        return numbers | each

    def _frames(self, rows: Mapping[str, np.ndarray], episodes: Sequence[Recorded]) -> pa.Table:
        import pyarrow as pa

        columns = {name: _column(values) for name, values in rows.items()}
        for name in self._images:
            if name not in self._videos:
                files = [content for episode in episodes for content in episode.columns[name]]
                columns[name] = pa.array([{"bytes": content, "path": None} for content in files],
                                         pa.struct([("bytes", pa.binary()), ("path", pa.string())]))
        return pa.table(columns)

    def _episodes(self, number: int, rows: Mapping[str, np.ndarray], episodes: Sequence[Recorded],
                  lengths: Sequence[int], first_episode: int, first_frame: int) -> pa.Table:
        """One row an episode: where it is, and the statistics of its columns."""
        import pyarrow as pa

        chunk, file = divmod(number, FILES_IN_CHUNK)
        ends = np.cumsum(lengths)
        table = []
        for i, (episode, length, end) in enumerate(zip(episodes, lengths, ends.tolist(), strict=True)):
            start = end - length
            row: dict[str, Any] = {"episode_index": first_episode + i, "tasks": [episode.task], "length": length,
                                   "data/chunk_index": chunk, "data/file_index": file,
                                   "dataset_from_index": first_frame + start, "dataset_to_index": first_frame + end}
            for name in self._videos:
                row |= {f"videos/{name}/chunk_index": chunk, f"videos/{name}/file_index": file,
                        f"videos/{name}/from_timestamp": start / self.fps,
                        f"videos/{name}/to_timestamp": end / self.fps}
            stats = {name: of_rows(values[start:end]) for name, values in rows.items()} | episode.pixels
            row |= {f"stats/{name}/{which}": value.tolist() for name, of in stats.items()
                    for which, value in of.items()}
            table.append(row | {"success": episode.success, "meta/episodes/chunk_index": chunk,
                                "meta/episodes/file_index": file})
        return pa.Table.from_pylist(table)

    def _write_table(self, pattern: str, number: int, table: pa.Table) -> Path:
        import pyarrow.parquet as pq

        path = self.folder / placed(pattern, number)
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path, compression="zstd")
        return path.relative_to(self.folder)

    @classmethod
    def described(cls, folder: Path) -> dict[str, tuple[tuple[int, ...], tuple[str, ...]]]:
        path = folder / "meta" / "info.json"
        try:
            features = {name: (tuple(of["shape"]), tuple(of["names"] or ()))
                        for name, of in read_json(path)["features"].items()}
            if not all(type(size) is int and size > 0 for shape, _ in features.values() for size in shape):
                raise ValueError
            return features
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise UserError(f"{path} is damaged or missing: repeat the command that recorded {folder}.") from error

    @classmethod
    def read(cls, folder: Path, number: int,
             columns: Sequence[str] | None = None) -> Iterator[dict[str, np.ndarray | list[bytes]]]:
        import pyarrow as pa

        path, shapes = folder / placed(DATA, number), cls.described(folder)
        lengths = {start["episode_index"]: start["steps"] for start in read_starts(folder / starts_file(number))}
        count = sum(lengths.values())
        videos = {name: place for name in columns
                  or () if (place := folder / placed(VIDEO, number, video_key=name)).exists()}
        try:
            found = _columns(path, count, None if columns is None
                             else [*(name for name in columns if name not in videos), *INDICES], shapes)
            frame = np.concatenate([np.arange(length) for length in lengths.values()])
            fps = read_json(folder / "meta" / "info.json").get("fps")
            for name, values in (("episode_index", np.repeat(list(lengths), list(lengths.values()))),
                                 ("frame_index", frame)):
                if not np.array_equal(found[name][:, 0], values):
                    raise ValueError(f"its {name} is not that of the episodes that were recorded")
            if type(fps) not in (int, float) or not 0 < fps < 1000 or not np.allclose(
                    found["timestamp"][:, 0] * fps, frame, rtol=0.0, atol=0.05):
                raise ValueError(f"its frames are not those of {printable(fps, 40)} a second, as info.json says")
        except (OSError, ValueError, KeyError, TypeError, MemoryError, pa.ArrowException) as error:
            raise UserError(f"{path} is damaged: {getattr(error, 'strerror', None) or first_line(error)}.") from error
        found |= {name: _frames_of(place, shapes[name][0], count) for name, place in videos.items()}
        first = 0
        for length in lengths.values():
            yield {name: of[first : first + length] for name, of in found.items() if columns is None or name in columns}
            first += length

    def of_all(self, files: int, episodes: int, frames: int, tasks: Mapping[str, int]) -> dict[Path, bytes]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        info = {"codebase_version": VERSION, "robot_type": self.robot_type, "total_episodes": episodes,
                "total_frames": frames, "total_tasks": len(tasks), "chunks_size": FILES_IN_CHUNK,
                "data_files_size_in_mb": DATA_MB, "video_files_size_in_mb": VIDEO_MB,
                "fps": int(self.fps) if self.fps == int(self.fps) else self.fps,
                "splits": {"train": f"0:{episodes}"}, "data_path": DATA, "video_path": VIDEO if self._videos else None,
                "features": {name: self._described(feature) for name, feature in self.features.items()}
                | {name: {"dtype": dtype, "shape": [1], "names": None} for name, dtype in INDICES.items()}}
        try:
            stats = self._stats(files, pq)
        except (ValueError, KeyError, pa.ArrowException) as error:
            raise UserError(f"{self.folder} is damaged: {first_line(error)}. Record it anew.") from error
        meta = self.folder / "meta"
        return {meta / "tasks.parquet": _tasks(tasks, pq), meta / "stats.json": json.dumps(stats, indent=4).encode(),
                meta / "info.json": json.dumps(info, indent=4).encode()}

    def _stats(self, files: int, pq: Any) -> dict[str, dict[str, Any]]:
        """Statistics of numbers over all frames, of images and arrays over those of the episodes."""
        by_episode = {name: [] for name, feature in self.features.items() if feature.kind != "vector"}
        wanted = [name for name, feature in self.features.items() if feature.kind == "vector"] + list(INDICES)
        tables = [pq.read_table(self.folder / placed(DATA, number), columns=wanted) for number in range(files)]
        found = {name: of_rows(np.concatenate([_rows(table[name]) for table in tables])) for name in wanted}
        columns = [f"stats/{name}/{which}" for name in by_episode for which in found["index"]]
        for number in range(files):
            for row in pq.read_table(self.folder / placed(EPISODES, number),
                                     columns=columns).to_pylist() if columns else []:
                for name, rows in by_episode.items():
                    rows.append({which: np.array(row[f"stats/{name}/{which}"]) for which in found["index"]})
        found |= {name: together(rows) for name, rows in by_episode.items()}
        return {name: {which: value.tolist() for which, value in of.items()} for name, of in found.items()}

    def _described(self, feature: Feature) -> dict[str, Any]:
        image = "video" if feature.kind in VIDEOS else "image" if feature.kind in ("depth", "image") else None
        said: dict[str, Any] = {"dtype": image or feature.dtype, "shape": list(feature.shape),
                                "names": feature.names and list(feature.names)}
        if feature.kind == "depth":
            said["info"] = {"is_depth_map": True}
        if feature.kind in VIDEOS:
            (height, width, channels), depth = feature.shape, feature.kind == "depth_video"
            said["info"] = {"video.height": height, "video.width": width, "video.channels": channels,
                            "video.codec": "hevc" if depth else "h264", "video.pix_fmt": pixels_of(feature.shape),
                            "video.is_depth_map": depth, "video.fps": self.fps, "has_audio": False}
            if depth:  # as LeRobot 0.6 reads it, in metres
                said["info"] |= {"is_depth_map": True, "depth_unit": "m", "video.depth_min": NEAREST_M,
                                 "video.depth_max": RANGE_M, "video.shift": SHIFT_M, "video.use_log": True}
        return said


def _column(values: np.ndarray) -> pa.Array:
    """(N,) or (N, 1) as numbers, (N, n) as lists of one length, more as lists of lists."""
    import pyarrow as pa

    if values.ndim == 1 or values.shape[1:] == (1,):
        return pa.array(values.reshape(len(values)))
    if values.ndim == 2:
        return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])
    inner = pa.array(values.reshape(-1))
    for size in reversed(values.shape[1:]):
        inner = pa.ListArray.from_arrays(pa.array(np.arange(0, len(inner) + 1, size), pa.int32()), inner)
    return inner


def _frames_of(path: Path, shape: tuple[int, ...], count: int) -> np.ndarray:
    try:
        frames = read_mp4(path, shape, count)
        return depth_of_codes(frames) if shape[2] == 1 else frames
    except OSError as error:
        raise UserError(f"{path} is damaged: {error.strerror}." if error.strerror else f"{error}.") from error


def _columns(path: Path, count: int, names: Sequence[str] | None,
             shapes: Mapping[str, Any]) -> dict[str, np.ndarray | list[bytes]]:
    """Columns of a file of `count` frames: contents of image files, or arrays of their shapes.

    names: which columns; None means all. OSError, ValueError, ArrowException.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with open_regular(path) as file:
        table = pq.ParquetFile(file)
        about = table.metadata
        if about.num_rows != count:
            raise ValueError(f"it has {about.num_rows:,} frames instead of {count:,}")
        if sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups)) > MOST_UNPACKED:
            raise ValueError(f"it holds more than {MOST_UNPACKED / 1e9:.0f} GB")
        read = table.read(names)
    if missing := set(names or ()) - set(read.column_names):
        raise ValueError(f"it has no column {min(missing)}")
    found: dict[str, np.ndarray | list[bytes]] = {}
    for name in read.column_names:
        column = read[name]
        if pa.types.is_struct(column.type):
            found[name] = [row["bytes"] if row else None for row in column.to_pylist()]
            if not all(isinstance(content, bytes) for content in found[name]):
                raise ValueError(f"its column {name} lacks images")
        else:
            found[name] = _rows(column)
            if name in shapes and found[name].shape[1:] != shapes[name][0]:
                raise ValueError(f"its column {name} has the shape {found[name].shape[1:]} instead "
                                 f"of {shapes[name][0]}")
    return found


def _rows(column: Any) -> np.ndarray:
    """A column of numbers, or of lists of them, as rows: (N, 1) or (N, ...).

    ValueError for lists of unequal lengths, and where something is missing.
    """
    import pyarrow as pa

    values, sizes = column.combine_chunks(), []
    while not values.null_count and (pa.types.is_fixed_size_list(values.type) or pa.types.is_list(values.type)):
        fixed = pa.types.is_fixed_size_list(values.type)
        lengths = {values.type.list_size} if fixed else set(values.value_lengths().to_pylist())
        if len(lengths) > 1:
            raise ValueError("it has rows of unequal lengths")
        sizes += lengths
        values = values.flatten()
    numbers = values.to_numpy(zero_copy_only=False)
    if values.null_count or numbers.dtype.kind not in "biuf":
        raise ValueError("something in it is missing, or is no number")
    return numbers.reshape(len(column), *(sizes or [1]))


def _tasks(tasks: Mapping[str, int], pq: Any) -> bytes:
    """The table of tasks as pandas writes it: the words are its index."""
    import pyarrow as pa

    table = pa.table({"task_index": pa.array(list(tasks.values()), pa.int64()),
                      "task": pa.array(list(tasks), pa.string())})
    columns = [{"name": name, "field_name": name, "pandas_type": kind, "numpy_type": numpy, "metadata": None}
               for name, kind, numpy in (("task_index", "int64", "int64"), ("task", "unicode", "object"))]
    about = {"index_columns": ["task"], "columns": columns, "pandas_version": "2.2.0",
             "column_indexes": [{"name": None, "field_name": None, "pandas_type": "unicode", "numpy_type": "object",
                                 "metadata": {"encoding": "UTF-8"}}]}
    file = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({b"pandas": json.dumps(about).encode()}), file)
    return file.getvalue()

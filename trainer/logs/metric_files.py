"""The files of metrics that any tool reads: metrics.jsonl, metrics.csv and TensorBoard's.

A row is in a file whole or not at all: what a full disk leaves of one is taken back, and whoever writes keeps the row.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import os
import socket
import struct
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainer.checkpoints.files import parse_json, read_bytes
from trainer.setting_rules import leaves

MOST_BYTES = 1 << 28  # of the metrics of a run


class Appended:
    """A file that grows by whole pieces."""

    def __init__(self, path: Path):
        self.path = path
        self._torn_at: int | None = None  # what stands behind it is half a piece, which could not be taken back yet

    def size(self) -> int:
        """Bytes of whole pieces; 0 where there is no file."""
        try:
            size = self.path.stat().st_size
        except FileNotFoundError:
            self._torn_at = None
            return 0
        if self._torn_at is not None and size > self._torn_at:
            os.truncate(self.path, self._torn_at)
            size = self._torn_at
        self._torn_at = None
        return size

    def append(self, piece: bytes) -> None:
        """Write a piece behind the others. OSError, and nothing of it there, where it does not fit."""
        self._torn_at = self.size()
        try:
            with open(self.path, "ab", buffering=0) as file:
                left = memoryview(piece)
                while left:
                    left = left[file.write(left):]
        except BaseException:
            with contextlib.suppress(OSError):  # else before the next piece
                self.size()
            raise
        self._torn_at = None


class JsonLines:
    """One JSON object per line: {"step": ..., metric: value, ...}; a value that is not finite is null. A run that goes
    on, resume_step, keeps the rows until there; those that a kill has left in metrics.csv alone are among them."""

    def __init__(self, path: Path, resume_step: int | None = None) -> None:
        self.file = Appended(path)
        _drop_torn_line(path)
        if resume_step is not None:
            rows = [_finite(int(row["step"]), _numbers(row)) for row in _read_csv(path.with_suffix(".csv"))[0]]
            rows = _until(resume_step, rows, read_jsonl(path) if path.exists() else [])
            if rows or path.exists():
                _replace(path, "".join(json.dumps(row) + "\n" for row in rows))

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        self.file.append(f"{json.dumps(_finite(step, metrics))}\n".encode())


class Csv:
    """A table with the column `step` first. A new metric adds a column: the file is rewritten with the new header.
    resume_step: as of `JsonLines`, with the rows that metrics.jsonl has alone."""

    def __init__(self, path: Path, resume_step: int | None = None) -> None:
        self.file = Appended(path)
        self.columns: list[str] = []
        _drop_torn_line(path)
        rows = self._read()
        if resume_step is not None:
            beside = read_jsonl(path.with_suffix(".jsonl")) if path.with_suffix(".jsonl").exists() else []
            rows = _until(resume_step, [_texts(row) for row in beside], rows)
            if rows or path.exists():
                self._rewrite(rows, list(dict.fromkeys([*self.columns, *(key for row in rows for key in row)])))

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        row = _texts({"step": step, **metrics})
        empty = not self.file.size()
        if empty or set(row) - set(self.columns):
            rows = [*([] if empty else self._read()), row]
            self._rewrite(rows, list(dict.fromkeys([*self.columns, *row])))
        else:
            self.file.append(_csv_text([row], self.columns).encode())

    def _read(self) -> list[dict[str, str]]:
        """The rows of the file; sets the columns."""
        rows, self.columns = _read_csv(self.file.path)
        return rows

    def _rewrite(self, rows: list[dict[str, str]], columns: list[str]) -> None:
        header = {column: column for column in columns}
        _replace(self.file.path, _csv_text([header, *rows], columns))
        self.columns = columns


class TensorBoard:
    """An event file below `folder`, in TensorBoard's format. Its own writer writes in a thread, which a full disk ends
    for good, with half a record in the file, behind which nothing is read."""

    def __init__(self, folder: Path, resume_step: int | None = None, settings: Mapping[str, Any] | None = None) -> None:
        """settings: of the run, for the tab HParams."""
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog

        folder.mkdir(parents=True, exist_ok=True)
        # TensorBoard reads the files of a folder by name, which begins with the second they were opened in
        words = [path.name.split(".")[3] for path in folder.glob("events.out.tfevents.*")]
        second = max([int(time.time()), *(int(earlier) + 1 for earlier in words if earlier.isdecimal())])
        self.file = Appended(folder / f"events.out.tfevents.{second:010d}.{socket.gethostname()}.{os.getpid()}.0")
        first = Event(wall_time=time.time(), file_version="brain.Event:2")
        self._head = _record(first.SerializeToString())
        if resume_step is not None:  # what an earlier attempt has written behind it is not shown
            start = Event(wall_time=time.time(), step=resume_step + 1, session_log=SessionLog(status=SessionLog.START))
            self._head += _record(start.SerializeToString())
        if settings:
            told = Event(wall_time=time.time(), summary=_hyper_parameters(settings, folder.parent.name))
            self._head += _record(told.SerializeToString())

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        from tensorboard.compat.proto.summary_pb2 import Summary

        self._add(step, Summary(value=[Summary.Value(tag=key, simple_value=value) for key, value in metrics.items()]))

    def write_film(self, step: int, name: str, gif: bytes) -> None:
        """As `add_video` of torch does, which needs moviepy to encode: the file itself in an image summary."""
        from tensorboard.compat.proto.summary_pb2 import Summary

        width, height = struct.unpack("<HH", gif[6:10])
        image = Summary.Image(height=height, width=width, colorspace=3, encoded_image_string=gif)
        self._add(step, Summary(value=[Summary.Value(tag=name, image=image)]))

    def _add(self, step: int, summary: object) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        self.file.path.parent.mkdir(exist_ok=True)  # if removed; the run's directory is made by `Saver.look`
        event = _record(Event(wall_time=time.time(), step=step, summary=summary).SerializeToString())
        self.file.append(event if self.file.size() else self._head + event)


def _hyper_parameters(settings: Mapping[str, Any], group: str) -> Any:
    """What TensorBoard's tab HParams reads, as `tensorboard.plugins.hparams.summary_v2` makes it, which takes 0.3 s to
    import."""
    from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
    from tensorboard.compat.proto.tensor_pb2 import TensorProto
    from tensorboard.compat.proto.types_pb2 import DT_FLOAT
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData, SessionStartInfo

    start = SessionStartInfo(group_name=group, start_time_secs=time.time())
    for name, value in leaves(settings):
        if value is None or value == {}:
            continue
        kind = ("bool_value" if isinstance(value, bool) else "number_value" if isinstance(value, int | float)
                else "string_value")
        setattr(start.hparams[name], kind, str(value) if kind == "string_value" else value)
    plugin = SummaryMetadata.PluginData(plugin_name="hparams", content=HParamsPluginData(
        session_start_info=start).SerializeToString())
    return Summary(value=[Summary.Value(tag="_hparams_/session_start_info", tensor=TensorProto(dtype=DT_FLOAT),
                                        metadata=SummaryMetadata(plugin_data=plugin))])


def read_jsonl(path: str | Path) -> list[dict[str, float]]:
    """The rows of a metrics.jsonl; a line torn by a crash or a full disk is left out, and so is what is no text."""
    rows = []
    for line in read_bytes(path, MOST_BYTES).splitlines():
        try:
            row = parse_json(line)
        except ValueError:
            continue
        if isinstance(row, dict) and isinstance(row.get("step"), int):
            rows.append(row)
    return rows


def _read_csv(path: Path) -> tuple[list[dict[str, str]], list[str]]:
    """The rows and the columns of a metrics.csv; none where there is no file."""
    if not path.exists():
        return [], []
    reader = csv.DictReader(io.StringIO(read_bytes(path, MOST_BYTES).decode("utf-8"), newline=""))
    return [row for row in reader if (row["step"] or "").isdecimal()], list(reader.fieldnames or [])


def _finite(step: int, metrics: Mapping[str, float]) -> dict[str, Any]:
    """A row of metrics.jsonl."""
    return {"step": step, **{key: value if math.isfinite(value) else None for key, value in metrics.items()}}


def _numbers(row: Mapping[str, str]) -> dict[str, float]:
    """The metrics of a row of metrics.csv that are numbers; somebody may have written into it."""
    found = {}
    for key, text in row.items():
        with contextlib.suppress(TypeError, ValueError):
            found[key] = float(text)
    return {key: value for key, value in found.items() if key not in ("step", None)}


def _texts(row: Mapping[str, Any]) -> dict[str, str]:
    """A row of metrics.csv; null is nan."""
    return {key: "nan" if value is None else repr(value) for key, value in row.items()}


def _until(step: int, *sources: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of several sources until a step, in order; of two of one step that of the last source."""
    found = {int(row["step"]): row for rows in sources for row in rows if int(row["step"]) <= step}
    return [found[each] for each in sorted(found)]


def _record(event: bytes) -> bytes:
    """An event as TensorBoard's files have it: with its length, and sums to check both."""
    from tensorboard.summary.writer.record_writer import RecordWriter

    made = io.BytesIO()
    RecordWriter(made).write(event)
    return made.getvalue()


def _csv_text(rows: list[dict[str, str]], columns: list[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([row.get(column, "") for column in columns] for row in rows)
    return text.getvalue()


def _drop_torn_line(path: Path) -> None:
    """Cut off a last line that a crash left without its end."""
    if path.exists():
        content = read_bytes(path, MOST_BYTES)
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.truncate(path, whole)


def _replace(path: Path, text: str) -> None:
    """Rewrite a file so that it is never half there."""
    temporary = path.with_name(path.name + ".part")
    try:
        with open(temporary, "w", newline="", encoding="utf-8") as file:
            file.write(text)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)

"""Metrics of a run, to files that any tool reads: metrics.jsonl, metrics.csv, TensorBoard; W&B on request.

Nothing here may end a training run: a full disk or a failing service is one warning.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import logging
import math
import os
import struct
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from trainer.callbacks import TrainState
from trainer.checkpoints.files import parse_json, read_bytes

__all__ = ["MetricsLogger", "read_jsonl"]
MOST_BYTES = 1 << 28  # of the metrics of a run

_log = logging.getLogger(__name__)


class MetricsLogger:
    """Appends one row per call of `log`. A callback of `trainer.train`.

    wandb: None, or the settings mode ("offline" or "online"), project, entity, group. config: kept with the W&B run.
    resume_step: when a run is continued, rows after this step are dropped, since they will be written again.
    """

    def __init__(
        self,
        run_dir: str | Path,
        wandb: Mapping[str, Any] | None = None,
        resume_step: int | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self.run_dir = Path(run_dir)
        self._warned: set[str] = set()
        self._sinks: dict[str, Any] = {}
        self._open("metrics.jsonl", lambda: JsonLines(self.run_dir / "metrics.jsonl", resume_step))
        self._open("metrics.csv", lambda: Csv(self.run_dir / "metrics.csv", resume_step))
        self._open("TensorBoard", lambda: TensorBoard(self.run_dir / "tb", resume_step))
        if wandb:
            self._open("Weights & Biases", lambda: WeightsAndBiases(self.run_dir, wandb, config))

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Write the row of one step to all sinks."""
        for name, sink in self._sinks.items():
            self._guard(name, sink.write, int(step), {key: float(value) for key, value in metrics.items()})

    __call__ = log

    def at_log(self, state: TrainState) -> None:
        """As a callback."""
        self.log(state.step, state.metrics)
        for name, gif in state.films.items():
            self.log_film(state.step, name, gif)

    def log_film(self, step: int, name: str, gif: bytes) -> None:
        """An animated GIF, to TensorBoard, among its images, and to W&B."""
        for sink_name, sink in self._sinks.items():
            if hasattr(sink, "write_film"):
                self._guard(sink_name, sink.write_film, int(step), name, gif)

    def close(self) -> None:
        """Flush and close all sinks."""
        for name, sink in self._sinks.items():
            self._guard(name, sink.close)
        self._sinks = {}

    def __enter__(self) -> MetricsLogger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self, name: str, make: Callable[[], Any]) -> None:
        self._guard(name, lambda: self._sinks.__setitem__(name, make()))

    def _guard(self, name: str, call: Callable[..., None], *arguments: Any) -> None:
        """Call; a failure is one warning per sink, and the run goes on."""
        try:
            call(*arguments)
        except Exception as error:  # whatever a disk, TensorBoard or a service can raise
            if name not in self._warned:
                self._warned.add(name)
                _log.warning(
                    "%s: metrics are not written (%s: %s); training goes on.", name, type(error).__name__, error
                )


class JsonLines:
    """One JSON object per line: {"step": ..., metric: value, ...}; a value that is not finite is null."""

    def __init__(self, path: Path, resume_step: int | None = None) -> None:
        self.path = path
        _drop_torn_line(path)
        if resume_step is not None and path.exists():
            rows = [row for row in read_jsonl(path) if row["step"] <= resume_step]
            _replace(path, "".join(json.dumps(row) + "\n" for row in rows))

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        row = {"step": step, **{key: value if math.isfinite(value) else None for key, value in metrics.items()}}
        _append(self.path, json.dumps(row) + "\n")

    def close(self) -> None:
        """Nothing stays open between rows."""


class Csv:
    """A table with the column `step` first. A new metric adds a column: the file is rewritten with the new header."""

    def __init__(self, path: Path, resume_step: int | None = None) -> None:
        self.path = path
        self.columns: list[str] = []
        _drop_torn_line(path)
        if path.exists():
            rows = self._read()
            if resume_step is not None:
                self._rewrite([row for row in rows if int(row["step"]) <= resume_step], self.columns)

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        row = {"step": str(step), **{key: repr(value) for key, value in metrics.items()}}
        new = [key for key in row if key not in self.columns]
        if new:
            rows = self._read() if self.path.exists() else []
            self._rewrite([*rows, row], [*self.columns, *(key for key in new if key not in self.columns)])
        else:
            _append(self.path, _csv_text([row], self.columns))

    def close(self) -> None:
        """Nothing stays open between rows."""

    def _read(self) -> list[dict[str, str]]:
        """The rows of the file; sets the columns."""
        reader = csv.DictReader(io.StringIO(read_bytes(self.path, MOST_BYTES).decode("utf-8"), newline=""))
        rows = [row for row in reader if (row["step"] or "").isdecimal()]
        self.columns = list(reader.fieldnames or [])
        return rows

    def _rewrite(self, rows: list[dict[str, str]], columns: list[str]) -> None:
        header = {column: column for column in columns}
        _replace(self.path, _csv_text([header, *rows], columns))
        self.columns = columns


class TensorBoard:
    """Event files below `folder`."""

    def __init__(self, folder: Path, resume_step: int | None = None) -> None:
        from torch.utils.tensorboard import SummaryWriter  # slow to import

        purge = None if resume_step is None else resume_step + 1
        # TensorBoard reads the files of a folder by name, which begins with the second they were opened in
        while any(folder.glob(f"events.out.tfevents.{int(time.time())}.*")):
            time.sleep(0.05)
        self._writer = SummaryWriter(str(folder), purge_step=purge, flush_secs=30)

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        for key, value in metrics.items():
            self._writer.add_scalar(key, value, step)

    def write_film(self, step: int, name: str, gif: bytes) -> None:
        """As `add_video` does, which needs moviepy to encode: the file itself in an image summary."""
        from tensorboard.compat.proto.summary_pb2 import Summary

        width, height = struct.unpack("<HH", gif[6:10])
        image = Summary.Image(height=height, width=width, colorspace=3, encoded_image_string=gif)
        self._writer.file_writer.add_summary(Summary(value=[Summary.Value(tag=name, image=image)]), step)

    def close(self) -> None:
        self._writer.close()


class WeightsAndBiases:
    """A W&B run: offline unless settings["mode"] is "online", and also where that cannot be had."""

    def __init__(self, run_dir: Path, settings: Mapping[str, Any], config: Mapping[str, Any] | None) -> None:
        # wandb reports its own crashes over the network unless told not to before it is imported
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
        import wandb

        mode: Any = settings.get("mode") or "offline"
        common = {
            "project": settings.get("project") or "rearrange",
            "entity": settings.get("entity"),
            "group": settings.get("group"),
            "dir": str(run_dir),
            "id": _stored_id(run_dir / "wandb_id.txt"),
            "name": run_dir.name,
            "resume": "allow",
            "config": dict(config or {}),
            "settings": wandb.Settings(silent=True, console="off", init_timeout=30, disable_git=True),
        }
        try:
            self._run = wandb.init(mode=mode, **common)
        except Exception as error:
            if mode == "offline":
                raise
            _log.warning("Weights & Biases cannot be reached (%s); logging offline.", str(error).splitlines()[0])
            mode = "offline"
            self._run = wandb.init(mode=mode, **common)
        self._offline = mode == "offline"

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        self._run.log(dict(metrics), step=step)

    def write_film(self, step: int, name: str, gif: bytes) -> None:
        import wandb

        self._run.log({name: wandb.Video(io.BytesIO(gif), format="gif")}, step=step)

    def close(self) -> None:
        folder = Path(self._run.dir).parent  # .../offline-run-<date>-<id>
        self._run.finish()
        if self._offline:
            _log.warning("Weights & Biases was offline. To upload: wandb sync %s", folder)


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


def _csv_text(rows: list[dict[str, str]], columns: list[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([row.get(column, "") for column in columns] for row in rows)
    return text.getvalue()


def _append(path: Path, text: str) -> None:
    """Append whole lines: what a full disk leaves of them is taken back."""
    size = path.stat().st_size if path.exists() else 0
    try:
        with open(path, "a", newline="", encoding="utf-8") as file:
            file.write(text)
    except OSError:
        with contextlib.suppress(OSError):
            os.truncate(path, size)
        raise


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


def _stored_id(path: Path) -> str:
    """The W&B id of this run directory: the same one when the run is resumed."""
    if not path.exists():
        path.write_text(uuid.uuid4().hex[:8], encoding="utf-8")
    return path.read_text(encoding="utf-8").strip()

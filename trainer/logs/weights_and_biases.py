"""A run of Weights & Biases, offline unless it is asked to be online."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import shlex
import struct
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainer.logs.printable import first_line

# The axis of all curves. W&B's own step can only grow: when a run goes on from its last checkpoint, W&B would give the
# rows that are written a second time other steps (offline), or leave them out (online).
STEP = "step"
HEAD, BLOCK, CHUNK = b":W&B\xe1\xbe\x00", 1 << 15, 7  # of W&B's files; bytes of a block, and before each chunk
FULL, BEGUN, LAST = 1, (2, 3), 4  # kinds of chunks

_log = logging.getLogger(__name__)


class WeightsAndBiases:
    """A W&B run: offline unless settings["mode"] is "online", and also where that cannot be had."""

    def __init__(self, run_dir: Path, settings: Mapping[str, Any], config: Mapping[str, Any] | None) -> None:
        # wandb reports its own crashes over the network unless told not to before it is imported
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
        import wandb

        self._run_dir = run_dir
        for part in _parts(run_dir):
            with contextlib.suppress(OSError):
                _cut_to_whole_records(part)
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
            _log.warning("Weights & Biases cannot be reached (%s); logging offline.", first_line(error))
            mode = "offline"
            self._run = wandb.init(mode=mode, **common)
        self._offline = mode == "offline"
        self._run.define_metric("*", step_metric=STEP)

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        self._run.log({**metrics, STEP: step})

    def write_film(self, step: int, name: str, gif: bytes) -> None:
        import wandb

        self._run.log({name: wandb.Video(io.BytesIO(gif), format="gif"), STEP: step})

    def close(self) -> None:
        own = Path(self._run.dir).parent
        self._run.finish()
        if self._offline:
            parts = [*(file.parent for file in _parts(self._run_dir) if file.parent.name != own.name), own]
            several = f", the {len(parts)} parts of this run in their order" if len(parts) > 1 else ""
            _log.warning("Weights & Biases was offline. To upload%s: wandb sync %s", several,
                         " ".join(shlex.quote(str(part)) for part in parts))


def _parts(run_dir: Path) -> list[Path]:
    """The files of a run's offline attempts, in their order: those that hold something and are not uploaded."""
    files = [file for file in run_dir.glob("wandb/offline-run-*/*.wandb")
             if not file.with_name(f"{file.name}.synced").exists() and file.stat().st_size > len(HEAD)]
    return sorted(files, key=lambda file: file.parent.name)


def _cut_to_whole_records(file: Path) -> None:
    """Remove the half record that a kill has left at the end of a file in W&B's format. Behind one, `wandb sync` (0.31)
    uploads none of the parts that follow, and uploads the same part again whenever it is repeated.

    Behind its head, the file is a log of LevelDB: blocks of 32 KiB with chunks, each with a checksum (4 bytes), a
    length (2) and a kind (1).
    """
    content = file.read_bytes()
    at = whole = len(HEAD)
    while content.startswith(HEAD) and at + CHUNK <= len(content):
        left = BLOCK - at % BLOCK
        if left < CHUNK:
            at += left
            continue
        length, kind = struct.unpack("<HB", content[at + 4:at + CHUNK])
        if kind not in (FULL, *BEGUN, LAST) or CHUNK + length > left or at + CHUNK + length > len(content):
            break
        at += CHUNK + length
        if kind in (FULL, LAST):
            whole = at
    if content.startswith(HEAD) and whole < len(content):
        os.truncate(file, whole)


def _stored_id(path: Path) -> str:
    """The W&B id of this run directory: the same one when the run is resumed."""
    if not path.exists():
        path.write_text(uuid.uuid4().hex[:8], encoding="utf-8")
    return path.read_text(encoding="utf-8").strip()

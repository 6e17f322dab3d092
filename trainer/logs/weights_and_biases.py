"""A run of Weights & Biases, offline unless it is asked to be online."""

from __future__ import annotations

import io
import logging
import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_log = logging.getLogger(__name__)


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


def _stored_id(path: Path) -> str:
    """The W&B id of this run directory: the same one when the run is resumed."""
    if not path.exists():
        path.write_text(uuid.uuid4().hex[:8], encoding="utf-8")
    return path.read_text(encoding="utf-8").strip()

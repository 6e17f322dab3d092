"""What a run with a directory writes and shows: files of metrics, and its progress on the screen."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from trainer.config import TrainConfig
from trainer.logs.logger import MetricsLogger, read_jsonl
from trainer.logs.progress import Progress
from trainer.ranks.launch import this_rank

__all__ = ["recording"]


@contextmanager
def recording(run_dir: Path, training: TrainConfig, start: int = 0, title: str = "train", live: bool = True,
              log: Callable[[str], None] | None = None, wandb: Mapping[str, Any] | None = None,
              config: Mapping[str, Any] | None = None, shown: bool = True) -> Iterator[tuple[MetricsLogger, Progress]]:
    """Two callbacks for `trainer.train`. training: its settings; start: the step from which it goes on, after which
    rows of an earlier attempt are dropped; wandb, config: of MetricsLogger; title, live, log: of Progress; shown: False
    prints nothing.
    """
    with nullcontext(sys.stdout) if shown else open(os.devnull, "w", encoding="utf-8") as out, \
            MetricsLogger(run_dir, wandb, resume_step=start, config=config) as logger, \
            Progress(training.last_step(start, this_rank().size), title, start, live, out=out, log=log) as progress:
        if start and (logged := run_dir / "metrics.jsonl").is_file():
            progress.remember(read_jsonl(logged))
        yield logger, progress

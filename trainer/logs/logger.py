"""Metrics of a run, to files that any tool reads: metrics.jsonl, metrics.csv, TensorBoard; W&B on request.

Nothing here may end a training run. What cannot be written waits, and is written once there is room: a full disk costs
no row, as long as it ends before the run.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from trainer.callbacks import TrainState
from trainer.logs.metric_files import Csv, JsonLines, TensorBoard, read_jsonl

__all__ = ["MetricsLogger", "read_jsonl"]
WAITING_BYTES = 1 << 26  # most that waits for one place, about; a row of a training takes some 3 kB, so 20,000 rows

Cases = list[tuple[Any, ...]]  # a place, and what is told of it

_log = logging.getLogger(__name__)


class MetricsLogger:
    """Appends one row per call of `log`. A callback of `trainer.train`.

    wandb: None, or the settings mode ("offline" or "online"), project, entity, group. config: the settings of the run,
    for TensorBoard's tab HParams and W&B.
    resume_step: when a run is continued, rows after this step are dropped, since they will be written again.
    """

    def __init__(
        self,
        run_dir: str | Path,
        wandb: Mapping[str, Any] | None = None,
        resume_step: int | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self.run_dir = run_dir = Path(run_dir)
        self._places = [_Place("metrics.jsonl", lambda: JsonLines(run_dir / "metrics.jsonl", resume_step)),
                        _Place("metrics.csv", lambda: Csv(run_dir / "metrics.csv", resume_step)),
                        _Place("TensorBoard", lambda: TensorBoard(run_dir / "tb", resume_step, config), films=True)]
        if wandb:
            from trainer.logs.weights_and_biases import WeightsAndBiases

            self._places.append(
                _Place("Weights & Biases", lambda: WeightsAndBiases(run_dir, wandb, config), films=True, tries=1))
        self._write()

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Write the row of one step everywhere."""
        row = {key: float(value) for key, value in metrics.items()}
        for place in self._places:
            place.put(100 + 40 * len(row), "write", int(step), row)
        self._write()

    __call__ = log

    def at_log(self, state: TrainState) -> None:
        """As a callback."""
        self.log(state.step, state.metrics)
        for name, gif in state.films.items():
            self.log_film(state.step, name, gif)

    def log_film(self, step: int, name: str, gif: bytes) -> None:
        """An animated GIF, to TensorBoard, among its images, and to W&B."""
        for place in self._places:
            if place.films:
                place.put(len(gif), "write_film", int(step), name, gif)
        self._write()

    def close(self) -> None:
        """Write what still waits, and close everything; what could not be written is told."""
        self._write()
        for place in self._places:
            place.close()
        _tell("%s: %s could not be written (%s), and will be missing there.",
              [(place, _counted(missing), place.problem or "too many waited") for place in self._places
               if not place.given_up and (missing := place.lost + len(place.waiting))])
        self._places = []

    def __enter__(self) -> MetricsLogger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self) -> None:
        """Write what waits; the beginning of a failure is told once, and so is its end."""
        failed: Cases = []
        given_up: Cases = []
        recovered: Cases = []
        for place in self._places:
            problem, waited = place.problem, len(place.waiting) - 1
            place.write()
            if place.problem and not problem:
                (given_up if place.given_up else failed).append((place, place.problem))
            elif problem and not place.problem:
                recovered.append((place, _counted(waited)))
        _tell("%s: metrics are not written (%s); training goes on, and they are written once that is possible.", failed)
        _tell("%s: metrics are not written (%s); training goes on.", given_up)
        _tell("%s: metrics are written again, %s that waited among them.", recovered)
        self._places = [place for place in self._places if not place.given_up]


class _Place:
    """Where metrics go, and what waits to be written there, in its order."""

    def __init__(self, name: str, make: Callable[[], Any], films: bool = False, tries: int | None = None):
        self.name, self.films = name, films
        self.problem: str | None = None  # why the newest attempt to write failed
        self.waiting: deque[tuple[int, str, tuple[Any, ...]]] = deque()  # size in bytes, method, arguments
        self.lost = 0  # of what waited, more than is kept
        self.given_up = False
        self._make, self._tries, self._bytes = make, tries, 0
        self._made: Any = None

    def put(self, size: int, method: str, *arguments: Any) -> None:
        """One row or film more; the oldest are dropped where too much waits."""
        self.waiting.append((size, method, arguments))
        self._bytes += size
        while self._bytes > WAITING_BYTES and len(self.waiting) > 1:
            self._bytes -= self.waiting.popleft()[0]
            self.lost += 1

    def write(self) -> None:
        try:
            if self._made is None:
                self._made = self._make()
            while self.waiting:
                size, method, arguments = self.waiting[0]
                getattr(self._made, method)(*arguments)
                self.waiting.popleft()
                self._bytes -= size
            self.problem = None
        except Exception as error:  # whatever a disk, TensorBoard or a service can raise
            self.problem = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
            self.given_up = self._made is None and (self._tries == 1 or not isinstance(error, OSError))

    def close(self) -> None:
        if hasattr(self._made, "close"):
            try:
                self._made.close()
            except Exception as error:
                _log.warning("%s: not closed in good order (%s: %s).", self.name, type(error).__name__, error)


def _counted(items: int) -> str:
    return f"{items:,} row{'' if items == 1 else 's'}"


def _tell(sentence: str, cases: Cases) -> None:
    """A warning for all places of which the same is to be told."""
    for told in dict.fromkeys(case[1:] for case in cases):
        names = [case[0].name for case in cases if case[1:] == told]
        _log.warning(sentence, " and ".join(filter(None, [", ".join(names[:-1]), names[-1]])), *told)

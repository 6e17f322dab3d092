"""A record of every step that was really taken, independent of what a training system says it did.

Each environment appends the start, end and reward of its resets and steps to a file of its own. Counting and timing
steps from these files treats all systems alike, and shows one that drops or repeats work.

This file needs numpy and Gymnasium only, as other systems load it in their interpreters.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

import gymnasium
import numpy as np

ROWS = 1 << 18  # of one file; what is not written takes no space on the disk
ROW = np.dtype([("start_s", "f8"), ("end_s", "f8"), ("reward", "f4"), ("is_reset", "?")])


class Traced(gymnasium.Env):
    """An environment that records its steps in `directory`.

    build: makes the environment, given its number. The numbers 0, 1, ... go to environments in the order of their first
    reset, in whichever process: systems number and place environments differently, and some build extra ones only to
    look at the spaces, which count as number 0 and never step.
    """

    metadata = {"render_modes": []}

    def __init__(self, build: Callable[[int], Any], directory: str | os.PathLike):
        self.build, self.directory = build, Path(directory)
        self.env = build(0)
        self.observation_space, self.action_space = self.env.observation_space, self.env.action_space
        self.rows: np.ndarray | None = None
        self.used = 0

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, dict]:
        if self.rows is None:
            number, self.rows = claim(self.directory)
            if number:
                self.env = self.build(number)
        start = time.monotonic()
        result = self.env.reset(seed=seed, options=options)
        self._record(start, 0.0, True)
        return result

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        start = time.monotonic()
        result = self.env.step(action)
        self._record(start, float(result[1]), False)
        return result

    def _record(self, start: float, reward: float, is_reset: bool) -> None:
        self.rows[self.used % ROWS] = (start, time.monotonic(), reward, is_reset)
        self.used += 1

    def close(self) -> None:
        self.env.close()


def claim(directory: Path) -> tuple[int, np.ndarray]:
    """The lowest number that no other environment has taken, and its file."""
    for number in range(1 << 16):
        path = directory / f"{number:05d}.trace"
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            continue
        os.ftruncate(descriptor, ROWS * ROW.itemsize)
        os.close(descriptor)
        return number, np.memmap(path, ROW, "r+", shape=(ROWS,))
    raise RuntimeError(f"{directory} holds too many traces.")


@dataclass(frozen=True)
class Trace:
    """What one environment did, oldest first, resets and steps."""

    start_s: np.ndarray
    end_s: np.ndarray
    reward: np.ndarray
    is_reset: np.ndarray

    def window(self, begin_s: float, end_s: float) -> Trace:
        """What ended within [begin, end), in time.monotonic() seconds."""
        inside = (self.end_s >= begin_s) & (self.end_s < end_s)
        return Trace(*(getattr(self, name)[inside] for name in self.__dataclass_fields__))

    @property
    def steps(self) -> int:
        return int((~self.is_reset).sum())

    @property
    def busy_s(self) -> float:
        """Time spent inside the environment, resets included."""
        return float((self.end_s - self.start_s).sum())


def has_stepped(file: Path, since_s: float = 0.0) -> bool:
    """Whether an environment has ended a step since a time (s, time.monotonic)."""
    if file.stat().st_size < ROWS * ROW.itemsize:  # it is being made
        return False
    rows = np.memmap(file, ROW, "r", shape=(ROWS,))
    return bool((~rows["is_reset"] & (rows["end_s"] > since_s)).any())


def read_traces(directory: str | os.PathLike) -> list[Trace]:
    """The trace of every environment, by number."""
    traces = []
    for path in sorted(Path(directory).glob("*.trace")):
        rows = np.fromfile(path, ROW)
        rows = np.sort(rows[rows["end_s"] > 0], order="end_s")
        traces.append(Trace(*(rows[name] for name in Trace.__dataclass_fields__)))
    return traces


def cut(traces: list[Trace], begin_s: float, end_s: float) -> list[Trace]:
    """Every environment's window."""
    return [trace.window(begin_s, end_s) for trace in traces]

"""Processor time of a training and of the processes that it started, as Linux counts it in /proc."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

WORKER = b".worker"  # in the command line of a process that steps environments, in every version


def spent_s(process: int) -> dict[str, float]:
    """Processor seconds so far of a training, by kind of process: the learner, and the workers that step
    environments."""
    parents = dict(_stats())
    spent = {"learner": 0.0, "workers": 0.0}
    for pid, (_, seconds) in parents.items():
        if _descends(pid, process, parents):
            spent["workers" if WORKER in _command(pid) else "learner"] += seconds
    return spent


def _stats() -> Iterator[tuple[int, tuple[int, float]]]:
    """Process id -> its parent, and the processor seconds of all its threads so far."""
    tick_s = 1 / os.sysconf("SC_CLK_TCK")
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        yield int(stat.parent.name), (int(fields[1]), tick_s * (int(fields[11]) + int(fields[12])))


def _descends(pid: int, ancestor: int, stats: dict[int, tuple[int, float]]) -> bool:
    while pid in stats and pid != ancestor:
        pid = stats[pid][0]
    return pid == ancestor


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""

"""Measurements beside other systems, which we make and users read: the engine in every mode beside Sample Factory 2 and others, its
parts, and the homes in both simulators. They stand beside the package, in a clone of the repository:

    python -m benchmarks.engine seconds=10 repeats=1
    python -m benchmarks.engine --help
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]


def add() -> tuple:
    """Let the command line know these measurements. Gives the dictionaries that it put them into, each with what it put there."""
    from benchmarks.settings import BENCHMARKS, ENGINE_FIGURES
    from rearrange.command_line.composition import bench_settings

    ours = ((bench_settings.BENCHMARKS, BENCHMARKS), (bench_settings.NOTES, {"engine": ENGINE_FIGURES}),
            (bench_settings.MODULES, {each: f"benchmarks.{each}" for each in BENCHMARKS}))
    for known, added in ours:
        known.update(added)
    return ours


def run(name: str, words: Sequence[str] | None = None) -> int:
    """The command line of a measurement, with the words of `rearrange bench`, by default those of this process. Returns the exit
    status."""
    from rearrange.command_line.cli import main
    from rearrange.command_line.composition.bench_settings import ADDED

    paths = [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    before, ours = dict(os.environ), add()
    os.environ |= {"PYTHONPATH": os.pathsep.join(paths), ADDED: __name__}  # of its processes and of the jobs of a sweep
    try:
        return main(["bench", name, *(sys.argv[1:] if words is None else words)])
    finally:
        os.environ.clear()
        os.environ.update(before)
        for known, added in ours:
            for each in added:
                known.pop(each, None)

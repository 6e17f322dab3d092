"""Measurements beside other systems: the engine in every mode beside Sample Factory 2 and others, its parts, and homes
in both simulators. They are not installed with the package; a clone of the repository has them:

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
    """Let the command line know these measurements. Gives the dictionaries that it put them into, each with what it put
    there.
    """
    from benchmarks.settings import BENCHMARKS, ENGINE_FIGURES
    from rearrange.command_line.composition import bench_settings

    ours = ((bench_settings.BENCHMARKS, BENCHMARKS), (bench_settings.NOTES, {"engine": ENGINE_FIGURES}),
            (bench_settings.MODULES, {each: f"benchmarks.{each}" for each in BENCHMARKS}))
    for known, added in ours:
        known.update(added)
    return ours


def run(name: str, words: Sequence[str] | None = None) -> int:
    """The command line of a measurement, with the words of `rearrange bench`, by default those of this process. Returns
    the exit status."""
    from rearrange.command_line.cli import main
    from rearrange.command_line.composition.bench_settings import ADDED

    path, ours = os.environ.get("PYTHONPATH"), add()
    # of its processes, and of a sweep's jobs
    os.environ |= {"PYTHONPATH": os.pathsep.join(filter(None, [str(_ROOT), path])), ADDED: "1"}
    try:
        return main(["bench", name, *(sys.argv[1:] if words is None else words)])
    finally:
        del os.environ[ADDED], os.environ["PYTHONPATH"]
        if path is not None:
            os.environ["PYTHONPATH"] = path
        for known, added in ours:
            for each in added:
                known.pop(each, None)

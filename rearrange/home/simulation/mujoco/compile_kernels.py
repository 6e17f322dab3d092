"""Compiles what every command needs in several processes at once, the first time after an installation.

numba compiles a function when it is called, one after another, and each process for itself. Here one process lets
children compile, and the others wait until the compiled code is there for all.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from rearrange.home.numba_cache import cache_key, kept_in, say_that_it_compiles, typeof
from rearrange.home.pictures import raster_kernels as rasteriser

_HERE = "rearrange.home.simulation.mujoco"
HOME = f"{_HERE}.compile_kernels:depth", f"{_HERE}.simulator:first_step"  # functions that compile what a home needs,
FILM = f"{_HERE}.compile_kernels:codes", f"{_HERE}.compile_kernels:paint"  # and what pictures from outside need as well
_CHILD = "REARRANGE_COMPILES"  # is set in a child, which waits for nobody


@cache
def compile_once(parts: tuple[str, ...]) -> None:
    """Have HOME or FILM compiled, unless that is done. Nothing is done where nothing can be kept."""
    if _CHILD in os.environ or (folder := kept_in()) is None:
        return
    done = folder / f"compiled_{'_'.join(part.rpartition(':')[2] for part in parts)}_{_version()}"
    if done.exists():
        return
    try:
        with (folder / "kernels.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():  # else by the process that was waited for
                say_that_it_compiles()
                if _all_compiled(parts):
                    done.touch()
    except OSError:  # a folder without locks, a full disk: numba compiles what is called
        pass


def _all_compiled(parts: tuple[str, ...]) -> bool:
    """Compile each part in a child. What goes wrong there is found again, and said, where the part is needed."""
    paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
    calls = ["from {} import {} as compile_now; compile_now()".format(*part.split(":")) for part in parts]
    children: list[subprocess.Popen] = []
    try:
        for call in calls:
            children.append(subprocess.Popen(
                [sys.executable, "-P", "-c", call], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                process_group=0, env=os.environ | {"PYTHONPATH": paths, _CHILD: "1"}))  # Ctrl-C does not reach it
        return not any([child.wait() for child in children])
    finally:
        for child in children:
            child.kill()


def _version() -> str:
    """Changes with the kernels, numba and the processor, as numba's own cache does."""
    files = sorted(Path(rasteriser.__file__).parent.glob("*.py"))
    stamps = [(str(file), file.stat().st_mtime_ns) for file in files]
    return hashlib.sha256(f"{stamps} {cache_key()}".encode()).hexdigest()[:16]


def _compile(function: Any, *arguments: Any) -> None:
    """Compile for the types of these arguments."""
    function.compile(tuple(typeof(argument) for argument in arguments))


def _rows(*shape: int, of: type = np.float32) -> np.ndarray:
    return np.zeros(shape, of)


def _drawn() -> tuple[Any, ...]:
    """Arguments of `raster.draw` without codes."""
    return (_rows(1, 2, of=np.int32), _rows(1, 4), *(_rows(1, n, of=np.float64) for n in (3, 9, 3, 9)), 0, _rows(2),
            _rows(2), np.float32(1), _rows(2, 2))


def depth() -> None:
    """The kernels of depth images."""
    _compile(rasteriser.draw_depth, *_drawn())
    _compile(rasteriser.normalise, _rows(2, 2), np.float32(1), _rows(2, 2))


def codes() -> None:
    """Those that find what is seen in a picture from outside, and how much of the sky."""
    from rearrange.home.pictures import shading

    codes, view, surfaces = _rows(2, 2, of=np.int32), _view(), _surfaces()
    _compile(rasteriser.draw_depth_and_codes, *_drawn(), codes)
    _compile(shading.occlusion, _rows(2, 2), codes, view, surfaces, _rows(16, 5, 2), _rows(2, 2), _rows(2, 2))
    _compile(shading.blur, _rows(2, 2), _rows(2, 2), _rows(2, 2))


def paint() -> None:
    """The one that paints it."""
    from rearrange.home.pictures.paint import paint, tone_table

    light = _rows(5, 3), _rows(2, 2), _rows(2, 2), _rows(2, 2)
    _compile(paint, _rows(2, 2), _rows(2, 2, of=np.int32), _view(), _surfaces(), _rows(1, 4), _rows(1, of=np.int32),
             _rows(1, 3, 3), light, tone_table(), _rows(2, 2, 3, of=np.uint8))


def _view() -> tuple[Any, ...]:
    return _rows(2), _rows(2), _rows(4, 3)


def _surfaces() -> tuple[Any, ...]:
    return _rows(1, 2, of=np.int32), _rows(1, 4), _rows(1, 3), _rows(4, 3), _rows(1, 3)

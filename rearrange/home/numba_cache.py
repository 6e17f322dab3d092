"""numba for all of this program (`from rearrange.home.numba_cache import njit`), with a place for compiled code.

numba keeps it beside the source or in the user's cache, and fails where neither can be written, as in a container whose
package folder and home are read-only. Then a temporary folder is taken, also by our child processes.

Who waits at a terminal while functions are compiled is told so, by one of the processes that compile.
"""

from __future__ import annotations

import fcntl
import logging
import os
import stat
import sys
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from pathlib import Path
from threading import Lock
from typing import Any

import numba
from numba import boolean, cfunc, float32, float64, int8, int32, int64, njit, typeof
from numba.core import event
from numba.core.registry import cpu_target
from numba.misc.appdirs import AppDirs

__all__ = ["boolean", "cfunc", "float32", "float64", "int8", "int32", "int64", "kept_in", "njit", "njit_when_called",
           "typeof"]

CHOSEN = "NUMBA_CACHE_DIR"
COMPILING = "Compiling for this machine: once after an installation, for some seconds."
_told = None  # a file that is locked until this process ends, by the one that has said so


def kept_in() -> Path | None:
    """The folder that compiled code is kept in; None if there is none that can be written."""
    return next(filter(_is_writable, _usual()), None) or _temporary()


def njit_when_called(signature: tuple) -> Callable[[Callable], Callable]:
    """As `njit(signature)`, for what few commands need: it is compiled at its first call, not at import, where others
    would wait for it."""
    def of(function: Callable) -> Callable:
        made, is_compiled, compiling = njit(cache=True, nogil=True)(function), False, Lock()

        @wraps(function)
        def call(*arguments: Any) -> Any:
            nonlocal is_compiled
            with compiling if not is_compiled else nullcontext():
                if not is_compiled:
                    made.compile(signature)
                    made.disable_compile()
                    is_compiled = True
            return made(*arguments)
        return call
    return of


def _usual() -> list[Path]:
    """Where numba keeps compiled code: what NUMBA_CACHE_DIR asks for, beside the source, the user's cache."""
    asked = [Path(numba.config.CACHE_DIR)] if numba.config.CACHE_DIR else []
    return [*asked, Path(__file__).parent / "__pycache__", Path(AppDirs("numba", False).user_cache_dir)]


def _is_writable(folder: Path) -> bool:
    """Whether files can be made in a folder, which is made if need be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _temporary() -> Path | None:
    """The same folder in every run, if nobody else can write to it: what is in it is executed."""
    try:
        folder = Path(tempfile.gettempdir()) / f"rearrange-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        about = folder.lstat()
        if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid() or stat.S_IMODE(about.st_mode) & 0o077:
            return Path(tempfile.mkdtemp(prefix="rearrange-"))
        return folder if _is_writable(folder) else None
    except OSError:
        return None


def _choose() -> None:
    """Let numba, here and in child processes, use the temporary folder where it has no other."""
    if any(map(_is_writable, _usual())) or (folder := _temporary()) is None:
        return
    os.environ[CHOSEN] = numba.config.CACHE_DIR = str(folder)
    logging.getLogger(__name__).warning("compiled code is kept in %s, since neither %s nor the user's cache can be "
                                        "written; %s can name another folder.", folder, Path(__file__).parent, CHOSEN)


def say_that_it_compiles() -> None:
    """Write COMPILING to a terminal, if neither this process nor another that still runs has."""
    global _told
    if _told is not None or not sys.stderr or not sys.stderr.isatty() or (folder := kept_in()) is None:
        return
    try:
        _told = (folder / "compiling.lock").open("w")
        fcntl.flock(_told, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # another process tells
        return
    print(COMPILING, file=sys.stderr, flush=True)


def cache_key() -> str:
    """Changes with numba and the processor, for which numba compiles."""
    return repr((numba.__version__, cpu_target.target_context.codegen().magic_tuple()))


class _Teller(event.Listener):
    """Says so at the first function that is found in no cache."""

    def on_start(self, event: event.Event) -> None:
        say_that_it_compiles()

    def on_end(self, event: event.Event) -> None:
        pass


_choose()
event.register("numba:compile", _Teller())

"""The Habitat-Sims of this process: in which order they are closed at its end."""

from __future__ import annotations

import atexit
import weakref
from typing import Any

_OPEN: list[weakref.ref] = []  # in the order in which they were made
_FIRST: list[Any] = []


def kept(simulator: Any) -> Any:
    """The simulator; the first of a process stays open, because all that are made later draw in its GL context, and at the
    end of the process it is closed last.
    """
    if not _FIRST:
        _FIRST.append(simulator)
        atexit.register(_close_all)
    _OPEN.append(weakref.ref(simulator))
    return simulator


def _close_all() -> None:
    for reference in reversed(_OPEN):
        simulator = reference()
        if simulator is not None:
            simulator.close(destroy=True)

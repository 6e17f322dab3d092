"""How Habitat-Sims of this process load scenes, what they say meanwhile, and in which order they are closed at its end.

Even at its level `quiet` Habitat says a line for each navigation mesh and each object of the whole data set that is
missing, hundreds where a scene needs none of them; what a scene needs is checked, and told in a sentence, before.
"""

from __future__ import annotations

import atexit
import os
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rearrange.home.errors import UserError

ASKED = "HABITAT_SIM_LOG" in os.environ
"""Whether the user wants the log: `need_habitat` sets this variable later."""
LEFT_OUT = b"]:[Error]:[Metadata] "
_OPEN: list[weakref.ref] = []  # Habitat-Sims, in the order in which they were made
_FIRST: list[Any] = []


@contextmanager
def quiet_loading() -> Iterator[None]:
    """Hold back what is written to the standard error, by C++ too; then write it without the lines about files.

    Where something is raised, all lines are written.
    """
    if ASKED or not _is_open(2):
        yield
        return
    sys.stderr.flush()
    screen, keep_all = os.dup(2), True
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
            keep_all = False
        finally:
            sys.stderr.flush()
            os.dup2(screen, 2)
            os.close(screen)
            file.seek(0)
            said = b"".join(line for line in file if keep_all or LEFT_OUT not in line)
            if said:
                os.write(2, said)


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
        return True
    except OSError:
        return False


@contextmanager
def one_sentence(what: str, advice: str = "") -> Iterator[None]:
    """Raise an error of Habitat's as UserError: `what`, on one line what the error says, and the advice."""
    try:
        yield
    except (AssertionError, RuntimeError, OSError) as error:
        raise UserError(f"{what} ({' '.join(str(error).split())[:300]}){advice}.") from None


def load(simulator: Any, make: Callable[[Any], Any], configuration: Any) -> Any:
    """Load a scene into a simulator, or, where that is None, into one that is made.

    The first of a process stays open, because all that are made later draw in its GL context; it is closed last.
    """
    if simulator is not None:
        simulator.reconfigure(configuration)
        return simulator
    simulator = make(configuration)
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

"""Habitat's messages while it loads a scene: those about files of a data set are left out unless somebody has asked for its log.

Even its level `quiet` keeps a line for each navigation mesh and each object of the whole data set that is missing, hundreds where a scene
needs none of them; what a scene needs is checked, and told in a sentence, before.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

ASKED = "HABITAT_SIM_LOG" in os.environ
"""By the user: `need_habitat` sets it later."""
LEFT_OUT = b"]:[Error]:[Metadata] "


@contextmanager
def quiet_loading() -> Iterator[None]:
    """Within this, what is written to the standard error, by C++ too, waits; then it is written without those lines, or, if
    something was raised, with them.
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


def one_line(error: Exception) -> str:
    """What an error of Habitat's says, on one line."""
    return " ".join(str(error).split())[:300]

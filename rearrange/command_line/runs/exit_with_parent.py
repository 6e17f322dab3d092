"""A command that another one started does not outlive it, even after kill -9: it saves and stops, as after SIGTERM.

The parent holds the writing end of a pipe and writes nothing; the system closes it when the parent is gone, however it
went.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

VARIABLE = "REARRANGE_LIFELINE"  # environment: the descriptor of the reading end


@contextmanager
def lifeline() -> Iterator[tuple[int, dict[str, str]]]:
    """For the parent, as long as the child lives: the descriptor to pass on, and the environment variable that names
    it.
    """
    reading, writing = os.pipe()
    try:
        yield reading, {VARIABLE: str(reading)}
    finally:
        os.close(reading)
        os.close(writing)


def follow_parent() -> None:
    """In the child, at its start; nothing where no parent holds a line."""
    text = os.environ.pop(VARIABLE, "")
    try:
        descriptor = int(text)
        os.set_inheritable(descriptor, False)
    except (ValueError, OSError):
        return
    # a parent that takes signals in a thread of its own has blocked them
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    # it is not in the terminal's foreground, and may write there all the same
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    threading.Thread(target=_watch, args=(descriptor,), name="lifeline", daemon=True).start()


def _watch(descriptor: int) -> None:
    os.read(descriptor, 1)
    os.kill(os.getpid(), signal.SIGTERM)

"""Ctrl-C for commands that run in other processes: it comes to this one, which sees to the others."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker

from trainer.faults import signals

EVERY_S = 0.2


@contextmanager
def on_signal(act: Callable[[], None]) -> Iterator[Callable[[], int | None]]:
    """Meanwhile `act` is called, in a thread of its own, when one of the signals comes that ask a command to stop; a
    second one ends this process at once. Gives a function that tells the exit status of that signal, None as long as
    none came.

    Handlers would not do: what is started meanwhile would get a Ctrl-C of its own, in the middle of anything; processes
    of joblib and of submitit die of it. A blocked signal stays blocked in every process that is started. But who tracks
    the resources of Python's processes, or of joblib's, unblocks two of them when he starts; so he starts before.
    """
    resource_tracker.ensure_running()
    if joblib := sys.modules.get("joblib.externals.loky.backend.resource_tracker"):
        joblib.ensure_running()
    came: list[str] = []
    over = threading.Event()
    taken = signals.heard()

    def wait() -> None:
        while not over.is_set():
            if found := signal.sigtimedwait(taken, EVERY_S):
                if came:
                    os._exit(signals.STOPPED)
                came.append(signals.signal_name(found.si_signo))
                act()

    before = signal.pthread_sigmask(signal.SIG_BLOCK, taken)
    thread = threading.Thread(target=wait, name="stopping", daemon=True)
    thread.start()
    try:
        yield lambda: signals.exit_status(came[0]) if came else None
    finally:
        over.set()
        thread.join()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

"""The signals that ask a process to save and end, and the exit statuses that tell why it did."""

from __future__ import annotations

import _thread
import faulthandler
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

# A scheduler's warning, sent some time before it ends the process: of a time limit, of preemption.
WARNINGS = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU)
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, *WARNINGS)

# What would end the process without a word if nobody heard it: Ctrl-\, a timer that nobody has set, a failing power
# supply, the real-time signals. Not those of a fault in the process itself (SIGSEGV), after which no Python runs.
OTHERS = tuple(getattr(signal, name) for name in ("SIGQUIT", "SIGABRT", "SIGALRM", "SIGVTALRM", "SIGPROF", "SIGPWR",
                                                  "SIGPOLL", "SIGSTKFLT") if hasattr(signal, name))
REAL_TIME = tuple(range(signal.SIGRTMIN, signal.SIGRTMAX + 1)) if hasattr(signal, "SIGRTMIN") else ()

STOPPED = 130  # by a person, or by who ends the process anyhow
WARNED = 75  # by WARNINGS: EX_TEMPFAIL of sysexits.h, "try again later", which schedulers can be told to start again
BEFORE_THE_END = (STOPPED, WARNED)

IMPORT_S = 30.0  # at most, an interrupt waits for the end of an import

came: list[str] = []  # signals for which `interrupt` was called in this command
_until: float | None = None  # an interrupt waits, until then at most
_turn = 0  # changes whenever one begins to wait or has been raised, so that no earlier one comes again
_again = False  # the next signal is one that has waited
_number: dict[str, int] = {}  # of the signals in `came`
_unraisable = sys.unraisablehook  # before `interrupt` was called


def exit_status(stopped_by: str | None) -> int:
    """Of a command that was stopped by the signal of that name, or by anything else."""
    return WARNED if is_warning(stopped_by) else STOPPED


def is_warning(stopped_by: str | None) -> bool:
    return stopped_by in [signum.name for signum in WARNINGS]


def name_of(stop: KeyboardInterrupt) -> str | None:
    """The signal that `interrupt` was called for."""
    return stop.args[0] if stop.args else None


def signal_name(signum: int) -> str:
    """SIGTERM, SIGRTMIN+3: as `kill -l` has it."""
    return signal.Signals(signum).name if signum in set(signal.Signals) else f"SIGRTMIN+{signum - signal.SIGRTMIN}"


def heard() -> list[int]:
    """The signals that save and end this process: not SIGHUP under nohup, and of OTHERS those that nobody else has
    taken."""
    stopping = [s for s in STOPPING if s != signal.SIGHUP or signal.getsignal(s) != signal.SIG_IGN]
    traced = (signal.SIGABRT,) if faulthandler.is_enabled() else ()
    return stopping + [s for s in (*OTHERS, *REAL_TIME) if signal.getsignal(s) in ours and s not in traced]


def interrupt(signum: int, frame: FrameType | None) -> None:
    """A handler that ends a command as Ctrl-C does. During an import, where an exception is lost or turned into
    another, it waits for the import's end or a second signal. An exception that is lost, as in `__del__`, comes
    again."""
    global _until, _again, _turn, _unraisable
    again, _again = _again, False
    if again and (_until is None or not came):
        return  # it was raised meanwhile
    if not again:
        came.append(signal_name(signum))
        _number[came[-1]] = signum
    if _is_importing(frame) and (again or _until is None):
        now = time.monotonic()
        if now < (until := _until or now + IMPORT_S):
            _wait(signum, until)
            return
    _until, _turn = None, _turn + 1
    if sys.unraisablehook is not _comes_again:
        _unraisable, sys.unraisablehook = sys.unraisablehook, _comes_again
    raise KeyboardInterrupt(signal_name(signum))


def _comes_again(lost: sys.UnraisableHookArgs) -> None:
    """Python's hook for exceptions that nothing can catch."""
    name = name_of(lost.exc_value) if isinstance(lost.exc_value, KeyboardInterrupt) else None
    if name not in came:
        _unraisable(lost)
    elif not sys.is_finalizing():
        _wait(_number[name], time.monotonic() + IMPORT_S)


def _is_importing(frame: FrameType | None) -> bool:
    while frame and not frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    return frame is not None


def _wait(signum: int, until: float) -> None:
    """Let a signal come again in a moment."""
    global _until, _turn
    _until, _turn = until, _turn + 1
    _thread.start_new_thread(_send_again, (signum, _turn))  # not by `threading`, whose locks this thread may hold


def _send_again(signum: int, turn: int) -> None:
    global _again
    time.sleep(0.05)
    if turn != _turn or signal.getsignal(signum) is not interrupt:
        return  # it was raised meanwhile, or is no longer ours
    _again = True
    signal.pthread_kill(threading.main_thread().ident or 0, signum)


ours: list[Any] = [signal.SIG_DFL, interrupt]  # handlers in whose place another of this program may be set


def raise_again() -> None:
    """Raise what `interrupt` has raised in vain: an exception in Python that C calls, as numba does, is lost."""
    global _until, _turn
    if came:
        _until, _turn = None, _turn + 1
        raise KeyboardInterrupt(came[0])


@contextmanager
def not_lost() -> Iterator[None]:
    """Raise again what `interrupt` raised while a function in C++ converted its arguments: MuJoCo's answer any
    exception there by a TypeError of their own (findings/mujoco_lost_ctrl_c.sh).
    """
    try:
        yield
    except TypeError as error:
        if "incompatible function arguments" in str(error):
            raise_again()
        raise


def outcome(status: int) -> str:
    """How a command ended, in a word."""
    return "finished" if status == 0 else "stopped" if status in BEFORE_THE_END else f"failed ({status})"


def exit_of_all(statuses: Iterable[int]) -> int:
    """Of several commands, one after another: 0 if all are finished, how they were stopped, else 1."""
    statuses = list(statuses)
    return next((status for status in statuses if status in BEFORE_THE_END), 1 if any(statuses) else 0)

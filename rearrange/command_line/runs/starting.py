"""A command that is asked to stop while it starts, before it has written anything: it says so and ends, whatever is
being imported.

Imports take seconds, on a busy machine half a minute; an exception in the middle of them is lost or turned into another
one. So the handlers that are set here, before all that is heavy, end the process themselves. SLURM's warning is a
requeue then, too.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from trainer.faults import signals

# environment: one of them is set where a launcher started this process
RANKS = ("RANK", "SLURM_PROCID", "SUBMITIT_LOCAL_GLOBALID")
TRUE = ("true", "yes", "on", "1")
FIRST_S = 3.0  # for the first rank to do what is left, before the launcher ends all
# once SLURM has warned: asks it to start the job again, and says what came of it
requeue: Callable[[], str] | None = None


def listen(name: str, words: Sequence[str]) -> None:
    """From here on a signal ends this process at once, until the command sets handlers of its own. name: what the
    command is called.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    first = True
    if any(variable in os.environ for variable in RANKS):
        from trainer.ranks.launch import this_rank

        with suppress(ValueError):  # which is told later
            first = this_rank().rank == 0
    want_requeue(any(value.lower() in TRUE for key, _, value in (word.partition("=") for word in words)
                     if key.lstrip("+") == "requeue"))

    def end(signum: int, frame: object) -> None:
        by = signals.signal_name(signum)
        again = requeue if signals.is_warning(by) else None
        if again:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # which SLURM sends to all of the job next, and to scontrol
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):  # it may be in the middle of a write
                stream.flush()
        if first:
            _write(2, f"{name}: stopped.\n")
            if again:
                _write(1, f"{again()}\n")
        else:
            time.sleep(10 * FIRST_S if again else FIRST_S)
        _end_children()
        os._exit(signals.exit_status(by))

    signals.ours.append(end)
    for signum in signals.heard():
        signal.signal(signum, end)


def end_as(status: int) -> None:
    """From here on a signal ends this process at once, with the status that it has anyway: its work is done, and what
    Python does at its end would show an interrupt as a traceback."""
    if threading.current_thread() is threading.main_thread():
        for signum in signals.heard():
            signal.signal(signum, lambda *_: os._exit(status))


def want_requeue(wanted: bool) -> None:
    """Whether the command that starts asks for `requeue=true`."""
    global requeue
    requeue = None
    if wanted and os.environ.get("SLURM_JOB_ID", "").isdigit():
        from rearrange.command_line.runs import requeue as asking  # now: in the handler no import would be safe

        requeue = asking.requeue


def _end_children() -> None:
    """Of imports, that is: glfw starts a Python to look at its library, which would tell at length that nobody asks it
    any more.
    """
    with suppress(OSError, ValueError):
        for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
            os.kill(int(pid), signal.SIGKILL)


def _write(descriptor: int, text: str) -> None:
    with suppress(OSError):
        os.write(descriptor, text.encode(errors="surrogateescape"))

"""A command in a process of its own, that this one waits for and that does not outlive it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from rearrange.command_line.runs.exit_with_parent import lifeline
from trainer.faults import signals


def launch_process(words: list[str], output: Path | None = None, may_go_on: Callable[[], bool] | None = None) -> int:
    """`rearrange <words>` in a process of its own: signals that ask this one to stop are passed on, and it is waited
    for until it has saved. It does not outlive this process. output: a file for what it prints, instead of the screen.
    may_go_on: asked every second; once it says no, the command is stopped.

    It leads a process group, so that Ctrl-C in a terminal, which reaches a whole group, comes to it once: a second one
    would not let it save.
    """
    home = str(Path(__file__).resolve().parents[3])
    paths = {"PYTHONPATH": os.pathsep.join(filter(None, [home, os.environ.get("PYTHONPATH")]))}
    # -P: a folder called `trainer` or `eval` where the user stands must not be imported in place of ours
    command = [sys.executable, "-P", "-m", "rearrange", *words]
    process: subprocess.Popen | None = None
    may_go_on = may_go_on or (lambda: True)
    early: list[int] = []  # signals that came before there was a process
    stopped = False

    def pass_on(signum: int, _: Any) -> None:
        nonlocal stopped
        stopped = True
        process.send_signal(signum) if process else early.append(signum)

    def suspend(*_: Any) -> None:  # Ctrl-Z
        if process:
            process.send_signal(signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)
        if process:
            process.send_signal(signal.SIGCONT)

    handlers = dict.fromkeys(signals.heard(), pass_on) | {signal.SIGTSTP: suspend}
    main = threading.current_thread() is threading.main_thread()
    before = {signum: signal.signal(signum, handler) for signum, handler in handlers.items()} if main else {}
    try:
        with lifeline() as (descriptor, name):
            # blocked signals stay so in the child, and wait there until it has handlers
            # (rearrange/command_line/runs/exit_with_parent.py)
            with open(output, "ab") if output else nullcontext() as file, _blocked(signals.heard()):
                process = subprocess.Popen(command, env=os.environ | paths | name, pass_fds=[descriptor],
                                           process_group=0, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
            for signum in early[:1]:
                process.send_signal(signum)
            while (code := _ended(process)) is None:
                if not stopped and not may_go_on():
                    pass_on(signal.SIGTERM, None)
        return signals.STOPPED if stopped and code != signals.WARNED else code
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


@contextmanager
def _blocked(signums: list[int]) -> Iterator[None]:
    """Meanwhile these signals wait, in this thread and in what it starts."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signums)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _ended(process: subprocess.Popen) -> int | None:
    """The exit status of a process that ends within a second."""
    try:
        return process.wait(1.0)
    except subprocess.TimeoutExpired:
        return None

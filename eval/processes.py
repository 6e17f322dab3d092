"""Work shared out among processes.

Each process is a plain child (`python -m eval.processes`) on one socket, like the environment workers of the engine.
It holds no thread, lock or semaphore that would stay locked when the process is ended, so a signal ends all of it.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sized
from multiprocessing.connection import Connection, wait
from typing import Any

from rearrange.home import own_packages
from rearrange.home.errors import UserError
from trainer.faults.signals import signal_name
from trainer.workers.worker import begin_child, end_child, signals_held, start_child

ENDED_WITHIN_S = 2.0  # what a process may take to end after it closed its socket
OVER = object()  # in place of an answer: there are no more


class ProcessDied(RuntimeError):
    """A process ended without an answer."""


def share_out(work: Callable[[Any, Any], Iterable[Any]], job: Any, chunks: Iterable[Any], workers: int | None,
              take: Callable[[Any], None]) -> None:
    """Call `work(job, chunk)` for each chunk in several processes, and `take` with each answer as it comes.

    Args:
        work: a generator function of a module. What it raises is raised here.
        job: goes to every process once.
        chunks: the next one is taken when a process is free.
        workers: processes; None means one for each core. One works in this process.
        take: gets each answer that `work` yields.

    Raises:
        ProcessDied: a process was killed.
    """
    workers = workers or os.cpu_count() or 1
    if isinstance(chunks, Sized):
        workers = min(workers, len(chunks))
    if workers == 1:
        for chunk in chunks:
            for answer in work(job, chunk):
                take(answer)
        return
    waiting, busy, started = iter(chunks), {}, []
    try:
        with signals_held():  # no process is started and not listed
            for _ in range(workers):
                started.append(_Process())
        for process, chunk in zip(started, waiting):
            process.begin(work, job, chunk)
            busy[process.connection] = process
        while busy:
            for connection in wait(list(busy)):
                process = busy[connection]
                answer = process.answer()
                if answer is not OVER:
                    take(answer)
                elif (chunk := next(waiting, OVER)) is not OVER:
                    process.send(chunk)
                else:
                    del busy[connection]
    finally:
        for process in started:  # do not wait for the episodes under way
            process.end()


class _Process:
    """One process, from here."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self.process = start_child("eval.processes", theirs)
        self.connection = Connection(ours.detach())

    def begin(self, work: Callable[[Any, Any], Iterable[Any]], job: Any, chunk: Any) -> None:
        self.send(sys.path)  # before anything whose module has to be found
        self.send((work, job))
        self.send(chunk)

    def send(self, message: Any) -> None:
        try:
            self.connection.send(message)
        except OSError:
            raise self._died() from None

    def answer(self) -> Any:
        """The next answer; OVER when the chunk has no more."""
        try:
            kind, answer, trace = self.connection.recv()
        except (OSError, EOFError):
            raise self._died() from None
        if kind == "error":
            answer.add_note(f"In process {self.process.pid}:\n{trace}")
            raise answer
        return OVER if kind == "over" else answer

    def _died(self) -> ProcessDied:
        who = f"evaluation process {self.process.pid}"
        try:
            code = self.process.wait(ENDED_WITHIN_S)
        except subprocess.TimeoutExpired:
            return ProcessDied(f"{who} closed its connection.")
        if code == -signal.SIGKILL:
            return ProcessDied(f"{who} was killed by SIGKILL; where memory is short, the system does that: try "
                               "fewer workers=.")
        return ProcessDied(
            f"{who} {f'was killed by {signal_name(-code)}' if code < 0 else f'exited with status {code}'}.")

    def end(self) -> None:
        self.connection.close()
        end_child(self.process)


def main() -> None:
    """Entry point of a process: file descriptor of its socket, process id of its parent."""
    begin_child(parent=int(sys.argv[2]))
    connection = Connection(int(sys.argv[1]))
    try:
        sys.path[:] = connection.recv()
        own_packages.claim()
        work, job = connection.recv()
        while True:
            for message in _answers(work, job, connection.recv()):
                connection.send(message)
    except (EOFError, OSError):  # the parent has ended
        return


def _answers(work: Callable[[Any, Any], Iterable[Any]], job: Any, chunk: Any) -> Iterator[tuple[str, Any, str]]:
    """Messages with what the work yields; at the end that it is over, or what was raised and where."""
    try:
        for answer in work(job, chunk):
            yield "answer", answer, ""
    except Exception as error:
        yield "error", _carried(error), traceback.format_exc()
    else:
        yield "over", None, ""


def _carried(error: Exception) -> Exception:
    """The error if pickling keeps it as it is, else one with its words; in plain words they stay alone."""
    try:
        pickle.loads(pickle.dumps(error))
        return error
    except Exception:
        if isinstance(error, UserError):
            return UserError(str(error))
        return RuntimeError(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()

"""How a run is asked to stop before its end: by a signal, or by a callback."""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from trainer.faults.signals import came, heard, raise_again, signal_name
from trainer.ranks.report import RankReport


@dataclass
class Stop:
    """Why the run is to stop. A rank asks, all ranks agree; alone, to ask is enough."""

    asked: str | None = None  # on this rank: the first reason counts
    agreed: str | None = None  # by all ranks: the run ends before its next rollout

    def ask(self, reason: str) -> None:
        self.asked = self.asked or reason

    def agree(self, everyone: Sequence[RankReport]) -> None:
        """What one rank asks for after it has sent its report is heard with its next one."""
        asked = (self.asked,) if len(everyone) == 1 else (report.stop for report in everyone)
        self.agreed = next((reason for reason in asked if reason), None)


@contextmanager
def stop_on_signal(late: Callable[[], None], within_s: float) -> Iterator[Stop]:
    """Turn the first signal that is heard into a request to stop after the update; the second acts at once. `late` is
    called when the update is still not there after `within_s`."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    previous: dict[signal.Signals, Any] = {}
    asked: queue.SimpleQueue[None] = queue.SimpleQueue()  # a handler may be interrupted: it can use this, but no thread
    over = threading.Event()

    def limit() -> None:
        asked.get()
        if not over.wait(within_s):
            late()

    def request(signum: int, frame: Any) -> None:
        stop.ask(signal_name(signum))
        asked.put(None)
        for s, handler in previous.items():
            signal.signal(s, signal.default_int_handler if s == signal.SIGINT else handler)

    watch = threading.Thread(target=limit, name="limit of a stop", daemon=True)
    watch.start()
    for s in heard():
        previous[s] = signal.signal(s, request)
    try:
        raise_again()
        yield stop
    except KeyboardInterrupt:
        came.clear()  # it is not lost
        raise
    finally:
        over.set()
        asked.put(None)
        for s, handler in previous.items():
            signal.signal(s, handler)
        watch.join()  # a run leaves no thread behind

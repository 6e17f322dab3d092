"""Notices when a rank dies, within a second, and sees to it that all others end, with one message.

Every rank holds a socket to rank 0; when a process ends, however, the kernel closes its socket. Rank 0 tells the rest.
A machine that vanishes is noticed by TCP's keep-alive (25 s), a process that is stopped by its silence (two minutes).
If a rank cannot leave by itself because it is stuck in a collective operation, it is ended from here.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import sys
import threading
import time
from typing import Any, Callable

from trainer.errors import RankError

GRACE_S = 10.0  # for a rank to leave by itself once another is dead
CONNECT_TIMEOUT_S = 300.0
BEAT_S = 5.0  # a rank says that it lives
before_forced_end: Callable[[], None] = lambda: None  # called before a rank that cannot leave by itself is ended
SILENT_S = 120.0  # after this without a word it counts as dead: stopped (SIGSTOP), or on a machine that hangs


class Watch:
    """One rank's end of the sockets, in a thread of its own. `on_death` is called there, once."""

    def __init__(self, rank: int, size: int, address: str, store: Any):
        self.rank, self.size = rank, size
        self.on_death: Callable[[], None] = lambda: None
        self.verdict: str | None = None  # which rank died, in words
        self.told_elsewhere = False
        self._known, self._leaving = threading.Event(), threading.Event()
        self._lines: dict[socket.socket, bytes] = {}
        self._names: dict[socket.socket, str] = {}
        self._silent_s: dict[socket.socket, float] = {}
        self._lock = threading.Lock()
        self._selector = selectors.DefaultSelector()
        name = f"rank {rank} ({socket.gethostname()}, pid {os.getpid()})"
        if rank == 0:
            listener = socket.create_server(("", 0), backlog=size)
            store.set("watch", f"{listener.getsockname()[1]} {name}")
            self._accept(listener)
        else:
            port, hub = store.get("watch").decode().split(" ", 1)
            self._add(socket.create_connection((address, int(port)), CONNECT_TIMEOUT_S), hub)
            self._tell({"name": name})
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._thread.start()

    def _accept(self, listener: socket.socket) -> None:
        listener.settimeout(CONNECT_TIMEOUT_S)
        with listener:
            for _ in range(self.size - 1):
                self._add(listener.accept()[0], "a rank that has not told its name")

    def _add(self, sock: socket.socket, name: str) -> None:
        sock.settimeout(None)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, seconds in (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
            if hasattr(socket, option):
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), seconds)
        self._lines[sock], self._names[sock], self._silent_s[sock] = b"", name, 0.0
        self._selector.register(sock, selectors.EVENT_READ)

    def _run(self) -> None:
        last = beaten = time.monotonic()
        with self._selector:
            while self._lines:
                for key, _ in self._selector.select(1.0):
                    self._hear(key.fileobj)
                now = time.monotonic()
                self._notice_silence(min(now - last, BEAT_S))  # if we were stopped ourselves, the others count less
                last = now
                if now - beaten > BEAT_S and not self._leaving.is_set():
                    self._tell({"alive": True})
                    beaten = now
                if self.verdict is not None:
                    return self._enforce()

    def _notice_silence(self, passed_s: float) -> None:
        for sock in self._silent_s:
            self._silent_s[sock] += passed_s
            if self._silent_s[sock] > SILENT_S and not self._leaving.is_set():
                return self._decide(f"{self._names[sock]} has been silent for {SILENT_S:g} s: it is stopped or its "
                                    "machine hangs",
                                    told_elsewhere=self.rank > 1)

    def _hear(self, sock: socket.socket) -> None:
        try:
            data = sock.recv(1 << 16)
        except OSError:
            data = b""
        if not data:
            self._drop(sock)
            if not self._leaving.is_set():
                self._decide(f"{self._names[sock]} died", told_elsewhere=self.rank > 1)
            return
        self._silent_s[sock] = 0.0
        *lines, self._lines[sock] = (self._lines[sock] + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if "name" in message:
                self._names[sock] = message["name"]
            elif "bye" in message:
                self._drop(sock)
            elif "failed" in message:  # rank 0 speaks for those that live
                self._decide(message["failed"], told_elsewhere=self.rank > 0)

    def _drop(self, sock: socket.socket) -> None:
        self._selector.unregister(sock)
        self._lines.pop(sock)
        self._silent_s.pop(sock)
        sock.close()

    def _decide(self, verdict: str, told_elsewhere: bool) -> None:
        if self.verdict is None:
            self.verdict, self.told_elsewhere = verdict, told_elsewhere
            if self.rank == 0:
                self._tell({"failed": verdict})
            self.on_death()
            self._known.set()

    def _enforce(self) -> None:
        """Wait for the main thread to leave; end the process if it does not."""
        if not self._leaving.wait(GRACE_S):
            if not self.told_elsewhere:
                print(f"{self.verdict}. All ranks end; the last checkpoint is intact.", file=sys.stderr, flush=True)
            before_forced_end()
            os._exit(1)

    def _tell(self, message: dict[str, Any]) -> None:
        with self._lock:
            for sock in list(self._lines):
                try:
                    sock.sendall(json.dumps(message).encode() + b"\n")
                except OSError:
                    pass

    def explain(self, error: BaseException, ours: bool) -> BaseException:
        """What to raise in place of `error`: RankError if it was another rank's end that caused it. `ours`: the error
        is one that no other rank can have caused; any other is believed to be ours if nobody turns out to have died."""
        at_once = isinstance(error, KeyboardInterrupt) or ours and self.verdict is None
        if self._known.wait(0.0 if at_once else 5.0):
            return RankError(f"{self.verdict}.", self.told_elsewhere)
        if isinstance(error, KeyboardInterrupt):
            return error
        self._tell({"failed": f"rank {self.rank} failed: {str(error).rstrip('.')}"})
        return RankError(str(error), told_elsewhere=True) if ours and self.rank > 0 else error

    def leave_early(self, why: str) -> None:
        """This rank ends before the others: tell them `why`, which ends them too."""
        if self.verdict is None:
            self.verdict, self.told_elsewhere = why, True  # before the others can answer
            self._tell({"failed": why})

    def leave(self) -> None:
        """An orderly end: the others know that this rank did not die."""
        self._leaving.set()
        self._tell({"bye": True})
        for sock in list(self._lines):
            try:
                sock.shutdown(socket.SHUT_WR)  # a socket that is closed with words unread takes back what it said
            except OSError:
                pass
        self._thread.join(GRACE_S)  # until all others leave, too, or have died


"""Where the page is served: viser's server at the address that was asked for, behind a guard and a gate.

viser asks nobody where a request comes from, and hands every message on as it is. Its server is one of `websockets`,
which is made here with the guard before each request and the gate before each message.
"""

from __future__ import annotations

import contextlib
import io
import logging
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from http import HTTPStatus
from importlib.util import find_spec
from typing import Any

import websockets.asyncio.server as ws
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode
from websockets.http11 import Request, Response

from rearrange.home.errors import UserError

AT_ONCE, MORE_EVERY_S = 20, 1.0  # sentences about what browsers do wrong: so many at once, then one in so many seconds
MOST_RECEIVED = 1 << 20  # bytes of a message; a connection that sends more is closed
_QUIET = logging.Logger("view", logging.CRITICAL)  # who connects and says nonsense, or leaves, is told by a `Teller`
_making = threading.Lock()


def require_package() -> None:
    """UserError where the library of the page is not installed."""
    if find_spec("viser") is None:
        raise UserError("the page needs viser: pip install 'rearrange[view]'.")


def spoken(host: str) -> str:
    """A host as a browser takes it."""
    return {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)


def address(host: str, port: int) -> int:
    """The port, or a free one for 0. UserError where it cannot be listened at."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.create_server((host, port), family=family) as held:
            return held.getsockname()[1]
    except (OSError, OverflowError) as error:
        raise UserError(f"host={host} port={port} cannot be listened at: {getattr(error, 'strerror', None) or error}. "
                        "Choose another port=, or port=0 for a free one.") from error


class Teller:
    """Prints what browsers do wrong, a sentence each, and not more of them than can be read."""

    def __init__(self) -> None:
        self._left, self._at, self._untold = float(AT_ONCE), time.monotonic(), 0

    def __call__(self, sentence: str) -> None:
        now = time.monotonic()
        self._left, self._at = min(AT_ONCE, self._left + (now - self._at) / MORE_EVERY_S), now
        if self._left < 1:
            self._untold += 1
            return
        more = f" ({self._untold:,} more were not told)" if self._untold else ""
        self._left, self._untold = self._left - 1, 0
        with contextlib.suppress(OSError):  # nobody reads it
            print(f"rearrange view: {sentence}.{more}", file=sys.stderr, flush=True)


def make_server(host: str, port: int, allowed_hosts: Sequence[str] = ()) -> Any:
    """viser's server at that address and no other, for its own pages and for programs. UserError.

    allowed_hosts: names, or name:port, beside `host` and localhost, at which people reach it.
    """
    import viser

    from eval.view.gate import Gate
    from eval.view.guard import Guard

    class Server(viser.ViserServer):
        """Without the way to the internet that viser offers a page."""

        def request_share_url(self, verbose: bool = True) -> None:
            return None

    tell = Teller()
    guard, wanted, made = Guard(host, allowed_hosts), address(host, port), []

    def lets_in(data: bytes | str) -> bool:
        return bool(made) and Gate(made[0], tell).lets_in(data)

    with _guarded(guard, lets_in, tell) as is_guarded, contextlib.redirect_stdout(io.StringIO()):  # it prints a table
        server = Server(host=host, port=wanted, verbose=False)
    if not is_guarded():
        stop(server)
        raise UserError(f"viser {viser.__version__} starts its server in a way that cannot be guarded: pip "
                        "install 'viser==1.1.1'.")
    made.append(server)
    if server.get_port() != wanted:  # somebody was quicker, and viser takes the next one
        stop(server)
        raise UserError(f"host={host} port={wanted} cannot be listened at: it is in use. Choose another port=.")
    return server


@contextlib.contextmanager
def _guarded(guard: Any, lets_in: Callable[[bytes | str], bool],
             tell: Callable[[str], None]) -> Iterator[Callable[[], bool]]:
    """Put the guard and the gate before websocket servers made meanwhile. Gives a function that says whether one
    was."""
    import viser

    from eval.view.guard import ALL_ANSWERS, reached_at

    found, version = [], f"viser-v{viser.__version__}"

    class Connection(ws.ServerConnection):
        """Hands on only the messages that the gate lets in."""

        async def recv(self, decode: bool | None = None) -> bytes | str:
            try:
                while not lets_in(data := await super().recv(decode)):
                    pass
            except ConnectionClosed as closed:
                if closed.sent and closed.sent.code == CloseCode.MESSAGE_TOO_BIG:
                    tell(f"the connection of a browser was closed: it sent more than {MOST_RECEIVED:,} bytes at once")
                raise
            return data

    class Serve(ws.serve):
        """The guard before whatever answers requests."""

        def __init__(self, handler: Any, host: str, port: int, *, process_request: Any, **options: Any) -> None:
            def process(connection: ws.ServerConnection, request: Request) -> Response | None:
                try:
                    spoken = request.headers.get_all("Sec-WebSocket-Protocol")
                    why = guard.refusal(request, reached_at(connection), len(connection.server.connections))
                    if why is None and "Upgrade" in request.headers and version not in ", ".join(spoken).split(", "):
                        why = "a page of another version of viser is refused: load it again"
                    if why is None:
                        response = process_request(connection, request)
                        if response is not None:
                            response.headers.update(guard.headers(request.headers["Host"]))
                        return response
                except Exception as error:  # no request can be so odd that it is answered with a traceback
                    why = f"a request that cannot be read is refused ({type(error).__name__})"
                tell(why)
                response = connection.respond(HTTPStatus.FORBIDDEN, f"{why}.\n")
                response.headers.update(ALL_ANSWERS)
                return response

            super().__init__(handler, host, port, process_request=process, **options | {
                "create_connection": Connection, "max_size": MOST_RECEIVED, "max_queue": 4, "logger": _QUIET})
            found.append(self)

    with _making:
        original, ws.serve = ws.serve, Serve
        try:
            yield lambda: bool(found)
        finally:
            ws.serve = original


def stop(server: Any) -> None:
    """End it; pages that are open say that they have lost it."""
    with contextlib.redirect_stdout(io.StringIO()):
        server.stop()

"""Where the page is served: viser's server at the address that was asked for, and no other."""

from __future__ import annotations

import contextlib
import io
import socket
from importlib.util import find_spec
from typing import Any

from rearrange.errors import UserError


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
        raise UserError(f"host={host} port={port} cannot be listened at: {getattr(error, 'strerror', None) or error}. Choose another "
                        "port=, or port=0 for a free one.") from error


def make_server(host: str, port: int) -> Any:
    """viser's server at that address and no other. UserError."""
    import viser

    class Server(viser.ViserServer):
        """Without the way to the internet that viser offers a page."""

        def request_share_url(self, verbose: bool = True) -> None:
            return None

    wanted = address(host, port)
    with contextlib.redirect_stdout(io.StringIO()):  # it prints a table
        server = Server(host=host, port=wanted, verbose=False)
    if server.get_port() != wanted:  # somebody was quicker, and viser takes the next one
        stop(server)
        raise UserError(f"host={host} port={wanted} cannot be listened at: it is in use. Choose another port=.")
    return server


def stop(server: Any) -> None:
    """End it; pages that are open say that they have lost it."""
    with contextlib.redirect_stdout(io.StringIO()):
        server.stop()

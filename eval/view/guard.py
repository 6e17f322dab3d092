"""Which requests the page answers: those of its own pages and of programs, never those of a page of another site.

A browser lets any page open a websocket to this machine, and says in the header Origin where that page came from. A
name of another site can be made to lead to this machine (DNS rebinding), and then stands in the header Host. Both are
checked before anything is sent.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qs, urlsplit

from websockets.http11 import Request

from rearrange.home.errors import UserError
from trainer.logs.printable import printable

MOST_CONNECTIONS = 64  # at once
_ADDRESS = re.compile(r"(?P<name>[a-z0-9._-]+|\[[0-9a-f:.]+(%25?[\w.-]+)?\])(:(?P<port>\d{1,5}))?", re.ASCII)
# Parameters by which viser's page would take its content and code from another server.
_ELSEWHERE = {"websocket", "playbackpath"}
ALL_ANSWERS = {
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
_OURS = "same-origin", "none"  # values of Sec-Fetch-Site


def split(address: str) -> tuple[str, int | None] | None:
    """Name and port of `name:port` in lower case, without the final full stop of a name. None for anything else."""
    found = _ADDRESS.fullmatch(address.lower())
    return found and (found["name"].removesuffix("."), int(found["port"]) if found["port"] else None)


class Guard:
    """Decides for each request. host: is listened at. allowed: further names, or name:port, of the page."""

    def __init__(self, host: str, allowed: Sequence[str] = ()) -> None:
        for each in allowed:
            if split(each) is None:
                raise UserError(f"allowed_hosts={each} is no name of a host: give what stands in the browser's address "
                                "line, without http:// and path, such as robots.example.org "
                                "or robots.example.org:8443.")
        self._host, self._allowed = host.lower().removesuffix("."), [split(each) for each in allowed]
        self._everywhere = host in ("0.0.0.0", "::")
        self._names = {"localhost", self._host}
        if self._everywhere:
            name = socket.gethostname().lower()
            self._names |= {name, name.partition(".")[0], f"{name.partition('.')[0]}.local"}

    def refusal(self, request: Request, reached_at: str, connections: int) -> str | None:
        """Why a request is refused, in one sentence; None for one that is answered.

        Args:
            request: of a page, a file or a websocket.
            reached_at: the address of this machine that the request came in at.
            connections: how many are open.
        """
        hosts, origins = request.headers.get_all("Host"), request.headers.get_all("Origin")
        host = split(hosts[0]) if len(hosts) == 1 else None
        if host is None:
            return "a request without one valid header Host is refused"
        if not self._is_here(host, reached_at):
            also = "" if self._host in ("localhost", "127.0.0.1") else f" and {self._host}"
            return (f"{printable(hosts[0], 80)} is refused: this viewer is at localhost{also}"
                    "; if that is a name of this machine, add it with allowed_hosts=[name]")
        if origins and not (len(origins) == 1 and self._is_own(origins[0], host)):
            return (f"a page of {printable(origins[0], 80) or 'nowhere'} is refused: only the viewer's own page can "
                    "look and drive; if that is a name of this machine, add it with allowed_hosts=[name]")
        if not origins and not self._is_asked_by_a_person(request):
            return ("a page of another site that embeds this one or a part of it is refused: open the viewer in a "
                    "window of its own")
        if _ELSEWHERE & {name.lower() for name in parse_qs(urlsplit(request.path).query, keep_blank_values=True)}:
            return ("the page with the content of another server is refused: open it without websocket= and "
                    "playbackPath=")
        if connections >= MOST_CONNECTIONS:
            return f"there are {MOST_CONNECTIONS} connections already: close a page"
        return None

    def _is_here(self, host: tuple[str, int | None], reached_at: str) -> bool:
        """Whether a Host names this machine. Its port may be that of a tunnel or proxy."""
        if host[0] in self._names or self._is_allowed(host):
            return True
        try:
            number = ipaddress.ip_address(host[0].strip("[]").replace("%25", "%"))
            number = getattr(number, "ipv4_mapped", None) or number
            return (number.is_loopback or self._everywhere or number == ipaddress.ip_address(reached_at)
                    or str(number) == self._host)
        except ValueError:
            return False

    def _is_own(self, origin: str, host: tuple[str, int | None]) -> bool:
        """Whether an Origin is the page that this Host serves, or one that was allowed. `null` is neither."""
        scheme, separator, address = origin.lower().partition("://")
        asked = split(address)
        if not separator or scheme not in ("http", "https") or asked is None:
            return False
        usual = {"http": 80, "https": 443}[scheme]
        return (asked[0], asked[1] or usual) == (host[0], host[1] or usual) or self._is_allowed(asked)

    def _is_allowed(self, address: tuple[str, int | None]) -> bool:
        return address in self._allowed or (address[0], None) in self._allowed

    @staticmethod
    def _is_asked_by_a_person(request: Request) -> bool:
        """Whether a person may have asked, as the browser says: a page of another site does not load this into
        itself."""
        site = request.headers.get_all("Sec-Fetch-Site")
        return all(each in _OURS for each in site) or request.headers.get_all("Sec-Fetch-Dest") == ["document"]

    def headers(self, host: str) -> dict[str, str]:
        """Headers of the page: it talks to this server alone, and is shown in no page of another site."""
        others = "".join(f" {name}:{port}" if port else f" {name}:* {name}" for name, port in self._allowed)
        return {
            "Content-Security-Policy": f"connect-src 'self' ws://{host} wss://{host} blob: data:; "
            f"frame-ancestors 'self'{others}; "
            "form-action 'none'; base-uri 'none'; object-src 'none'",
            **ALL_ANSWERS,
        }


def reached_at(connection: Any) -> str:
    """The address of this machine that a connection came in at."""
    return str(connection.local_address[0])

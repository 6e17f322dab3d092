"""A page of another site neither reads nor drives a viewer: requests as browsers and programs make them."""

from __future__ import annotations

import http.client
import random

import pytest

pytest.importorskip("viser", reason="the page needs viser: pip install -e '.[view]'")

from websockets.datastructures import Headers  # noqa: E402
from websockets.exceptions import InvalidStatus  # noqa: E402
from websockets.http11 import Request  # noqa: E402

from rearrange.home.errors import UserError  # noqa: E402
from tests.eval.view.visitor import Visitor  # noqa: E402


@pytest.fixture(scope="module")
def port():
    from eval.view.page import Page
    from eval.view.server import make_server, stop

    server = make_server("127.0.0.1", 0, ["robots.example.org", "lab.example.org:8443"])
    Page(server, ["skill=pick"], 1.0)
    yield server.get_port()
    stop(server)


def status(port: int, path: str = "/", **headers: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.putrequest("GET", path, skip_host=True, skip_accept_encoding=True)
    for name, value in headers.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read()
    assert answer.status != 403 or len(body) < 500 and body.count(b"\n") == 1, "one sentence"
    return answer.status


def talks(port: int, **headers: str) -> bool:
    """Whether a websocket with these headers is shown anything."""
    named = {"Host": f"127.0.0.1:{port}"} | {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        with _socket(port, named) as visitor:
            return bool(visitor.element("Seed"))
    except InvalidStatus as refused:
        assert refused.response.status_code == 403
        return False


def _socket(port: int, headers: dict[str, str]) -> Visitor:
    import websockets.sync.client as client

    class Named(client.ClientProtocol):
        """Sends these headers and no others of the same names."""

        def connect(self) -> Request:
            request = super().connect()
            for name, value in headers.items():
                if name in request.headers:
                    del request.headers[name]
                request.headers[name] = value
            return request

    original, client.ClientProtocol = client.ClientProtocol, Named
    try:
        return Visitor(port)
    finally:
        client.ClientProtocol = original


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1", "http://127.0.0.1:1", "http://localhost:8081",
               "file://", "http://[::1]:9", "http://evil.example:{port}", "http://127.0.0.1:{port}.evil.example", "",
               "http://127.0.0.1:{port}@evil.example", "http://evil.example#127.0.0.1:{port}", "ftp://127.0.0.1:{port}",
               "http://127.0.0.1:{port}, http://evil.example", "chrome-extension://abcdef", "http://lab.example.org:1",
               "http://robots.example.org.evil.example", "http://xrobots.example.org", "http://127.0.0.1:{port}/"])
def test_a_page_from_elsewhere_is_refused(port, origin):
    origin = origin.format(port=port)
    assert not talks(port, Origin=origin)
    assert status(port, Host=f"127.0.0.1:{port}", Origin=origin) == 403


@pytest.mark.parametrize("host", [
    "evil.example", "evil.example:{port}", "localhost.evil.example:{port}", "127.0.0.1.evil.example", "192.168.1.7",
    "0x7f000001:{port}", "2130706433:{port}", "127.1:{port}", "[fe80::1]:{port}", "0.0.0.0:{port}", "",
    "localhost:{port}@evil.example", "evil.example, localhost:{port}", "a:b", "[::1", "lab.example.org:1", "x" * 4000])
def test_a_name_of_another_site_that_leads_here_is_refused(port, host):
    """DNS rebinding: the page is of that name, too."""
    host = host.format(port=port)
    assert not talks(port, Host=host)
    assert not talks(port, Host=host, Origin=f"http://{host}")
    assert status(port, Host=host) == 403


@pytest.mark.parametrize(
    "host, origin",
    [
        ("127.0.0.1:{port}", None),
        ("localhost:{port}", None),  # programs
        ("127.0.0.1:{port}", "http://127.0.0.1:{port}"),
        ("localhost:{port}", "http://localhost:{port}"),
        ("LOCALHOST:{port}", "http://LocalHost:{port}"),
        ("localhost:9999", "http://localhost:9999"),
        ("127.0.0.2:9999", "http://127.0.0.2:9999"),  # ssh -L 9999:...
        ("localhost", "http://localhost"),
        ("localhost", "http://localhost:80"),
        ("localhost", "https://localhost:443"),
        ("[::1]:{port}", "http://[::1]:{port}"),
        ("localhost.:{port}", "http://localhost.:{port}"),
        ("robots.example.org", "https://robots.example.org"),
        ("127.0.0.1:{port}", "https://robots.example.org"),  # proxies
        ("Lab.example.org:8443", "https://lab.example.org:8443"),
        ("127.0.0.1:{port}", "https://lab.example.org:8443"),
    ],
)
def test_its_own_page_and_programs_look(port, host, origin):
    host = host.format(port=port)
    assert talks(port, Host=host, **({"Origin": origin.format(port=port)} if origin else {}))
    assert status(port, Host=host) == 200


def test_what_is_missing_or_said_twice_is_refused():
    from eval.view.guard import Guard

    def refused(*headers: tuple[str, str], path: str = "/", host: str = "127.0.0.1", at: str = "127.0.0.1",
                connections: int = 0) -> bool:
        named = Headers()
        for name, value in headers:
            named[name] = value
        return Guard(host).refusal(Request(path, named), at, connections) is not None

    here, own = ("Host", "localhost:1"), ("Origin", "http://localhost:1")
    assert not refused(here, own) and refused() and refused(here, here) and refused(here, own, own) and refused(own)
    assert refused(here, path="/?websocket=wss://evil.example") and refused(here, path="/?a=1&%77ebsocket")
    assert not refused(here, path="/?a=1")
    assert refused(here, path="/index.html?playbackPath=https://evil.example/x.viser")
    assert refused(here, ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Dest", "iframe"))
    assert refused(here, ("Sec-Fetch-Site", "same-site"), ("Sec-Fetch-Dest", "script"))
    assert not refused(here, ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Dest", "document")), "a link is followed"
    assert refused(here, own, connections=64) and not refused(here, own, connections=63)
    elsewhere = ("Host", "192.168.1.7:8080"), ("Origin", "http://192.168.1.7:8080")
    assert not refused(*elsewhere, host="0.0.0.0") and not refused(*elsewhere, host="192.168.1.7", at="192.168.1.7")
    assert refused(*elsewhere) and refused(*elsewhere, host="192.168.1.8", at="192.168.1.8")
    assert not refused(("Host", "[2001:db8::7]:1"), host="::")
    assert not refused(("Host", "[::FFFF:127.0.0.1]:1"), at="::1")
    assert refused(("Host", "evil.example"), host="0.0.0.0") and refused(("Host", "evil.example"), host="::")
    with pytest.raises(UserError, match="allowed_hosts=http://a is no name of a host"):
        Guard("127.0.0.1", ["http://a"])


def test_no_request_is_answered_with_a_traceback_and_no_file_from_elsewhere_is_read(port, capfd):
    rng = random.Random(0)
    here = f"127.0.0.1:{port}"
    for path in ("/../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/..%5c..%5cetc", "//etc/passwd",
                 "/" + "a" * 5000, "/%00", "/a%00b", "/~root", "/http://evil.example/", "/?" + "a=1&" * 500, "/%ff%fe",
                 *("/" + "".join(rng.choices("%./\\?#&=abc0", k=30)) for _ in range(50))):
        code = status(port, path, Host=here)
        assert code in (200, 403, 404) and (code != 200 or path.split("?")[0].strip("/.\\") in ("", "index.html")
                                            or "?" in path or "#" in path), path
    assert status(port, "/", Host=here, Upgrade="WebSocket") in (200, 403)
    said = capfd.readouterr()
    assert "Traceback" not in said.err + said.out


def test_answers_forbid_other_servers_and_frames_of_other_sites(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/")
    answer = connection.getresponse()
    policy = answer.headers["Content-Security-Policy"]
    answer.read()
    assert "frame-ancestors 'self' robots.example.org:* robots.example.org lab.example.org:8443;" in policy
    assert f"connect-src 'self' ws://127.0.0.1:{port} wss://127.0.0.1:{port}" in policy
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"

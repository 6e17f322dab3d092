"""A viewer, as the command, whose browsers say anything, break off, and come from other sites: it goes on, and
strangers are refused."""

# all timed: a soak does harm at random moments

from __future__ import annotations

import random
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from tests.e2e.front_door import finish, start
from tests.waiting import until

PAUSE_S = 0.2


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def besiege(place: Path, rng: random.Random) -> Iterator[str]:
    """One viewer for many messages; now and then it is stopped, as Ctrl-C does, and another begins."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        process = start(place, "view", "skill=pick", "agent=teleop", f"port={port}")
        try:
            until(lambda: _listens(port), "the viewer to listen", 120.0, process)
            for _ in range(400):
                kind = _harm(port, rng)
                assert process.poll() is None, f"{kind} ended the viewer: {process.communicate()}"
                yield f"browser: {kind}"
                time.sleep(PAUSE_S)
            process.send_signal(signal.SIGINT)
            done = finish(process, 60.0)
            assert done.returncode in (0, 130)
            assert "Traceback" not in done.stderr, (done.returncode, done.stderr[-3000:])
            yield "viewer: SIGINT"
        finally:
            process.kill()
            process.wait()


def _harm(port: int, rng: random.Random) -> str:
    from websockets.exceptions import InvalidStatus

    from tests.eval.view.test_messages import CLICK, ODD, OTHERS, PULL, damaged
    from tests.eval.view.visitor import CAMERA, Visitor

    kind = rng.choice(["odd message", "odd message", "noise", "breaks off", "another site", "no websocket"])
    if kind == "no websocket":
        with socket.create_connection(("127.0.0.1", port)) as raw:
            raw.sendall(rng.randbytes(rng.randint(1, 500)))
        return kind
    if kind == "another site":
        header = rng.choice([{"Origin": "http://elsewhere.example"}, {"Origin": "null"},
                             {"Origin": f"http://localhost:{port + 1}"}])
        try:
            with Visitor(port, headers=header, camera=False):
                raise AssertionError(f"{header} was let in")
        except InvalidStatus as refused:
            assert refused.response.status_code == 403
        return kind
    with Visitor(port) as visitor:
        if kind == "noise":
            visitor.raw(rng.randbytes(rng.randint(0, 60_000)))
        elif kind == "odd message":
            every = [*damaged(rng.choice([CAMERA, PULL, CLICK]), rng), *OTHERS, *({"type": odd} for odd in ODD)]
            for message in rng.sample(every, 10):
                visitor.say(message)
            assert visitor.look(), "one bad message closed the connection"
        else:
            visitor._socket.socket.close()
            return kind
        element = visitor.element("Seed")
        visitor.set(element, rng.choice(ODD))
    return kind

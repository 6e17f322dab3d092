"""Conversations with policy servers that are broken off or go wrong, on both sides: the next one is served, and an
answer is right or refused."""

# all timed: a soak does harm at random moments

from __future__ import annotations

import contextlib
import random
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import numpy as np

from tests.eval.test_remote import running
from tests.waiting import until

PAUSE_S = 0.3
SPACE = gymnasium.spaces.Box(-1.0, 1.0, (3,), np.float32)
SEEN = {"joint": gymnasium.spaces.Box(-10.0, 10.0, (7,), np.float32)}
JOINT = np.arange(7, dtype=np.float32)


class Tenth:
    """Acts with the first joints, a tenth of them."""

    def begin(self, slot, seed):
        pass

    def act(self, observations):
        return {slot: np.asarray(seen["joint"][:3]) / 10 for slot, seen in observations.items()}


def _ask_wrongly(url: str, rng: random.Random) -> str:
    """A client that does harm."""
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect

    from eval.remote.wire import pack

    host, port = url.removeprefix("ws://").split(":")
    good = pack({"observation/joint": JOINT})
    kind = rng.choice(["closed at once", "closed in a message", "noise", "damaged question", "odd number", "reset",
                       "text", "no http"])
    if kind in ("closed at once", "no http", "reset"):
        with socket.create_connection((host, int(port))) as raw:
            if kind == "no http":
                raw.sendall(rng.randbytes(rng.randint(1, 3000)))
            if kind == "reset":
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        return f"client: {kind}"
    with connect(url, open_timeout=60, close_timeout=60) as connection:
        connection.recv(60)
        if kind == "closed in a message":
            with contextlib.suppress(OSError):  # the server may be faster
                connection.socket.sendall(b"\x82\xff" + rng.randbytes(20))
                connection.socket.shutdown(socket.SHUT_RDWR)
            return f"client: {kind}"
        at = rng.randrange(len(good))
        message = {"noise": rng.randbytes(rng.randint(0, 2000)), "text": "{}" * rng.randint(0, 50),
                   "damaged question": good[:at] + rng.randbytes(1) + good[at + 1:],
                   "odd number": pack({"observation/joint": np.full(7, rng.choice([np.nan, np.inf, 3e38, -3e38, 1e-45]),
                                                                    np.float32)})}[kind]
        with contextlib.suppress(ConnectionClosed):
            connection.send(message)
            answer = connection.recv(60)
            assert isinstance(answer,
                              str) and answer.isprintable() and len(answer) < 1000 or _is_action(answer), answer[:300]
    return f"client: {kind}"


def _is_action(answer: bytes) -> bool:
    from eval.remote.wire import unpack

    return bool(np.isfinite(unpack(answer)["actions"]).all())


def _answer_wrongly(rng: random.Random) -> str:
    """A server that does harm."""
    from websockets.sync.server import serve

    from eval.remote.agent import RemoteAgent
    from eval.remote.wire import pack
    from rearrange.home.settings.remote import Remote, RemoteError, RemoteSettings

    right = pack({"actions": np.full(3, 0.5, np.float32)})
    kind = rng.choice(["closes", "closes often", "noise", "damaged answer", "two answers", "NaN", "text",
                       "wrong length"])
    lost = 0

    def talk(connection) -> None:
        nonlocal lost
        connection.send(pack({}))
        for _ in connection:
            if kind in ("closes", "closes often") and lost < (1 if kind == "closes" else 99):
                lost += 1
                return
            at = rng.randrange(len(right))
            answer = {"noise": rng.randbytes(50), "damaged answer": right[:at] + rng.randbytes(1) + right[at + 1:],
                      "text": "no",
                      "NaN": pack({"actions": np.full(3, np.nan)}),
                      "wrong length": pack({"actions": np.zeros(4)})}.get(kind, right)
            connection.send(answer)
            if kind == "two answers":
                connection.send(answer)

    with running(serve(talk, "127.0.0.1", 0, compression=None)) as url:
        agent = RemoteAgent(Remote(url, RemoteSettings(timeout_s=60.0)), 1, SPACE, lambda slot: "do")
        agent.begin(0, 1)
        try:
            for _ in range(3):
                action = agent.act({0: {"joint": JOINT}})[0]
                assert SPACE.contains(action), action
                why = kind if kind == "two answers" else f"{kind} was taken: {action}"
                assert kind in ("damaged answer", "closes"), why
        except RemoteError as error:
            assert "\n" not in str(error) and str(error).isprintable() and len(str(error)) < 1000, str(error)
        except AssertionError as error:
            if str(error) != "two answers":  # the second one may come after the first was taken
                raise
        finally:
            agent.end(0)
    return f"server: {kind}"


def besiege(place: Path, rng: random.Random) -> Iterator[str]:
    """Harm by a client or a server; afterwards the same server answers who asks well."""
    from websockets.sync.client import connect

    from eval.remote.server import make_server
    from eval.remote.wire import pack, unpack

    with running(make_server(Tenth, SEEN, {}, "127.0.0.1", 0)) as url:
        while True:
            kind = _ask_wrongly(url, rng) if rng.random() < 0.6 else _answer_wrongly(rng)
            with connect(url, open_timeout=60) as connection:
                connection.recv(60)
                connection.send(pack({"observation/joint": JOINT}))
                assert np.allclose(unpack(connection.recv(60))["actions"].ravel(), JOINT[:3] / 10)
            until(lambda: sum("conn_handler" in thread.name for thread in threading.enumerate()) < 20,
                  "its threads to end")
            yield kind
            time.sleep(PAUSE_S)

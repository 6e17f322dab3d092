"""Policy servers and clients that mean harm or are broken: each is one sentence, and no action is taken that was not
asked for."""

from __future__ import annotations

import socket
import struct
import threading
import urllib.error
import urllib.request

import gymnasium
import msgpack
import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect
from websockets.sync.server import serve

from eval.remote.agent import RemoteAgent, connect_to
from eval.remote.server import make_server
from eval.remote.wire import MOST_VALUES, BadMessage, pack, unpack
from rearrange.home.settings.remote import Remote, RemoteError, RemoteSettings
from tests.eval.test_remote import (
    AGENTS,
    QUICK,
    SEEN,
    agent,
    answering,
    connections_end_with_the_test,  # noqa: F401 a fixture
    running,
)
from trainer.logs.printable import MOST


def answer(value: float, **more) -> bytes:
    return pack({"actions": np.full((1, 3), value)} | more)


def server(talk):
    """A server that says what it is, and then whatever `talk` says."""
    def begin(connection):
        connection.send(b"\x80")
        talk(connection)
    return running(serve(begin, "127.0.0.1", 0, compression=None))


def taken(url: str, steps: int = 4) -> tuple[list[float], str]:
    """The first numbers of the actions of so many steps, and the sentence that ends them."""
    one, actions = agent(url), []
    try:
        for _ in range(steps):
            actions.append(float(one.act({0: SEEN})[0][0]))
    except RemoteError as error:
        assert str(error).startswith(f"the server at {url} ") and str(error).count("\n") == 0
        assert len(str(error)) < MOST + 200
        return actions, str(error)
    return actions, ""


# ---------------------------------------------------------------------- which answer belongs to which question

def twice(connection):
    """In one packet: an answer without its question that comes after the next question cannot be told from its own."""
    for number, _ in enumerate(connection, 1):
        connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
        connection.send(answer(number / 10))
        connection.send(answer(-number / 10))
        connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)


def once_too_often(connection):
    """Before any question."""
    connection.send(answer(-1))
    for number, _ in enumerate(connection, 1):
        connection.send(answer(number / 10))


def of_the_question_before(connection):
    before = -1
    for message in connection:
        question, message = unpack(message)["question"], before
        connection.send(answer(0.5, question=message))
        before = question


def with_a_late_second(connection):
    for message in connection:
        question = unpack(message)["question"]
        if question == 2:
            connection.send(answer(-1, question=1))
        connection.send(answer(0.5, question=question))


def of_a_wrong_kind(connection):
    for _ in connection:
        connection.send(answer(0.5, question="1"))


@pytest.mark.parametrize("talk, said", [(twice, "more than one answer"), (once_too_often, "more than one answer"),
                                        (of_the_question_before, "answers question -1, and was asked question 1"),
                                        (with_a_late_second, "answers question 1, and was asked question 2"),
                                        (of_a_wrong_kind, "answers question 1, and was")])
def test_no_action_is_taken_that_answers_another_question(talk, said):
    with server(talk) as url:
        actions, sentence = taken(url)
    assert said in sentence, sentence
    assert all(action > 0 for action in actions) and len(actions) <= 1, actions


def test_a_server_that_closes_in_the_middle_of_an_answer_or_is_another_afterwards_is_refused():
    count = [0]

    def talk(connection):
        count[0] += 1
        connection.send(pack({"policy": "first" if count[0] == 1 else "second"}))
        for _ in connection:
            connection.socket.sendall(b"\x82\x7f" + struct.pack("!Q", 1000) + b"half")
            connection.socket.shutdown(socket.SHUT_RDWR)

    with running(serve(talk, "127.0.0.1", 0, compression=None)) as url:
        actions, sentence = taken(url)
    assert not actions and "something else of itself than before its connection was lost" in sentence and count[0] == 2


def test_an_episode_that_goes_on_over_a_new_connection_is_told(caplog):
    count = [0]

    def talk(connection):
        for _ in connection:
            count[0] += 1
            if count[0] == 2:
                return
            connection.send(answer(0.5))

    with server(talk) as url:
        assert taken(url, 2) == ([0.5, 0.5], "")
    assert caplog.text.count("was lost in an episode and made again") == 1


# ---------------------------------------------------------------------- what an answer may be

@pytest.mark.parametrize("actions, said", [
    (["0.5", "0.5", "0.5"], "without actions"), ([True, False, True], "without actions"),
    ([0.5, True, 0.5], "without actions"), ("0.5", "without actions"),
    (np.array([True, True, True]), "without actions"), ([[0.1, 0.2], [0.3]], "without actions"),
    ([[0.1, 0.2, "x"]], "without actions"),
    ({"0": 1.0}, "without actions"), (0.5, "of 1 numbers"), ([0.5, float("nan"), 0.5], "not finite"),
    ([0.5, float("-inf"), 0.5], "not finite"),
    ([], "without actions"), (np.zeros((0, 3)), "without actions"), (np.zeros((1001, 3)), "with 1,001 actions at once"),
    (np.zeros((3, 1)), "of 1 numbers"), ([b"\x00\x00\x00\x3f"] * 3, "without actions"), ([None] * 3, "without actions"),
    (np.full(3, 1e300), None), (np.full(3, np.finfo(np.float64).tiny / 2), None), ([2**63, -2**63, 0], None),
    (np.array([-0.0] * 3), None),
])
def test_actions_are_finite_numbers_within_bounds_or_refused(actions, said):
    with answering(pack({"actions": actions})) as url:
        one = agent(url)
        if said is None:
            assert np.abs(one.act({0: SEEN})[0]).max() <= 1
        else:
            with pytest.raises(RemoteError, match=said):
                one.act({0: SEEN})


@pytest.mark.parametrize("number", [4.0, -1.0, 0.5, 1e300])
def test_a_choice_is_one_of_those_that_there_are(number):
    with answering(pack({"actions": [2]}), pack({"actions": [number]})) as url:
        one = RemoteAgent(Remote(url, QUICK), 1, gymnasium.spaces.Discrete(4), lambda slot: "")
        AGENTS.append((one, 1))
        assert one.act({0: SEEN})[0] == 2
        with pytest.raises(RemoteError, match="with the choice .*, and here they are 0 to 3"):
            one.act({0: SEEN})


@pytest.mark.parametrize("text", ["x" * 20_000_000, "\x1b[2J\x1b]0;mine\x07\nred \x1b[31m",
                                  "Traceback\n" + "\x9b" * 1000, " \n ", "\u202e"])
def test_what_a_server_says_is_told_short_and_printable(text):
    with answering(text) as url:
        _, sentence = taken(url)
    assert "reports an error: " in sentence and sentence.isprintable()


@pytest.mark.parametrize("about, said", [(b"\x90", "is no policy server"), (b"\xc1", "cannot be read"),
                                         ("\x1b[2Jbusy", r"error: \\x1b\[2Jbusy"),
                                         (b"\xdd\xff\xff\xff\xff", "cannot be read"), (b"\x00", "is no policy server")])
def test_a_server_that_does_not_say_what_it_is_is_refused(about, said):
    with answering(about=about) as url, pytest.raises(RemoteError, match=said):
        connect_to(Remote(url, QUICK))


@pytest.mark.parametrize("reply", [b"", b"HTTP/1.1 200 \x1b[2J\r\n\r\n",
                                   b"HTTP/1.1 503 " + b"x" * 100_000 + b"\r\n\r\n", b"SSH-2.0-x\r\n", b"\xff" * 9000])
def test_what_is_no_websocket_is_one_printable_sentence(reply):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        def talk():
            with listening.accept()[0] as connection:
                connection.recv(9999)
                connection.sendall(reply)
        thread = threading.Thread(target=talk)
        thread.start()
        with pytest.raises(RemoteError) as said:
            connect_to(Remote("ws://127.0.0.1:{1}".format(*listening.getsockname()), RemoteSettings(timeout_s=60.0)))
        thread.join()
    assert str(said.value).isprintable() and len(str(said.value)) < MOST + 200


@pytest.mark.parametrize("url", ["ws://a..b", "ws://[::1", "ws://x:99999", "ws://a:b", "ws://:1", "ws://\x1b[2J"])
def test_what_is_no_address_is_one_sentence(url):
    with pytest.raises(RemoteError, match="is no address of a server"):
        connect_to(Remote(url, RemoteSettings(timeout_s=0.1)))  # timed: nobody answers


# ---------------------------------------------------------------------- messages

def nested(depth: int, of: bytes) -> bytes:
    return of * depth + b"\xc0"


@pytest.mark.parametrize(
    "data", [nested(3000, b"\x91"), nested(100_000, b"\x81\xc0"), b"\xdd\x7f\xff\xff\xff", b"\xdf\xff\xff\xff\xff",
             b"\xdb\xff\xff\xff\xffx", b"\xdd" + struct.pack("!I", 40) + (b"\xdc\x3f\xff" + b"\x90" * 0x3fff) * 40,
             b"\xdc\x40\x01" + b"\xc0" * 0x4001, msgpack.packb({f"{i}": i for i in range(20_000)}),
             msgpack.packb({"__ndarray__": True, "data": b"", "dtype": "<f4", "shape": [2**63] * 9000}),
             msgpack.packb({"__npgeneric__": True, "data": "0.5", "dtype": "<f4"}),
             msgpack.packb({"__npgeneric__": True, "data": [1, 2], "dtype": "<f4"}),
             msgpack.packb({"__ndarray__": True, "data": b"", "dtype": None, "shape": [0]}),
             msgpack.packb({"__npgeneric__": True, "data": 1}),
             msgpack.packb({"__ndarray__": True, "data": b"a" * 8, "dtype": "x" * 9_000_000, "shape": [1]}),
             b"\xc7\x08\x01" + b"\x00" * 8 + b"\x00",
             msgpack.packb({"__ndarray__": True, "data": b"", "dtype": "<f4", "shape": [0, 2**62]}), b"\x81\xd9\xff"])
def test_messages_that_swell_or_lie_are_refused(data):
    with pytest.raises(BadMessage) as said:
        unpack(data)
    assert len(str(said.value)) < MOST


def test_a_message_holds_as_many_lists_as_a_chunk_needs():
    chunk = [[0.5] * 20] * 1000
    assert unpack(msgpack.packb({"actions": chunk}))["actions"] == chunk and 21_000 < MOST_VALUES


# ---------------------------------------------------------------------- our server

SPACES = {"joint": gymnasium.spaces.Box(-2.0, 2.0, (7,)), "depth": gymnasium.spaces.Box(0.0, 1.0, (2, 3, 1)),
          "free": gymnasium.spaces.Box(-np.inf, np.inf, (2,))}


class Sums:
    """A policy with a memory, whose numbers overflow as those of networks do."""

    def begin(self, slot, seed):
        self.memory = np.float32(seed)

    def act(self, observations):
        seen = observations[0]
        assert all(value.dtype == np.float32 and SPACES[name].contains(value) for name, value in seen.items())
        with np.errstate(all="ignore"):
            free = np.square(seen["free"]).sum()
            self.memory = self.memory + free - free + seen["joint"].sum()
        return {0: np.array([self.memory, 1.0])}


FINE = {"joint": np.zeros(7, np.float32), "depth": np.zeros((2, 3, 1), np.float32), "free": np.zeros(2, np.float32)}


def asked(url: str, *messages, **headers):
    """What our server answers to each of these; None where it closed."""
    answers = []
    with connect(url, compression=None, **headers) as connection:
        connection.recv()
        for message in messages:
            try:
                connection.send(message if isinstance(message, bytes) else pack(message))
                data = connection.recv(60)
                answers.append(data if isinstance(data, str) else unpack(data))
            except ConnectionClosed:
                answers.append(None)
    return answers


def question(**values):
    return {f"observation/{name}": value for name, value in (FINE | values).items() if value is not None}


@pytest.mark.parametrize("wrong, said", [
    (dict(joint=np.full(7, 3e38)), "has the number 3e.38, and it lies between -2 and 2"),
    (dict(joint=np.full(7, np.finfo(float).max)), "lies between"),
    (dict(joint=np.full(7, 2**63 - 1)), "lies between"),
    (dict(joint=np.array([0] * 6 + [2.05])), "2.05, and it lies between"),
    (dict(depth=np.full((2, 3, 1), 255, np.uint8)), "the number 255, and it lies between 0 and 1"),
    (dict(joint=np.full(7, -np.inf)), "not finite"),
    (dict(joint=np.array([0] * 6 + [np.nan])), "not finite"), (dict(joint=None), "joint is missing"),
    (dict(joint="0.5"), "joint is missing"),
    (dict(joint=[0.0] * 7), "joint is missing"), (dict(joint=np.float32(1)), "joint is missing"),
    (dict(depth=np.zeros((3, 2, 1))), "has shape"),
    (dict(depth=np.zeros(6)), "has shape"), (dict(joint=np.zeros((7, 2))), "has shape"),
    (dict(joint=np.zeros(0)), "has shape"),
    (dict(joint=np.full(7, np.finfo(np.longdouble).max)), "not finite|lies between|no MessagePack"),
    (dict(joint=np.array(["1"] * 7).view("u4")), "the number 49"),
])
def test_our_server_takes_what_lies_in_its_space_alone_and_stays_as_it_was(wrong, said):
    import re

    with running(make_server(Sums, SPACES, {}, "127.0.0.1", 0)) as url:
        before, refused, after = asked(url, question(), question(**wrong), question(joint=np.ones(7)))
    assert before["actions"].tolist() == [[0, 1]] and isinstance(refused, str) and re.search(said, refused), refused
    assert after["actions"].tolist() == [[7, 1]]


def test_our_server_brings_back_what_is_a_little_outside():
    near = question(joint=np.full(7, 2.02), depth=np.full((2, 3, 1), -0.001), more=np.zeros(9),
                    free=np.array([5e-324, -0.0]))
    with running(make_server(Sums, SPACES, {}, "127.0.0.1", 0)) as url:
        (answer,) = asked(url, near)
    assert answer["actions"].tolist() == [[14, 1]]


def test_our_server_answers_no_numbers_that_are_not_finite_and_forgets_them():
    with running(make_server(Sums, SPACES, {}, "127.0.0.1", 0)) as url:
        for huge in (3e38, 1e300, np.finfo(float).max):
            said, closed = asked(url, question(free=np.full(2, huge)), question())
            assert "numbers that are not finite" in said and closed is None
        (answer,) = asked(url, question())
    assert answer["actions"].tolist() == [[0, 1]]


@pytest.mark.parametrize("more, said",
                         [({"seed": -1}, "seed is"), ({"seed": 2**64 - 1}, "seed is"), ({"seed": "3"}, "seed is"),
                          ({"seed": True}, "seed is"), ({"seed": 0.5}, "seed is"), ({"reset": "false"}, "reset is"),
                          ({"reset": 1.0}, "reset is")])
def test_our_server_takes_no_other_seed_for_the_one_that_was_sent(more, said):
    with running(make_server(Sums, SPACES, {}, "127.0.0.1", 0)) as url:
        refused, numbered = asked(url, question() | {"reset": True} | more,
                                  question() | {"reset": True, "seed": 3, "question": 8})
    assert said in refused and numbered["actions"].tolist() == [[3, 1]] and numbered["question"] == 8


def test_our_server_tells_that_its_policy_fails_without_a_traceback(capfd):
    class Fails(Sums):
        def act(self, observations):
            raise RuntimeError("\x1b[2J" + "x" * 20_000)

    with running(make_server(Fails, SPACES, {}, "127.0.0.1", 0)) as url:
        said, closed = asked(url, question(), question())
        with socket.create_connection(tuple(url.removeprefix("ws://").split(":"))) as nonsense:
            nonsense.sendall(b"GET / HTTP/1.1\r\n\r\n")
            nonsense.recv(9999)
        with connect(url, compression=None) as connection:
            connection.recv()
            connection.socket.sendall(b"\x82\xff" + struct.pack("!Q", 1 << 30) + b"mask")  # a message of 1 GB
            with pytest.raises(ConnectionClosed):
                connection.recv(60)
    assert said.startswith("the policy fails: RuntimeError: \\x1b") and said.isprintable() and len(said) < MOST + 99
    assert closed is None
    assert capfd.readouterr().err == ""


HOSTS = [({}, True), ({"Origin": "{http}"}, True),
         ({"Origin": "http://localhost:{port}", "Host": "localhost:{port}"}, True), ({"Host": "box:{port}"}, True),
         ({"Origin": "http://evil.example"}, False), ({"Origin": "null"}, False), ({"Origin": ""}, False),
         ({"Origin": "http://127.0.0.1:1"}, False),
         ({"Origin": "http://evil.example:{port}", "Host": "evil.example:{port}"}, False),
         ({"Origin": "{http}.evil.example"}, False),
         ({"Origin": "http://127.0.0.1.evil.example:{port}", "Host": "127.0.0.1.evil.example:{port}"}, False)]


@pytest.mark.parametrize("headers, taken_in", HOSTS)
def test_a_web_page_of_another_site_does_not_reach_our_server(headers, taken_in):
    with running(make_server(Sums, SPACES, {}, "127.0.0.1", 0)) as url:
        port = url.rpartition(":")[2]
        host, lines = f"127.0.0.1:{port}", []
        for name, value in headers.items():
            value = value.format(http=f"http://127.0.0.1:{port}", port=port)
            host, lines = (value, lines) if name == "Host" else (host, [*lines, f"{name}: {value}"])
        with socket.create_connection(("127.0.0.1", int(port))) as page:
            page.sendall("\r\n".join(["GET / HTTP/1.1", f"Host: {host}", "Upgrade: websocket", "Connection: Upgrade",
                                      *lines, "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
                                      "Sec-WebSocket-Version: 13", "", ""]).encode())
            assert (b" 101 " in page.recv(9999)) == taken_in


def test_a_client_is_told_why_its_origin_is_refused():
    with running(make_server(Sums, SPACES, {}, "127.0.0.1", 0)) as url, pytest.raises(InvalidStatus) as refused:
        asked(url, origin="http://evil.example")
    assert b"leave the header Origin out" in refused.value.response.body


def test_it_says_that_it_is_there_to_who_asks_and_not_to_pages_of_other_sites():
    with running(make_server(Sums, SPACES, {}, "127.0.0.1", 0)) as url:
        health = url.replace("ws://", "http://") + "/healthz"
        with urllib.request.urlopen(health) as answer:
            assert (answer.status, answer.read()) == (200, b"OK\n")
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(urllib.request.Request(health, headers={"Origin": "http://evil.example"}))

"""Policies from outside: servers that answer well, badly and not at all, and Python code of one's own."""

from __future__ import annotations

import json
import math
import re
import runpy
import sys
import threading
from contextlib import contextmanager

import gymnasium
import msgpack
import numpy as np
import pytest
from websockets.sync.server import serve

from eval.agents import PolicyAgent
from eval.own_agents import OwnAgent
from eval.remote.agent import RemoteAgent, connect_to
from eval.remote.server import make_server
from eval.remote.wire import BadMessage, pack, unpack
from rearrange.command_line.cli import main
from rearrange.home.errors import UserError
from rearrange.home.settings.remote import Remote, RemoteError, RemoteSettings
from skills import make_env, pretrained
from tests.docs.markdown import HOME, blocks
from tests.waiting import until
from trainer.checkpoint import load_checkpoint

SPACE = gymnasium.spaces.Box(-1.0, 1.0, (3,), np.float32)
SEEN = {"joint": np.arange(7, dtype=np.float32), "depth": np.ones((4, 4, 1), np.float32)}
QUICK = RemoteSettings(timeout_s=60.0)


@contextmanager
def running(server):
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield "ws://{}:{}".format(*server.socket.getsockname())
    finally:
        server.shutdown()
        thread.join()


def answering(*answers, about=b"\x80"):
    """A server that sends these, one for each message; what is called is told the message."""
    def talk(connection):
        connection.send(about)
        for message, answer in zip(connection, answers):
            connection.send(answer(message) if callable(answer) else answer)
    return running(serve(talk, "127.0.0.1", 0, compression=None))


AGENTS: list[tuple[RemoteAgent, int]] = []


@pytest.fixture(autouse=True)
def connections_end_with_the_test():
    """Those of agents that a test makes; commands end theirs, also where they fail. A server has a thread for each."""
    yield
    while AGENTS:
        made, slots = AGENTS.pop()
        for slot in range(slots):
            made.end(slot)
    until(lambda: not any("conn_handler" in thread.name for thread in threading.enumerate()), "the connections to end")


def agent(url, slots=1, settings=QUICK):
    made = RemoteAgent(Remote(url, settings), slots, SPACE, lambda slot: f"do {slot}")
    for slot in range(slots):
        made.begin(slot, 10 + slot)
    AGENTS.append((made, slots))
    return made


# ---------------------------------------------------------------------- messages

@pytest.mark.parametrize("value", [np.arange(6.0).reshape(2, 3), np.zeros((0, 2), np.uint8), np.float32(1.5),
                                   np.arange(8)[::2], np.array(True), np.ones((2, 2), ">i2")])
def test_arrays_arrive_as_they_were(value):
    back = unpack(pack({"a": value, "text": "ä", "list": [1, 2.5, None]}))
    assert back["a"].dtype == value.dtype and np.array_equal(back["a"], value) and back["text"] == "ä"
    assert back["list"] == [1, 2.5, None]


def test_the_form_is_that_of_openpi():
    sent = msgpack.unpackb(pack({"x": np.array([[1, 2]], np.int16)}))
    assert sent == {"x": {b"__ndarray__": True, b"data": b"\x01\x00\x02\x00", b"dtype": "<i2", b"shape": [1, 2]}}


@pytest.mark.parametrize("array", [{b"__ndarray__": True, b"data": b"abcd", b"dtype": "<f4", b"shape": [2]},
                                   {b"__ndarray__": True, b"data": b"", b"dtype": "O", b"shape": [0]},
                                   {b"__ndarray__": True, b"data": b"", b"dtype": "no", b"shape": [0]},
                                   {b"__ndarray__": True, b"data": "", b"dtype": "<f4", b"shape": [0]},
                                   {b"__ndarray__": True, b"data": b"", b"dtype": "<f4", b"shape": [-1, 0]},
                                   {b"__npgeneric__": True, b"data": 1, b"dtype": "V8"}])
def test_an_array_that_is_none_is_refused(array):
    with pytest.raises(BadMessage, match="it has an array"):
        unpack(msgpack.packb({"a": array}))


@pytest.mark.parametrize("data", [b"", b"\xc1", b"nonsense " * 9, b"\x91" * 3000])
def test_nonsense_is_refused(data):
    with pytest.raises(BadMessage, match="no MessagePack"):
        unpack(data)


# ---------------------------------------------------------------------- asking

def test_what_is_sent_and_what_is_done():
    heard = []

    def answer(message):
        heard.append(unpack(message))
        return pack({"actions": np.array([[0.5, -2.0, 0.25], [1, 1, 1]])})

    with answering(*[answer] * 9) as url:
        one = agent(url)
        done = [one.act({0: SEEN})[0].tolist() for _ in range(3)]
        one.begin(0, 99)  # in the middle of a chunk
        one.act({0: SEEN})
        one.end(0)
    # limited to the space of actions; one chunk after another
    assert done == [[0.5, -1.0, 0.25], [1, 1, 1], [0.5, -1.0, 0.25]]
    assert [(m.get("reset"), m.get("seed"), m["prompt"]) for m in heard] == [
        (True, 10, "do 0"), (None, None, "do 0"), (True, 99, "do 0")]
    assert set(heard[0]) == {"observation/joint", "observation/depth", "prompt", "question", "reset", "seed"}
    assert np.array_equal(heard[0]["observation/joint"], SEEN["joint"])


def test_a_server_of_this_machine_is_reached_beside_a_proxy(monkeypatch):
    """Where the environment names one for the network, at which nobody listens here."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with answering(pack({"actions": np.ones((1, 3))})) as url:
        one = agent(url)
        assert one.act({0: SEEN})[0].tolist() == [1, 1, 1]
        one.end(0)


def test_of_a_chunk_so_many_actions_are_carried_out():
    with answering(*[pack({"actions": np.eye(3)})] * 2) as url:
        one = agent(url, settings=RemoteSettings(timeout_s=60.0, chunk=2))
        assert [one.act({0: SEEN})[0].argmax() for _ in range(4)] == [0, 1, 0, 1]
        one.end(0)


@pytest.mark.parametrize("answer, said", [
    ("Traceback ...\nValueError: no key 'image'.", "reports an error: ValueError: no key 'image'."),
    (b"\xc1", "cannot be read"),
    (pack({}), "answers without actions"), (pack([1, 2]), "answers without actions"),
    (pack({"actions": "up"}), "answers without actions"),
    (pack({"actions": np.zeros((1, 4))}), "actions of 4 numbers, and here they have 3"),
    (pack({"actions": np.zeros((2, 2, 3))}), "without actions"),
    (pack({"actions": np.array([0, math.nan, 0])}), "not finite"),
    (pack({"actions": [None, 1, 2]}), "not finite|without actions"),
])
def test_an_answer_that_is_of_no_use_is_one_sentence(answer, said):
    with answering(answer) as url:
        one = agent(url)
        with pytest.raises(RemoteError, match=f"^the server at {url} .*({said})"):
            one.act({0: SEEN})
        one.end(0)


def test_who_is_silent_is_waited_for_a_while():
    end = threading.Event()
    with answering(lambda message: end.wait() and pack({})) as url:
        one = agent(url, settings=RemoteSettings(timeout_s=3.0))  # timed: the server never answers; it is there sooner
        try:
            with pytest.raises(RemoteError, match="has not answered within 3 s.*remote.timeout_s="):
                one.act({0: SEEN})
        finally:
            end.set()
        one.end(0)


def test_a_connection_that_nobody_uses_for_a_while_is_not_lost():
    with answering(pack({})) as url:
        connection, _ = connect_to(Remote(url, QUICK))
        assert connection.socket.gettimeout() is None, "else it ends after so many seconds without a message"
        connection.close()


def test_a_connection_that_is_lost_is_made_again_and_one_that_is_lost_again_is_told():
    times = []

    def talk(connection):
        connection.send(b"\x80")
        for _ in connection:
            times.append(1)
            if len(times) != 2:
                return  # closes
            connection.send(pack({"actions": np.ones(3)}))

    with running(serve(talk, "127.0.0.1", 0, compression=None)) as url:
        one = agent(url)
        assert one.act({0: SEEN})[0].tolist() == [1, 1, 1] and len(times) == 2
        with pytest.raises(RemoteError, match="closes the connection"):
            one.act({0: SEEN})


# ---------------------------------------------------------------------- our server

def test_a_policy_that_is_served_acts_as_it_does_here():
    content = load_checkpoint(pretrained.path("place"))
    here = PolicyAgent(content, 1, False)
    spaces = {name: gymnasium.spaces.Box(0.0, 1.0, shape) for name, shape in here.policy.seen.items()}
    rng = np.random.default_rng(0)
    seen = [{name: rng.uniform(0, 1, shape).astype(np.float32) for name, shape in here.policy.seen.items()}
            for _ in range(4)]
    actions = gymnasium.spaces.Box(-1.0, 1.0, (here.policy.action_size,), np.float32)
    with running(make_server(lambda: PolicyAgent(content, 1, False), spaces, {}, "127.0.0.1", 0)) as url:
        there = RemoteAgent(Remote(url, RemoteSettings()), 2, actions, lambda slot: "")
        for seed in (3, 4):  # two episodes, each with its own memory and random numbers
            here.begin(0, seed)
            there.begin(1, seed)
            for one in seen:
                np.testing.assert_allclose(there.act({1: one})[1], here.act({0: one})[0], atol=1e-6)
        there.end(1)


@pytest.mark.parametrize("message, said", [(b"\xc1", "no MessagePack"), ("text", "an observation is a map"),
                                           (pack({}), "observation/joint is missing: an array of shape"),
                                           (pack({"observation/joint": np.zeros(6)}), r"has shape \(6,\), not \(7,\)"),
                                           (pack({"observation/joint": np.full(7, np.inf)}), "not finite")])
def test_our_server_says_what_is_wrong_and_goes_on(message, said):
    from websockets.sync.client import connect

    class Still:
        def begin(self, slot, seed):
            pass

        def act(self, observations):
            return {0: np.zeros(2)}

    with running(make_server(Still, {"joint": gymnasium.spaces.Box(-1.0, 1.0, (7,))}, {}, "127.0.0.1",
                             0)) as url, connect(url) as connection:
        assert unpack(connection.recv()) == {}
        connection.send(message)
        answer = connection.recv(60.0)
        assert isinstance(answer, str) and re.search(said, answer), answer
        connection.send(pack({"observation/joint": np.zeros(7)}))
        assert unpack(connection.recv(60.0))["actions"].shape == (1, 2)


class Counting:
    """A policy that says how often it has been asked since an episode began, and what it saw."""

    seen: list = []

    def begin(self, slot, seed):
        self.count = 0

    def act(self, observations):
        self.seen.append(observations[0])
        self.count += 1
        return {0: np.array([self.count, -1.0, 0.5]) / 8}


BOXES = {"joint": gymnasium.spaces.Box(-9.0, 9.0, (7,)), "depth": gymnasium.spaces.Box(0.0, 1.0, (4, 4, 1)),
         "goal": gymnasium.spaces.Box(-9.0, 9.0, (3,)), "rgb": gymnasium.spaces.Box(0, 255, (4, 4, 3), np.uint8)}
SHOWN = {"joint": np.arange(7, dtype=np.float32), "depth": np.linspace(0, 1, 16, dtype=np.float32).reshape(4, 4, 1),
         "goal": np.array([-1, 0, 1], np.float32), "rgb": np.arange(48, dtype=np.uint8).reshape(4, 4, 3)}


@pytest.mark.parametrize("protocol", ["openpi", "behavior"])
@pytest.mark.parametrize("chunk", [None, 2])
def test_both_sides_speak_both_protocols_with_chunks_and_without(protocol, chunk):
    Counting.seen = []
    settings = RemoteSettings(timeout_s=60.0, chunk=chunk, protocol=protocol, task_id=4)
    with running(make_server(Counting, BOXES, {}, "127.0.0.1", 0)) as url:
        one = agent(url, settings=settings)
        done = [one.act({0: SHOWN})[0] * 8 for _ in range(3)]
        asked = len(Counting.seen)
        one.begin(0, 12)  # in the middle of a chunk
        again = one.act({0: SHOWN})[0] * 8
        one.end(0)
    assert [row[0] for row in done] == [1, 2, 3] and again[0] == 1, "an episode begins anew"
    assert all(row[1:].tolist() == [-1.0, 0.5] for row in done)
    assert asked == (4 if chunk else 3)
    for seen in Counting.seen:
        assert seen.keys() == SHOWN.keys()
        for name, value in SHOWN.items():
            assert np.allclose(seen[name], value, atol=1e-6) and seen[name].shape == value.shape, name


def test_a_client_of_behavior_is_answered_as_its_evaluator_wants():
    """Its own checks: no answer to a reset, a chunk of the shape that was asked for, and `action` is its first row."""
    from websockets.sync.client import connect

    sent = {"robot_r1::proprio": np.concatenate([SHOWN["goal"], SHOWN["joint"]])[None],
            "robot_r1::robot_r1:head_camera:Camera:0::depth_linear": SHOWN["depth"][None, :, :, 0] * 10,
            "robot_r1::robot_r1:head_camera:Camera:0::rgb": np.concatenate([SHOWN["rgb"]] * 2, axis=2)[None, :, :, :4],
            "task_id": np.array([0])}
    with running(make_server(Counting, BOXES, {}, "127.0.0.1", 0)) as url, connect(url) as connection:
        def ask(message):
            connection.send(pack(message))
            return unpack(connection.recv(60.0))

        connection.recv()
        assert "action_chunk" not in ask(sent) and ask(sent)["action"][0, 0] == 2 / 8
        connection.send(pack({"reset": True}))
        answer = ask(sent | {"__action_chunk_size__": 5})
        assert answer["action"].shape == (1, 3) and answer["action_chunk"].shape == (1, 5, 3)
        assert np.array_equal(answer["action_chunk"][:, 0], answer["action"]) and answer["action"][0, 0] == 1 / 8
        one_row = {key: value[0] for key, value in sent.items() if key != "task_id"}
        assert ask(one_row | {"__action_chunk_size__": 2})["action_chunk"].shape == (2, 3)
        for wrong, said in (({"robot_r1::proprio": np.zeros(9)}, "9 numbers, not 10: goal 3, joint 7"),
                            ({"__action_chunk_size__": 0}, "a whole number from 1 to 1,000"),
                            ({"robot_r1::proprio": np.zeros((2, 10))}, "one robot at a time"),
                            ({"robot_r1::robot_r1:head_camera:Camera:0::rgb": None}, "no array of numbers")):
            connection.send(pack(sent | wrong))
            assert said in connection.recv(60.0)
        for reset in (np.zeros(2, bool), np.array([True])):
            connection.send(pack({"reset": reset}))
            assert "observation/" in connection.recv(60.0), "an answer, and no closed connection"
        connection.send(pack({"robot_r1::proprio": sent["robot_r1::proprio"]}))
        assert "<robot>::<robot>:head_camera:Camera:0::" in connection.recv(60.0)


def test_our_server_gives_a_chunk_of_its_own_accord():
    with running(make_server(Counting, {"joint": BOXES["joint"]}, {}, "127.0.0.1", 0, chunk=3)) as url:
        one = agent(url)
        assert [one.act({0: SEEN})[0][0] * 8 for _ in range(4)] == [1, 2, 3, 4]
        assert len(one._chunks[0]) == 2  # noqa: SLF001 of the second chunk
        one.end(0)
        one = agent(url, settings=RemoteSettings(timeout_s=60.0, chunk=1))
        assert [one.act({0: SEEN})[0][0] * 8 for _ in range(2)] == [1, 2] and not one._chunks[0]  # noqa: SLF001
        one.end(0)


@pytest.mark.parametrize("answer", [{"action": np.zeros(3), "action_chunk": np.zeros((3, 3))},
                                    {"action": np.ones(3), "action_chunk": np.zeros((2, 3))},
                                    {"action": np.zeros((1, 2, 3))}, {"actions": np.zeros(3)}])
def test_a_chunk_of_behavior_that_does_not_fit_is_refused(answer):
    def talk(connection):
        connection.send(b"\x80")
        for message in connection:
            if unpack(message) != {"reset": True}:
                connection.send(pack(answer))

    with running(serve(talk, "127.0.0.1", 0, compression=None)) as url:
        one = agent(url, settings=RemoteSettings(timeout_s=60.0, chunk=2, protocol="behavior"))
        with pytest.raises(RemoteError, match="answers without actions"):
            one.act({0: SEEN})


# ---------------------------------------------------------------------- the commands

def test_a_skill_and_a_skill_of_a_plan_are_done_by_the_server_of_the_guide(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    guide = runpy.run_path(str(HOME / "examples/remote_policy.py"))
    with running(serve(guide["talk"], "127.0.0.1", 0, compression=None)) as url:
        words = ["workers=1", "remote.image_size=0", "video=0", "sim.num_layouts=4"]
        assert main(["eval", "skill=pick", "agent=remote", f"url={url}", "episodes=2", "skill.max_steps=3", "name=far",
                     *words]) == 0
        assert main(["eval", "hab=tidy_house", f"skills.pick={url}", "skills.navigate=expert", "skills.place=random",
                     "name=far", "planner.max_steps.pick=3", "planner.max_steps.navigate=3", "episodes=1",
                     "hab.max_steps=20", *words]) == 0
    said = capsys.readouterr().out
    assert f"pick    {url}   asked for" in said
    assert re.search(r"^(take|pick up|grasp) the .* \(7,\)$", said,
                     re.MULTILINE), "the guide's server prints what it is asked"
    for what in ("pick", "tidy_house"):
        assert json.loads((tmp_path / f"outputs/eval/{what}/far/status.json").read_text())["status"] == "finished"


def test_a_server_that_fails_in_the_middle_leaves_the_figures_of_what_is_finished(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    lock, count = threading.Lock(), [0]

    def answer(message):
        with lock:
            count[0] += 1
            return pack({"actions": np.zeros((1, 10), np.float32)}) if count[0] < 30 else "ValueError: out of memory"

    with answering(*[answer] * 99) as url, pytest.raises(SystemExit, match="1"):
        main(["eval", "skill=pick", "agent=remote", f"url={url}", "remote.image_size=0", "episodes=12",
              "skill.max_steps=3", "workers=1", "sim.num_layouts=4", "name=cut"])
    said = capsys.readouterr().err
    assert said == f"rearrange eval: the server at {url} reports an error: ValueError: out of memory.\n"
    figures = json.loads((tmp_path / "outputs/eval/pick/cut/metrics.json").read_text())
    assert figures["interrupted"] and 0 < figures["episodes"] < 12


@pytest.mark.parametrize("words, said", [
    ("agent=remote", "agent=remote needs url=, as in url=ws://127.0.0.1:8000."),
    ("url=ws://127.0.0.1:1", "url=ws://127.0.0.1:1 is for agent=remote: add it, or leave url= out."),
    ("agent=remote url=http://here", "url=http://here is not allowed: it must be ws://host:port or null."),
    ("agent=remote url=ws://127.0.0.1:1 remote.timeout_s=0.1", "no policy server answers at ws://127.0.0.1:1: "),
    ("agent=nowhere:Agent", "agent=nowhere:Agent cannot be loaded: ModuleNotFoundError: No module named 'nowhere'"),
    ("agent=mine:number", "agent=mine:number gives no agent, but something of type int: "),
    ("agent=mine:Broken", "agent=mine:Broken fails: ZeroDivisionError: division by zero ("),
    ("agent=mine:Bare", "agent=mine:Bare is called with (observation_space, action_space), which it does not take: "),
    ("agent=mine:act checkpoint=pretrained", "agent=mine:act takes no checkpoint=pretrained: leave one of them out."),
])
def test_a_mistake_is_one_sentence_and_leaves_nothing(words, said, tmp_path, monkeypatch, capsys):
    mine(tmp_path, monkeypatch)
    assert main(["eval", "skill=pick", "episodes=1", "workers=1", "sim.num_layouts=4", *words.split()]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"rearrange eval: {said}") and err.count("\n") == 1 and not (tmp_path / "outputs").exists()


@pytest.mark.parametrize("words, said",
                         [("", "which policy? "),
                          ("skill=pick port=1 host=256.0.0.1", "host=256.0.0.1 port=1 cannot be listened at: "),
                          ("checkpoint=gone.pt", "checkpoint: ")])
def test_what_cannot_be_served_is_one_sentence(words, said, capsys):
    assert main(["serve", *words.split()]) == 2
    assert capsys.readouterr().err.startswith(f"rearrange serve: {said}")


# ---------------------------------------------------------------------- agents in Python

def mine(tmp_path, monkeypatch):
    """A module of a user's own, in the directory where the command is typed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(blocks(HOME / "docs/remote.md", "python")[0] + """

number = 3
act = lambda observation: np.zeros(10)
ready = Agent(None, type("Space", (), {"shape": (10,)}))
make = lambda observation_space, action_space: Agent(observation_space, action_space)
short = lambda observation: np.zeros(9)
nan = lambda observation: np.full(10, np.nan)


class Broken:
    def __init__(self, observation_space, action_space):
        1 / 0


class Bare:
    def act(self, observation):
        return np.zeros(10)
""")
    monkeypatch.syspath_prepend(tmp_path)
    sys.modules.pop("mine", None)


@pytest.mark.parametrize("name", ["Agent", "act", "ready", "make"])
def test_an_agent_of_ones_own_does_a_skill(name, tmp_path, monkeypatch):
    mine(tmp_path, monkeypatch)
    assert main(["eval", "skill=pick", f"agent=mine:{name}", "episodes=2", "workers=1", "skill.max_steps=3",
                 "sim.num_layouts=4", "remote.image_size=0", "name=own"]) == 0
    assert json.loads((tmp_path / "outputs/eval/pick/own/metrics.json").read_text())["agent"] == f"mine:{name}"


@pytest.mark.parametrize("name, said",
                         [("short", r"shape \(9,\): it has to be finite numbers, shape \(10,\)"), ("nan", "finite")])
def test_an_action_of_ones_own_that_is_none_is_one_sentence(name, said, tmp_path, monkeypatch):
    mine(tmp_path, monkeypatch)
    actions = gymnasium.spaces.Box(-1.0, 1.0, (10,), np.float32)
    made = OwnAgent(f"mine:{name}", "agent", 1, gymnasium.spaces.Dict(), actions)
    with pytest.raises(UserError, match=f"^agent=mine:{name} gives an action of .*{said}"):
        made.act({0: {}})


def test_instructions_name_the_object_and_are_the_same_for_the_same_episode():
    env = make_env("pick", split="val", depth_size=0, num_layouts=4)
    said = [env.reset(options={"episode": index})[1]["instruction"] for index in (0, 1, 2, 3, 4, 0)]
    assert said[0] == said[-1] == env.instruction and len({words.split()[0] for words in said}) > 1
    for index, words in enumerate(said[:-1]):
        env.reset(options={"episode": index})
        name = env.episode.objects[env.skill.target].partition("_")[2].replace("_", " ")
        assert name in words and words in env.skill.instructions(env.sim)

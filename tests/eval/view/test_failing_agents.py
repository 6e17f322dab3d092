"""An agent of the user's own that raises, ends the program or never answers stops the episode, and nothing else."""

from __future__ import annotations

import gc
import threading

import pytest

pytest.importorskip("viser", reason="the page needs viser: pip install -e '.[view]'")

from rearrange.command_line.cli import main  # noqa: E402
from tests.waiting import until  # noqa: E402

AGENTS = """
import os, sys, threading
import numpy as np
never = threading.Event()
steps = []

class Broken(Exception):
    def __str__(self):
        raise RuntimeError("this, too")

def acts(do):
    class Agent:
        def __init__(self, observation_space, action_space):
            self.zero = np.zeros(action_space.shape, np.float32)
        def act(self, observation):
            steps.append(1)
            return do(self) if len(steps) > 3 else self.zero
    return Agent

def raises(error):
    def do(agent):
        raise error
    return acts(do)

Exits, Exits0, Interrupts = raises(SystemExit(3)), raises(SystemExit(0)), raises(KeyboardInterrupt())
Raises, Odd = raises(ValueError("\\x1b[2J" + "no " * 1000)), raises(Broken())
Deep, Memory = raises(RecursionError()), raises(MemoryError())
Stops, Ends = raises(StopIteration()), raises(GeneratorExit())
Text, Short = acts(lambda agent: "left"), acts(lambda agent: agent.zero[:2])
Nan = acts(lambda agent: agent.zero * np.nan)
Hangs = acts(lambda agent: never.wait() and agent.zero)

class HangsAtReset(acts(lambda agent: agent.zero)):
    resets = []
    def reset(self, seed):
        self.resets.append(seed)
        if len(self.resets) > 1:
            never.wait()
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A module of agents, imported anew."""
    import sys

    (tmp_path / "my_agents.py").write_text(AGENTS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("eval.view.own_code.ANSWER_S", 0.3)
    sys.modules.pop("my_agents", None)
    yield lambda: sys.modules["my_agents"]
    sys.modules.pop("my_agents").never.set()


@pytest.mark.parametrize("name, reason",
                         [("Exits", "SystemExit: 3"), ("Exits0", "SystemExit: 0"),
                          ("Interrupts", "ends the program (KeyboardInterrupt"), ("Raises", "fails: ValueError"),
                          ("Odd", "fails: Broken"), ("Deep", "fails: RecursionError"), ("Memory", "fails: MemoryError"),
                          ("Stops", "fails: StopIteration"), ("Ends", "ends the program (GeneratorExit"),
                          ("Text", "gives an action of 'left'"), ("Short", "gives an action of shape (2,)"),
                          ("Nan", "has to be finite numbers"), ("Hangs", "has not answered (act)")])
def test_an_agent_that_fails_stops_its_episode_and_another_takes_over(running, mine, name, reason, capfd):
    made = running("skill=pick", f"agent=my_agents:{name}", "paused=true")
    viewer = made.viewer
    with made.visit() as one, made.visit() as other:
        until(lambda: len(viewer._server.get_clients()) == 2, "both")
        one.set(one.element("Play"), "Play")
        for tries in (1, 2):
            for each in (one, other):
                until(lambda each=each,
                      tries=tries: (each.look()
                                    and tries == sum(reason in str(message) for message in each.shown if message["type"]
                                                     == "NotificationShowMessage")), "a note in every browser")
            assert viewer.session.env.steps == 3 and not viewer.playing
            if tries == 1:
                other.set(other.element("Play"), "Play")
        other.set(other.element("Agent"), "random")
        until(lambda: viewer._agent == "random" or made.errors, "another agent")
        other.set(other.element("Play"), "Play")
        until(lambda: viewer.session.env.steps > 3 or made.errors, "its steps")
    made.lives()
    said = capfd.readouterr().err
    assert f"agent=my_agents:{name} " in said and "Traceback" not in said and max(map(len, said.splitlines())) < 1100


def test_an_agent_that_takes_long_goes_on_with_its_answer(running, mine):
    made = running("skill=pick", "agent=my_agents:Hangs")
    viewer = made.viewer
    until(lambda: not viewer.playing, "patience to end")
    mine().never.set()
    with made.visit() as visitor:
        visitor.set(visitor.element("Play"), "Play")
        until(lambda: viewer.session.env.steps > 5 or made.errors, "steps")
    assert not made.errors
    assert len(mine().steps) >= viewer.session.env.steps, "the answer that came late was an action, too"


def test_an_agent_that_is_not_chosen_any_more_gives_its_thread_back(view, mine):
    viewer = view("skill=pick", "agent=my_agents:Nan", "paused=true")

    def threads() -> int:
        gc.collect()
        return sum(thread.name == "agent=my_agents:Nan" for thread in threading.enumerate())

    for agent in ("zero", "my_agents:Nan", "zero", "my_agents:Nan"):
        viewer._do_agent(agent)
    until(lambda: threads() == 1, "the end of the threads of agents before")


def test_an_agent_that_hangs_as_an_episode_begins_is_given_up(running, mine):
    made = running("skill=pick", "agent=my_agents:HangsAtReset", "paused=true")
    viewer = made.viewer
    with made.visit() as visitor:
        visitor.set(visitor.element("Play"), "Next")
        until(lambda: viewer.session.done or made.errors, "patience to end")
        assert viewer.session.reason == "it cannot be begun"
        visitor.set(visitor.element("Agent"), "zero")
        until(lambda: viewer._agent == "zero" or made.errors, "another agent")
    made.lives()


@pytest.mark.parametrize("code, reason",
                         [("import sys; sys.exit(0)", "cannot be loaded: SystemExit: 0"),
                          ("raise SystemExit", "cannot be loaded: SystemExit"), ("x = 1 / 0", "ZeroDivisionError")])
def test_an_agent_that_fails_as_it_is_loaded_is_one_sentence(code, reason, tmp_path, monkeypatch, capsys):
    (tmp_path / f"ends_{abs(hash(code))}.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["view", "skill=pick", f"agent=ends_{abs(hash(code))}:Agent", "port=0"]) == 2
    said = capsys.readouterr().err
    assert reason in said and said.count("\n") == 1


def test_what_fails_in_the_page_itself_does_not_end_it(running, monkeypatch, capfd):
    made = running("skill=pick", "agent=zero")
    failed = threading.Event()

    def fails(*_: object) -> None:
        failed.set()
        raise RuntimeError("the drawing")

    with monkeypatch.context() as patched:
        patched.setattr(made.viewer, "_show_sight", fails)
        assert failed.wait(60)
        until(lambda: not made.viewer.playing or made.errors, "the end of playing")
    made.lives()
    said = capfd.readouterr().err
    assert said.count("RuntimeError: the drawing (") == 1 and "test_failing_agents.py:" in said

"""Networks and agents of foreign packages that raise, exit or share a name: one sentence, and no command looks
finished.
"""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

from eval.own_agents import OwnAgent
from rearrange.command_line.cli import main
from rearrange.home.errors import UserError
from rearrange.home.settings import installed_parts, own_networks
from tests.e2e.front_door import TINY
from trainer import PolicyConfig
from trainer.networks import make

MODULE = """
class Rude(Exception):
    def __str__(self):
        raise ValueError


def exits(observation_space, action_space, config):
    raise SystemExit(0)


def shouts(observation_space, action_space, config):
    raise ValueError("\\x1b[2J" + "x" * 1_000_000)


class Agent:
    def __init__(self, observation_space, action_space):
        pass

    def act(self, observation):
        raise SystemExit


number = 3
"""
AT_IMPORT = {"raises": "1 / 0", "exits": "import sys; sys.exit(0)",
             "shouts": "raise ValueError('\\x1b[31m' + 'x' * 1_000_000)",
             "cancels": "import asyncio; raise asyncio.CancelledError", "mute": "class Rude(Exception):\n    __str__ "
             "= lambda self: 1 / 0\nraise Rude", "bottomless": "f = lambda: f()\nf()", "bad": "def"}


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """Makes packages that are installed, with their entry points."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nets_of_others.py").write_text(MODULE)
    for name, code in AT_IMPORT.items():
        (tmp_path / f"net_that_{name}.py").write_text(code)

    def install(package: str, points: str) -> None:
        place = tmp_path / f"{package}-1.0.dist-info"
        place.mkdir()
        (place / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (place / "entry_points.txt").write_text(f"[rearrange.policies]\n{points}\n")
        installed_parts.forget()

    yield install
    installed_parts.forget()


def refused(capsys, *words: str) -> str:
    assert main(list(words)) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and error[:-1].isprintable() and len(error) < 1000
    return error


@pytest.mark.parametrize("name", AT_IMPORT)
def test_a_network_that_cannot_be_imported_is_one_sentence(name, packages, capsys):
    packages("others", f"theirs = net_that_{name}:Net")
    assert "policy=theirs cannot be loaded: " in refused(capsys, "train", *TINY[:1], "policy=theirs")
    assert f"agent=net_that_{name}:Agent cannot be loaded: " in refused(capsys, "eval", "skill=pick",
                                                                        f"agent=net_that_{name}:Agent", "episodes=1")


@pytest.mark.parametrize(
    "value, said",
    [("nets_of_others:number", "is no network, but of type int"), ("nets_of_others:exits", "make_policy ends "
                                                                   "Python|policy= ends"),
     ("nets_of_others:shouts", r"ValueError: \\x1b\[2Jx"), ("nets_of_others", "is no network, but of type module"),
     ("nets_of_others:", "cannot be loaded|is no network"), ("not a place", "cannot be loaded")])
def test_an_entry_point_that_is_no_network_is_one_sentence(value, said, packages, capsys):
    import re

    packages("others", f"theirs = {value}")
    error = refused(capsys, "train", *TINY, "policy=theirs",
                    "steps=64")
    assert re.search(said, error), error


def test_two_packages_that_call_different_networks_alike_are_named(packages, capsys):
    packages("one", "same = nets_of_others:exits\nalike = nets_of_others:shouts")
    packages("two", "same = nets_of_others:number\nalike = nets_of_others:shouts")
    with pytest.raises(UserError, match="policy=same is what several installed packages call a network "
                       ".nets_of_others:exits by one, nets_of_others:number by two.: write package.module:Name, or "
                       "uninstall one"):
        own_networks.load("same", "policy")
    assert own_networks.load("alike", "policy").__name__ == "shouts"
    packages("three", "cpc = nets_of_others:shouts")
    with pytest.raises(UserError, match="policy=cpc is what several"):
        own_networks.load("cpc", "policy")


def test_a_name_of_ours_stays_ours(packages):
    from rearrange.command_line.composition.parse_overrides import compose

    packages("others", "light = nets_of_others:exits\nblind = nets_of_others:exits")
    assert compose("train", ["skill=pick", "policy=blind"]).value("policy.network") is None


def test_a_network_or_an_agent_that_exits_ends_nothing_silently(packages):
    import nets_of_others

    box = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
    with pytest.raises(RuntimeError, match="make_policy ends Python"):
        make(nets_of_others.exits, box, box, PolicyConfig())
    agent = OwnAgent("nets_of_others:Agent", "agent", 1, gymnasium.spaces.Dict(), box)
    with pytest.raises(UserError, match="agent=nets_of_others:Agent fails: SystemExit: SystemExit"):
        agent.act({0: {}})

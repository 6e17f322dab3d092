"""render_mode="human": a window shows what render_mode="rgb_array" gives, at each reset and step."""

from __future__ import annotations

import sys

import gymnasium
import numpy as np
import pytest

import rearrange  # noqa: F401
from rearrange.home.errors import UserError
from tests.rearrange.screen import Screen

SMALL = {"Pick-v0": {"depth_size": 0, "num_layouts": 2}, "PointNav-v0": {"depth_size": 0, "num_homes": 2},
         "TidyHouse-v0": {"depth_size": 0, "num_layouts": 2}}


@pytest.fixture
def screen(monkeypatch):
    made = Screen()
    monkeypatch.setitem(sys.modules, "tkinter", made.tkinter)
    return made


@pytest.mark.parametrize("name", SMALL)
def test_each_reset_and_step_is_shown(name, screen):
    watched, pictures = (gymnasium.make(f"rearrange/{name}", render_mode=mode, **SMALL[name]) for mode
                         in ("human", "rgb_array"))
    assert screen.open and watched.render_mode == "human"
    expected = []
    for env in (watched, pictures):
        env.reset(seed=3)
        expected.append(pictures.render() if env is pictures else None)
        env.action_space.seed(0)
        for _ in range(2):
            env.step(env.action_space.sample())
            expected.append(pictures.render() if env is pictures else None)
    assert len(screen.pictures) == 3
    assert all(np.array_equal(a, b) for a, b in zip(screen.pictures, expected[3:], strict=True))
    assert watched.render() is None and len(screen.pictures) == 4, "asked for, it is shown once more"
    watched.close()
    assert not screen.open


def test_who_closes_the_window_sees_no_more_and_the_environment_goes_on(screen):
    env = gymnasium.make("rearrange/PointNav-v0", render_mode="human", **SMALL["PointNav-v0"])
    env.reset(seed=0)
    screen.update = screen.close
    env.step(1)
    assert not screen.open and len(screen.pictures) == 2
    env.step(1)
    env.reset()
    env.close()
    assert len(screen.pictures) == 2


@pytest.mark.parametrize("name", SMALL)
def test_without_a_display_one_sentence_says_what_to_do(name, monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    with pytest.raises(UserError, match=r'^render_mode="human" .*use render_mode="rgb_array".*\.$') as refused:
        gymnasium.make(f"rearrange/{name}", render_mode="human", **SMALL[name])
    assert "\n" not in str(refused.value)


def test_without_tk_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "tkinter", None)
    with pytest.raises(UserError, match="python3-tk"):
        gymnasium.make("rearrange/PointNav-v0", render_mode="human", **SMALL["PointNav-v0"])

"""Agents in the scenes of a data set. A home of ours, exported and read again, is the home that it was: its floor and its depth."""

import math

import numpy as np
import pytest

from rearrange.command_line.cli import main
from rearrange.errors import UserError
from rearrange.mujoco_scenes.floor import floor_of
from rearrange.mujoco_scenes.scene import pieces_of
from rearrange.navigation import make_env
from rearrange.navigation.homes import WALL_M
from rearrange.navigation.homes_in_use import load_home
from rearrange.navigation.scripted import SCRIPTED

AGENT = (0.1, 1.5)


@pytest.fixture(scope="module")
def data_set(tmp_path_factory):
    """The configuration of val/0 as a data set."""
    folder = tmp_path_factory.mktemp("exported") / "homes"
    assert main(["scenes", "export", f"out={folder}", "count=1", "episodes_of=[]"]) == 0
    return folder / "rearrange.scene_dataset_config.json"


@pytest.fixture(scope="module")
def env(data_set):
    return make_env("pointnav", scene_dataset=str(data_set), split="val", depth_size=32)


def test_floor_and_depth_are_those_of_the_home(data_set, env):
    env.reset(options={"episode": 0})
    scene, ours = env.home, load_home("val/small/0", *AGENT)
    _, low, _ = floor_of(pieces_of(data_set, "val_0000"), "val_0000")
    shift = low + WALL_M
    inside = [ours.is_free(*(np.array(scene.center(k)) + shift)) for k in range(0, len(scene.cells), 7)]
    assert np.mean(inside) > 0.97 and abs(len(scene.cells) / len(ours.cells) - 1) < 0.03
    home = make_env("pointnav", split="val", depth_size=32)
    home.reset(options={"episode": 0})
    home.home = ours
    rng, near = np.random.default_rng(0), []
    for k in rng.integers(len(scene.cells), size=12):
        x, y = scene.center(int(k))
        env.pose = (x, y, float(rng.uniform(-math.pi, math.pi)))
        home.pose = (x + shift[0], y + shift[1], env.pose[2])
        near.append(np.abs(env._look()["depth"] - home._look()["depth"]) < 0.005)
    assert np.mean(near) > 0.97


def test_the_oracle_and_the_map_reach_goals_there(data_set, env):
    assert env.reset(options={"episode": 3})[1]["scene"] == "rearrange/val_0000"
    mapped = make_env("pointnav", scene_dataset=str(data_set), split="val", depth_size=128)
    for place, name in ((env, "oracle"), (mapped, "map")):
        agent = SCRIPTED[name](place)
        observation, _ = place.reset(options={"episode": 3})
        agent.begin()
        over = False
        while not over:
            observation, _, terminated, truncated, info = place.step(agent.act(observation))
            over = terminated or truncated
        assert info["success"] and info["metrics"]["spl"] > 0.8, name


@pytest.mark.parametrize("settings, words", [
    ({"task": "objectnav"}, "nav=objectnav is for our homes"), ({"agent": "fetch"}, "is for nav.agent=cylinder"),
    ({"scenes": "nowhere_*"}, "nav.scenes=nowhere_.*: no scene of .* is called 'nowhere_"),
    ({"random_light": 0.5}, "sim.random_light= is for our homes"), ({"observations": ("rgb",)}, "sim.observations= is for our homes"),
    ({"radius_m": 0.5, "height_m": 2.4, "scene_dataset": "/nowhere.scene_dataset_config.json"}, "nowhere"),
])
def test_mistakes_are_one_sentence(data_set, settings, words):
    given = {"task": "pointnav", "scene_dataset": str(data_set), "split": "val"} | settings
    with pytest.raises(UserError, match=words) as error:
        make_env(given.pop("task"), **given)
    assert "\n" not in str(error.value)


def test_scenes_need_a_data_set():
    with pytest.raises(UserError, match="nav.scenes=a needs nav.scene_dataset="):
        make_env("pointnav", scenes="a")

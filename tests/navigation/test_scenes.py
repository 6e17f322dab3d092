"""Agents in the scenes of a data set. A home of ours, exported and read again, is the home that it was: its floor and
its depth.
"""

import json
import math

import numpy as np
import pytest

from rearrange.command_line.cli import main
from rearrange.home.axis_conventions import to_y_up
from rearrange.home.errors import UserError
from rearrange.home.simulation.scenes.floor import floor_of
from rearrange.home.simulation.scenes.scene import pieces_of
from rearrange.navigation import make_env
from rearrange.navigation.home_cache import load_home
from rearrange.navigation.homes import WALL_M
from rearrange.navigation.scripted_agents import SCRIPTED
from tests.navigation.player import play

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
        _, info = play(place, SCRIPTED[name](place), 3)
        assert info["success"] and info["metrics"]["spl"] > 0.8, name


def habitats(path, *episodes, **changes):
    """A file of Habitat's with these starts (x, y, yaw) and goals, in the frame of its scene's files."""
    entries = [
        {"episode_id": str(k), "scene_id": "data/homes/scenes/val_0000.scene_instance.json",
         "start_position": to_y_up((*start[:2], 0.0)),
         "start_rotation": [0, math.sin((start[2] - math.pi / 2) / 2), 0, math.cos((start[2] - math.pi / 2) / 2)],
         "goals": [{"position": to_y_up((*goal, 0.0))}], "info": {"geodesic_distance": 2.0}}
        | changes for k, (start, goal) in enumerate(episodes)]
    path.write_text(json.dumps({"episodes": entries}))
    return str(path)


def test_habitats_episodes_begin_and_end_where_they_say(data_set, env, tmp_path):
    env.reset(options={"episode": 4})
    ours, (x0, y0, _) = env.episode, env.home.origin_m
    (x, y, yaw), (gx, gy) = ours.start, ours.goal
    file = habitats(tmp_path / "val.json", ((x + x0, y + y0, yaw), (gx + x0, gy + y0)))
    listed = make_env("pointnav", scene_dataset=str(data_set), split="val", depth_size=32, episodes=file)
    seen, info = listed.reset(options={"episode": 0})
    theirs, _ = env.reset(options={"episode": 4})
    assert listed.listed == 1 and info["episode_id"] == "rearrange/val_0000/0"
    assert np.allclose(seen["pointgoal"], theirs["pointgoal"],
                       atol=1e-5) and np.allclose(seen["depth"], theirs["depth"], atol=1e-4)
    words = ["eval", "nav=pointnav", f"nav.scene_dataset={data_set}", f"nav.episodes={file}", "agent=oracle",
             "episodes=5", "workers=1"]
    assert main([*words, f"output={tmp_path}", "name=a"]) == 0
    figures = json.loads((tmp_path / "eval" / "pointnav" / "a" / "metrics.json").read_text())
    assert figures["episodes"] == 1 and figures["success"] == 1.0


@pytest.mark.parametrize("start, changes, words",
                         [((-5.0, 0.0, 0.0), {}, "the start of episode 0 is not on the floor of rearrange/val_0000"),
                          ((0.0, 0.0, 0.0), {"scene_id": "gibson/Adrian.glb"}, "episode 0 is in the scene "
                           "gibson/Adrian.glb, and .* has no 'Adrian'")])
def test_episodes_that_have_no_place_are_refused(data_set, tmp_path, start, changes, words):
    with pytest.raises(UserError, match=words):
        make_env("pointnav", scene_dataset=str(data_set), depth_size=0,
                 episodes=habitats(tmp_path / "val.json", (start, (1.0, 1.0)), **changes)).reset(options={"episode": 0})


@pytest.mark.parametrize(
    "settings, words",
    [({"task": "objectnav"}, "nav=objectnav is for our homes"), ({"agent": "fetch"}, "is for nav.agent=cylinder"),
     ({"scenes": "nowhere_*"}, "nav.scenes=nowhere_.*: no scene of .* is called 'nowhere_"),
     ({"random_light": 0.5}, "sim.random_light= is for our homes"), ({"observations": ("rgb",)}, "sim.observations= "
                                                                     "is for our homes"),
     ({"radius_m": 0.5, "height_m": 2.4, "scene_dataset": "/nowhere.scene_dataset_config.json"}, "nowhere")])
def test_mistakes_are_one_sentence(data_set, settings, words):
    given = {"task": "pointnav", "scene_dataset": str(data_set), "split": "val"} | settings
    with pytest.raises(UserError, match=words) as error:
        make_env(given.pop("task"), **given)
    assert "\n" not in str(error.value)


def test_a_scene_without_a_floor_is_refused(tmp_path):
    (tmp_path / "void.xml").write_text('<mujoco><worldbody><geom type="box" size="1 1 0.4" pos="0 0 '
                                       '0.4"/></worldbody></mujoco>')
    with pytest.raises(UserError, match="scene void of .* has no floor") as error:
        make_env("pointnav", scene_dataset=str(tmp_path), scenes="void", depth_size=16).reset(seed=0)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("settings, words", [
    ({"task": "flee"}, "sim=habitat is for nav=pointnav and nav=objectnav"),
    ({"episodes": None}, "nav=pointnav sim=habitat needs nav.scene_dataset=.* and nav.episodes="),
    ({"task": "objectnav", "segmentation": False}, "episode 0 is one of PointNav: write nav=pointnav"),
])
def test_what_habitat_cannot_have_is_one_sentence_and_needs_no_habitat(data_set, tmp_path, settings, words):
    file = habitats(tmp_path / "val.json", ((1.0, 1.0, 0.0), (2.0, 2.0)))
    given = {"task": "pointnav", "sim": "habitat", "scene_dataset": str(data_set), "episodes": file} | settings
    with pytest.raises(UserError, match=words) as error:
        make_env(given.pop("task"), **given)
    assert "\n" not in str(error.value)

"""Homes with furniture as varied as the world's: what varies, and how fronts without a bar are held."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest

from rearrange.command_line.cli import main
from rearrange.env import HomeSettings
from rearrange.home.apartments.episodes import read_episodes
from rearrange.home.apartments.kept_layouts import scene_layout
from rearrange.home.errors import UserError
from rearrange.home.simulation.mujoco.build_model import handle_part
from rearrange.home.simulation.mujoco.compiled_home import FRONT_REACH_M, load_home
from rearrange.home.simulation.mujoco.simulator import MujocoSimulator
from rearrange.home.simulation.scenes.scene_simulator import SceneSimulator
from rearrange.home.simulation.simulator_interface import SimulatorConfig
from skills import make_env
from skills.experts import expert_class

SPLITS = ("train", "val", "test", "unseen")


@pytest.fixture(scope="module")
def layouts():
    return {split: [scene_layout(f"wide/{split}/{index}") for index in range(90)] for split in SPLITS}


def spread(values):
    return min(values), max(values)


@pytest.mark.parametrize("split", SPLITS)
def test_every_split_offers_what_furniture_is_sold_in(layouts, split):
    """Low and high ends, each to be passed by the homes of every split."""
    bodies = [body for layout in layouts[split] for body in layout.bodies]
    drawers = [body for body in bodies if body.joint == "slide"]
    doors = [handle_part(body) for body in bodies if body.joint == "hinge"]
    fronts = [body.parts[0] for body in drawers]
    bottoms = [body.position_m[2] + front.center_m[2] - front.half_size_m[2] for body, front in zip(drawers, fronts)]
    stand_off = [handle_part(body).center_m[0] for body in drawers]
    boards = [place for layout in layouts[split] for place in layout.receptacles if place.kind in ("shelf", "fridge")]
    offered = {
        "bottom of a front": (bottoms, 0.08, 0.75),
        "width of a front": ([2 * f.half_size_m[1] for f in fronts], 0.42, 0.85),
        "height of a front": ([2 * f.half_size_m[2] for f in fronts], 0.18, 0.36),
        "stand-off of a bar": (stand_off, 0.0, 0.055),
        "handle of a fridge": ([part.center_m[2] for part in doors], 0.90, 1.35),
        "stand-off at a fridge": ([part.center_m[0] for part in doors], 0.04, 0.11),
        "friction of a drawer": ([body.friction_n_or_nm for body in drawers], 0.02, 2.0),
        "height of a board": ([place.center_m[2] for place in boards], 0.14, 1.15),
        "room above a board": ([p.clearance_m for p in boards if math.isfinite(p.clearance_m)], 0.13, 0.55),
        "height of a table": ([place.center_m[2] for layout in layouts[split] for place in layout.receptacles
                               if place.kind == "table"], 0.55, 0.9)}
    for what, (values, low, high) in offered.items():
        assert min(values) <= low and max(values) >= high, f"{what}: {spread(values)}"
    flat = np.mean([not handle_part(body).solid for body in drawers])
    assert 0.25 < flat < 0.75


def test_homes_of_version_0_2_are_as_they_were_and_apart(layouts):
    assert scene_layout("train/0").name == "train/0" and layouts["train"][0].name == "wide/train/0"
    assert all(handle_part(body).solid for index in range(30) for body in scene_layout(f"val/{index}").bodies)
    with pytest.raises(UserError, match="no split called 'wide/moon'"):
        scene_layout("wide/moon/0")


@pytest.fixture(scope="module")
def flat(layouts):
    """A simulator in a home with a flat-fronted drawer, and the drawer's name."""
    layout, name = next((layout, body.name) for layout in layouts["val"] for body in layout.bodies
                        if body.joint == "slide" and not handle_part(body).solid)
    home = load_home(layout.name)
    data = mujoco.MjData(home.model)
    return home, data, name


def test_a_flat_front_is_held_near_its_middle_and_a_bar_anywhere(flat):
    home, data, name = flat
    k = home.handles.index(name)
    assert home.handle_reach_m[k] == FRONT_REACH_M
    assert home.silent_while_held[k] == (home.model.geom("suction_cup").id,)
    front = np.flatnonzero(home.model.geom_bodyid == home.model.body(name).id)
    assert set(front) <= set(np.flatnonzero(home.handle_of_geom == k))
    mark = home.model.geom(f"{name}_handle")
    assert mark.contype[0] == mark.conaffinity[0] == 0  # nothing meets the line that shows where it is held
    for other, reach in zip(home.handles, home.handle_reach_m):
        bar = handle_part(next(body for body in home.layout.bodies if body.name == other)).solid
        assert (reach == math.inf) == bar


def test_a_flat_front_is_pulled_open_by_suction():
    """The expert opens one, and holds it by no more than the reach."""
    env = make_env("open_cabinet", split="val", furniture="wide", depth_size=0)
    for index in range(60):
        env.reset(options={"episode": index})
        task = env.unwrapped
        body = next(body for body in task.sim.home.layout.bodies if body.name == task.skill.target_handle)
        if not handle_part(body).solid:
            break
    expert, held_at = expert_class("open_cabinet")(task.sim, task.skill), []
    for _ in range(200):
        _, _, terminated, truncated, info = env.step(expert.act())
        if task.sim.held_handle:
            held_at.append(math.dist(task.sim.ee_position, task.sim.handle_position(body.name)))
        if terminated or truncated:
            break
    assert info["is_success"] and held_at and held_at[0] <= FRONT_REACH_M


def test_episodes_take_place_in_the_homes_that_are_asked_for():
    assert HomeSettings("val", furniture="wide").homes == "wide/val" and HomeSettings("val").homes == "val"
    env = make_env("pick", split="val", furniture="wide", depth_size=0)
    env.reset(options={"episode": 3})
    assert env.unwrapped.episode.scene.startswith("wide/val/")  # the next one where it cannot begin
    assert env.unwrapped.scene.generated_episode("pick", 3).scene == "wide/val/3"
    with pytest.raises(UserError, match="furniture"):
        HomeSettings("val", furniture="narrow")
    env = make_env("pick", split="val", furniture="both", depth_size=0)
    scenes = [env.unwrapped.scene.generated_episode("pick", index).scene for index in range(40)]
    assert 10 < sum(scene.startswith("wide/val/") for scene in scenes) < 30
    assert scenes == [env.unwrapped.scene.generated_episode("pick", index).scene for index in range(40)]
    with pytest.raises(UserError, match="sim.furniture=both is for sim=mujoco.*: choose one of standard, wide"):
        HomeSettings("val", furniture="both", sim="habitat")


def test_wide_homes_are_exported_and_read_back(tmp_path):
    """The first three have a ceiling, walls alone, and neither."""
    out = tmp_path / "homes"
    assert main(["scenes", "export", f"out={out}", "count=3", "furniture=wide", "episodes_of=[open_cabinet]"]) == 0
    episodes = read_episodes(out / "episodes" / "wide" / "val" / "open_cabinet.json.gz")
    scene, ours = SceneSimulator(SimulatorConfig(), out / "rearrange.scene_dataset_config.json"), MujocoSimulator()
    for index, episode in enumerate(episodes):
        assert episode.scene == f"wide/val/{index}"
        scene.reset(scene.convert_episode(episode)), ours.reset(episode)
        places = {place.name for place in scene.home.layout.receptacles}
        assert {place.name for place in ours.home.layout.receptacles} == places
        assert np.allclose(scene.home.layout.size_m, ours.home.layout.size_m, atol=0.35), "not the ground beyond"


def test_some_flat_fronts_show_a_bar_that_nothing_touches():
    shown = {}
    for index in range(60):
        layout = scene_layout(f"wide/train/{index}")
        for body in layout.bodies:
            named = {part.name: part for part in body.parts}
            bar, handle = named.get(f"{body.name}_bar"), named[f"{body.name}_handle"]
            if bar:
                assert not bar.solid and not handle.solid and bar.center_m[0] >= handle.center_m[0] + 0.02
            shown.setdefault(body.name.split("_")[0], []).append(bool(bar) if not handle.solid else None)
    for kind, found in shown.items():
        flat = [each for each in found if each is not None]
        assert flat.count(True) > 3 and flat.count(False) > 3, kind


@pytest.mark.parametrize("split", SPLITS)
def test_the_robot_can_stand_before_a_fridge_whatever_its_handle(split):
    """A flat front is looked at to its surface, and a bar at the height of the eyes to its middle."""
    env, handles, elsewhere = make_env("open_fridge", split=split, furniture="wide", depth_size=0), set(), 0
    for index in range(16):
        env.reset(options={"episode": index})
        task = env.unwrapped
        elsewhere += task.episode.scene != f"wide/{split}/{index}"  # in the next one where it cannot begin
        handles.add(handle_part(next(body for body in task.sim.home.layout.bodies if body.joint == "hinge")).solid)
    assert handles == {True, False} and elsewhere <= 1

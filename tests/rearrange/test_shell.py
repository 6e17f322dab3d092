"""What encloses wide homes, and what a robot sees where walls, ceiling or the floor of a file are missing."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from rearrange.home.apartments.episodes import Handoff
from rearrange.home.apartments.kept_layouts import scene_layout
from rearrange.home.apartments.layouts import WALL_HEIGHT_M
from rearrange.home.apartments.segmentation import BUILDING, names_of, numbers_of
from rearrange.home.apartments.shell import GROUND_M, with_shell
from rearrange.home.errors import UserError
from rearrange.home.pictures.looks import PLAIN
from skills import make_env
from skills.experts import expert_class
from skills.experts.steering import Steering
from tests.rearrange.unnamed_flat import write_flat

SPLITS = ("train", "val", "test", "unseen")


def kind(layout) -> str:
    walls = any(name == "building/wall" for name in seen_of(layout))
    return "closed" if layout.ceiling_m else "open above" if walls else "no walls"


def seen_of(layout) -> list[str]:
    names = names_of(layout)
    return [names[number] for number in numbers_of(layout)[0]]


@pytest.mark.parametrize("split", SPLITS)
def test_wide_homes_are_closed_open_above_or_without_walls(split):
    layouts = [scene_layout(f"wide/{split}/{index}") for index in range(60)]
    count = Counter(map(kind, layouts))
    assert min(count[each] for each in ("closed", "open above", "no walls")) >= 6, count
    for layout in layouts:
        walls = [part.top_m for part in layout.parts if part.name.startswith("wall_")]
        on_walls = [part.top_m for part in layout.parts if part.name.startswith(("window", "entrance"))]
        assert bool(on_walls) == bool(walls and min(walls) > 2.1) and (not on_walls or min(walls) > max(on_walls))
        assert layout.ceiling_m in (None, *walls) and (walls or layout.ground_m == GROUND_M)
    for index in range(30):  # as they were
        layout = scene_layout(f"{split}/{index}")
        assert layout.ceiling_m == WALL_HEIGHT_M == max(part.top_m for part in layout.parts if part.name == "wall_0")


def test_another_shell_leaves_every_piece_of_furniture_as_it_is():
    layout, kinds = scene_layout("val/2"), set()
    for seed in range(12):
        other = with_shell(layout, np.random.default_rng(seed))
        kinds.add(kind(other))
        assert replace(other, parts=layout.parts, furniture=layout.furniture, ceiling_m=layout.ceiling_m,
                       ground_m=layout.ground_m) == layout
        for before, after in zip(layout.furniture, other.furniture, strict=True):
            assert [layout.parts[k] for k in before.parts] == [other.parts[k] for k in after.parts]
        rugs = [part for part in layout.parts if part.name == "rug"]
        assert [part for part in other.parts if part.name == "rug"] == rugs
    assert len(kinds) == 3


@pytest.fixture(scope="module")
def looks():
    """Of each kind of home, what the robot sees at the start of episodes of Navigate: depth, and what it is."""
    env, found = make_env("navigate", depth_size=0, furniture="wide", split="val"), {}
    for episode in range(40):
        env.reset(options={"episode": episode})
        sim = env.unwrapped.sim
        seen = sim.photograph("head", 64, ("depth", "segmentation"), PLAIN)
        found.setdefault(kind(sim.home.layout), []).append((seen["depth"], seen["segmentation"]))
    return found


def test_above_a_home_without_a_ceiling_there_is_nothing(looks):
    far = {each: np.mean([np.mean(depth[:12] == 1.0) for depth, _ in seen]) for each, seen in looks.items()}
    assert far["closed"] == 0.0 < 0.1 < far["open above"] < far["no walls"], far
    for each, seen in looks.items():
        ceilings = [np.any(things == BUILDING["ceiling"]) for _, things in seen]
        assert any(ceilings) == (each == "closed")
        assert all(np.any(things == BUILDING["floor"]) for _, things in seen) or each != "no walls"


@pytest.fixture
def outside():
    """An episode of Navigate in a home without walls, and a way to put the robot anywhere."""
    env = make_env("navigate", depth_size=0, furniture="wide", split="val")
    episode = next(k for k in range(60) if kind(scene_layout(f"wide/val/{k}")) == "no walls")
    env.reset(options={"episode": episode})
    return env, env.unwrapped


@pytest.mark.parametrize("side", ["west", "east", "south", "north"])
@pytest.mark.parametrize("beyond_m", [0.1, 3.0])
def test_a_robot_that_has_left_a_home_without_walls_is_led_back(outside, side, beyond_m):
    """By the expert that knows the home, and by the advice that knows what has been seen of it."""
    env, task = outside
    size_x, size_y = task.sim.home.layout.size_m
    x, y = {"west": (-beyond_m, size_y / 2), "east": (size_x + beyond_m, size_y / 2),
            "south": (size_x / 2, -beyond_m), "north": (size_x / 2, size_y + beyond_m)}[side]
    for agent in ("expert", "steering"):
        task.sim.place_robot(x, y, math.atan2(size_y / 2 - y, size_x / 2 - x))
        task.skill.begin(task.sim, task.skill.arguments)
        before_m = task.skill.distance_m(task.sim)
        expert, steering = expert_class("navigate")(task.sim, task.skill), Steering(task.sim, task.skill)
        for _ in range(300):
            _, _, terminated, truncated, _ = env.step(expert.act() if agent == "expert" else steering.advice()[:-1])
            if terminated or truncated or task.skill.distance_m(task.sim) < before_m - min(1.0, before_m / 2):
                break
        assert task.skill.distance_m(task.sim) < before_m - min(1.0, before_m / 2), (agent, task.sim.base_pose)
        env.reset(options={"episode": int(task.episode.scene.rpartition("/")[2])})


@pytest.mark.parametrize("beyond_m, why", [(11.9, ""), (12.1, "must be on the floor, -12 .. ")])
def test_plans_may_hand_over_on_the_ground_around_a_home_without_walls(outside, beyond_m, why):
    _, task = outside
    env = make_env("pick", depth_size=0)
    handed = replace(task.episode, robot_start=(-beyond_m, 1.0, 0.0), handoff=Handoff("pick", 0))
    if not why:
        env.reset(options={"episode": handed})
        assert env.unwrapped.sim.base_pose[0] == pytest.approx(-beyond_m)
        return
    with pytest.raises(UserError, match=why):
        env.reset(options={"episode": handed})


GROUND = {"a plane": '<geom type="plane" size="3 3 0.1"/>', "nothing": "",
          "a plane that is not shown": '<geom type="plane" size="3 3 0.1" group="4"/>',
          "a plane of no colour": '<geom type="plane" size="3 3 0.1" rgba="0 0 0 0"/>'}


@pytest.mark.parametrize("floor", GROUND)
def test_a_robot_sees_what_it_stands_on_whatever_its_file_says_of_the_floor(tmp_path, floor):
    """The camera looks ahead: the nearer half of what it sees of a floor is less than 10 m away, nothing is as far."""
    env = make_env("pick", depth_size=0, split="val",
                   scene_dataset=str(write_flat(tmp_path / "flat.xml", floor=GROUND[floor])))
    env.reset(seed=0, options={"episode": 0})
    sim = env.unwrapped.sim
    sim.place_robot(2.5, 2.5, 0.0)
    seen = sim.photograph("head", 64, ("depth", "segmentation"), PLAIN)
    below = seen["depth"][40:]
    assert below.max() < 1.0 and np.any(seen["segmentation"][40:] == BUILDING["floor"])

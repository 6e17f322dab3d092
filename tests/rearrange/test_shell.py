"""What encloses wide homes, and what a robot sees where walls, ceiling or the floor of a file are missing."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from rearrange.home.apartments.kept_layouts import scene_layout
from rearrange.home.apartments.layouts import WALL_HEIGHT_M
from rearrange.home.apartments.segmentation import BUILDING, names_of, numbers_of
from rearrange.home.apartments.shell import GROUND_M, with_shell
from rearrange.home.pictures.looks import PLAIN
from skills import make_env
from skills.experts import expert_class
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
        assert not on_walls or min(walls) > max(on_walls)
        assert layout.ceiling_m in (None, *walls) and (walls or layout.ground_m == GROUND_M)
    for index in range(30):  # as they were
        layout = scene_layout(f"{split}/{index}")
        assert layout.ceiling_m == WALL_HEIGHT_M == max(part.top_m for part in layout.parts if part.name == "wall_0")


def test_another_shell_leaves_every_piece_of_furniture_as_it_is():
    layout = scene_layout("val/2")
    for seed in range(12):
        other = with_shell(layout, np.random.default_rng(seed))
        assert replace(other, parts=layout.parts, furniture=layout.furniture, ceiling_m=layout.ceiling_m,
                       ground_m=layout.ground_m) == layout
        for before, after in zip(layout.furniture, other.furniture, strict=True):
            assert [layout.parts[k] for k in before.parts] == [other.parts[k] for k in after.parts]
        rugs = [part for part in layout.parts if part.name == "rug"]
        assert [part for part in other.parts if part.name == "rug"] == rugs


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


def test_a_robot_that_has_left_a_home_without_walls_drives_back():
    env = make_env("navigate", depth_size=0, furniture="wide", split="val")
    task = env.unwrapped
    for episode in range(60):
        env.reset(options={"episode": episode})
        if kind(task.sim.home.layout) == "no walls":
            break
    task.sim.place_robot(-2.0, task.sim.home.layout.size_m[1] / 2, 3.0)
    task.skill.begin(task.sim, task.skill.arguments)
    expert, over, info = expert_class("navigate")(task.sim, task.skill), False, {}
    while not over:
        _, _, terminated, truncated, info = env.step(expert.act())
        over = terminated or truncated
    assert info["is_success"]


def test_a_file_that_says_nothing_of_a_floor_shows_one(tmp_path):
    seen = {}
    for name, floor in (("with", '<geom type="plane" size="3 3 0.1"/>'), ("without", "")):
        env = make_env("pick", depth_size=0, split="val",
                       scene_dataset=str(write_flat(tmp_path / f"{name}.xml", floor=floor)))
        env.reset(seed=0, options={"episode": 0})
        seen[name] = env.unwrapped.sim.depth_image(64)[-1]
    assert seen["without"].max() < 0.2 and np.allclose(*seen.values(), atol=0.2)

"""Scenes without a layout, as ReplicaCAD's with HAB's episodes: what is found out is right; skills and plans run there.

The scenes are exported homes, read without anything that says so.
"""

from __future__ import annotations

import json
import math
import shutil

import numpy as np
import pytest

from planner.scenario_env import ScenarioEnv
from planner.scenarios import load_scenario
from rearrange.command_line.cli import main
from rearrange.env.home_env import HomeSettings
from rearrange.home.apartments.episodes import read_episodes
from rearrange.home.apartments.floor_grid import floor_grid
from rearrange.home.apartments.kept_layouts import scene_layout
from rearrange.home.apartments.segmentation import OBJECT, ROBOT
from rearrange.home.errors import UserError
from rearrange.home.pictures.looks import PLAIN
from rearrange.home.simulation.mujoco.build_model import handle_part
from skills import make_env
from tests.habitat.others import as_of_others

pytestmark = pytest.mark.habitat

CLOSE_M = 0.005


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Two homes with episodes, and the same as external scenes."""
    ours = tmp_path_factory.mktemp("ours") / "homes"
    kinds = "[pick,place,navigate,open_fridge,open_cabinet,close_cabinet,close_fridge,set_table]"
    assert main(["scenes", "export", f"out={ours}", "count=2", f"episodes_of={kinds}"]) == 0
    config = ours / "rearrange.scene_dataset_config.json"
    return ours, as_of_others(config, tmp_path_factory.mktemp("others") / "data")


def settings(data, kind: str) -> dict:
    return {"sim": "habitat", "scene_dataset": str(data[1]), "split": "val",
            "episodes": data[1].parent / "episodes" / "val" / f"{kind}.json.gz"}


@pytest.fixture(scope="module")
def found(data):
    """Environment in the second of the homes as an external scene, and our layout of it."""
    env = make_env("pick", depth_size=16, **settings(data, "pick"))
    env.reset(options={"episode": 1})
    return env, scene_layout("val/1")


def in_ours(env, point) -> np.ndarray:
    """A point of the found world in the one that it was exported from."""
    return np.add(point[:3], env.sim.home.origin_m)


def test_receptacles_are_where_ours_are(found):
    env, ours = found
    theirs = env.sim.home.layout
    assert theirs.blocked_floor is not None and theirs.name == "others/val_0001"
    assert {r.name for r in theirs.receptacles} == {r.name for r in ours.receptacles}
    for expected in ours.receptacles:
        made = theirs.receptacle(expected.name)
        assert (made.link, made.closed) == (expected.link, expected.closed)
        assert (made.kind == "fridge") == (expected.kind == "fridge")
        assert np.allclose(made.half_extents_m, expected.half_extents_m, atol=CLOSE_M)
        if expected.parent is None:
            assert np.allclose(in_ours(env, made.center_m), expected.center_m, atol=CLOSE_M)
            for side in expected.sides:  # a few more are no harm: the search for a start tries them
                assert any(np.allclose(side, other, atol=0.02) for other in made.sides), expected.name


def test_drawers_and_doors_move_as_ours(found):
    env, ours = found
    theirs = {body.name: body for body in env.sim.home.layout.bodies}
    assert set(theirs) == {body.name for body in ours.bodies}
    for expected in ours.bodies:
        made = theirs[expected.name]
        assert made.joint == expected.joint and np.allclose(made.range_m_or_rad, expected.range_m_or_rad, atol=1e-5)
        for opening in (0.0, 0.4):
            name = handle_part(expected).name
            here, there = (next(part.center_m for part in body.parts_at(opening) if part.name == name)
                           for body in (made, expected))
            assert np.allclose(in_ours(env, here), there, atol=CLOSE_M)


def test_what_is_in_a_drawer_is_found_there_however_far_it_is_open(found):
    from rearrange.home.apartments.containers import inside_at

    env, _ = found
    layout = env.sim.home.layout
    for receptacle in layout.receptacles:
        if receptacle.parent is None:
            continue
        body = next(body for body in layout.bodies if body.name == receptacle.parent)
        for opening in (0.0, 0.5):
            x, y, _ = body.pose(opening)
            c, s = math.cos(body.yaw_rad), math.sin(body.yaw_rad)
            dx, dy, dz = receptacle.center_m
            point = (x + c * dx - s * dy, y + s * dx + c * dy, body.position_m[2] + dz + 0.03)
            assert inside_at(layout, point, body.name, opening)


def test_the_floor_and_its_distances_are_ours(found):
    env, ours = found
    x0, y0, z0 = env.sim.home.origin_m
    assert abs(z0) < CLOSE_M
    expected, made = floor_grid(ours), floor_grid(env.sim.home.layout)
    agree = np.mean([made.is_reachable(x - x0, y - y0) for x, y in expected.points_m])
    assert agree > 0.95 and abs(made.reachable.mean() / expected.reachable.mean() - 1) < 0.2
    rng = np.random.default_rng(0)
    for _ in range(5):
        start, end = expected.points_m[rng.integers(len(expected.points_m), size=2)]
        way = made.distances_to((start[0] - x0, start[1] - y0)).at(end[0] - x0, end[1] - y0)
        assert way == pytest.approx(expected.distances_to(start).at(*end), abs=0.3)


def test_an_episode_is_the_one_that_was_exported(found, data):
    env, _ = found
    file = data[0] / "episodes" / "val" / "pick.json.gz"
    ours, theirs = read_episodes(file)[1], env.episode
    assert theirs.target_receptacles == ours.target_receptacles and theirs.goal_receptacles == ours.goal_receptacles
    assert theirs.articulated == pytest.approx(ours.articulated)
    for here, there in zip(theirs.start_poses, ours.start_poses):
        assert np.allclose(in_ours(env, here), there[:3], atol=1e-6)
    assert env.sim.settle_distance_m < 0.01
    assert env.sim.convert_episode(theirs) is theirs


def test_robot_and_camera_stand_where_they_stand_in_our_home(found, settings_of_ours):
    env, _ = found
    own = make_env("pick", depth_size=16, **settings_of_ours)
    own.reset(options={"episode": 1})
    x0, y0, _ = env.sim.home.origin_m
    x, y, yaw = own.sim.base_pose
    env.sim.place_robot(x - x0, y - y0, yaw)
    assert np.allclose(in_ours(env, env.sim.ee_position), own.sim.ee_position, atol=1e-3)
    assert not env.sim.robot_collides()
    assert np.abs(env.sim.depth_image(64) - own.sim.depth_image(64)).mean() * 10 < 0.01


def test_a_stages_margin_does_not_press_on_the_base(data, tmp_path):
    """ReplicaCAD has stages with one of a centimetre; with two the floor would press."""
    folder = shutil.copytree(data[1].parent, tmp_path / "data")
    for path in (folder / "stages").glob("*.stage_config.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"margin": 0.02}))
    changed = settings(data, "navigate") | {"scene_dataset": str(folder / data[1].name)}
    env = make_env("navigate", depth_size=0, **changed)
    env.reset(options={"episode": 0})
    for _ in range(10):
        env.sim.step(base=[0.0, 0.5])
        assert env.sim.base_force_n < 1.0
    assert env.sim.world.stage_margin_m == pytest.approx(0.02)


@pytest.fixture(scope="module")
def settings_of_ours(data):
    return {"sim": "habitat", "scene_dataset": str(data[0] / "rearrange.scene_dataset_config.json"), "split": "val",
            "num_layouts": 2}


def test_its_own_cameras_show_colours_and_the_numbers_of_things(data):
    env = make_env("pick", depth_size=64, observations=["rgb", "arm_rgb", "arm_depth", "segmentation"], camera_size=64,
                   **settings(data, "pick"))
    observation, info = env.reset(options={"episode": 0})
    assert env.observation_space.contains(observation) and len(np.unique(observation["rgb"])) > 8
    names, numbers = info["segmentation_names"], observation["segmentation"][:, :, 0]
    assert set(np.unique(numbers)) <= set(names) and ROBOT["arm"] in numbers
    alone = env.sim.photograph("head", 64, ("depth",), PLAIN)["depth"]
    assert np.abs(alone - env.sim.depth_image(64)).mean() * 10 < 0.01, "from where the depth image is taken"
    numbers = env.sim.photograph("head", 256, ("segmentation",), PLAIN)["segmentation"][:, :, 0]
    _, owners = env.sim.owner_image(256)
    shown = numbers >= OBJECT
    assert shown.sum() > 200 and (numbers[shown] == OBJECT + owners[shown]).mean() > 0.98
    assert (owners >= 0).sum() < 1.3 * shown.sum()  # which takes in what is close to an object, where it stands
    with pytest.raises(UserError, match="sim.random_colors="):
        make_env("pick", depth_size=0, observations=["rgb"], random_colors=1.0, **settings(data, "pick")).reset(seed=0)


@pytest.mark.parametrize("skill", ["place", "navigate", "open_cabinet", "close_fridge"])
def test_a_skill_starts_and_runs(skill, data):
    env = make_env(skill, depth_size=16, **settings(data, skill))
    env.reset(options={"episode": 0})
    assert not env.sim.robot_collides() or skill == "place"
    for _ in range(5):
        observation, reward, *_ = env.step(np.zeros(env.action_space.shape))
        assert env.observation_space.contains(observation) and math.isfinite(reward)
    assert skill != "place" or env.sim.held == env.skill.target


def evaluated(data, tmp_path, kind, *words):
    """The folder of an evaluation on the episodes of a kind."""
    chosen = f"{'hab' if kind == 'set_table' else 'skill'}={kind}"
    assert main(["eval", chosen, "sim=habitat", f"sim.scene_dataset={data[1]}", "video=0", "workers=1", "name=it",
                 f"sim.episodes={settings(data, kind)['episodes']}", f"output={tmp_path}", *words]) == 0
    return tmp_path / "eval" / kind / "it"


@pytest.mark.parametrize(("kind", "agent"), [("open_fridge", "pretrained"), ("pick", "expert")])
def test_a_pretrained_policy_and_an_expert_that_plans_on_what_collides_succeed(kind, agent, data, tmp_path):
    made = evaluated(data, tmp_path, kind, f"agent={agent}", "episodes=2")
    assert json.loads((made / "metrics.json").read_text())["success"] >= 0.5


def test_a_plan_is_made_and_begun_with_pretrained_skills(data, tmp_path):
    names = ("navigate", "pick", "place", "open_cabinet", "open_fridge")
    made = evaluated(data, tmp_path, "set_table", "agent=tp_srl", *(f"skills.{name}=pretrained" for name in names),
                     "episodes=1")
    text = (made / "plan.txt").read_text()
    assert "open_cabinet" in text and "open_fridge" in text


def test_pictures_of_a_plan_need_no_camera_of_habitats(data):
    env = ScenarioEnv(load_scenario("set_table"), HomeSettings(depth_size=0, **settings(data, "set_table")))
    env.reset(options={"episode": 0})
    picture = env.sim.picture(np.array((2.0, 2.0, 2.0)), np.array((*env.sim.base_pose[:2], 0.5)), [], (64, 48))
    assert picture.shape == (48, 64, 3) and len(np.unique(picture)) > 8


def test_episodes_are_generated_in_its_scenes(data):
    """The very ones of the embedded simulator, with objects of ours where the data set has none."""
    shared = {"depth_size": 0, "scene_dataset": str(data[1]), "split": "val"}
    there, here = make_env("pick", sim="habitat", **shared), make_env("pick", **shared)
    assert there.numbered_episode(1) == here.numbered_episode(1)
    there.reset(options={"episode": 1})
    assert there.episode.scene == "others/val_0001" and there.sim.settle_distance_m < 0.05
    with pytest.raises(UserError, match="no scene of split test"):
        make_env("pick", depth_size=0, sim="habitat", scene_dataset=str(data[1]), split="test").reset(seed=0)

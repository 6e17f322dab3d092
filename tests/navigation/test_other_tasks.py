"""ObjectNav, Flee and Exploration: what counts, by hand."""

import math

import gymnasium
import numpy as np
import pytest

import rearrange  # noqa: F401 registers the ids
from rearrange.env.registration import environment_id
from rearrange.home.apartments.floor_grid import CELL_M
from rearrange.home.errors import UserError
from rearrange.home.settings.environment import NAVIGATION
from rearrange.navigation import make_env
from rearrange.navigation.objectnav import footprint_distance, view_points
from rearrange.navigation.scripted_agents import SCRIPTED
from rearrange.navigation.settings import CATEGORIES
from tests.navigation.player import play

STOP, FORWARD, LEFT = range(3)


@pytest.fixture(scope="module")
def env():
    return make_env("objectnav", depth_size=64, split="val", num_homes=3)


def test_every_home_has_the_nine_categories_and_each_can_be_seen(env):
    for index in range(6):
        env.reset(options={"episode": index})
        kinds = {piece.kind for piece in env.home.building.furniture}
        assert all(kinds & set(CATEGORIES[name]) for name in env.config.categories)
        assert env.config.categories == tuple(CATEGORIES)[:9] and env.episode.category in env.config.categories


def test_from_a_view_point_the_piece_is_near_and_seen(env):
    env.reset(options={"episode": 1})
    building = env.home.building
    number = next(k for k, piece in enumerate(building.furniture) if piece.kind == "sofa")
    cells = view_points(env.home, number, 1.0, env.config.camera_height_m, env.config.fov_deg)
    assert len(cells) > 20 and footprint_distance((cells + 0.5) * CELL_M, building.furniture[number]).max() <= 1.0
    env.task.wanted = env.home.shapes.piece == number
    for i, j in cells[::15]:
        x, y = (i + 0.5) * CELL_M, (j + 0.5) * CELL_M
        goal = building.furniture[number].footprint
        env.pose = (x, y, math.atan2(goal[1] - y, goal[0] - x))
        assert env._look()["segmentation"].mean() >= 0.005


def test_the_mask_shows_the_category_and_nothing_else(env):
    for index in range(8):
        observation, _ = env.reset(options={"episode": index})
        mask = observation["segmentation"]
        assert set(np.unique(mask)) <= {0.0, 1.0}
        assert observation["objectgoal"].sum() == 1 and list(
            CATEGORIES)[observation["objectgoal"].argmax()] == env.episode.category
    env.task.wanted = np.zeros_like(env.task.wanted)
    assert not env._look()["segmentation"].any()


def test_the_oracle_finds_everything_and_its_reward_adds_up(env):
    agent = SCRIPTED["oracle"](env)
    for index in range(6):
        total, info = play(env, agent, index)
        if info["success"]:
            made = env.task.start_m - info["metrics"]["distance_to_goal_m"]
            assert total == pytest.approx(made + 2.5 - 0.001 * info["metrics"]["episode_steps"], abs=1e-6)
    assert info["metrics"]["distance_to_goal_m"] < 0.5


def test_what_no_home_has_is_said():
    """Nobody sees anything from 1 cm away."""
    env = make_env("objectnav", depth_size=0, split="val", num_homes=2, view_m=0.01)
    with pytest.raises(UserError, match="nothing of nav.categories"):
        env.reset(seed=0)


def test_fleeing_is_paid_by_the_share_of_the_farthest_way():
    env = make_env("flee", depth_size=0, split="val", num_homes=2, max_steps=60)
    env.reset(options={"episode": 2})
    total, rng = 0.0, np.random.default_rng(0)
    for _ in range(60):
        _, reward, terminated, truncated, info = env.step(int(rng.choice([FORWARD, FORWARD, LEFT, STOP])))
        total += reward
    assert truncated and not terminated
    assert total == pytest.approx(5 * info["metrics"]["fled_share"]) and 0 <= info["metrics"]["fled_share"] <= 1


def test_exploring_is_paid_once_for_each_square():
    env = make_env("explore", depth_size=0, split="val", num_homes=2, max_steps=200)
    env.reset(options={"episode": 0})
    rng, total, visited = np.random.default_rng(0), 0.0, {tuple(int(v) for v in env.pose[:2])}
    for _ in range(200):
        _, reward, _, truncated, info = env.step(int(rng.choice([FORWARD, FORWARD, LEFT, STOP])))
        visited.add(tuple(int(v) for v in env.pose[:2]))
        total += reward
    counted = info["metrics"]["explored_m2"]
    assert truncated and counted == len(visited & env.task._squares)
    assert total / 0.25 in (counted, counted - 1), "the first square may be the start's"
    assert env.step(STOP)[1] == 0.0


@pytest.mark.parametrize("task", NAVIGATION)
def test_episodes_are_the_same_for_the_same_number(task):
    a, b = (gymnasium.make(environment_id(task), depth_size=16, num_homes=2) for _ in range(2))
    first, second = a.reset(options={"episode": 9})[0], b.reset(options={"episode": 9})[0]
    assert all(np.array_equal(first[key], second[key]) for key in first)


def test_a_home_without_any_of_the_categories_is_passed_over():
    env = make_env("objectnav", categories=("wardrobe",), split="val", depth_size=0)
    for index in range(12):
        env.reset(seed=0, options={"episode": index})
        assert env.episode.category == "wardrobe" and env.home.building.name == env.episode.scene
    with pytest.raises(UserError, match="64 homes of split val have no goal for nav=objectnav; the last: home .* has "
                       "nothing of"):
        make_env("objectnav", categories=("plant",), split="val", depth_size=0).reset(seed=0, options={"episode": 0})

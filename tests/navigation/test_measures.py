"""Laws of the measures of navigation, by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest

from eval.path_figures import BINS_M, path_figures
from rearrange.home.errors import UserError
from rearrange.navigation import make_env
from rearrange.navigation.agent import LEFT, STOP
from rearrange.navigation.goals import soft_spl, spl


def test_spl_of_a_failure_is_zero_and_of_a_perfect_success_one():
    assert spl(False, 5.0, 5.0) == 0.0 and spl(True, 5.0, 5.0) == 1.0
    assert spl(True, 5.0, 10.0) == 0.5, "twice as far is worth half"
    assert spl(True, 5.0, 4.9) == 1.0, "never above 1: success stops short of the goal"


@pytest.mark.parametrize("driven_m, right", [(0.0, 1.0), (0.002, 1.0), (0.5, 0.0)])
def test_spl_of_a_start_at_its_goal_is_one_for_who_stops_there(driven_m, right):
    assert spl(True, 0.0, driven_m) == right and spl(False, 0.0, driven_m) == 0.0


@pytest.mark.parametrize("task, agent", [("pointnav", "cylinder"), ("pointnav", "fetch"), ("objectnav", "cylinder")])
def test_an_episode_that_begins_at_its_goal_is_worth_one_to_who_stops_and_nothing_to_who_does_not(task, agent):
    env = make_env(task, agent=agent, split="val", depth_size=0, num_homes=1, max_steps=3, actions="discrete")
    env.reset(options={"episode": 0})
    assert not env.begins_solved
    home, episode = env.home, env.episode
    x, y = next((x, y) for x, y in map(home.center, range(len(home.cells))) if env.task.field.at(x, y) < 1e-6)
    for action, right in ((STOP, 1.0), (LEFT, 0.0)):
        env._begin(home, replace(episode, start=(x, y, 0.0)), True)
        assert env.begins_solved
        over = False
        while not over:
            _, _, terminated, truncated, info = env.step(action)
            over = terminated or truncated
        metrics = info["metrics"]
        assert (metrics["success"], metrics["spl"], metrics["soft_spl"]) == (right, right, right)


def test_generated_episodes_do_not_begin_within_success():
    env = make_env("pointnav", split="val", depth_size=0, success_m=3.0, num_homes=8)
    for number in range(20):
        env.reset(options={"episode": number})
        assert not env.begins_solved and env.task.start_m >= 3.0
    with pytest.raises(UserError, match="have success where they begin"):
        make_env("explore", split="val", depth_size=0, success_share=0.001, num_homes=2).reset(options={"episode": 0})


def test_soft_spl_needs_no_stop():
    assert soft_spl(4.0, 4.0, 0.0) == 1.0
    assert soft_spl(4.0, 2.0, 2.0) == 0.5, "half way on the shortest way"
    assert soft_spl(4.0, 8.0, 2.0) == 0.25, "half way, on a way twice as long"
    assert soft_spl(4.0, 1.0, 5.0) == 0.0, "farther than at the start"


@pytest.mark.parametrize("shortest_m, row", [(0.5, 0), (2.0, 1), (9.99, 4), (29.0, 7), (31.0, 7)])
def test_an_episode_counts_in_the_bin_of_its_distance(shortest_m, row):
    figures = path_figures([{"spl": 0.5, "success": 1.0, "shortest_m": shortest_m}])
    assert [(r["from_m"], r["to_m"]) for r in figures["by_distance"]] == [(BINS_M[row], BINS_M[row + 1])]


def test_bins_add_up_to_the_whole():
    rng = np.random.default_rng(0)
    episodes = [{"spl": float(s * rng.uniform(0.5, 1)), "success": float(s), "shortest_m": float(rng.uniform(1, 30))}
                for s in rng.integers(2, size=200)]
    rows = path_figures(episodes)["by_distance"]
    assert sum(r["episodes"] for r in rows) == 200
    for key in ("success", "spl"):
        assert math.isclose(sum(r[key] * r["episodes"] for r in rows), sum(e[key] for e in episodes))
    low, high = path_figures(episodes)["spl_interval_95"]
    assert low < np.mean([e["spl"] for e in episodes]) < high


def test_skills_have_no_such_figures():
    assert path_figures([{"success": 1.0}]) == {}

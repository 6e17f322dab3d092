"""Laws of the measures of navigation, by hand."""

import math

import numpy as np
import pytest

from eval.path_figures import BINS_M, path_figures
from rearrange.navigation.goals import soft_spl, spl


def test_spl_of_a_failure_is_zero_and_of_a_perfect_success_one():
    assert spl(False, 5.0, 5.0) == 0.0 and spl(True, 5.0, 5.0) == 1.0
    assert spl(True, 5.0, 10.0) == 0.5, "twice as far is worth half"
    assert spl(True, 5.0, 4.9) == 1.0, "never above 1: success stops short of the goal"


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

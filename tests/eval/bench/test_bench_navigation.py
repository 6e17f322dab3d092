"""The benchmark of PointNav: it plays real episodes."""

import json

import pytest

from eval.bench import navigation
from eval.bench.navigation import bench_navigation, table
from rearrange.home.errors import UserError


def test_it_measures(monkeypatch):
    monkeypatch.setattr(navigation, "NUM_HOMES", 4)
    monkeypatch.setattr(navigation, "EPISODES", 24)
    result = bench_navigation(depth_size=16, seconds=0.2)
    json.dumps(result)
    assert result["steps"] > 200 and 5 < result["steps_per_episode"] <= 150
    assert result["steps_per_s_with_resets"] < result["steps_per_s"] and result["image_us"] < result["step_us"] + 50
    assert "16x16 depth" in table(result)[0]
    with pytest.raises(UserError, match="seconds=0"):
        bench_navigation(seconds=0)

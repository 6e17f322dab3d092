"""The simulator benchmark: it measures the real environment, and its parts add up."""

from __future__ import annotations

import json

import pytest

from eval.bench.sim import bench_sim, table
from rearrange.home.errors import UserError


def test_it_measures_and_the_parts_add_up():
    result = bench_sim(depth_size=64, seconds=0.5)
    json.dumps(result)
    assert result["steps"] > 200 and result["objects"] >= 14
    assert sum(result["parts_ms"].values()) == pytest.approx(result["step_ms"]["mean"])
    assert all(value > 0 for value in result["parts_ms"].values())
    assert result["steps_per_s"] == pytest.approx(1000 / result["step_ms"]["mean"], rel=0.01)
    assert result["steps_per_s_with_resets"] < result["steps_per_s"]
    assert result["steps_per_s"] > 50  # a loaded machine is no failure; what takes a hundred times as long is
    lines = table(result)
    assert "64x64 depth" in lines[0] and any("physics" in line for line in lines)


def test_it_refuses_no_time():
    with pytest.raises(UserError, match="seconds=0"):
        bench_sim(seconds=0)

"""Brute force: every trained step of every mode against its environment's own story (tests/trainer/every_step.py)."""

from __future__ import annotations

import json

import pytest

from tests.trainer.every_step import check, train_watched
from tests.trainer.ranks.test_ranks import run

MODES = {
    "ver": {}, "two inference workers": {"inference_workers": 2, "min_batch": 1}, "overlap": {"overlap": True},
    "overlap, three inference workers": {"overlap": True, "inference_workers": 3}, "nover": {"mode": "nover"},
    "ddppo": {"mode": "ddppo"},
    "hts": {"mode": "hts", "overlap": True}, "appo": {"mode": "appo"},
    "appo, three inference workers, four rollouts": {"mode": "appo", "inference_workers": 3, "max_lag": 4},
}


@pytest.mark.parametrize("mode", MODES)
def test_every_trained_step_is_what_its_environment_tells(mode):
    """Ratios to the policy at the beginning of the update are for what collects while it learns, and for nothing
    else."""
    counts = check(train_watched(480, **MODES[mode]))
    assert counts["steps"] >= 480 and counts["versions"] >= 5 and counts["learned"] >= 2 * 320
    assert min(counts["by limit"], counts["ended"], counts["cut"], counts["states"]) > 10
    late = "appo" in mode or MODES[mode].get("overlap", False)
    assert counts["late"] == counts["batches"] * late
    assert counts["oldest"] <= (MODES[mode].get("max_lag", 2) if late else 1)


def test_every_trained_step_of_two_ranks_is_what_its_environment_tells(tmp_path):
    """One of them is far slower, so that rollouts are cut short and filled with the one before (on a busy machine also
    the other's)."""
    run(2, "every_step", tmp_path)
    filled = 0
    for rank in range(2):
        for mode, counts in json.loads((tmp_path / f"every_step_{rank}.json").read_text()).items():
            assert counts["steps"] > 150 and counts["learned"] > 300, (rank, mode, counts)
            assert counts["oldest"] <= 2
            late = mode in ("overlap", "appo")
            assert counts["late"] == counts["batches"] * late, "whatever it was filled with"
            filled += counts["filled"]
    assert filled > 0, "nothing was filled: this shows nothing of it"

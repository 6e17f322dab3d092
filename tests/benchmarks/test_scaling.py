"""The model of preemption: by hand, against the engine's own planning, and the command."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks import run as run_benchmark
from benchmarks.collection_model import (
    LONGEST,
    RULES,
    Workload,
    best_in_hindsight,
    ddppo_preemption,
    full_at,
    no_preemption,
    variable,
    ver_preemption,
)
from benchmarks.synthetic_env import PRESETS, StepCost
from tests.benchmarks.synchronous_model import fixed_s, synchronous_s


def clockwork(step_s, rollout_steps=4, learn_s=2.0):
    """Environments with a step every step_s (ranks, N): the workload, and when their steps are done."""
    step_s = np.asarray(step_s, float)
    work = Workload(StepCost(1.0), *step_s.shape, rollout_steps, learn_s)
    return work, step_s[..., None] * np.arange(1, LONGEST * rollout_steps + 1), step_s


def test_one_rank_by_hand():
    work, done_s, step_s = clockwork([[1.0, 2.0]], learn_s=3.0)
    # the first environment answers at 1, 2 ... 6, the second at 2, 4, 6: the eighth answer comes at 6
    assert full_at(work, done_s)[0] == 6 and full_at(work, done_s, 0.25)[0] == 2
    for rule in RULES.values():  # alone, nothing is gained by an early end
        ends = rule(work, done_s, step_s)
        assert ends.seconds == 6 and ends.steps.tolist() == [8]


def test_a_slow_rank_by_hand():
    """Ranks of one environment, T = 4; the fast are done at 4, the slow one gives a step every 8 s."""
    work, done_s, step_s = clockwork([[1.0], [1.0], [1.0], [8.0]])
    assert no_preemption(work, done_s, step_s).seconds == 32
    ddppo = ddppo_preemption(work, done_s, step_s)
    assert ddppo.seconds == 8 and ddppo.steps.tolist() == [4, 4, 4, 1]  # a quarter at least
    for rule in (ver_preemption, best_in_hindsight):  # 12 / (4 + 2) beats 13 / (8 + 2) and 16 / (32 + 2)
        ends = rule(work, done_s, step_s)
        assert ends.seconds == 4 and ends.steps.tolist() == [4, 4, 4, 0]


def test_long_learning_makes_waiting_worthwhile():
    work, done_s, step_s = clockwork([[1.0], [1.5]], learn_s=100.0)
    assert ver_preemption(work, done_s, step_s).steps.tolist() == [4, 4]


def test_synchronous_and_fixed_by_hand():
    work = Workload(StepCost(1.0), 1, 2, 2)
    times = np.array([[[1.0, 3.0, 1.0, 1.0], [2.0, 1.0, 1.0, 5.0]]])
    assert synchronous_s(work, times) == 2 * (2 + 3 + 1 + 5) / 4
    assert fixed_s(work, times) == (4 + 6) / 2


def test_nobody_beats_hindsight_and_ver_comes_close():
    cost = StepCost(**(vars(PRESETS["v100"]) | {"sigma_env": 0.4}))
    work = Workload(cost, ranks=16, envs=4, rollout_steps=32, learn_s=0.4)
    times = work.step_times(0, 8)
    speed = {name: variable(work, rule, times)[0] for name, rule in RULES.items()}
    assert speed["none"] < speed["ver"] and 0.97 * speed["best"] < speed["ver"]
    assert max(speed.values()) < 1.01 * speed["best"]
    assert variable(work, no_preemption, times)[1] == 1.0 > variable(work, ver_preemption, times)[1]


WORDS = "name=s model_ranks=2 num_envs=4 rollout_steps=16 rollouts=2 seeds=2 repeats=1"


def test_the_command_with_the_model_alone(tmp_path, capsys):
    assert run_benchmark("scaling", [*WORDS.split(), "measured_ranks=0", f"output={tmp_path}"]) == 0
    result = json.loads((tmp_path / "bench" / "scaling" / "s" / "bench.json").read_text())
    assert list(result["model"]) == ["1", "2"] and set(result["model"]["2"]) == set(RULES) and not result["measured"]
    assert result["model"]["1"]["ver"]["share_of_best"]["mean"] == pytest.approx(1, abs=0.02)
    assert "VER's rule" in capsys.readouterr().out


@pytest.mark.slow
def test_the_command_with_real_ranks(tmp_path, capsys):
    """One rank, and two under each rule."""
    words = f"{WORDS} measured_ranks=2 measured_envs=2 measured_steps=8 updates=2 time_scale=0.05"
    assert run_benchmark("scaling", [*words.split(), f"output={tmp_path}"]) == 0
    result = json.loads((tmp_path / "bench" / "scaling" / "s" / "bench.json").read_text())
    assert set(result["measured"]["1"]) == {"none"} and set(result["measured"]["2"]) == {"none", "ddppo", "ver"}
    assert all(row["mean"] > 0 for rank in result["measured"].values() for row in rank.values())
    assert "2 ranks" in capsys.readouterr().out

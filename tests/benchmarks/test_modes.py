"""Comparing modes: what a skill is trained with, and what an interruption does."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from benchmarks import modes as bench_modes
from benchmarks.settings import Modes
from rearrange.home.errors import UserError

SETTINGS = Modes(env="pendulum", modes=("ver", "nover"), steps=5000, seeds=2, policy="blind", num_envs=4)


@pytest.mark.parametrize("reason", ["SIGTERM", "SIGINT"])
def test_an_interruption_ends_all_runs_not_only_the_one_under_way(monkeypatch, tmp_path, reason):
    calls = []

    def stopped(make_env, config):
        calls.append(config)
        return SimpleNamespace(history=[], reason=reason)

    monkeypatch.setattr("trainer.train", stopped)
    with pytest.raises(KeyboardInterrupt):
        bench_modes.run_bench(SETTINGS, SimpleNamespace(path=tmp_path, say=print))
    assert len(calls) == 1 and not (tmp_path / "curves.json").exists()


def test_a_skill_explores_as_in_rearrange_train():
    _, config = bench_modes._task(replace(SETTINGS, env="pick"))
    stds = config.policy.log_std_init
    assert isinstance(stds, tuple) and stds[-1] < stds[0]  # the base shakes less than the arm


def test_navigation_is_trained_as_in_rearrange_train():
    make_env, config = bench_modes._task(replace(SETTINGS, env="pointnav", policy="light"))
    assert config.policy.encoder == "light"
    assert make_env().observation_space["pointgoal"].shape == (4,)
    with pytest.raises(UserError, match="env=chess is neither pendulum nor a skill nor a task of navigation: "
                       "close_cabinet"):
        bench_modes._task(replace(SETTINGS, env="chess"))


def test_a_mode_is_told_by_steps_and_by_minutes(tmp_path):
    runs = {"ver": [[(50, 0.0, 1.0), (100, 1.0, 2.0)]], "ddppo": [[(50, 0.0, 2.0), (100, 1.0, 4.0)]]}
    rows = bench_modes.table(runs, steps=100)
    assert rows["ver"]["last_fifth"] == rows["ddppo"]["last_fifth"] == 1.0
    assert rows["ver"]["steps_per_s"] == 100 / 120 and rows["ddppo"]["steps_per_s"] == 100 / 240
    assert bench_modes.rows_as_text(rows, "success")[-1].startswith("| ddppo | 0.500 | 1.000 | 1.000 | 0 |")
    bench_modes.draw(runs, 100, "two", "success", tmp_path / "curves.png")
    pytest.importorskip("matplotlib", reason="there is no picture without matplotlib")
    assert (tmp_path / "curves.png").exists()

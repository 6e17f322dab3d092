"""Comparing modes: what a skill is trained with, and what an interruption does."""

from types import SimpleNamespace

import pytest

from eval.bench import modes as bench_modes

SETTINGS = {"env": "pendulum", "modes": ["ver", "nover"], "steps": 5000, "seeds": 2, "seed": 0, "policy": "blind", "num_envs": 4}


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
    _, config = bench_modes._task(SETTINGS | {"env": "pick"})
    stds = config.policy.log_std_init
    assert isinstance(stds, tuple) and stds[-1] < stds[0]  # the base shakes less than the arm

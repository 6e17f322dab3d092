"""Callbacks: they see the run at four moments, and any of them can end it."""

from __future__ import annotations

import os
import subprocess

import pytest
import torch

from tests.trainer.toys import Pointer, Uneven
from trainer import CollectConfig, PolicyConfig, PPOConfig, TrainConfig, load_checkpoint, train
from trainer.callbacks import MOMENTS, Callback
from trainer.logs.logger import read_jsonl

MODES = [dict(mode="ver"), dict(mode="nover"), dict(mode="ddppo"), dict(mode="hts", overlap=True),
         dict(mode="ver", overlap=True), dict(mode="appo")]


def config(steps: int = 10**9, collect: dict = MODES[0], **settings) -> TrainConfig:
    return TrainConfig(steps=steps, log_every_s=1e-9, checkpoint_every_s=1e-9, torch_threads=1,
                       policy=PolicyConfig(encoder=None, lstm_layers=1, hidden_size=8, body_size=16,
                                           normalize_observations=False),
                       ppo=PPOConfig(epochs=1, mini_batches=2),
                       collect=CollectConfig(num_envs=4, num_workers=2, rollout_steps=8, **collect), **settings)


class Watch(Callback):
    """Keeps what it is shown; at some moment it asks to stop."""

    def __init__(self, stop_at: str = "", times: int = 3):
        self.seen: list[tuple] = []  # (moment, state, a weight)
        for moment in MOMENTS:
            setattr(self, moment, lambda state, moment=moment: self._keep(moment, state, stop_at, times))

    def _keep(self, moment, state, stop_at, times):
        self.seen.append((moment, state, state.policy.value.weight.detach().clone()))
        return "enough" if moment == stop_at and [m for m, *_ in self.seen].count(moment) == times else None


def test_each_moment_shows_the_run(tmp_path):
    watch = Watch()
    result = train(Pointer, config(steps=96), tmp_path, callbacks=(watch,), progress=False)
    assert [moment for moment, *_ in watch.seen] == list(MOMENTS) * 3, "three updates of 32 steps"
    rows = read_jsonl(tmp_path / "metrics.jsonl")
    for number in range(3):
        of = {moment: (state, weight) for moment, state, weight in watch.seen[4 * number : 4 * number + 4]}
        assert [state.step for state, _ in of.values()] == [32 * number] + [32 * number + 32] * 3
        assert [state.updates for state, _ in of.values()] == [number] + [number + 1] * 3
        assert all(state.policy is result.policy for state, _ in of.values())
        assert not torch.equal(of["after_collect"][1], of["after_update"][1]), "learned in between"
        collected, learned, logged, saved = (state.metrics for state, _ in of.values())
        assert collected["collect/steps"] == 32 and collected["time/collect_s"] > 0
        assert not any("learn" in k for k in collected)
        assert learned["learn/value_loss"] == logged["learn/value_loss"] and learned["time/learn_s"] > 0
        assert {"step": 32 * number + 32} | dict(logged) == rows[number] and saved == logged
        assert of["at_save"][0].checkpoint.name == f"step_{32 * number + 32:012d}.pt"
        assert of["at_log"][0].checkpoint is None
    assert result.reason == "complete"


STOPS = [*((collect, "after_collect") for collect in MODES), *((MODES[0], moment) for moment in MOMENTS[1:])]


@pytest.mark.parametrize("collect, moment", STOPS, ids=str)
def test_a_callback_can_stop_every_mode_at_each_moment(tmp_path, collect, moment):
    """After the update under way, with a checkpoint, and nobody left behind."""
    result = train(Pointer, config(collect=collect), tmp_path, callbacks=(Watch(moment),), progress=False)
    assert (result.reason, result.steps, result.unsaved_steps) == ("enough", 96, 0)
    assert load_checkpoint(result.checkpoint)["counters"]["steps"] == 96
    assert not subprocess.run(["pgrep", "-P", str(os.getpid()), "-f", "trainer.workers.worker"],
                              capture_output=True).stdout


@pytest.mark.parametrize("collect", [MODES[0], MODES[3]], ids=["ver", "hts"])
def test_a_deterministic_run_that_a_callback_stopped_goes_on_as_if_it_had_not(tmp_path, collect):
    settings = config(160, collect, deterministic=True)
    whole = train(Uneven, settings)
    first = train(Uneven, settings, tmp_path, callbacks=(Watch("at_log", 2),), progress=False)
    assert first.reason == "enough" and first.steps == 64
    second = train(Uneven, settings, tmp_path, resume_from=tmp_path, progress=False)
    assert second.steps == 160
    assert all(torch.equal(a, b) for a, b in zip(whole.policy.parameters(), second.policy.parameters()))


def test_without_a_directory_nothing_is_saved_and_the_rest_is_called():
    watch = Watch()
    train(Pointer, config(steps=32), callbacks=(watch,))
    assert [moment for moment, *_ in watch.seen] == ["after_collect", "after_update", "at_log"]


def test_observers_are_the_short_form():
    watch, rows = Watch(), []
    train(Pointer, config(steps=64), observers=(lambda step, metrics: rows.append((step, metrics)),),
          callbacks=(watch,))
    assert rows == [(state.step, state.metrics) for moment, state,
                    _ in watch.seen if moment == "at_log"] and len(rows) == 2


def test_what_will_never_be_called_is_refused(tmp_path):
    with pytest.raises(ValueError, match="has none of the methods after_collect, after_update, at_log, at_save"):
        train(Pointer, config(), tmp_path, callbacks=(lambda step, metrics: None,))
    assert not list(tmp_path.iterdir())


def test_an_answer_that_is_no_reason_is_one_sentence(tmp_path):
    class Hasty:
        def at_log(self, state):
            return True

    with pytest.raises(ValueError, match=r"Hasty.at_log returned True; a callback returns None, or as text the reason"):
        train(Pointer, config(), tmp_path, callbacks=(Hasty(),), progress=False)
    assert load_checkpoint(tmp_path)["counters"]["steps"] == 32, "what was learned is kept"

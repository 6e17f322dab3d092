"""deterministic=true: one order, so a run can be repeated, and one that was interrupted is the same as one that was
not."""

import dataclasses
import functools
import os
import signal

import pytest
import torch

from tests.trainer.toys import Pointer, Uneven
from trainer import CollectConfig, PolicyConfig, PPOConfig, TrainConfig, load_checkpoint, train
from trainer.checkpoint import CheckpointError

MODES = [dict(mode="ver"), dict(mode="nover"), dict(mode="ddppo"), dict(mode="hts", overlap=True),
         dict(mode="ver", overlap=True)]


def settings(collect: dict, workers: int = 2, **train_settings) -> TrainConfig:
    return TrainConfig(
        steps=60 * 7, seed=4, deterministic=True, log_every_s=1e-9,
        policy=PolicyConfig(encoder=None, lstm_layers=1, hidden_size=8, body_size=16),
        ppo=PPOConfig(learning_rate=1e-3, entropy_coef=1e-3, entropy_target=0.0, mini_batches=2, epochs=2),
        collect=CollectConfig(num_envs=5, num_workers=workers, rollout_steps=12, **collect), **train_settings)


def measures(result) -> list[dict]:
    """The logged rows, without what the clock says."""
    timed = ("time/", "wall_s", "steps_per_s")
    return [{k: v for k, v in row.items() if not k.startswith(timed)} for row in result.history]


@pytest.mark.parametrize("collect", MODES, ids=lambda c: c["mode"] + "+overlap" * c.get("overlap", False))
def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path, collect):
    """Interrupted in the middle of episodes, with steps under way: weights and every logged figure are the same."""
    whole = train(Uneven, settings(collect))

    def interrupt(step, metrics):
        if step == 180:
            os.kill(os.getpid(), signal.SIGTERM)

    first = train(Uneven, settings(collect), tmp_path, observers=(interrupt,))
    assert first.reason == "SIGTERM" and 180 <= first.steps < 420
    # the number of workers does not matter
    second = train(Uneven, settings(collect, workers=3), tmp_path, resume_from=tmp_path)
    assert second.steps == whole.steps == 420
    for a, b in zip(whole.policy.parameters(), second.policy.parameters()):
        assert torch.equal(a, b)
    together = measures(first) + measures(second)
    assert [row["step"] for row in together] == [row["step"] for row in measures(whole)]
    for a, b in zip(measures(whole), together):
        assert a == pytest.approx(b, nan_ok=True, rel=0, abs=0)


@pytest.mark.parametrize("collect", [MODES[0], MODES[3]], ids=["ver", "hts"])
def test_two_runs_are_the_same_and_another_seed_is_not(collect):
    a, b = (train(Uneven, settings(collect, workers=w)) for w in (1, 4))
    c = train(Uneven, dataclasses.replace(settings(collect), seed=5))
    assert measures(a) == measures(b) != measures(c)
    assert all(torch.equal(x, y) for x, y in zip(a.policy.parameters(), b.policy.parameters()))


def test_an_asynchronous_run_is_not_deterministic():
    with pytest.raises(ValueError, match="deterministic=True is not possible with collect.mode=appo"):
        settings(dict(mode="appo")).check()


def test_a_checkpoint_that_knows_nothing_of_the_environments_is_refused(tmp_path):
    config = dataclasses.replace(settings(MODES[0]), deterministic=False)
    train(Pointer, dataclasses.replace(config, steps=60), tmp_path)
    with pytest.raises(CheckpointError, match="without deterministic=True"):
        train(Pointer, settings(MODES[0]), tmp_path, resume_from=tmp_path)


def test_after_a_failure_it_goes_on_from_the_last_exact_checkpoint(tmp_path):
    from tests.trainer.toys import Faulty
    from trainer.collect import WorkerError

    with pytest.raises(WorkerError):
        train(functools.partial(Faulty, "raises", at=40), settings(MODES[0], checkpoint_every_s=1e-9), tmp_path)
    assert "collector" in load_checkpoint(tmp_path)["ranks"][0]

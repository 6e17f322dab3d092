"""Collecting while learning: the same experience, one update late and never more."""

import functools
import threading
import time
from contextlib import ExitStack
from unittest.mock import patch

import numpy as np
import pytest
import torch

from tests.trainer.every_step import Story, check, train_watched
from tests.trainer.toys import Counter, Faulty, Pointer, small
from trainer import WorkerError, load_checkpoint
from trainer.collect import Collector, CollectStats
from trainer.config import CollectConfig, PolicyConfig, PPOConfig, TrainConfig
from trainer.experience import Overlapping
from trainer.loop import train
from trainer.policy import Policy, observation_shapes
from trainer.rollout import Rollout
from trainer.sequences import Sequences
from trainer.workers.environments import Environments

CPU = torch.device("cpu")
SCALE = torch.tensor([1e6, 10.0, 10.0])  # of what a Counter shows


@pytest.mark.parametrize("lstm_layers", [0, 1])
@pytest.mark.parametrize("mode", ["ver", "hts"])
def test_experience_is_of_the_policy_before_the_last_update(mode, lstm_layers):
    """The first batch is on-policy; each later one was collected, while the learner changed its policy, by the policy
    that was newest when the batch began; what the learner reads is not written meanwhile; no step is lost between
    batches."""
    config = CollectConfig(mode=mode, overlap=True, num_envs=4, num_workers=2, rollout_steps=8)
    story: dict[int, int] = {}
    with ExitStack() as stack:
        environments = stack.enter_context(Environments(functools.partial(Counter, delay_s=0.001), config, 3))
        torch.manual_seed(0)
        policy = Policy(environments.observation_space, environments.action_space,
                        PolicyConfig(hidden_size=8, body_size=16, lstm_layers=lstm_layers, normalize_returns=False))
        policy.take_observations({"obs": SCALE * torch.randn(64, 3)})
        rollout = Rollout(4, 32, observation_shapes(environments.observation_space), policy.action_size, False,
                          policy.state_size,
                          CPU, batches=2)
        collector = stack.enter_context(Collector(environments, policy, 3, CPU))
        experience = Overlapping(collector, rollout, policy)
        versions = []
        for update in range(6):
            stats = experience.next(policy, update, steps_left=10**9)
            rows = stats.rows
            versions.append({k: v.clone() for k, v in policy.state_dict().items()})
            before = rollout.obs["obs"][rows].clone(), rollout.reward[rows].copy(), rollout.log_prob[rows].clone()
            with torch.no_grad():  # "learning"
                for parameter in policy.parameters():
                    parameter.add_(0.05 * torch.randn_like(parameter))
                policy.take_observations({"obs": SCALE * torch.randn(64, 3)})
            time.sleep(0.05)  # timed: how long learning takes, while others collect
            after = rollout.obs["obs"][rows], rollout.reward[rows], rollout.log_prob[rows]
            assert torch.equal(before[0], after[0]) and (before[1] == after[1]).all()
            assert torch.equal(before[2], after[2])
            acted = rollout.version[rows]
            assert len(rows) == len(set(rows)) == stats.steps == 32 and acted.max() == max(0, update - 1)
            if mode == "hts":
                assert acted.min() == acted.max()
            for row in sorted(rows, key=lambda r: (rollout.env[r], rollout.step[r])):
                assert rollout.step[row] == story.get(int(rollout.env[row]), -1) + 1
                story[int(rollout.env[row])] = int(rollout.step[row])
            _reproduces(policy, versions, rollout, rows)
        experience.close()


@pytest.mark.parametrize("steps_left, begins", [(64, False), (65, True)])
def test_nothing_is_collected_that_nobody_will_learn_from(steps_left, begins):
    """Two ranks gave 32 steps each: with that the run has all its steps, or not."""
    class Instant:
        device, asked = CPU, 0

        def collect(self, policy, rollout, version, oldest):
            self.asked += 1
            return CollectStats(rows=np.arange(32), steps=32)

        def cancel(self):
            pass

    policy = Policy(Pointer().observation_space, Pointer().action_space, PolicyConfig(body_size=8))
    rollout, collector = Rollout(2, 32, {"goal": (2,)}, 2, False, 0, CPU, batches=2), Instant()
    experience = Overlapping(collector, rollout, policy, over_ranks=lambda steps: 2 * steps)
    assert experience.next(policy, 0, steps_left).steps == 32
    for begun in experience._pending:  # closing gives up what has not begun
        begun.result()
    experience.close()
    assert collector.asked == 1 + begins


def _reproduces(policy, versions, rollout, rows):
    """The stored value and log-probability are those of the policy whose version is stored."""
    now = {k: v.clone() for k, v in policy.state_dict().items()}
    for version in np.unique(rollout.version[rows]):
        policy.load_state_dict(versions[version])
        mine = torch.from_numpy(rows[rollout.version[rows] == version])
        log_prob, _, value, _ = policy.evaluate({"obs": rollout.obs["obs"][mine]}, rollout.previous[mine],
                                                rollout.action[mine],
                                                Sequences(np.ones(len(mine), int), CPU), rollout.state[mine])
        assert np.allclose(value.detach().numpy(), rollout.value[mine.numpy()], atol=1e-4)
        assert torch.allclose(log_prob, rollout.log_prob[mine], atol=1e-3)
    policy.load_state_dict(now)


@pytest.mark.parametrize("collect, lstm_layers", [
    (dict(mode="hts", overlap=True), 1), (dict(mode="ver", overlap=True), 0), (dict(mode="nover"), 0),
    (dict(mode="ddppo"), 1), (dict(mode="appo"), 1)], ids=str)
def test_every_mode_learns(collect, lstm_layers):
    config = TrainConfig(steps=8192, log_every_s=1e-6, torch_threads=1,
                         ppo=PPOConfig(learning_rate=3e-3, discount=0.5, schedule="cosine", epochs=3, mini_batches=4),
                         policy=PolicyConfig(encoder=None, hidden_size=8, body_size=32, lstm_layers=lstm_layers),
                         collect=CollectConfig(num_envs=8, num_workers=2, rollout_steps=32, **collect))
    result = train(Pointer, config)
    assert result.steps == 8192
    assert result.history[-1]["episode/return"] > result.history[0]["episode/return"] + 1


class OneSlow(Story):
    """The third environment of a worker takes fifty times as long for a step as the others."""

    made = 0

    def __init__(self):
        super().__init__()
        OneSlow.made += 1
        self.is_slow = OneSlow.made == 3

    def reset(self, **words):
        answer = super().reset(**words)
        self.pace = 0.05 if self.is_slow else 0.001
        return answer


@pytest.mark.parametrize("max_lag", [2, 3])
def test_no_step_is_older_than_the_bound_and_none_is_thrown_away(max_lag):
    """However slow an environment is beside the others: a rollout takes less time than one of its steps."""
    counts = check(train_watched(400, OneSlow, mode="appo", max_lag=max_lag, rollout_steps=3))
    assert counts["steps"] >= 400 and counts["oldest"] == max_lag


def test_the_metrics_tell_how_old_experience_is():
    rows = {}
    for mode in ("ver", "appo"):
        config = small(32 * 12, mode=mode, log_every_s=1e-9)
        rows[mode] = [(row["lag/mean"], row["lag/max"]) for row in train(Pointer, config).history]
    assert rows["ver"][0] == (0, 0) and all(mean <= 2 / 32 and most <= 1 for mean, most in rows["ver"])
    assert all(0 <= mean <= most <= 2 for mean, most in rows["appo"]) and max(rows["appo"])[0] > 0


def test_rollouts_that_are_done_are_learned_from_before_a_failure_is_told(tmp_path):
    """The learner is held until the collector has failed in the third rollout."""
    failed = threading.Event()

    class Collector_(Collector):
        def cancel(self):
            failed.set()
            super().cancel()

    class Waits:
        def after_collect(self, state):
            assert failed.wait(60.0)

    with patch("trainer.loop.Collector", Collector_), pytest.raises(WorkerError, match="the drawer fell out"):
        train(functools.partial(Faulty, "raises", at=40), small(10**6, mode="appo", max_lag=3), tmp_path,
              callbacks=(Waits(),))
    assert load_checkpoint(tmp_path)["counters"]["updates"] == 2


@pytest.mark.parametrize("mode, overlap", [("hts", False), ("ddppo", True), ("nover", True), ("appo", True)])
def test_overlap_belongs_to_ver_and_hts(mode, overlap):
    with pytest.raises(ValueError, match="collect.overlap="):
        TrainConfig(collect=CollectConfig(mode=mode, overlap=overlap)).check()

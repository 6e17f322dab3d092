"""Behaviour cloning: what is drawn, what is learned, how it is stopped and gone on from."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
import torch

from tests.trainer.toys import QUICK, Pointer
from trainer import CollectConfig, PolicyConfig, PPOConfig, TrainConfig, load_checkpoint, load_policy, train
from trainer.cloning.demonstrations import Demonstrated, Demonstration
from trainer.policy import Policy
from trainer.rollout import Rollout
from trainer.sequences import whole_sequences

CONFIG = TrainConfig(steps=20_000, log_every_s=1e-6, torch_threads=1,
                     policy=PolicyConfig(encoder=None, lstm_layers=1, hidden_size=8, body_size=32),
                     collect=CollectConfig(num_envs=4, num_workers=1, rollout_steps=64),
                     ppo=PPOConfig(learning_rate=1e-2, discount=0.5, schedule="cosine", epochs=1, mini_batches=4))


class Remembered:
    """Episodes in which the goal is shown in the first step alone, and pointed at from then on: whoever clones it needs
    a memory, or its own last action. `noise`: of what was done."""

    def __init__(self, count: int = 60, seed: int = 0):
        self.observation_space, self.action_space = Pointer().observation_space, Pointer().action_space
        rng = np.random.default_rng(seed)
        self.goals = rng.uniform(-0.8, 0.8, (count, 2)).astype(np.float32)
        self.lengths = rng.integers(3, 12, count).tolist()

    def episode(self, index: int) -> Demonstration:
        goal, length = self.goals[index], self.lengths[index]
        seen = np.zeros((length, 2), np.float32)
        seen[0] = goal
        return Demonstration({"goal": seen}, np.repeat(goal[None], length, 0), np.ones(length, np.float32))


def missed(policy: Policy) -> float:
    """How far the third action is from the goal that the first observation showed, in the mean over episodes that
    nobody showed."""
    policy.cpu()
    goals = torch.from_numpy(Remembered(200, seed=1).goals)
    state, previous = torch.zeros(200, policy.state_size), torch.zeros(200, 2)
    for step in range(3):
        act = policy.act({"goal": goals if step == 0 else torch.zeros_like(goals)}, state, previous, deterministic=True)
        state, previous = act.state, policy.action_features(act.action)
    return (act.action - goals).square().sum(-1).sqrt().mean().item()


def test_whole_sequences_are_dealt_once_and_evenly():
    lengths = np.array([5, 1, 7, 3, 9, 2, 8, 4])
    starts = np.cumsum(lengths) - lengths
    batches = whole_sequences(starts, lengths.sum(), 3, np.random.default_rng(0))
    assert sorted(np.concatenate([positions for positions, _ in batches])) == list(range(lengths.sum()))
    for positions, of in batches:
        first = np.cumsum(of) - of
        assert set(positions[first]) <= set(starts) and len(positions) == of.sum() and abs(of.sum() - 13) <= 9
    assert len(whole_sequences(np.array([0]), 4, 3, np.random.default_rng(0))) == 1


def test_a_batch_is_whole_episodes_that_follow_from_the_number_of_updates():
    shown = Remembered()
    policy = Policy(shown.observation_space, shown.action_space, CONFIG.policy)
    rollout = Rollout(4, 64, {"goal": (2,)}, 2, 0, policy.state_size, torch.device("cpu"))
    experience = Demonstrated(shown, rollout, 0, 0)
    first = experience.next(policy, 0, 100)
    assert first.steps == len(first.rows) == rollout.total <= 64 and first.steps > 64 - 12
    begins = np.flatnonzero(rollout.starts_episode[first.rows])
    assert not rollout.previous[begins].any()
    inside = np.setdiff1d(first.rows, begins)
    assert torch.equal(rollout.previous[inside], rollout.action[inside - 1])
    goals, seen = shown.goals, rollout.obs["goal"][begins].numpy()
    assert len({tuple(goal) for goal in seen}) == len(begins) and all((goals == goal).all(1).any() for goal in seen)
    experience.next(policy, 1, 100)
    assert not np.array_equal(rollout.obs["goal"][: len(seen)].numpy(), seen)
    experience.next(policy, 0, 100)
    assert np.array_equal(rollout.obs["goal"][begins].numpy(), seen)
    with pytest.raises(ValueError, match="has 11 steps, and a rollout 8"):
        Demonstrated(shown, Rollout(1, 8, {"goal": (2,)}, 2, 0, 0, torch.device("cpu")), 0, 0)


def test_it_learns_to_do_what_was_shown_and_a_critic(tmp_path):
    result = train(Pointer, CONFIG, tmp_path, demonstrations=Remembered())
    first, last = result.history[1], result.history[-1]  # in the first update, what observations are like is learned
    assert result.reason == "complete" and last["learn/action_error"] < 0.1
    assert last["learn/value_loss"] < 0.8 * first["learn/value_loss"]
    policy = load_policy(load_checkpoint(tmp_path))
    assert missed(policy) < 0.15
    seen, state = {"goal": torch.from_numpy(Remembered(50, seed=2).goals)}, torch.zeros(50, policy.state_size)
    said = [policy.act(seen, state, previous, deterministic=True).action
            for previous in (torch.zeros(50, 2), -seen["goal"])]
    # nothing is copied from the last action, though that was always right
    assert (said[0] - said[1]).abs().mean() < 0.05


def test_it_stops_in_good_order_goes_on_and_then_ppo_does(tmp_path):
    """Stopped and resumed, it is the same as without a break; PPO counts on from there."""
    config = replace(CONFIG, steps=2_000)
    whole = train(Pointer, config, demonstrations=Remembered())
    stop = SimpleNamespace(after_update=lambda state: "enough" if state.updates == 3 else None)
    part = train(Pointer, config, tmp_path, demonstrations=Remembered(), callbacks=[stop])
    assert part.reason == "enough" and 0 < part.steps < 1_000 and part.checkpoint
    rest = train(Pointer, config, tmp_path, resume_from=tmp_path, demonstrations=Remembered())
    assert rest.steps == whole.steps
    for name, weights in whole.policy.state_dict().items():
        assert torch.equal(weights, rest.policy.state_dict()[name]), name
    after = train(Pointer, replace(config, steps=rest.steps + 256, ppo=replace(QUICK, learning_rate=1e-9)), tmp_path,
                  resume_from=tmp_path)
    assert after.steps == rest.steps + 256 and "learn/kl" in after.history[-1]
    assert missed(after.policy) == pytest.approx(missed(rest.policy), abs=0.02)


def test_discrete_actions_are_cloned_too():
    shown = Remembered()
    shown.action_space = gym.spaces.MultiDiscrete([3, 2])
    shown.episode = lambda index: Demonstration({"goal": np.zeros((3, 2), np.float32)}, np.tile([2, 0], (3, 1)),
                                                np.ones(3, np.float32))
    shown.lengths = [3] * 60
    policy = train(Pointer, replace(CONFIG, steps=6_000), demonstrations=shown).policy.cpu()
    act = policy.act({"goal": torch.zeros(1, 2)}, torch.zeros(1, policy.state_size), torch.zeros(1, 5),
                     deterministic=True)
    assert act.action.tolist() == [[2, 0]] and act.log_prob.item() > -0.2

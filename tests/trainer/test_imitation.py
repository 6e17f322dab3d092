"""Learning from the advice of an expert: what the loss is, who sees the advice, what is learned, what is refused."""

from __future__ import annotations

import functools
import math
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
import torch

from tests.trainer.toys import Pointer
from trainer import CollectConfig, PolicyConfig, PPOConfig, TrainConfig, load_checkpoint, load_policy, ppo, train
from trainer.faults.nan_dump import NonFinite, reproduce
from trainer.policy import EXPERT_ACTION, Policy

GOAL = gym.spaces.Box(-1, 1, (2,), np.float32)
# Advantages are noise where nothing is rewarded, and would be as loud as any others once normalised.
CONFIG = TrainConfig(steps=12_000, log_every_s=1e-6, torch_threads=1,
                     policy=PolicyConfig(encoder=None, lstm_layers=1, hidden_size=8, body_size=32,
                                         normalize_observations=False),
                     collect=CollectConfig(num_envs=8, num_workers=2, rollout_steps=32),
                     ppo=PPOConfig(learning_rate=3e-3, discount=0.5, imitation_coef=1.0, normalize_advantages=False,
                                   schedule="cosine", epochs=3, mini_batches=4))


class Advised(Pointer):
    """Pointer, where nothing is rewarded but an expert says what to do; `weight` is that of its advice."""

    def __init__(self, weight: float = 1.0, numbers: int = 3):
        super().__init__()
        self.weight, self.numbers = weight, numbers
        self.observation_space[EXPERT_ACTION] = gym.spaces.Box(-1, 1, (numbers,), np.float32)

    def _obs(self):
        advice = np.append(self.goal, np.float32(self.weight))[: self.numbers]
        return super()._obs() | {EXPERT_ACTION: advice}

    def step(self, action):
        observation, _, terminated, truncated, info = super().step(action)
        return observation, 0.0, terminated, truncated, info


def policy_for(action_space: gym.spaces.Space) -> Policy:
    torch.manual_seed(0)
    width = (3 if isinstance(action_space, gym.spaces.Box) else len(action_space.nvec) + 1)
    advice = gym.spaces.Box(-1, 1, (width,), np.float32)
    return Policy(gym.spaces.Dict({"goal": GOAL, EXPERT_ACTION: advice}), action_space,
                  PolicyConfig(lstm_layers=1, hidden_size=8, body_size=16))


def missed(policy: Policy, seed: int = 1) -> float:
    """Root mean square distance of the policy's first action from the goals."""
    goal = torch.from_numpy(np.random.default_rng(seed).uniform(-0.8, 0.8, (200, 2)).astype(np.float32))
    action = policy.act({"goal": goal}, torch.zeros(200, policy.state_size), torch.zeros(200, 2),
                        deterministic=True).action
    return (action - goal).square().sum(-1).mean().sqrt().item()


def test_the_loss_is_the_weighted_squared_distance_of_what_would_be_executed():
    policy = policy_for(GOAL)
    mean = torch.tensor([[0.5, 0.0], [3.0, -0.5], [0.2, 0.2]], requires_grad=True)
    advice = torch.tensor([[0.0, 0.0, 1.0], [1.0, -0.5, 1.0], [-1.0, -1.0, 0.0]])
    loss = ppo.imitation_loss(policy, mean, advice)
    assert loss.item() == pytest.approx(0.25 / 3)  # beyond the bound is as good as at it; no weight, no loss
    loss.backward()
    assert mean.grad[0, 0] > 0 and not mean.grad[1:].any()


def test_who_is_far_beyond_the_wrong_bound_is_called_back():
    """By the gradient of the clipped action it would not be: that is zero out there, and the policy never does what is
    advised."""
    policy, mean = policy_for(GOAL), torch.tensor([[-5.0, 5.0]], requires_grad=True)
    ppo.imitation_loss(policy, mean, torch.tensor([[1.0, 0.5, 1.0]])).backward()
    assert mean.grad[0].tolist() == pytest.approx([-4.0, 1.0])


def test_of_discrete_actions_it_is_the_cross_entropy():
    policy = policy_for(gym.spaces.MultiDiscrete([3, 2]))
    logits = torch.tensor([[0.0, 0.0, 0.0, 2.0, 0.0]])
    loss = ppo.imitation_loss(policy, logits, torch.tensor([[1.0, 0.0, 1.0]]))
    assert loss.item() == pytest.approx(math.log(3) + math.log(1 + math.exp(-2)))
    assert ppo.imitation_loss(policy, logits, torch.tensor([[1.0, 0.0, 0.0]])).item() == 0


def test_the_policy_does_not_see_the_advice():
    policy, goal = policy_for(GOAL), torch.rand(4, 2)
    assert EXPERT_ACTION not in policy.seen and policy.vector_keys == ["goal"]
    of = [policy.act({"goal": goal, EXPERT_ACTION: torch.full((4, 3), advice)}, torch.zeros(4, policy.state_size),
                     torch.zeros(4, 2), deterministic=True).action for advice in (-1.0, 1.0)]
    assert torch.equal(*of)


def test_it_learns_from_advice_alone_and_its_checkpoint_needs_none(tmp_path):
    result = train(Advised, CONFIG, tmp_path)
    assert result.history[-1]["learn/imitation_loss"] < 0.1 * result.history[0]["learn/imitation_loss"]
    content = load_checkpoint(tmp_path)
    assert set(content["observation_space"]["dict"]) == {"goal"}
    assert missed(load_policy(content)) < 0.15


def test_advice_without_weight_teaches_nothing(tmp_path):
    result = train(functools.partial(Advised, weight=0.0), replace(CONFIG, steps=4_000), tmp_path)
    assert result.history[-1]["learn/imitation_loss"] == 0
    assert missed(load_policy(load_checkpoint(tmp_path))) > 0.4


def test_advice_that_is_not_asked_for_is_left_alone(tmp_path):
    result = train(Advised, replace(CONFIG, steps=4_000, ppo=replace(CONFIG.ppo, imitation_coef=0.0)), tmp_path)
    assert "learn/imitation_loss" not in result.history[-1]
    assert missed(load_policy(load_checkpoint(tmp_path))) > 0.4


def test_its_weight_falls_with_the_learning_rate(tmp_path, monkeypatch):
    weights, rates, real = [], [], ppo.imitation_weight

    def watched(config, optimizer):
        weights.append(real(config, optimizer))
        rates.append(optimizer.param_groups[0]["lr"])
        return weights[-1]

    monkeypatch.setattr(ppo, "imitation_weight", watched)
    train(Advised, replace(CONFIG, steps=2_000, ppo=replace(CONFIG.ppo, imitation_coef=0.5)), tmp_path)
    assert weights[0] == 0.5 and weights == sorted(weights, reverse=True) and weights[-1] < 0.1
    assert np.array(weights) / 0.5 == pytest.approx(np.array(rates) / CONFIG.ppo.learning_rate)


def test_a_resumed_run_goes_on_with_its_advice(tmp_path):
    train(Advised, replace(CONFIG, steps=2_000), tmp_path)
    saved = load_checkpoint(tmp_path)
    result = train(Advised, replace(CONFIG, steps=4_000), tmp_path, resume_from=tmp_path)
    assert result.steps == 4_096 and result.history[-1]["learn/imitation_loss"] < 0.5
    assert load_checkpoint(tmp_path)["observation_space"] == saved["observation_space"]


def test_a_dump_repeats_an_update_with_advice(tmp_path, monkeypatch):
    """Which needs the advice, and the learning rate of that very update."""
    real, seen = ppo.imitation_weight, []

    def poisoned(config, optimizer):
        seen.append(real(config, optimizer))
        return math.nan if real(config, optimizer) < 0.9 else seen[-1]

    monkeypatch.setattr(ppo, "imitation_weight", poisoned)
    with pytest.raises(NonFinite) as error:
        train(Advised, CONFIG, tmp_path)
    last = seen[-1]
    assert reproduce(tmp_path) in str(error.value) and seen[-1] == last < 0.9


@pytest.mark.parametrize("make, words",
                         [(Pointer, "these have none"), (functools.partial(Advised, numbers=2), "shape (2,)")])
def test_environments_without_an_expert_are_told(make, words, tmp_path):
    with pytest.raises(ValueError, match="expert_action") as told:
        train(make, CONFIG, tmp_path)
    assert words in str(told.value) and "\n" not in str(told.value)


def test_a_negative_weight_is_refused():
    with pytest.raises(ValueError, match="ppo.imitation_coef=-1"):
        replace(CONFIG, ppo=PPOConfig(imitation_coef=-1)).check()

"""Learning in bfloat16: the ratio to what acted in float32 is hardly touched, gradients point the same way, auto asks
the processor."""

import gymnasium as gym
import numpy as np
import pytest
import torch

from trainer.config import PolicyConfig
from trainer.nets import heads
from trainer.policy import Policy
from trainer.sequences import Sequences

OBS = gym.spaces.Dict(depth=gym.spaces.Box(0, 1, (16, 16, 1), np.float32),
                      joint=gym.spaces.Box(-9, 9, (5,), np.float32))
BOX = gym.spaces.Box(-1, 1, (3,), np.float32)
NETWORKS = {"blind": {"encoder": None, "lstm_layers": 0}, "light": {"lstm_layers": 1, "hidden_size": 16}}


def learned_from(config: PolicyConfig) -> tuple[torch.Tensor, torch.Tensor, Policy]:
    """Log-ratio to the policy that acted, (M,), and the gradient, of a policy whose actions depend on what it sees."""
    torch.manual_seed(0)
    policy = Policy(OBS, BOX, config)
    torch.nn.init.orthogonal_(policy.mean.weight)
    obs = {"depth": torch.rand(64, 16, 16, 1), "joint": torch.randn(64, 5)}
    state, previous = torch.randn(64, policy.state_size), torch.rand(64, 3)
    act = policy.act(obs, state, previous)
    log_prob, _, value, _ = policy.evaluate(obs, previous, act.action, Sequences(np.ones(64, int), torch.device("cpu")),
                                            state)
    (log_prob.sum() + value.sum()).backward()
    gradient = torch.cat([p.grad.flatten() for p in policy.parameters()])
    return (log_prob - act.log_prob).detach(), gradient, policy


@pytest.mark.parametrize("network", NETWORKS)
def test_the_ratio_stays_far_inside_the_clip_and_the_gradient_points_the_same_way(network):
    exact, gradient, _ = learned_from(PolicyConfig(**NETWORKS[network], learn_precision="float32"))
    rough, rough_gradient, policy = learned_from(PolicyConfig(**NETWORKS[network], learn_precision="bfloat16"))
    assert exact.abs().max() < 1e-4
    assert 1e-4 < rough.abs().max() < 0.1 and rough.std() < 0.03  # the clip is 0.2
    assert torch.cosine_similarity(gradient, rough_gradient, dim=0) > 0.999
    assert all(p.dtype == p.grad.dtype == torch.float32 for p in policy.parameters())


@pytest.mark.parametrize("has", (False, True))
def test_auto_is_what_the_processor_computes_in_and_touches_no_acting(has, monkeypatch):
    monkeypatch.setattr(heads, "processor_has_bfloat16", lambda: has)
    auto, _, policy = learned_from(PolicyConfig(**NETWORKS["blind"], learn_precision="auto"))
    assert (auto.abs().max() > 1e-4) == has
    with heads.learning_in("auto", torch.device("cpu")):
        assert torch.is_autocast_enabled("cpu") == has
    with heads.learning_in("float32", torch.device("cpu")):
        assert not torch.is_autocast_enabled("cpu")
    assert policy.act({"joint": torch.zeros(1, 5)}, torch.zeros(1, 0), torch.zeros(1, 3)).value.dtype == torch.float32


def test_a_processor_that_tells_nothing_learns_in_float32(monkeypatch):
    monkeypatch.undo()  # the real question
    heads.processor_has_bfloat16.cache_clear()
    for told, has in (({}, False), ({"avx512_bf16": True}, True), ({"amx_bf16": True}, True),
                      ({"avx512_f": True}, False)):
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda told=told: told)
        heads.processor_has_bfloat16.cache_clear()
        assert heads.processor_has_bfloat16() == has
    heads.processor_has_bfloat16.cache_clear()

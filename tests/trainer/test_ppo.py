"""PPO's pieces: what each term does, and one whole update."""

import math
import sys

import gymnasium as gym
import numpy as np
import pytest
import torch

from trainer import ppo
from trainer.config import PolicyConfig, PPOConfig
from trainer.policy import Policy
from trainer.rollout import Rollout

OBS, ACT = gym.spaces.Box(-1, 1, (3,), np.float32), gym.spaces.Box(-1, 1, (2,), np.float32)


def filled(policy: Policy, envs: int = 4, steps: int = 32, seed: int = 0) -> Rollout:
    """A rollout as the collector makes it, from random observations, episodes of 7 steps."""
    torch.manual_seed(seed)
    rollout = Rollout(envs, steps, {"obs": (3,)}, 2, False, policy.state_size, torch.device("cpu"))
    rollout.begin()
    state, previous, everyone = torch.zeros(envs, policy.state_size), torch.zeros(envs, 2), np.arange(envs)
    t = 0
    while rollout.remaining:
        starts = np.full(envs, t % 7 == 0)
        if starts[0]:
            state, previous = torch.zeros_like(state), torch.zeros_like(previous)
        obs = {"obs": torch.randn(envs, 3)}
        act = policy.act(obs, state, previous)
        if t:
            rollout.close(everyone, np.random.default_rng(t).normal(size=envs).astype(np.float32),
                          act.value.numpy() * (not starts[0]))
        rollout.open(everyone, obs, previous, state, act.action, act.log_prob, act.value.numpy(), starts, 0)
        state, previous = act.state, policy.action_features(act.action)
        t += 1
    return rollout


def updated(policy: Policy, rollout: Rollout, config: PPOConfig, **words) -> dict[str, float]:
    """Statistics of an update by a new optimiser."""
    coef = ppo.EntropyCoefficient(config, torch.device("cpu"))
    optimizer = ppo.make_optimizer(policy, coef, config)
    return ppo.update(policy, optimizer, coef, rollout, config, np.random.default_rng(0), **words)


@pytest.fixture
def policy():
    torch.manual_seed(0)
    return Policy(OBS, ACT, PolicyConfig(lstm_layers=1, hidden_size=8, body_size=16, normalize_returns=False))


def test_ratio_is_one_on_the_first_mini_batch(policy):
    """Evaluating what was just collected reproduces the log-probabilities: also for sequences split by a mini-batch
    border."""
    rollout = filled(policy)
    config = PPOConfig(learning_rate=1e-12, epochs=1, mini_batches=3)
    stats = updated(policy, rollout, config)
    assert stats["kl"] == pytest.approx(0, abs=1e-7) and stats["clip_fraction"] == 0


def test_an_update_raises_the_probability_of_good_actions(policy):
    rollout = filled(policy)
    rollout.reward[:] = rollout.action[:, 0].numpy()  # more of the first action is better
    config = PPOConfig(learning_rate=1e-2, epochs=5, mini_batches=2, discount=0.0)
    obs = {"obs": torch.randn(64, 3)}
    before = policy.act(obs, torch.zeros(64, policy.state_size), torch.zeros(64, 2),
                        deterministic=True).action[:, 0].mean()
    updated(policy, rollout, config)
    after = policy.act(obs, torch.zeros(64, policy.state_size), torch.zeros(64, 2), deterministic=True).action[:, 0]
    assert after.mean() > before + 0.1


def test_policy_loss_clips_only_what_would_gain():
    one = torch.ones(1)
    loss = lambda ratio, advantage: ppo.policy_loss(
        torch.tensor([math.log(ratio)]), torch.zeros(1), advantage * one, one, 0.2)[0].item()
    assert loss(1.5, 1.0) == pytest.approx(-1.2)  # gain beyond 1 + clip is not counted
    assert loss(0.5, 1.0) == pytest.approx(-0.5)  # loss is
    assert loss(1.5, -1.0) == pytest.approx(1.5)
    assert loss(0.5, -1.0) == pytest.approx(0.8)


def test_losses_are_weighted():
    weight = torch.tensor([1.0, 0.5])
    loss, _ = ppo.policy_loss(torch.zeros(2), torch.zeros(2), torch.tensor([1.0, 1.0]), weight, 0.2)
    assert loss.item() == pytest.approx(-0.75)
    assert ppo.value_loss(torch.tensor([1.0, 3.0]), torch.zeros(2),
                          weight).item() == pytest.approx((0.5 + 0.5 * 4.5) / 2)


@pytest.mark.parametrize("entropy, direction", [(-1.0, 1), (2.0, -1)])
def test_learned_entropy_coefficient_rises_below_target_and_falls_above(entropy, direction):
    config = PPOConfig(entropy_coef=1e-2, entropy_target=0.0)
    coef = ppo.EntropyCoefficient(config, torch.device("cpu"))
    optimizer = torch.optim.SGD([coef.log_alpha], lr=1.0)
    before = coef.value().item()
    h = torch.tensor([entropy], requires_grad=True)
    coef.loss(h, torch.ones(1)).backward()
    assert h.grad.item() == pytest.approx(-before)  # the policy is pushed to more entropy with weight alpha
    optimizer.step()
    assert (coef.value().item() - before) * direction > 0


def test_learned_entropy_coefficient_stays_in_bounds():
    config = PPOConfig(entropy_coef=1e-3, entropy_target=0.0, entropy_bounds=(1e-4, 1.0))
    coef = ppo.EntropyCoefficient(config, torch.device("cpu"))
    for log_alpha, bound in ((-50.0, 1e-4), (50.0, 1.0)):
        with torch.no_grad():
            coef.log_alpha.fill_(log_alpha)
        coef.clamp()
        assert coef.value().item() == pytest.approx(bound)


def test_learning_rate_schedules():
    cosine = PPOConfig(learning_rate=1.0)
    assert [ppo.scheduled_rate(cosine, p) for p in (0, 0.5, 1, 2)] == pytest.approx([1, 0.5, 0, 0])
    assert ppo.scheduled_rate(PPOConfig(learning_rate=1.0, schedule="linear"), 0.25) == 0.75
    assert ppo.scheduled_rate(PPOConfig(learning_rate=1.0, schedule="constant"), 0.9) == 1.0


def test_a_loss_that_is_not_finite_leaves_the_parameters_alone(policy):
    rollout = filled(policy)
    rollout.reward[3] = np.inf
    config = PPOConfig()
    before = {k: v.clone() for k, v in policy.named_parameters()}
    with pytest.raises(ppo.NonFiniteLoss):
        updated(policy, rollout, config)
    assert all(torch.equal(v, before[k]) for k, v in policy.named_parameters())


def test_what_an_older_policy_chose_is_told(policy):
    rollout, config = filled(policy), PPOConfig(epochs=1, mini_batches=1)
    rows = rollout.closed[: rollout.num_closed]
    rollout.version[rows] = np.where(np.arange(len(rows)) < len(rows) // 4, 3, 5)
    stats = updated(policy, rollout, config)
    assert (stats["stale_fraction"], stats["oldest_age"]) == (0.25, 2.0)


def test_kl_stop_ends_the_epochs(policy):
    rollout = filled(policy)
    config = PPOConfig(learning_rate=0.1, epochs=10, target_kl=1e-3)
    stats = updated(policy, rollout, config)
    assert stats["epochs"] < 10


def test_a_late_update_is_clipped_around_the_policy_of_today(policy):
    """The policy has moved since it acted: ratios to the acting policy begin outside the clipping range, late ones at
    1."""
    rollout = filled(policy)
    config = PPOConfig(learning_rate=1e-12, epochs=1, mini_batches=3)
    with torch.no_grad():
        policy.mean.bias += 0.5
    clipped = {}
    for late in (False, True):
        stats = updated(policy, rollout, config, late=late)
        clipped[late] = stats["clip_fraction"], stats["kl"]
    assert clipped[False][0] > 0.5 and clipped[True] == pytest.approx((0, 0), abs=1e-6)


def test_a_late_update_of_a_policy_that_has_not_moved_is_an_ordinary_one(policy):
    import copy

    rollout, config, after = filled(policy), PPOConfig(), []
    for late in (False, True):
        mine = copy.deepcopy(policy)
        updated(mine, rollout, config, late=late)
        after.append(torch.cat([p.detach().flatten() for p in mine.parameters()]))
    assert torch.allclose(*after, atol=2e-4)


@pytest.mark.parametrize("entropy, rises", [(1.0, False), (-2.5, True)])
def test_steps_that_count_less_do_not_change_which_side_of_its_target_the_entropy_is_on(entropy, rises):
    target = 0.8 if entropy > 0 else -2.0
    coef = ppo.EntropyCoefficient(PPOConfig(entropy_coef=0.01, entropy_target=target), torch.device("cpu"))
    coef.loss(torch.full((8,), entropy), torch.full((8,), 0.6)).backward()
    assert (coef.log_alpha.grad < 0) == rises


def test_a_mini_batch_of_one_step_is_learned_from():
    policy = Policy(OBS, ACT, PolicyConfig(encoder=None, lstm_layers=1, hidden_size=8, body_size=16))
    config = PPOConfig(mini_batches=4, epochs=1)
    rollout = filled(policy, envs=4, steps=4)
    stats = updated(policy, rollout, config)
    assert math.isfinite(stats["policy_loss"])


@pytest.mark.parametrize("fused", [None, True])
def test_the_optimiser_is_adam_and_leaves_torchs_compiler_alone(monkeypatch, fused):
    """Importing the compiler takes a command two seconds."""
    ours, theirs = (torch.nn.Parameter(torch.ones(3)) for _ in range(2))
    optimizers = [kind([parameter], lr=0.1, eps=1e-5, fused=fused)
                  for kind, parameter in ((ppo.Adam, ours), (torch.optim.Adam, theirs))]
    for step in range(3):
        for parameter, optimizer in zip((ours, theirs), optimizers):
            with monkeypatch.context() as hidden:
                if optimizer is optimizers[0]:
                    hidden.setitem(sys.modules, "torch._dynamo", None)  # an import raises ImportError
                optimizer.zero_grad()
                (parameter * torch.arange(1.0, 4.0) + parameter**2).sum().backward()
                optimizer.step()
                optimizer.load_state_dict(optimizer.state_dict())
        assert torch.equal(ours, theirs)
    assert ours.requires_grad and not torch.equal(ours, torch.ones(3))


def test_on_a_cpu_the_optimiser_takes_one_step_over_all_parameters(policy):
    config = PPOConfig()
    optimizer = ppo.make_optimizer(policy, ppo.EntropyCoefficient(config, torch.device("cpu")), config)
    assert optimizer.param_groups[0]["fused"]


def test_a_parameter_that_is_a_slice_leaves_what_lies_between_alone(policy):
    config, whole = PPOConfig(), torch.zeros(4, 6)
    policy.slice = torch.nn.Parameter(whole[:, ::2])
    optimizer = ppo.make_optimizer(policy, ppo.EntropyCoefficient(config, torch.device("cpu")), config)
    policy.slice.sum().backward()
    optimizer.step()
    assert (whole[:, ::2] < 0).all() and not whole[:, 1::2].any()

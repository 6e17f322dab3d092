"""Normalisation by what was seen: exact, one for all ranks, part of a policy's version, and no change of any value."""

from __future__ import annotations

import dataclasses

import gymnasium as gym
import numpy as np
import pytest
import torch

from tests.trainer.test_ppo import ACT, OBS, filled
from tests.trainer.toys import Counter
from trainer import CollectConfig, Player, PolicyConfig, PPOConfig, TrainConfig, ppo, train
from trainer.checkpoint import load_checkpoint, load_policy
from trainer.config import BEFORE_0_2
from trainer.learner import Learner
from trainer.nets.heads import LIMIT, ReturnScale, RunningMoments
from trainer.policy import Policy

CPU = torch.device("cpu")
SMALL = PolicyConfig(encoder=None, lstm_layers=1, hidden_size=8, body_size=16)


def test_moments_are_those_of_all_that_was_seen_also_far_from_zero():
    rng = np.random.default_rng(0)
    parts = [rng.normal(1e4, (1e-2, 1.0, 30.0), (n, 3)) for n in (1, 500, 7, 2000)]
    moments = RunningMoments(3)
    for part in parts:
        moments.take(torch.from_numpy(part))
    everything = np.concatenate(parts)
    assert np.allclose(moments.mean, everything.mean(0), rtol=1e-9)
    assert np.allclose(moments.variance, everything.var(0), rtol=1e-6)
    out = moments(torch.from_numpy(everything[1:]).float())
    assert out.abs().max() <= LIMIT and abs(out[:, 1].mean()) < 0.05 and abs(out[:, 2].std() - 1) < 0.05


def test_two_ranks_have_the_moments_of_both():
    x = torch.randn(100, 3) * 5 + 2
    alone, first = RunningMoments(3), RunningMoments(3)
    for part in (x[:40], x[40:]):
        alone.take(part)
    for part in (x[:40], x[40:]):  # what the second rank sends is about the same mean as the first's
        sent: list[torch.Tensor] = []
        second = RunningMoments(3)
        second.load_state_dict(first.state_dict())
        second.take(part[5:], lambda sums: (sent.append(sums.clone()), sums)[1])
        first.take(part[:5], lambda sums: sums + sent[0])
    assert torch.allclose(first.mean, alone.mean) and torch.allclose(first.variance, alone.variance)
    assert first.count == 100


def test_nothing_seen_changes_nothing():
    x = torch.randn(4, 3)
    assert torch.allclose(RunningMoments(3)(x), x, atol=1e-6) and ReturnScale()(torch.ones(3)).tolist() == [0.0] * 3


def test_values_stay_as_they_were_when_the_unit_changes():
    torch.manual_seed(0)
    scale, last, x = ReturnScale(), torch.nn.Linear(4, 1), torch.randn(32, 4)
    scale.take(torch.randn(64) * 3 + 100, last)
    for factor in (1.0, 50.0, 0.01):
        before = scale(last(x))
        scale.take(torch.randn(64) * factor - 7, last)
        assert torch.allclose(scale(last(x)), before, rtol=1e-3, atol=1e-3 * float(before.abs().max()))


def test_the_unit_rises_at_once_and_falls_slowly():
    scale, last = ReturnScale(), torch.nn.Linear(4, 1)
    scale.take(torch.zeros(64), last)
    assert scale.std == 0 and scale.updates == 0, "no reward was seen"
    for _ in range(30):
        scale.take(torch.randn(256) * 0.01, last)
    scale.take(torch.randn(256), last)
    assert scale.std > 0.8
    scale.take(torch.randn(256) * 0.01, last)
    assert scale.std > 0.1


def test_the_first_updates_count_alike_and_later_ones_for_a_twentieth():
    scale, last = ReturnScale(), torch.nn.Linear(4, 1)
    for update in range(1, 31):
        before = float(scale.mean)
        scale.take(torch.full((8,), float(update)), last)
        assert float(scale.mean) == pytest.approx(before + max(1 / update, 1 / 20) * (update - before))


def test_what_is_far_off_is_clipped_at_both_ends():
    moments = RunningMoments(1)
    moments.take(torch.randn(100, 1))
    assert moments(torch.tensor([[1e6], [-1e6]])).tolist() == [[LIMIT], [-LIMIT]]


@pytest.mark.parametrize("factor", [0.1, 10.0])
def test_the_scale_of_rewards_does_not_matter(factor):
    """Ten updates from the same experience with other rewards: the same policy, and values that many times as large."""
    policies = []
    for scale in (1.0, factor):
        torch.manual_seed(0)
        policy = Policy(OBS, ACT, SMALL)
        config = PPOConfig(mini_batches=4, epochs=2, reward_scale=scale)
        coef = ppo.EntropyCoefficient(config, CPU)
        optimizer = ppo.make_optimizer(policy, coef, config)
        for update in range(10):
            rollout = filled(policy, seed=update)
            ppo.update(policy, optimizer, coef, rollout, config, np.random.default_rng(update), learns=update > 0)
        policies.append(policy)
    one, other = policies
    obs, state, previous = {"obs": torch.randn(64, 3)}, torch.zeros(64, one.state_size), torch.zeros(64, 2)
    a, b = (p.act(obs, state, previous, deterministic=True) for p in policies)
    assert torch.allclose(a.action, b.action, atol=1e-3)
    assert torch.allclose(a.value * factor, b.value, rtol=2e-2, atol=2e-2 * factor)


def run(tmp_path, steps=512, **collect):
    settings = dict(num_envs=4, num_workers=2, rollout_steps=32) | collect
    return train(Counter,
                 TrainConfig(steps=steps, policy=SMALL, ppo=PPOConfig(mini_batches=2, epochs=2), torch_threads=1,
                                      collect=CollectConfig(**settings)), tmp_path, progress=False)


@pytest.mark.parametrize("mode",
                         [{}, {"overlap": True}, {"inference_workers": 2}, {"mode": "nover"}, {"mode": "ddppo"},
                          {"mode": "appo"}])
def test_every_step_that_was_learned_from_is_in_the_moments_once(tmp_path, monkeypatch, mode):
    """In every mode: the moments are those of the observations of all batches, each step in exactly one."""
    seen: dict[tuple[int, int], np.ndarray] = {}
    update = Learner.update

    def watched(self, rollout, collected):
        for row in collected.rows[: collected.steps]:
            key = int(rollout.env[row]), int(rollout.step[row])
            assert key not in seen
            seen[key] = rollout.obs["obs"][row].cpu().numpy().astype(np.float64)
        return update(self, rollout, collected)

    monkeypatch.setattr(Learner, "update", watched)
    result = run(tmp_path, **mode)
    everything, normalizer = np.array(list(seen.values())), result.policy.cpu().normalizer
    assert len(everything) == result.steps == int(normalizer.count)
    assert np.allclose(normalizer.mean, everything.mean(0), rtol=1e-6)
    assert np.allclose(normalizer.variance, everything.var(0), rtol=1e-6)


def test_a_checkpoint_brings_them_back_and_playing_leaves_them(tmp_path):
    result = run(tmp_path)
    result.policy.cpu()
    loaded = load_policy(load_checkpoint(tmp_path))
    player, env = Player(tmp_path, Counter(), deterministic=True), Counter()
    before = {k: v.clone() for k, v in player.policy.state_dict().items()}
    obs, _ = env.reset(seed=0)
    act = result.policy.act({"obs": torch.as_tensor(obs)[None]}, torch.zeros(1, 16), torch.zeros(1, 2),
                            deterministic=True)
    assert np.allclose(player.act(obs), act.action.clamp(-1, 1).numpy()[0],
                       atol=1e-6), "Player sees normalised observations"
    for _ in range(20):
        player.act(obs := env.step(player.act(obs))[0])
    assert all(torch.equal(v, before[k]) and torch.equal(v, result.policy.state_dict()[k])
               and torch.equal(v, loaded.state_dict()[k])
               for k, v in player.policy.state_dict().items())
    assert loaded.normalizer.count == 512 and loaded.return_scale.updates > 0


def test_policies_of_version_0_1_load_without(tmp_path):
    from trainer import checkpoint

    torch.manual_seed(0)
    policy = Policy(OBS, ACT, dataclasses.replace(SMALL, **BEFORE_0_2))
    content = checkpoint.policy_content(policy, OBS, ACT) | {"meta": {}}
    for key in ("separate_value", "critic_keys", "normalize_observations", "normalize_returns", "memory"):
        content["policy_config"].pop(key)
    loaded = load_policy(load_checkpoint(checkpoint.save(tmp_path, 1, content)))
    assert loaded.normalizer is None and loaded.return_scale is None and loaded.value_body is None
    args = {"obs": torch.randn(5, 3)}, torch.randn(5, 16), torch.zeros(5, 2)
    assert torch.equal(loaded.act(*args, deterministic=True).action, policy.act(*args, deterministic=True).action)


def test_the_first_rollout_is_only_looked_at():
    config = TrainConfig(policy=SMALL, ppo=PPOConfig(mini_batches=2))
    learner = Learner(config, OBS, ACT, CPU)
    before = [p.clone() for p in learner.policy.parameters()]
    from trainer.collect import CollectStats

    for learns in (False, True):
        rollout = filled(learner.policy)
        learner.update(rollout, CollectStats(rows=rollout.finish(), steps=rollout.num_closed))
        assert learns != all(torch.equal(a, b) for a, b in zip(before, learner.policy.parameters()))
        assert learner.policy.knows_observations()


def test_an_environment_without_vectors_has_nothing_to_normalise():
    policy = Policy(gym.spaces.Box(0, 255, (16, 16, 3), np.uint8), ACT, PolicyConfig(embedding_size=8))
    assert policy.normalizer is None and policy.knows_observations()

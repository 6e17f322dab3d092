"""A policy that becomes NaN: the run stops, the last good checkpoint is whole, the dump repeats the failure."""

import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch

from tests.trainer.toys import Pointer
from trainer import CollectConfig, PolicyConfig, PPOConfig, TrainConfig, load_checkpoint, train
from trainer.divergence import NonFinite, reproduce

ROOT = Path(__file__).parents[2]
SMALL = dict(torch_threads=1, policy=PolicyConfig(encoder=None, hidden_size=8, body_size=16), collect=CollectConfig(num_envs=4, num_workers=1, rollout_steps=16))


class Treacherous(Pointer):
    """After some hundred steps one reward is so large that its square is not a float any more."""

    count = 0

    def step(self, action):
        obs, reward, *rest = super().step(action)
        self.count += 1
        return obs, 1e30 if self.count == 60 else reward, *rest


class Blinding(gym.Env):
    """After some steps, observations are finite, but so large that a network overflows."""

    observation_space, action_space = gym.spaces.Box(-np.inf, np.inf, (4,), np.float32), gym.spaces.Box(-1, 1, (2,), np.float32)
    t = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.ones(4, np.float32), {}

    def step(self, action):
        self.t += 1
        return np.full(4, 3e38 if self.t > 50 else 1.0, np.float32), 0.0, False, False, {}


def test_a_loss_that_is_not_finite(tmp_path):
    with pytest.raises(NonFinite, match="update 4; python -m trainer.divergence") as error:
        train(Treacherous, TrainConfig(steps=10**6, **SMALL), tmp_path)
    content = load_checkpoint(tmp_path)
    assert content["counters"]["updates"] == 3 and content["step"] == 192
    assert all(torch.isfinite(v).all() for v in content["policy"].values())
    dump = torch.load(tmp_path / "diverged_rank0.pt", weights_only=True)
    assert all(torch.equal(dump["policy"][k], v) for k, v in content["policy"].items()), "the state before that update"
    assert reproduce(tmp_path) in str(error.value)
    out = subprocess.run([sys.executable, "-m", "trainer.divergence", str(tmp_path / "diverged_rank0.pt")], cwd=ROOT, capture_output=True, text=True)
    assert out.returncode == 0 and out.stdout.strip() in str(error.value), out.stderr


def test_parameters_that_are_not_finite(tmp_path):
    """Gradients are finite, the step is not."""
    config = TrainConfig(steps=10**6, ppo=PPOConfig(learning_rate=3e38, schedule="constant", max_grad_norm=None, epochs=1, mini_batches=1), **SMALL)
    with pytest.raises(NonFinite) as error:
        train(Pointer, config, tmp_path)
    assert reproduce(tmp_path / "diverged_rank0.pt") in str(error.value)


def test_a_policy_that_overflows_while_it_acts(tmp_path):
    config = TrainConfig(steps=10**6, **SMALL | {"policy": PolicyConfig(encoder=None, lstm_layers=0, body_size=0, body_layers=0)})
    with pytest.raises(NonFinite, match="while it acted") as error:
        train(Blinding, config, tmp_path)
    assert reproduce(tmp_path) in str(error.value)
    assert load_checkpoint(tmp_path)["counters"]["updates"] == 3


def test_a_dump_that_does_not_fail_says_so(tmp_path):
    with pytest.raises(NonFinite):
        train(Treacherous, TrainConfig(steps=10**6, **SMALL), tmp_path)
    file = tmp_path / "diverged_rank0.pt"
    dump = torch.load(file, weights_only=True)
    dump["rollout"]["reward"].clamp_(-1, 1)
    torch.save(dump, file)
    with pytest.raises(ValueError, match="does not reproduce"):
        reproduce(file)

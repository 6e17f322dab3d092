"""Networks of the user's own: trained, saved, played; and refused where they do not fit."""

from __future__ import annotations

import functools
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
import torch
from torch import nn

from tests.trainer.faults.test_divergence import Treacherous
from tests.trainer.toy_networks import Bent, Straight
from tests.trainer.toys import Pointer, small
from trainer import Player, Policy, PolicyConfig, PPOConfig, TrainConfig, load_checkpoint, load_policy, train
from trainer.acting import RecordedActs
from trainer.errors import CheckpointError, NonFinite
from trainer.faults.nan_dump import reproduce
from trainer.nets.encoders import LightEncoder


def config(steps: int, **settings):
    policy = PolicyConfig(lstm_layers=1, hidden_size=8, body_size=16)
    return small(steps, num_envs=4, rollout_steps=32, **{"policy": policy} | settings)


def test_it_learns():
    learn = PPOConfig(learning_rate=1e-2, discount=0.5, schedule="cosine", epochs=3, mini_batches=4)
    result = train(Pointer, config(10_000, log_every_s=0.1, ppo=learn), make_policy=Straight)
    assert isinstance(result.policy, Straight)
    assert result.history[-1]["episode/return"] > max(5, result.history[0]["episode/return"] + 2)


def test_it_is_saved_resumed_and_played(tmp_path):
    first = train(Pointer, config(128), tmp_path, make_policy=Straight, progress=False)
    content = load_checkpoint(tmp_path)
    assert content["network"] == {"name": "tests.trainer.toy_networks.Straight", "seen": {"goal": [2]}}
    assert torch.load(first.checkpoint, weights_only=True)["network"] == content["network"]
    second = train(Pointer, config(256), tmp_path, resume_from=tmp_path, make_policy=Straight, progress=False)
    assert second.steps == 256
    env = Pointer()
    player, (observation, _) = Player(tmp_path, env, deterministic=True, make_policy=Straight), env.reset(seed=0)
    with torch.no_grad():
        mean = second.policy.cpu().mean(torch.from_numpy(observation["goal"])[None])
    assert np.allclose(player.act(observation), mean[0].clamp(-1, 1).numpy(), atol=1e-6)
    third = train(Pointer, config(128), make_policy=Straight, start_from=tmp_path)
    assert third.steps == 128


class Scanning(Pointer):
    """Shows bytes, and a volume that the engine would not know how to see."""

    def __init__(self):
        super().__init__()
        self.observation_space = gym.spaces.Dict(goal=self.observation_space["goal"],
                                                 scan=gym.spaces.Box(0, 1, (9, 9, 9)),
                                                 image=gym.spaces.Box(0, 255, (8, 8, 3), np.uint8))

    def _obs(self):
        return super()._obs() | {"scan": np.zeros((9, 9, 9), np.float32), "image": np.full((8, 8, 3), 7, np.uint8)}


def test_it_may_see_what_the_engines_own_does_not_know(tmp_path):
    settings = config(128, eval_every=64, eval_episodes=1)
    assert train(Scanning, settings, tmp_path, make_policy=Straight, progress=False).best
    assert train(Scanning, replace(settings, steps=256), tmp_path, resume_from=tmp_path, make_policy=Straight,
                 progress=False).steps == 256
    env = Scanning()
    assert env.action_space.contains(Player(tmp_path, env, make_policy=Straight).act(env.reset(seed=0)[0]))


def test_the_engines_own_network_is_not_named(tmp_path):
    train(Pointer, config(128), tmp_path, progress=False)
    assert "network" not in load_checkpoint(tmp_path)


@pytest.mark.parametrize("trained, given, words", [
    (Straight, Policy, "is of the network tests.trainer.toy_networks.Straight, this one is trainer.policy.Policy: give "
                       "the make_policy"),
    (Policy, Straight, "is of the network trainer.policy.Policy, this one is tests.trainer.toy_networks.Straight: give "
                       "the make_policy"),
    (Straight, Bent, "is of the network tests.trainer.toy_networks.Straight, this one is "
                     "tests.trainer.toy_networks.Bent"),
    (functools.partial(Policy), Policy,
     r"is of the network trainer.policy.Policy\(...\), this one is trainer.policy.Policy: give"),
])
def test_a_checkpoint_of_another_network_is_refused(tmp_path, trained, given, words):
    train(Pointer, config(128), tmp_path, make_policy=trained, progress=False)
    for use in (lambda: train(Pointer, config(256), tmp_path, resume_from=tmp_path, make_policy=given),
                lambda: train(Pointer, config(256), start_from=tmp_path, make_policy=given),
                lambda: Player(tmp_path, Pointer(), make_policy=given),
                lambda: load_policy(load_checkpoint(tmp_path), given)):
        with pytest.raises(CheckpointError, match=words) as error:
            use()
        assert "\n" not in str(error.value)


def test_a_network_of_the_same_name_with_other_weights_is_refused(tmp_path):
    def wide(observation_space, action_space, config):
        network = Straight(observation_space, action_space, config)
        network.value = nn.Sequential(nn.Linear(2, size), nn.Linear(size, 1))
        return network

    size = 4
    train(Pointer, config(128), tmp_path, make_policy=wide, progress=False)
    size = 5
    with pytest.raises(CheckpointError, match="is of another network than this run's policy: size mismatch for value"):
        train(Pointer, config(256), tmp_path, resume_from=tmp_path, make_policy=wide)
    with pytest.raises(CheckpointError, match="the weights do not fit the network they are stored with"):
        Player(tmp_path, Pointer(), make_policy=wide)


def test_the_engines_policy_with_an_encoder_of_ones_own(tmp_path):
    class Halved(LightEncoder):
        def forward(self, image):
            return super().forward(0.5 * image)

    make_policy = functools.partial(Policy, encoders={"halved": Halved})
    settings = config(128)
    settings = TrainConfig(**{**vars(settings),
                              "policy": PolicyConfig(encoder="halved", lstm_layers=1, hidden_size=8, body_size=16)})
    result = train(functools.partial(Pointer, image=True), settings, tmp_path, make_policy=make_policy, progress=False)
    assert isinstance(result.policy.encoders["depth"], Halved)
    again = load_policy(load_checkpoint(tmp_path), make_policy)
    assert all(torch.equal(a, b) for a, b in zip(result.policy.cpu().parameters(), again.parameters()))
    with pytest.raises(ValueError, match="policy.encoder=halved is none of light, resnet18"):
        train(functools.partial(Pointer, image=True), settings)


class Forgetful(nn.Module):
    choices, action_size, state_size = (), 2, 0

    def __init__(self, *_):
        super().__init__()


class Short(Straight):
    def __init__(self, observation_space, action_space, config):
        super().__init__(observation_space, gym.spaces.Box(-1, 1, (1,), np.float32), config)


@pytest.mark.parametrize("make_policy, words", [
    (lambda *_: None, "make_policy gave None, which is no torch.nn.Module"),
    (Forgetful, "gave a Forgetful without seen, action_features, act, evaluate, forward: "
                "trainer.networks.PolicyNetwork says"),
    (Short,
     r"gave a Short with choices=\(\) and action_size=1; the environments' actions have .*action_size=2"),
])
def test_what_is_no_network_is_one_sentence(make_policy, words):
    with pytest.raises(ValueError, match=words):
        train(Pointer, config(128), make_policy=make_policy)


def test_the_failure_of_ones_own_network_is_repeated_with_it(tmp_path):
    with pytest.raises(NonFinite,
                       match=r"trainer.faults.nan_dump.reproduce\('.*rank0.pt', make_policy\) with the make_policy "
                                        "tests.trainer.toy_networks.Straight repeats it") as error:
        train(Treacherous, config(10**6), tmp_path, make_policy=Straight, progress=False)
    assert reproduce(tmp_path, Straight) in str(error.value)
    with pytest.raises(CheckpointError, match="is of the network tests.trainer.toy_networks.Straight"):
        reproduce(tmp_path)


@pytest.mark.parametrize("network",
                         [7, {}, {"name": "x"}, {"name": 3, "seen": {}}, {"name": "x", "seen": {"goal": [0]}},
                                     {"name": "x", "seen": {"goal": [10**12]}}, {"name": "x", "seen": {"goal": 2}}])
def test_a_damaged_entry_is_one_sentence(tmp_path, network):
    file = train(Pointer, config(128), tmp_path, make_policy=Straight, progress=False).checkpoint
    torch.save(torch.load(file, weights_only=True) | {"network": network}, file)
    with pytest.raises(CheckpointError, match="is damaged: network") as error:
        load_checkpoint(file)
    assert "\n" not in str(error.value)


def test_on_a_gpu_only_the_engines_own_network_is_recorded():
    """What another computes may depend on what Python knows."""
    sees, gpu = gym.spaces.Dict({"depth": gym.spaces.Box(0, 1, (16, 16, 1), np.float32)}), torch.device("cuda")
    act = gym.spaces.Box(-1, 1, (3,), np.float32)

    class MyEncoder(LightEncoder):
        pass

    class MyPolicy(Policy):
        pass

    own = Policy(sees, act, PolicyConfig())
    others = MyPolicy(sees, act, PolicyConfig()), Policy(sees, act, PolicyConfig(), encoders={"light": MyEncoder})
    assert [RecordedActs(policy, gpu).records for policy in (own, *others)] == [True, False, False]
    assert not RecordedActs(own, gpu, wanted=False).records and not RecordedActs(own, torch.device("cpu")).records

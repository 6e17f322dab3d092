"""The policy gives the same numbers one step at a time and sequence by sequence."""

import gymnasium as gym
import numpy as np
import pytest
import torch

from trainer.config import PolicyConfig
from trainer.policy import Policy
from trainer.sequences import Sequences

DICT = gym.spaces.Dict(depth=gym.spaces.Box(0, 1, (64, 64, 1), np.float32), joint=gym.spaces.Box(-9, 9, (5,), np.float32))
BOX = gym.spaces.Box(-1, 1, (3,), np.float32)
CONFIGS = {
    "light": PolicyConfig(hidden_size=16, body_size=32),
    "blind": PolicyConfig(encoder=None, hidden_size=16, body_size=32),
    "feed-forward": PolicyConfig(lstm_layers=0, body_size=32),
    "bfloat16": PolicyConfig(image_precision="bfloat16", hidden_size=16, body_size=32),
    "resnet18": PolicyConfig(encoder="resnet18", embedding_size=32, hidden_size=16, lstm_layers=2, skip=False, body_size=0),
}


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("actions", ["box", "discrete"])
def test_sequences_equal_single_steps(name, actions):
    torch.manual_seed(0)
    policy = Policy(DICT, BOX if actions == "box" else gym.spaces.Discrete(4), CONFIGS[name])
    lengths = [4, 1, 6]
    total = sum(lengths)
    obs = {"depth": torch.rand(total, 64, 64, 1), "joint": torch.randn(total, 5)}
    previous = torch.rand(total, policy.action_size)
    initial = torch.randn(len(lengths), policy.state_size)
    actions, log_probs, values = [], [], []
    start = 0
    for k, length in enumerate(lengths):
        state = initial[k : k + 1]
        for t in range(start, start + length):
            act = policy.act({key: v[t : t + 1] for key, v in obs.items()}, state, previous[t : t + 1])
            state = act.state
            actions.append(act.action), log_probs.append(act.log_prob), values.append(act.value)
        start += length
    sequences = Sequences(np.array(lengths), torch.device("cpu"))
    log_prob, entropy, value, _ = policy.evaluate(obs, previous, torch.cat(actions), sequences, initial)
    assert torch.allclose(log_prob, torch.cat(log_probs), atol=1e-4)
    assert torch.allclose(value, torch.cat(values), atol=1e-4)
    assert entropy.shape == (total,)


def test_packed_and_padded_lstm_agree():
    """The CUDA path (PackedSequence) computed on the CPU gives the padded path's output and gradient."""
    torch.manual_seed(0)
    policy = Policy(DICT, BOX, CONFIGS["light"])
    sequences = Sequences(np.array([3, 7, 1, 7]), torch.device("cpu"))
    features, state = torch.randn(18, 32, requires_grad=True), torch.randn(4, policy.state_size)
    padded = policy._run_lstm(features, sequences, state)
    packed = torch.nn.utils.rnn.PackedSequence(features[sequences.packed_order], sequences.batch_sizes)
    y, _ = policy.lstm(packed, policy._split(state[sequences.by_length]))
    unpacked = torch.empty_like(y.data)
    unpacked[sequences.packed_order] = y.data
    assert torch.allclose(padded, unpacked, atol=1e-5)
    (a,) = torch.autograd.grad(padded.square().sum(), features, retain_graph=True)
    (b,) = torch.autograd.grad(unpacked.square().sum(), features)
    assert torch.allclose(a, b, atol=1e-4)


def test_gaussian_matches_torch_distributions():
    policy = Policy(DICT, BOX, PolicyConfig(log_std_init=(-0.5, 0.0, 0.3)))
    sequences = Sequences(np.array([8]), torch.device("cpu"))
    obs = {"depth": torch.rand(8, 64, 64, 1), "joint": torch.randn(8, 5)}
    previous, action, state = torch.rand(8, 3), torch.randn(8, 3), torch.zeros(1, policy.state_size)
    log_prob, entropy, *_ = policy.evaluate(obs, previous, action, sequences, state)
    features = policy._features(obs, previous)
    mean, _, log_std = policy._heads(torch.cat([features, policy._run_lstm(features, sequences, state)], -1))
    reference = torch.distributions.Independent(torch.distributions.Normal(mean, log_std.exp()), 1)
    assert torch.allclose(log_prob, reference.log_prob(action), atol=1e-5)
    assert torch.allclose(entropy, reference.entropy(), atol=1e-5)


@pytest.mark.parametrize("squashed", [False, True])
def test_the_first_actions_have_the_mean_that_is_asked_for(squashed):
    policy = Policy(DICT, BOX, PolicyConfig(mean_init=(0.5, 0.0, -0.8), tanh_mean=squashed))
    obs = {"depth": torch.rand(64, 64, 64, 1), "joint": torch.randn(64, 5)}
    mean = policy.act(obs, torch.zeros(64, policy.state_size), torch.zeros(64, 3), deterministic=True).action
    assert torch.allclose(mean.mean(0), torch.tensor([0.5, 0.0, -0.8]), atol=0.1)


def test_blind_ignores_images_and_unknown_spaces_are_refused():
    assert Policy(DICT, BOX, CONFIGS["blind"]).image_keys == []
    with pytest.raises(ValueError, match="Box keys only"):
        Policy(gym.spaces.Dict(x=gym.spaces.Discrete(3)), BOX, CONFIGS["blind"])


def test_byte_images_are_scaled_to_one():
    """An image of bytes gives the features of the same image in [0, 1]."""
    torch.manual_seed(0)
    as_bytes = Policy(gym.spaces.Box(0, 255, (64, 64, 3), np.uint8), BOX, CONFIGS["light"])
    as_floats = Policy(gym.spaces.Box(0, 1, (64, 64, 3), np.float32), BOX, CONFIGS["light"])
    as_floats.load_state_dict(as_bytes.state_dict())
    image, state, previous = torch.randint(0, 256, (2, 64, 64, 3)).float(), torch.zeros(2, 32), torch.zeros(2, 3)
    a = as_bytes.act({"obs": image}, state, previous, deterministic=True).action
    assert torch.allclose(a, as_floats.act({"obs": image / 255}, state, previous, deterministic=True).action, atol=1e-6)


def test_bfloat16_images_change_the_outputs_a_little_and_the_gradients_stay_float32():
    obs = {"depth": torch.rand(8, 64, 64, 1), "joint": torch.randn(8, 5)}
    acts = []
    for precision in ("float32", "bfloat16"):
        torch.manual_seed(0)
        policy = Policy(DICT, BOX, PolicyConfig(image_precision=precision))
        acts.append(policy.act(obs, torch.zeros(8, policy.state_size), torch.zeros(8, 3), deterministic=True))
    assert 0 < (acts[0].value - acts[1].value).abs().max() < 0.05
    assert all(parameter.dtype == torch.float32 for parameter in policy.parameters())
    policy._features(obs, torch.zeros(8, 3)).sum().backward()
    assert all(p.grad.dtype == torch.float32 for p in policy.encoders["depth"].parameters())

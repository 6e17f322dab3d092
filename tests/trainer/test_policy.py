"""The policy gives the same numbers one step at a time and sequence by sequence."""

import copy

import gymnasium as gym
import numpy as np
import pytest
import torch

from trainer.config import BEFORE_0_2, PolicyConfig
from trainer.nets.encoders import ENCODERS
from trainer.nets.heads import bounded
from trainer.nets.images import image_layout
from trainer.policy import Policy
from trainer.sequences import Sequences

DICT = gym.spaces.Dict(depth=gym.spaces.Box(0, 1, (64, 64, 1), np.float32),
                       joint=gym.spaces.Box(-9, 9, (5,), np.float32))
BOX = gym.spaces.Box(-1, 1, (3,), np.float32)
CONFIGS = {
    "light": PolicyConfig(lstm_layers=1, hidden_size=16, body_size=32),
    "blind": PolicyConfig(encoder=None, lstm_layers=1, hidden_size=16, body_size=32),
    "feed-forward": PolicyConfig(lstm_layers=0, body_size=32),
    "gru": PolicyConfig(memory="gru", lstm_layers=2, hidden_size=16, body_size=32),
    "as in 0.1": PolicyConfig(lstm_layers=1, hidden_size=16, body_size=32, **BEFORE_0_2),
    "critic": PolicyConfig(encoder=None, lstm_layers=1, hidden_size=16, body_size=32, critic_keys=("joint",)),
    "bfloat16": PolicyConfig(image_precision="bfloat16", lstm_layers=1, hidden_size=16, body_size=32),
    "resnet18": PolicyConfig(encoder="resnet18", embedding_size=32, hidden_size=16, lstm_layers=2, skip=False,
                             body_size=0),
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
    policy = Policy(DICT, BOX, PolicyConfig(lstm_layers=1, log_std_init=(-0.5, 0.0, 0.3)))
    sequences = Sequences(np.array([8]), torch.device("cpu"))
    obs = {"depth": torch.rand(8, 64, 64, 1), "joint": torch.randn(8, 5)}
    previous, action, state = torch.rand(8, 3), torch.randn(8, 3), torch.zeros(1, policy.state_size)
    log_prob, entropy, *_ = policy.evaluate(obs, previous, action, sequences, state)
    features = policy.body(policy._inputs(obs, previous))
    mean, log_std = policy._action(features, policy._run_lstm(features, sequences, state), obs)
    reference = torch.distributions.Independent(torch.distributions.Normal(mean, log_std.exp()), 1)
    assert torch.allclose(log_prob, reference.log_prob(action), atol=1e-5)
    assert torch.allclose(entropy, reference.entropy(), atol=1e-5)


@pytest.mark.parametrize("squashed", [False, True])
def test_the_first_actions_have_the_mean_that_is_asked_for(squashed):
    policy = Policy(DICT, BOX, PolicyConfig(mean_init=(0.5, 0.0, -0.8), tanh_mean=squashed))
    obs = {"depth": torch.rand(64, 64, 64, 1), "joint": torch.randn(64, 5)}
    mean = policy.act(obs, torch.zeros(64, policy.state_size), torch.zeros(64, 3), deterministic=True).action
    assert torch.allclose(mean.mean(0), torch.tensor([0.5, 0.0, -0.8]), atol=0.1)


@pytest.mark.parametrize("space, seen", [
    (gym.spaces.Box(0, 255, (12, 16, 16), np.uint8), lambda x: x.permute(0, 2, 3, 1) / 255),
    (gym.spaces.Box(0, 255, (6, 16, 24), np.uint8), lambda x: x.permute(0, 2, 3, 1) / 255),
    (gym.spaces.Box(0, 255, (24, 16), np.uint8), lambda x: x[..., None] / 255),
    (gym.spaces.Box(0, 1, (24, 16)), lambda x: x[..., None]),
    (gym.spaces.Box(0, 255, (4, 16, 16, 1), np.uint8), lambda x: x[..., 0].permute(0, 2, 3, 1) / 255),
    (gym.spaces.Box(0, 255, (4, 3, 16, 16), np.uint8), lambda x: x.permute(0, 3, 4, 1, 2).flatten(3) / 255),
    (gym.spaces.Box(0, 255, (16, 16, 3), np.uint8), lambda x: x / 255),
    (gym.spaces.Box(-np.inf, np.inf, (16, 16, 1)), lambda x: x),
])
def test_images_of_any_layout_reach_the_encoder_as_height_width_channels(space, seen):
    layout = image_layout(space)
    image = torch.from_numpy(np.stack([space.sample() for _ in range(3)])).float()
    assert torch.allclose(layout.as_hwc(image), seen(image)) and layout.as_hwc(image).shape[1:] == layout.shape


@pytest.mark.parametrize("space, is_one", [
    (gym.spaces.Box(-np.inf, np.inf, (12, 16)), False), (gym.spaces.Box(0, 255, (128,), np.uint8), False),
    (gym.spaces.Box(0, 1, (3, 5, 5)), False), (gym.spaces.Box(0, 1, (5, 5, 64)), False),
    (gym.spaces.Box(0, 1, (8, 8, 17)), True)])
def test_what_is_no_image_is_a_vector(space, is_one):
    assert bool(image_layout(space)) == is_one


@pytest.mark.parametrize("shape, words", [((16, 16, 16), "channels first or last"),
                                          ((64, 32, 64), "channels first or last"),
                                          ((4, 2, 3, 16, 16), "none of the images"),
                                          ((16, 16, 3, 4), "none of the images")])
def test_an_image_that_cannot_be_told_is_refused_in_a_sentence(shape, words):
    with pytest.raises(ValueError, match=words):
        Policy(gym.spaces.Box(0, 255, shape, np.uint8), BOX, PolicyConfig())


@pytest.mark.parametrize("encoder", ["light", "resnet18"])
def test_every_pixel_of_an_image_of_any_size_is_seen(encoder):
    torch.manual_seed(0)
    made = ENCODERS[encoder]((45, 38, 1), 16)
    image = torch.rand(1, 45, 38, 1, requires_grad=True)
    made(image).sum().backward()
    assert (image.grad.abs() > 0).all()


def test_bytes_in_a_vector_are_scaled():
    policy = Policy(gym.spaces.Box(0, 255, (4,), np.uint8), BOX, PolicyConfig(normalize_observations=False))
    assert policy._inputs({"obs": torch.full((1, 4), 255.0)},
                          torch.zeros(1, 3))[0, :4].tolist() == pytest.approx([1.0] * 4)


@pytest.mark.parametrize("outside, inwards", [(3.0, 1.0), (-6.0, -1.0)])
def test_a_deviation_beyond_its_bound_is_led_back_and_no_further_out(outside, inwards):
    for direction in (inwards, -inwards):
        x = torch.full((2,), outside, requires_grad=True)
        (direction * bounded(x, -5.0, 2.0)).sum().backward()
        assert x.grad.tolist() == ([inwards] * 2 if direction == inwards else [0.0] * 2)
    assert bounded(x, -5.0, 2.0).tolist() == [2.0 if outside > 0 else -5.0] * 2


@pytest.mark.parametrize("log_std, taken", [(2.0, 0.0), (3.0, 0.0), (-5.0, 50.0), (-6.0, 50.0)])
def test_the_likelihood_of_an_action_leads_a_deviation_at_its_bound_or_beyond_back(log_std, taken):
    """Asked of the policy: too wide for an action at its mean, too narrow for one that is far away."""
    config = PolicyConfig(encoder=None, lstm_layers=0, body_size=8, log_std_init=log_std, log_std_min=-5.0,
                          log_std_max=2.0)
    policy = Policy(gym.spaces.Box(-1, 1, (4,)), BOX, config)
    obs, state, previous = {"obs": torch.zeros(2, 4)}, torch.zeros(2, 0), torch.zeros(2, 3)
    mean = policy.act(obs, state, previous, deterministic=True).action
    log_prob, *_ = policy.evaluate(obs, previous, mean + taken, Sequences(np.ones(2, int), torch.device("cpu")), state)
    (-log_prob.sum()).backward()
    assert (policy.log_std.grad * (1 if log_std > 0 else -1) > 0.5).all(), "a step against it leads back"


def test_what_only_the_critic_sees_changes_values_and_no_action():
    torch.manual_seed(0)
    space = gym.spaces.Dict(seen=gym.spaces.Box(-1, 1, (3,)), secret=gym.spaces.Box(-1, 1, (2,)))
    policy = Policy(space, BOX,
                    PolicyConfig(encoder=None, lstm_layers=1, critic_keys=("secret",), normalize_returns=False))
    state, previous, seen = torch.zeros(4, policy.state_size), torch.zeros(4, 3), torch.randn(4, 3)
    a, b = (policy.act({"seen": seen, "secret": torch.full((4, 2), x)}, state, previous, deterministic=True)
            for x in (0.0, 1.0))
    assert torch.equal(a.action, b.action) and not torch.allclose(a.value, b.value) and torch.equal(a.state, b.state)
    assert torch.equal(policy.act({"seen": seen}, state, previous, deterministic=True).action,
                       a.action), "played without it"
    for wrong, words in ((PolicyConfig(encoder=None, critic_keys=("secret",), separate_value=False),
                          "needs policy.separate_value"),
                         (PolicyConfig(encoder=None, critic_keys=("other",)), "which is no vector")):
        with pytest.raises(ValueError, match=words):
            Policy(space, BOX, wrong)


def test_a_masked_option_is_never_taken_and_has_no_share_in_the_entropy():
    torch.manual_seed(0)
    space = gym.spaces.Dict(x=gym.spaces.Box(-1, 1, (3,)), action_mask=gym.spaces.Box(0, 1, (5,)))
    policy = Policy(space, gym.spaces.MultiDiscrete([2, 3]), PolicyConfig(lstm_layers=0))
    mask = torch.tensor([[1.0, 0, 0, 1, 1]]).expand(64, 5)
    obs, state, previous = {"x": torch.randn(64, 3), "action_mask": mask}, torch.zeros(64, 0), torch.zeros(64, 5)
    act = policy.act(obs, state, previous)
    assert (act.action[:, 0] == 0).all() and set(act.action[:, 1].tolist()) == {1, 2}
    log_prob, entropy, *_ = policy.evaluate(obs, previous, act.action, Sequences(np.ones(64, int), torch.device("cpu")),
                                            state)
    assert torch.allclose(log_prob, act.log_prob,
                          atol=1e-5) and torch.allclose(entropy, torch.tensor(np.log(2.0)).float(), atol=0.01)


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
        policy = Policy(DICT, BOX, PolicyConfig(image_precision=precision, normalize_returns=False))
        acts.append(policy.act(obs, torch.zeros(8, policy.state_size), torch.zeros(8, 3), deterministic=True))
    assert 0 < (acts[0].value - acts[1].value).abs().max() < 0.05
    assert all(parameter.dtype == torch.float32 for parameter in policy.parameters())
    policy._inputs(obs, torch.zeros(8, 3)).sum().backward()
    assert all(p.grad.dtype == torch.float32 for p in policy.encoders["depth"].parameters())


def test_weights_lie_in_memory_by_inputs_whatever_they_were_loaded_from():
    policy = Policy(DICT, BOX, CONFIGS["light"])
    policy.load_state_dict({k: v.clone(memory_format=torch.contiguous_format)
                            for k, v in policy.state_dict().items()})
    for each in policy, copy.deepcopy(policy):
        assert all(layer.weight.t().is_contiguous() for layer in each.modules() if isinstance(layer, torch.nn.Linear))

"""CPC|A: which steps are predicted, that the loss learns what can be known, and that PPO's own losses stay as they
are."""

import gymnasium as gym
import numpy as np
import pytest
import torch

from trainer.config import PolicyConfig
from trainer.cpc import CPC, NEGATIVES, STARTS, STEPS, WEIGHT, CPCPolicy, starts_and_reach
from trainer.policy import Policy
from trainer.sequences import Sequences

SPACE = gym.spaces.Dict(depth=gym.spaces.Box(0, 1, (16, 16, 1), np.float32))
CONFIG = PolicyConfig(lstm_layers=1, hidden_size=16, body_size=16, embedding_size=8)
CPU = torch.device("cpu")


def test_no_prediction_crosses_the_end_of_a_piece():
    """Pieces of 5, 1, 2 and 40 steps: none from a last step, none beyond the piece, none farther than k."""
    lengths = np.array([5, 1, 2, 40])
    owner = np.repeat(np.arange(4), lengths)
    for seed in range(20):
        rows, reach = starts_and_reach(lengths, torch.Generator().manual_seed(seed))
        assert len(rows) == 4 + 0 + 1 + STARTS and len(set(rows.tolist())) == len(rows)
        for row, far in zip(rows.tolist(), reach.tolist()):
            assert 1 <= far <= STEPS and owner[row + far] == owner[row]
            assert far == STEPS or row + far + 1 == len(owner) or owner[row + far + 1] != owner[row]


def test_the_loss_falls_where_actions_tell_the_images_and_not_where_nothing_does():
    """A ring of 8 places; the image is the place, the action moves 1 or 2 on. What is remembered is the place, or
    nothing."""
    found = {}
    for knows in (True, False):
        torch.manual_seed(0)
        loss_of, rng = CPC(32, 8, 2), np.random.default_rng(0)
        optimizer = torch.optim.Adam(loss_of.parameters(), 1e-2)
        for _ in range(160):
            moves = rng.integers(1, 3, (4, 30))
            place = torch.from_numpy(np.concatenate([[0] * 4,
                                                     np.cumsum(moves, 1)[:, :-1].T.ravel()])[:120].reshape(30, 4).T % 8)
            images = torch.nn.functional.one_hot(place.reshape(-1), 8).float()
            before = torch.from_numpy(np.concatenate([np.ones((4, 1), int), moves[:, :-1]], 1) - 1)
            previous = torch.nn.functional.one_hot(before.reshape(-1), 2).float()
            memory = torch.cat([images, torch.zeros(120, 24)], 1) if knows else torch.zeros(120, 32)
            loss = loss_of(memory, images, previous, np.full(4, 30))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found[knows] = 0.9 * found.get(knows, loss.item()) + 0.1 * loss.item()
    assert found[True] < 0.75 * found[False]


def test_pieces_of_one_step_give_no_loss_and_no_error():
    loss = CPC(16, 8, 2)(torch.randn(3, 16), torch.randn(3, 8), torch.randn(3, 2), np.ones(3, int))
    loss.backward()
    assert loss.item() == 0.0


def test_the_value_is_unchanged_and_carries_the_gradient():
    torch.manual_seed(0)
    policy, plain = CPCPolicy(SPACE, gym.spaces.Discrete(4), CONFIG), Policy(SPACE, gym.spaces.Discrete(4), CONFIG)
    plain.load_state_dict({k: v for k, v in policy.state_dict().items() if not k.startswith("cpc.")})
    sequences = Sequences(np.array([12, 1, 7]), CPU)
    batch = ({"depth": torch.rand(20, 16, 16, 1)}, torch.rand(20, 4), torch.randint(4, (20, 1)), sequences,
             torch.zeros(3, 32))
    ours, theirs = policy.evaluate(*batch), plain.evaluate(*batch)
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs))
    ours[2].sum().backward()
    theirs[2].sum().backward()
    assert all(parameter.grad is not None for parameter in policy.cpc.parameters())
    torch.manual_seed(5)
    policy.zero_grad()
    (0.0 * policy.evaluate(*batch)[2].sum()).backward()
    carried = policy.value.weight.grad, policy.encoders["depth"].head[0].weight.grad
    assert not carried[0].any() and carried[1].any(), "the loss alone: none through the value, some into the encoder"
    carried = carried[1].clone()
    policy.zero_grad()
    policy.evaluate(*batch)
    torch.manual_seed(5)
    (WEIGHT * policy.cpc(policy._memory, policy._seen, batch[1], sequences.lengths)).backward()
    assert torch.allclose(policy.encoders["depth"].head[0].weight.grad, carried, atol=1e-7)
    with torch.no_grad():
        assert policy.evaluate(*batch)[2].shape == (20,)


def test_it_needs_images_and_a_memory():
    with pytest.raises(ValueError, match="needs images and an LSTM"):
        CPCPolicy(SPACE, gym.spaces.Discrete(4), PolicyConfig(encoder=None))
    assert NEGATIVES == 20

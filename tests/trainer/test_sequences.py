"""Sequences, mini-batches and returns: laws that hold for any rollout, and hand computations."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.sequences import Sequences, find_sequences, gae, importance_weights, mini_batches, vtrace


@st.composite
def rollouts(draw):
    """env, step, starts_episode of a random rollout in random order, with gaps where rows were overwritten."""
    rows = []
    for env in range(draw(st.integers(1, 5))):
        first = draw(st.integers(0, 50))
        for step in range(first, first + draw(st.integers(1, 30))):
            if draw(st.integers(0, 9)):  # one in ten is missing
                rows.append((env, step, draw(st.integers(0, 5)) == 0))
    rows = draw(st.permutations(rows)) or [(0, 0, True)]
    env, step, starts = (np.array(x) for x in zip(*rows))
    return env, step, starts.astype(bool)


@given(rollouts())
@settings(max_examples=60, deadline=None)
def test_sequences_hold_consecutive_steps_of_one_episode(rollout):
    env, step, starts_episode = rollout
    order, starts = find_sequences(env, step, starts_episode)
    assert sorted(order) == list(range(len(env)))
    for a, b in zip(starts, [*starts[1:], len(env)]):
        rows = order[a:b]
        assert len(set(env[rows])) == 1
        assert (np.diff(step[rows]) == 1).all()
        assert not starts_episode[rows][1:].any()


@given(rollouts(), st.integers(0, 1000), st.sampled_from([0.0, 0.6, 1.0]), st.sampled_from([(1.0, 1.0), (2.5, 0.7)]))
@settings(max_examples=60, deadline=None)
def test_vtrace_is_the_sum_of_its_paper(rollout, seed, gae_lambda, bars):
    """Espeholt et al. 2018, equation 1, term by term; the value that follows a sequence is 0 after an end, else that of
    a state which a time limit or the rollout cut off. With lambda = 1 the advantages are the paper's."""
    order, starts = find_sequences(*rollout)
    rng, size, discount, (rho_bar, c_bar) = np.random.default_rng(seed), len(order), 0.9, bars
    reward, value, follows = rng.normal(size=(3, size)).astype(np.float32)
    follows *= rng.random(size) < 0.7  # others end
    ratio = np.exp(rng.normal(size=size)).astype(np.float32)
    advantage, error = vtrace(reward, value, follows, ratio, starts, discount, gae_lambda, rho_bar, c_bar)
    for a, b in zip(starts, [*starts[1:], size]):
        after = [*value[a + 1 : b], follows[b - 1]]
        target = []
        for s in range(a, b):
            total = float(value[s])
            for t in range(s, b):
                factors = np.prod([gae_lambda * min(c_bar, ratio[i]) for i in range(s, t)])
                delta = min(rho_bar, ratio[t]) * (reward[t] + discount * after[t - a] - value[t])
                total += discount ** (t - s) * factors * delta
            target.append(total)
        assert np.allclose(value[a:b] + error[a:b], target, rtol=1e-4, atol=1e-4)
        v = np.append(target[1:], after[-1])
        later = reward[a:b] + discount * (gae_lambda * v + (1 - gae_lambda) * np.array(after))
        assert np.allclose(advantage[a:b], later - value[a:b], rtol=1e-4, atol=1e-4)


@given(rollouts(), st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_vtrace_of_a_policy_that_has_not_changed_is_gae(rollout, seed):
    order, starts = find_sequences(*rollout)
    reward, value, follows = np.random.default_rng(seed).normal(size=(3, len(order))).astype(np.float32)
    follows[:-1] = np.where(np.isin(np.arange(1, len(order)), starts), follows[:-1], value[1:])
    plain = gae(reward, value, follows, starts, 0.9, 0.8)
    for corrected in vtrace(reward, value, follows, np.ones(len(order)), starts, 0.9, 0.8, 1.0, 1.0):
        assert (corrected == plain).all()


@given(rollouts(), st.integers(1, 4), st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_mini_batches_deal_every_step_once_in_equal_shares(rollout, count, seed):
    order, starts = find_sequences(*rollout)
    count = min(count, len(order))
    batches = mini_batches(starts, len(order), count, np.random.default_rng(seed))
    positions = np.concatenate([p for p, _ in batches])
    assert sorted(positions) == list(range(len(order)))
    sizes = [len(p) for p, _ in batches]
    assert max(sizes) - min(sizes) <= 1
    for p, lengths in batches:
        assert lengths.sum() == len(p) and (lengths > 0).all()
        ends = np.cumsum(lengths)
        for a, b in zip(ends - lengths, ends):  # a piece is a contiguous part of one sequence
            assert (np.diff(p[a:b]) == 1).all()
            assert np.searchsorted(starts, p[a], "right") == np.searchsorted(starts, p[b - 1], "right")


def test_a_rollout_cut_into_two_mini_batches():
    """The worked example: three sequences of 3, 2 and 3 steps give two mini-batches of 4, one sequence split."""
    env = np.array([0, 0, 0, 1, 1, 1, 1, 1])
    step = np.array([4, 5, 6, 0, 1, 2, 3, 4])
    starts_episode = np.array([0, 0, 0, 1, 0, 1, 0, 0], bool)
    order, starts = find_sequences(env, step, starts_episode)
    assert order.tolist() == list(range(8)) and starts.tolist() == [0, 3, 5]

    class InOrder:
        def permutation(self, n):
            return np.arange(n)

    (first, first_lengths), (second, second_lengths) = mini_batches(starts, 8, 2, InOrder())
    assert first.tolist() == [0, 1, 2, 3] and first_lengths.tolist() == [3, 1]
    assert second.tolist() == [4, 5, 6, 7] and second_lengths.tolist() == [1, 3]  # step 4 starts from its own state


@given(st.lists(st.integers(1, 7), min_size=1, max_size=6))
@settings(max_examples=40, deadline=None)
def test_packed_order_is_torchs(lengths):
    sequences = Sequences(np.array(lengths), torch.device("cpu"))
    pieces = torch.arange(sum(lengths), dtype=torch.float32).split(lengths)
    packed = torch.nn.utils.rnn.pack_sequence([p.unsqueeze(-1) for p in pieces], enforce_sorted=False)
    assert packed.batch_sizes.tolist() == sequences.batch_sizes.tolist()
    assert packed.sorted_indices.tolist() == sequences.by_length.tolist()
    assert packed.data.squeeze(-1).long().tolist() == sequences.packed_order.tolist()


def test_gae_by_hand():
    """Two sequences, discount 0.5, lambda 0.5. The first ends its episode (next value 0), the second is cut (next value
    4).

    delta = [1 + 0.5*2 - 1, 2 + 0 - 2 | 0 + 0.5*4 - 3] = [1, 0 | -1];  A = [1 + 0.25*0, 0 | -1]
    """
    advantage = gae(np.array([1.0, 2.0, 0.0]), np.array([1.0, 2.0, 3.0]), np.array([2.0, 0.0, 4.0]), np.array([0, 2]),
                    0.5, 0.5)
    assert advantage == pytest.approx([1.0, 0.0, -1.0])


def test_gae_equals_its_definition_on_random_sequences():
    """A_t = sum_k (discount lambda)^k delta_{t+k}, the sum ending with the sequence (Schulman et al. 2016, eq. 16)."""
    rng = np.random.default_rng(0)
    lengths = [5, 1, 7]
    reward, value, next_value = rng.normal(size=(3, 13))
    starts = np.array([0, 5, 6])
    advantage = gae(reward, value, next_value, starts, 0.97, 0.9)
    delta = reward + 0.97 * next_value - value
    for start, length in zip(starts, lengths):
        for t in range(start, start + length):
            expected = sum((0.97 * 0.9) ** k * delta[t + k] for k in range(start + length - t))
            assert advantage[t] == pytest.approx(expected, abs=1e-5)


def test_importance_weights_are_the_even_share_over_the_share_given():
    """8 steps of 2 environments: an even share is 4; environment 0 gave 6, environment 1 gave 2."""
    env = np.array([0] * 6 + [1] * 2)
    assert importance_weights(env, 2, 1.0).tolist() == pytest.approx([4 / 6] * 6 + [1.0] * 2)  # 4/2 = 2, truncated at 1
    assert importance_weights(env, 2, 10.0).tolist() == pytest.approx([4 / 6] * 6 + [2.0] * 2)
    assert importance_weights(env, 2, None).tolist() == [1.0] * 8

"""Returns and importance weights against hand computations."""

import numpy as np
import pytest

from trainer.returns import gae, importance_weights


def test_gae_by_hand():
    """Two sequences, discount 0.5, lambda 0.5. The first ends its episode (next value 0), the second is cut (next value 4).

    delta = [1 + 0.5*2 - 1, 2 + 0 - 2 | 0 + 0.5*4 - 3] = [1, 0 | -1];  A = [1 + 0.25*0, 0 | -1]
    """
    advantage = gae(np.array([1.0, 2.0, 0.0]), np.array([1.0, 2.0, 3.0]), np.array([2.0, 0.0, 4.0]), np.array([0, 2]), 0.5, 0.5)
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

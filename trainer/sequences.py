"""From K variable-length sequences to B equal mini-batches, and how a mini-batch is laid out for an LSTM.

VER paper 2.2: the K sequences of a rollout are put in random order and laid end to end; the first S/B steps are the
first mini-batch, the next S/B the second, and so on. A sequence that straddles a border is split, and each piece starts
from the recurrent state stored with its own first step.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor


def find_sequences(env: np.ndarray, step: np.ndarray, starts_episode: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Group steps into sequences: same environment, same episode, consecutive steps.

    env, step, starts_episode: (S,) environment, that environment's running step count, first step of an episode.
    Returns `order` (S,), which sorts the steps sequence after sequence, and `starts` (K,), where in `order` each
    begins.
    """
    order = np.lexsort((step, env))
    e, s = env[order], step[order]
    new = np.ones(len(order), bool)
    new[1:] = (e[1:] != e[:-1]) | (s[1:] != s[:-1] + 1) | starts_episode[order][1:]
    return order, np.flatnonzero(new)


def mini_batches(starts: np.ndarray, total: int, count: int,
                 rng: np.random.Generator) -> list[tuple[np.ndarray, np.ndarray]]:
    """Deal K sequences to `count` mini-batches whose sizes differ by at most one step.

    starts (K,): where each sequence begins among `total` steps. Returns, per mini-batch, the positions of its steps,
    piece after piece, and the lengths of the pieces.
    """
    lengths = np.diff(np.append(starts, total))
    shuffled = rng.permutation(len(starts))
    positions = np.concatenate([np.arange(starts[k], starts[k] + lengths[k]) for k in shuffled])
    borders = np.cumsum(lengths[shuffled])[:-1]  # where one sequence ends and the next begins
    cuts = np.linspace(0, total, count + 1).round().astype(int)
    batches = []
    for low, high in zip(cuts[:-1], cuts[1:]):
        inner = borders[(borders > low) & (borders < high)]
        batches.append((positions[low:high], np.diff(np.concatenate([[low], inner, [high]]))))
    return batches


def whole_sequences(starts: np.ndarray, total: int, count: int,
                    rng: np.random.Generator) -> list[tuple[np.ndarray, np.ndarray]]:
    """As `mini_batches`, but none is split: at most `count` mini-batches, of sizes as equal as the sequences allow."""
    lengths = np.diff(np.append(starts, total))
    shuffled = rng.permutation(len(starts))
    middle = np.cumsum(lengths[shuffled]) - lengths[shuffled] / 2
    batches = [shuffled[middle * count // total == number] for number in range(count)]
    return [(np.concatenate([np.arange(starts[k], starts[k] + lengths[k]) for k in batch]), lengths[batch])
            for batch in batches if len(batch)]


def gae(reward: np.ndarray, value: np.ndarray, next_value: np.ndarray, starts: np.ndarray, discount: float,
        gae_lambda: float) -> np.ndarray:
    """Generalised advantage estimates (Schulman et al. 2016, eq. 16) of sequences laid end to end.

        delta_t = r_t + discount V(s_{t+1}) - V(s_t)
        A_t     = delta_t + discount lambda A_{t+1}      within a sequence; A = delta at its last step

    reward, value, next_value: (S,). `next_value` is V(s_{t+1}): of the state that followed, also where the rollout or a
    time limit cut the episode there; 0 where the episode terminated. starts: (K,) first step of each sequence.
    Returns (S,) float32.
    """
    one = np.ones(len(reward))
    return _corrected(reward, value, next_value, starts, discount, gae_lambda, one, one)[0]


def vtrace(reward: np.ndarray, value: np.ndarray, next_value: np.ndarray, ratio: np.ndarray, starts: np.ndarray,
           discount: float, gae_lambda: float, rho_bar: float, c_bar: float) -> tuple[np.ndarray, np.ndarray]:
    """V-trace (Espeholt et al. 2018, eq. 1): advantages, and errors v - V of the values, of a policy that has changed
    since it acted, in sequences laid end to end.

        delta_t = r_t + discount V(s_{t+1}) - V(s_t)
        v_t     = V(s_t) + rho_t delta_t + discount c_t (v_{t+1} - V(s_{t+1}))
        A_t     = r_t + discount (lambda v_{t+1} + (1 - lambda) V(s_{t+1})) - V(s_t)

    within a sequence; at its last step v_{t+1} = V(s_{t+1}). The paper's advantages have lambda = 1; with it they are
    those of `gae` wherever the policy has not changed.

    Args:
        reward: (S,).
        value: (S,) V(s_t) of the policy as it is.
        next_value: (S,) V(s_{t+1}); counts at the last step of each sequence, and is the next `value` elsewhere.
        ratio: (S,) how much likelier the actions have become.
        starts: (K,) first step of each sequence.
        discount, gae_lambda: as in `gae`.
        rho_bar, c_bar: rho_t = min(rho_bar, ratio), c_t = lambda min(c_bar, ratio).
    """
    followed = np.append(value[1:], next_value[-1:])
    last = np.append(starts[1:], len(value)) - 1
    followed[last] = next_value[last]
    return _corrected(reward, value, followed, starts, discount, gae_lambda, np.minimum(rho_bar, ratio),
                      np.minimum(c_bar, ratio))


def _corrected(reward: np.ndarray, value: np.ndarray, next_value: np.ndarray, starts: np.ndarray, discount: float,
               gae_lambda: float, rho: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Advantages and errors of the values, each (S,) float32, by one walk from the last step to the first."""
    last = np.zeros(len(reward), bool)
    last[starts[1:] - 1] = True
    last[-1:] = True
    deltas = (reward.astype(np.float64) + discount * next_value - value).tolist()
    carries = (discount * gae_lambda * ~last).tolist()
    advantages, errors = np.empty((2, len(deltas)), np.float32)
    error, rhos, cs = 0.0, rho.tolist(), c.tolist()
    for t in range(len(deltas) - 1, -1, -1):
        later = carries[t] * error
        advantages[t], error = deltas[t] + later, rhos[t] * deltas[t] + cs[t] * later
        errors[t] = error
    return advantages, errors


def importance_weights(env: np.ndarray, num_envs: int, maximum: float | None) -> np.ndarray:
    """Truncated importance weights of VER (paper section 4, Table A1 "Max VER IS").

    A rollout of S steps holds n_e steps of environment e; an even one would hold S / N. Each step of e weighs
    min(maximum, (S / N) / n_e), so that environments that are fast to simulate do not dominate. env: (S,) -> (S,)
    float32.
    """
    if maximum is None:
        return np.ones(len(env), np.float32)
    count = np.bincount(env, minlength=num_envs)
    return np.minimum(maximum, len(env) / num_envs / count[env]).astype(np.float32)


@dataclass(frozen=True)
class Sequences:
    """K sequences laid end to end: M = sum(lengths) steps."""

    lengths: np.ndarray  # (K,)
    device: torch.device

    @cached_property
    def starts(self) -> Tensor:
        """(K,) position of each sequence's first step."""
        return self._tensor(np.cumsum(self.lengths) - self.lengths)

    @cached_property
    def sequence_of_step(self) -> Tensor:
        """(M,) which sequence a step belongs to."""
        return self._tensor(np.repeat(np.arange(len(self.lengths)), self.lengths))

    @cached_property
    def step_in_sequence(self) -> Tensor:
        """(M,) how many steps of its sequence come before a step."""
        first = np.repeat(np.cumsum(self.lengths) - self.lengths, self.lengths)
        return self._tensor(np.arange(len(first)) - first)

    @cached_property
    def padded_index(self) -> Tensor:
        """(longest, K) position of step t of sequence k; past the end, that of its last step."""
        t = np.arange(self.lengths.max())[:, None]
        start = np.cumsum(self.lengths) - self.lengths
        return self._tensor(start[None] + np.minimum(t, self.lengths[None] - 1))

    @cached_property
    def by_length(self) -> Tensor:
        """(K,) sequences from longest to shortest, the order a PackedSequence wants."""
        return self._tensor(np.argsort(-self.lengths, kind="stable"))

    @cached_property
    def packed_order(self) -> Tensor:
        """(M,) positions in packed order: all first steps, then all second steps, ... (VER paper, figure 3C)."""
        rank = np.empty(len(self.lengths), int)
        rank[np.argsort(-self.lengths, kind="stable")] = np.arange(len(self.lengths))
        sequence = np.repeat(np.arange(len(self.lengths)), self.lengths)
        first = np.repeat(np.cumsum(self.lengths) - self.lengths, self.lengths)
        return self._tensor(np.lexsort((rank[sequence], np.arange(len(first)) - first)))

    @cached_property
    def batch_sizes(self) -> Tensor:
        """(longest,) on the CPU: how many sequences still run at step t."""
        return torch.from_numpy((self.lengths[None] > np.arange(self.lengths.max())[:, None]).sum(1))

    def _tensor(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array, dtype=np.int64)).to(self.device)

"""Returns and weights of variable-length rollouts: pure functions of numpy arrays."""

from __future__ import annotations

import numpy as np


def gae(reward: np.ndarray, value: np.ndarray, next_value: np.ndarray, starts: np.ndarray, discount: float,
        gae_lambda: float) -> np.ndarray:
    """Generalised advantage estimates (Schulman et al. 2016, eq. 16) of sequences laid end to end.

        delta_t = r_t + discount V(s_{t+1}) - V(s_t)
        A_t     = delta_t + discount lambda A_{t+1}      within a sequence; A = delta at its last step

    reward, value, next_value: (S,). `next_value` is V(s_{t+1}): of the state that followed, also where the rollout or a
    time limit cut the episode there; 0 where the episode terminated. starts: (K,) first step of each sequence.
    Returns (S,) float32.
    """
    last = np.zeros(len(reward), bool)
    last[starts[1:] - 1] = True
    last[-1:] = True
    delta = (reward.astype(np.float64) + discount * next_value - value).tolist()
    carry = (discount * gae_lambda * ~last).tolist()
    advantage = 0.0
    out = np.empty(len(delta), np.float32)
    for t in range(len(delta) - 1, -1, -1):
        advantage = delta[t] + carry[t] * advantage
        out[t] = advantage
    return out


def importance_weights(env: np.ndarray, num_envs: int, maximum: float | None) -> np.ndarray:
    """Truncated importance weights of VER (paper section 4, Table A1 "Max VER IS").

    A rollout of S steps holds n_e steps of environment e; an even one would hold S / N. Each step of e weighs
    min(maximum, (S / N) / n_e), so that environments that are fast to simulate do not dominate. env: (S,) -> (S,) float32.
    """
    if maximum is None:
        return np.ones(len(env), np.float32)
    count = np.bincount(env, minlength=num_envs)
    return np.minimum(maximum, len(env) / num_envs / count[env]).astype(np.float32)

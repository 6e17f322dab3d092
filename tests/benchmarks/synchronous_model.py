"""The time of a rollout of the two modes that `benchmarks.collection_model` has no rule for, as the VER paper describes
them.
"""

from __future__ import annotations

import numpy as np

from benchmarks.collection_model import Workload


def synchronous_s(work: Workload, times: np.ndarray) -> float:
    """Mean seconds of a DD-PPO rollout of one rank: every step lasts as long as its slowest environment. times (1, N,
    K).
    """
    return float(times[0].max(0).mean() * work.rollout_steps)


def fixed_s(work: Workload, times: np.ndarray) -> float:
    """Mean seconds of a NoVER rollout of one rank: T steps of the slowest environment. times (1, N, K)."""
    whole = times.shape[-1] // work.rollout_steps
    rollouts = times[0, :, : whole * work.rollout_steps].reshape(work.envs, whole, work.rollout_steps)
    return float(rollouts.sum(-1).max(0).mean())

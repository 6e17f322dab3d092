"""Action distributions as pure functions of tensors: a diagonal Gaussian for Box, a categorical for Discrete.

`torch.distributions` costs about as much per call as the whole `light` policy on a CPU; these are the formulas alone.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


def gaussian_log_prob(action: Tensor, mean: Tensor, log_std: Tensor) -> Tensor:
    """Log density of independent Gaussians. (B, A), (B, A), (A,) -> (B,)."""
    z = (action - mean) * torch.exp(-log_std)
    return (-0.5 * z.square() - log_std - HALF_LOG_2PI).sum(-1)


def gaussian_entropy(log_std: Tensor) -> Tensor:
    """Entropy in nats of the joint distribution: sum over dimensions of log_std + 0.5 log(2 pi e). (A,) -> ()."""
    return (log_std + 0.5 + HALF_LOG_2PI).sum(-1)


def categorical_log_prob(action: Tensor, logits: Tensor) -> Tensor:
    """Log probability of integer actions. (B,), (B, A) -> (B,)."""
    return torch.log_softmax(logits, -1).gather(-1, action.long().unsqueeze(-1)).squeeze(-1)


def categorical_entropy(logits: Tensor) -> Tensor:
    """Entropy in nats. (B, A) -> (B,)."""
    log_p = torch.log_softmax(logits, -1)
    return -(log_p.exp() * log_p).sum(-1)

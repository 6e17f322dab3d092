"""Action distributions as pure functions of tensors: a diagonal Gaussian for Box, a categorical for each discrete part.

`torch.distributions` costs about as much per call as the whole `light` policy on a CPU; these are the formulas alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


def gaussian_log_prob(action: Tensor, mean: Tensor, log_std: Tensor) -> Tensor:
    """Log density of independent Gaussians. (B, A), (B, A), (A,) -> (B,)."""
    z = (action - mean) * torch.exp(-log_std)
    return -0.5 * z.square().sum(-1) - (log_std + HALF_LOG_2PI).sum(-1)


def gaussian_entropy(log_std: Tensor) -> Tensor:
    """Entropy in nats of the joint distribution: sum over dimensions of log_std + 0.5 log(2 pi e). (A,) -> ()."""
    return (log_std + 0.5 + HALF_LOG_2PI).sum(-1)


def categorical_log_prob(action: Tensor, logits: Sequence[Tensor]) -> Tensor:
    """Log probability of independent integer actions. (B, parts), a (B, options) for each part -> (B,)."""
    chosen = [torch.log_softmax(part, -1).gather(-1, action[:, i : i + 1]) for i, part in enumerate(logits)]
    return torch.cat(chosen, -1).sum(-1)


def gumbel(noise: Tensor) -> Tensor:
    """Standard normal numbers as standard Gumbel ones, whose maximum with logits is at an option with its
    probability."""
    uniform = torch.special.ndtr(noise).clamp(1e-7, 1 - 1e-7)
    return -torch.log(-torch.log(uniform))


def categorical_entropy(logits: Sequence[Tensor]) -> Tensor:
    """Entropy in nats of all parts together. A (B, options) for each -> (B,)."""
    log_p = [torch.log_softmax(part, -1) for part in logits]
    return -sum((part.exp() * part).sum(-1) for part in log_p)


class _Bounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, low: float, high: float) -> Tensor:
        ctx.save_for_backward(x)
        ctx.bounds = low, high
        return x.clamp(low, high)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (x,), (low, high) = ctx.saved_tensors, ctx.bounds
        leads_out = (x > high) & (gradient < 0) | (x < low) & (gradient > 0)  # one steps against the gradient
        return gradient.masked_fill(leads_out, 0.0), None, None


def bounded(x: Tensor, low: float, high: float) -> Tensor:
    """`x` clamped. Beyond a bound the gradient passes where a step against it leads back inside, and is 0 where it
    leads further out; that of a plain clamp is always 0 there."""
    return _Bounded.apply(x, low, high) if x.requires_grad and torch.is_grad_enabled() else x.clamp(low, high)

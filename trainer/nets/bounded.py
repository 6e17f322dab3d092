"""A parameter kept within bounds, whose gradient does not die there."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


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
    """`x` clamped. Beyond a bound the gradient passes where a step against it leads back inside, and is 0 where it leads further out;
    that of a plain clamp is always 0 there."""
    return _Bounded.apply(x, low, high) if x.requires_grad and torch.is_grad_enabled() else x.clamp(low, high)

"""Initialisation, action distributions, normalisation and precision of the engine's network.

Action distributions are pure functions of tensors: a diagonal Gaussian for Box, a categorical for each discrete part.
`torch.distributions` costs about as much per call as the whole `light` policy on a CPU; these are the formulas alone.

Observations and returns (PopArt) are normalised by what was seen. Both are part of a policy and change in `take` alone,
which the learner calls once per update with the experience of all ranks. So a version of a policy has one set of them,
whoever acts with it; what is stored of a step is what that version gave; a policy that is evaluated, played or exported
is frozen; and a checkpoint, which holds them as buffers, brings them back exactly.

A network learns in bfloat16, twice as fast, where the processor computes in it, else in float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


def orthogonal(layer: nn.Module, gain: float = math.sqrt(2)) -> nn.Module:
    """Initialise a linear or convolution layer: orthogonal weights, zero bias. A linear layer's weights lie in memory
    by inputs: a batch of 16 passes 256 x 256 of them in 0.64 of the time (fastest of 15 in turn, one AVX-512 core)."""
    nn.init.orthogonal_(layer.weight, gain)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    if isinstance(layer, nn.Linear):
        layer.weight.data = layer.weight.data.t().contiguous().t()
    return layer


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


LIMIT = 10.0  # standard deviations; normalised observations are clipped there
MEMORY = 20  # updates: how far back the mean of returns reaches
Sum = Callable[[Tensor], Tensor]
"""Adds a tensor up over ranks."""


def alone(sums: Tensor) -> Tensor:
    """The sum over one rank."""
    return sums


class RunningMoments(nn.Module):
    """Normalises vectors by the mean and variance of all that `take` was given; before the first, changes nothing."""

    def __init__(self, size: int):
        super().__init__()
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))
        self.register_buffer("mean", torch.zeros(size, dtype=torch.float64))
        self.register_buffer("variance", torch.ones(size, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        """(B, size) -> (B, size)."""
        scale = torch.rsqrt(self.variance + 1e-8)
        return ((x - self.mean.float()) * scale.float()).clamp(-LIMIT, LIMIT)

    @torch.no_grad()
    def take(self, x: Tensor, over_ranks: Sum = alone) -> None:
        """x: (M, size), each rank its own."""
        off = x.double() - self.mean  # sums about the old mean lose nothing where it is large
        ones = torch.full((x.shape[1],), float(len(x)), dtype=torch.float64, device=x.device)
        count, first, second = over_ranks(torch.stack([ones, off.sum(0), off.square().sum(0)]))
        n = count[0]
        if n == 0:
            return
        step = first / n
        total = self.count + n
        within = self.variance * self.count + (second - n * step.square()).clamp(min=0)
        squares = within + step.square() * self.count * n / total
        self.mean += step * n / total
        self.variance.copy_(squares / total)
        self.count.copy_(total)


class ReturnScale(nn.Module):
    """The unit in which the value network counts (PopArt, van Hasselt et al. 2016): value = mean + std x output.

    When mean and deviation of the returns change, the last layer changes with them, so that every value stays as it
    was. The deviation rises at once and falls slowly: a reward that is seen for the first time is no outlier. Until
    there is one, all values are 0.
    """

    def __init__(self) -> None:
        super().__init__()
        for name in ("updates", "mean", "square", "std"):
            self.register_buffer(name, torch.zeros((), dtype=torch.float64))

    def forward(self, output: Tensor) -> Tensor:
        """Output of the last layer -> value in the unit of the rewards that are learned from."""
        return self.mean.float() + self.std.float() * output

    @torch.no_grad()
    def take(self, returns: Tensor, last: nn.Linear, over_ranks: Sum = alone) -> None:
        """returns: (M,) of the newest experience, each rank its own; last: the layer whose output `forward` gets."""
        x = returns.double()
        n, first, second = over_ranks(torch.stack([torch.ones_like(x).sum(), x.sum(), x.square().sum()]))
        if n == 0 or (second == 0 and self.std == 0):
            return
        mean, square = first / n, second / n
        self.updates += 1
        share = max(1 / float(self.updates), 1 / MEMORY)
        before = self.mean.clone(), self.std.clone()
        self.mean += share * (mean - self.mean)
        self.square += share * (square - self.square)
        newest = (square - mean.square()).clamp(min=0)
        variance = torch.maximum(newest, self.square - self.mean.square())
        self.std.copy_(torch.maximum(variance.sqrt(), 1e-4 * square.sqrt()))
        if before[1] > 0:
            last.weight.mul_((before[1] / self.std).float())
            last.bias.copy_(((before[1] * last.bias.double() + before[0] - self.mean) / self.std).float())


@lru_cache
def processor_has_bfloat16() -> bool:
    """Whether this processor has instructions for bfloat16 (AVX512-BF16 or AMX); without them it is slower than
    float32."""
    known = getattr(torch.cpu, "get_capabilities", dict)()  # torch before 2.10 does not tell
    return bool(known.get("avx512_bf16") or known.get("amx_bf16"))


def learning_in(precision: str, device: torch.device) -> Any:
    """Context in which matrix products and convolutions are computed as `precision` says, one of
    `trainer.config.LEARN_PRECISIONS`; weights and their gradients stay float32."""
    if precision == "bfloat16" or precision == "auto" and device.type == "cpu" and processor_has_bfloat16():
        return torch.autocast(device.type, torch.bfloat16)
    return nullcontext()

"""Normalisation by what was seen: of observations, and of returns (PopArt).

Both are part of a policy and change in `take` alone, which the learner calls once per update with the experience of all
ranks. So a version of a policy has one set of them, whoever acts with it; what is stored of a step is what that version
gave; a policy that is evaluated, played or exported is frozen; and a checkpoint, which holds them as buffers, brings
them back exactly.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

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

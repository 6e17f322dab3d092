"""The network of the engine benchmark on synthetic environments, with the time that a V100 would take for the paper's.

On a machine without such a GPU the paper's network would take the CPU that environments need. So a small network learns,
and the process sleeps as long as it would wait for the device: once per inference batch, and once per mini-batch in the
backward pass. All systems use this same module. What is not imitated: contention between rendering, inference and
learning on one GPU, which slowed Sample Factory in the paper (section 5.1).

This file needs torch only, as Sample Factory loads it in its interpreter.
"""

from __future__ import annotations

import math
import time

import torch
from torch import Tensor, nn

# Seconds on a V100. Inference: launch of the kernels, then per environment. Learning: the paper's 1.5 s per learning phase
# (section 2.2) of 3 epochs over 2,048 steps.
DEVICE_TIMES = {"v100": (0.002, 0.0001, 1.5 / (3 * 2048)), "none": (0.0, 0.0, 0.0)}
GRID = 8  # the image is averaged down to GRID x GRID


class _Learn(torch.autograd.Function):
    """Identity; its backward pass waits until the pretended device would be ready."""

    @staticmethod
    def forward(ctx, x: Tensor, ready_at: float) -> Tensor:
        ctx.ready_at = ready_at
        return x.clone()

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None]:
        time.sleep(max(0.0, ctx.ready_at - time.monotonic()))
        return gradient, None


class DeviceTime(nn.Module):
    """Identity on (B, F) that lasts as long as the named device would take: `scale` multiplies its times.

    The paper's seconds are those of a whole learning phase. So a mini-batch that follows the one before within half of its own
    time begins where that one ended: the small network's time counts, and what is done between two mini-batches.
    """

    def __init__(self, device: str, scale: float = 1.0):
        super().__init__()
        self.launch_s, self.infer_s, self.learn_s = (scale * seconds for seconds in DEVICE_TIMES[device])
        self.ready_at = -math.inf  # when the last mini-batch is learned

    def forward(self, x: Tensor) -> Tensor:
        if torch.is_grad_enabled() and x.requires_grad:
            return self._learn(x, self.learn_s * len(x)) if self.learn_s else x
        if self.launch_s:
            time.sleep(self.launch_s + self.infer_s * len(x))
        return x

    def _learn(self, x: Tensor, seconds: float) -> Tensor:
        now = time.monotonic()
        self.ready_at = (self.ready_at if now - self.ready_at < seconds / 2 else now) + seconds
        return _Learn.apply(x, self.ready_at)


class PooledEncoder(nn.Module):
    """The image averaged over a coarse grid, one linear layer, and the device's time. (B, H, W, C) -> (B, embedding)."""

    def __init__(self, image_shape: tuple[int, int, int], embedding_size: int, device: str = "none", scale: float = 1.0):
        super().__init__()
        self.head = nn.Linear(GRID * GRID * image_shape[2], embedding_size)
        self.time = DeviceTime(device, scale)

    def forward(self, image: Tensor) -> Tensor:
        pooled = nn.functional.adaptive_avg_pool2d(image.permute(0, 3, 1, 2), GRID).flatten(1)
        return self.time(self.head(pooled))

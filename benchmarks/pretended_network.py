"""The network of the engine benchmark on synthetic environments, with the time that a V100 would take for the paper's.

On a machine without such a GPU the paper's network would take the CPU that environments need. So a small network
learns, and the process sleeps as long as it would wait for the device: once per inference batch, and once per
mini-batch in the backward pass. All systems use this same module. What is not imitated: contention between rendering,
inference and learning on one GPU, which slowed Sample Factory in the paper (section 5.1).

This file needs torch only, as Sample Factory loads it in its interpreter.
"""

from __future__ import annotations

import math
import time

import torch
from torch import Tensor, nn

# Seconds on a V100. Inference: launch of the kernels, then per environment. Learning: the paper's 1.5 s per learning
# phase (section 2.2) of 3 epochs over 2,048 steps.
DEVICE_TIMES = {"v100": (0.002, 0.0001, 1.5 / (3 * 2048)), "none": (0.0, 0.0, 0.0)}
LOOK_S = 0.00015  # how late a sleep ends, about: before its end a wait looks at the clock
GRID = 8  # the image is averaged down to GRID x GRID


class _Learn(torch.autograd.Function):
    """Identity; its backward pass waits until the pretended device would be ready."""

    @staticmethod
    def forward(ctx, x: Tensor, ready_at: float) -> Tensor:
        ctx.ready_at = ready_at
        return x.clone()

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None]:
        wait_until(ctx.ready_at)
        return gradient, None


class DeviceTime(nn.Module):
    """Identity on (B, F) that returns when the named device would be ready, had it begun at `began`, a time of
    `time.monotonic`: the time that the small network has taken since then counts. `scale` multiplies the device's
    times.

    The paper's seconds are those of a whole learning phase. So a mini-batch that follows the one before within half of
    its own time begins where that one ended: what is done between two mini-batches counts as well.
    """

    def __init__(self, device: str, scale: float = 1.0):
        super().__init__()
        self.launch_s, self.infer_s, self.learn_s = (scale * seconds for seconds in DEVICE_TIMES[device])
        self.ready_at = -math.inf  # when the last mini-batch is learned

    def forward(self, x: Tensor, began: float) -> Tensor:
        if torch.is_grad_enabled() and x.requires_grad:
            return self._learn(x, began, self.learn_s * len(x)) if self.learn_s else x
        if self.launch_s:
            wait_until(began + self.launch_s + self.infer_s * len(x))
        return x

    def _learn(self, x: Tensor, began: float, seconds: float) -> Tensor:
        self.ready_at = (self.ready_at if began - self.ready_at < seconds / 2 else began) + seconds
        return _Learn.apply(x, self.ready_at)


def wait_until(ready_at: float) -> None:
    """Wait for the device as CUDA does, looking at the clock at last: sleeping alone ends 0.1 to 0.2 ms late."""
    while (left := ready_at - time.monotonic()) > 0:
        time.sleep(max(0.0, left - LOOK_S))


class PooledEncoder(nn.Module):
    """The image averaged over a coarse grid, one linear layer, and the device's time. (B, H, W, C) -> (B,
    embedding).
    """

    def __init__(self, image_shape: tuple[int, int, int], embedding_size: int, device: str = "none",
                 scale: float = 1.0):
        super().__init__()
        self.head = nn.Linear(GRID * GRID * image_shape[2], embedding_size)
        self.time = DeviceTime(device, scale)

    def forward(self, image: Tensor) -> Tensor:
        began = time.monotonic()
        pooled = nn.functional.adaptive_avg_pool2d(image.permute(0, 3, 1, 2), GRID).flatten(1)
        return self.time(self.head(pooled), began)

"""Image encoders: (B, H, W, C) float images in [0, 1] -> (B, embedding) features.

`light` is a patchify CNN for CPUs. `resnet18` is the VER paper's encoder (section 4: half-width ResNet18, GroupNorm,
patchify stem, separate down-sampling stages, layer scale, dilated convolutions); the numbers the paper leaves out are
chosen here and named below.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from trainer.nets.heads import orthogonal

RESNET_CHANNELS = (32, 64, 128, 256)  # half of ResNet18's 64-128-256-512
LAYER_SCALE_INIT = 1e-1  # ours: small enough to start near identity, large enough to learn within short runs
STEM_STRIDE = 4


class LightEncoder(nn.Module):
    """8x8 patches of the image (64x64 gives an 8x8 grid), two 3x3 convolutions, one linear layer."""

    def __init__(self, image_shape: tuple[int, int, int], embedding_size: int):
        super().__init__()
        self.convolutions = nn.Sequential(
            orthogonal(nn.Conv2d(image_shape[2], 32, 8, 8)), nn.ReLU(),
            orthogonal(nn.Conv2d(32, 32, 3, 2, 1)), nn.ReLU(),
            orthogonal(nn.Conv2d(32, 32, 3, 1, 1)), nn.ReLU(), nn.Flatten(),
        )
        size = _flat_size(self.convolutions, image_shape, 8)
        self.head = nn.Sequential(orthogonal(nn.Linear(size, embedding_size)), nn.ReLU())

    def forward(self, image: Tensor) -> Tensor:
        return self.head(self.convolutions(_covered(image.permute(0, 3, 1, 2), 8)))


class Block(nn.Module):
    """ResNet basic block: two 3x3 convolutions, the second dilated by 2, GroupNorm, layer scale on the residual."""

    def __init__(self, channels: int):
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.GroupNorm(channels // 2, channels), nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=2, dilation=2, bias=False), nn.GroupNorm(channels // 2, channels),
        )
        self.layer_scale = nn.Parameter(torch.full((channels, 1, 1), LAYER_SCALE_INIT))

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x + self.layer_scale * self.branch(x))


class ResNet18Encoder(nn.Module):
    """The paper's encoder: 4x4 stride-4 stem, four stages of two blocks, normalise + 2x2 stride-2 convolution
    between."""

    patch = STEM_STRIDE * 2 ** (len(RESNET_CHANNELS) - 1)  # pixels on a side that become one at the end

    def __init__(self, image_shape: tuple[int, int, int], embedding_size: int):
        super().__init__()
        c = RESNET_CHANNELS
        layers: list[nn.Module] = [nn.Conv2d(image_shape[2], c[0], STEM_STRIDE, STEM_STRIDE), nn.GroupNorm(1, c[0])]
        for stage, channels in enumerate(c):
            if stage:
                layers += [nn.GroupNorm(1, c[stage - 1]), nn.Conv2d(c[stage - 1], channels, 2, 2)]
            layers += [Block(channels), Block(channels)]
        self.convolutions = nn.Sequential(*layers, nn.Flatten())
        for module in self.convolutions.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        size = _flat_size(self.convolutions, image_shape, self.patch)
        self.head = nn.Sequential(orthogonal(nn.Linear(size, embedding_size)), nn.ReLU())

    def forward(self, image: Tensor) -> Tensor:
        return self.head(self.convolutions(_covered(image.permute(0, 3, 1, 2), self.patch)))


ENCODERS: dict[str, type[nn.Module]] = {"light": LightEncoder, "resnet18": ResNet18Encoder}


def _covered(image: Tensor, patch: int) -> Tensor:
    """(B, C, H, W) with zeros to the right and below, so that whole patches cover every pixel."""
    height, width = image.shape[-2:]
    missing = -width % patch, -height % patch
    return pad(image, (0, missing[0], 0, missing[1])) if any(missing) else image


def _flat_size(convolutions: nn.Module, image_shape: tuple[int, int, int], patch: int) -> int:
    height, width, channels = image_shape
    with torch.no_grad():
        return convolutions(_covered(torch.zeros(1, channels, height, width), patch)).shape[1]

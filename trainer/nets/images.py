"""Which observations are images, how their pixels are laid out, and how an encoder gets them: (B, H, W, C) in [0, 1].

    (H, W, C)                    channels last, as the rest of the engine has them
    (C, H, W)                    channels first, also a stack of grey frames
    (H, W)                       grey
    (S, H, W, C), (S, C, H, W)   a stack of frames, whose channels are laid side by side

The channels are on the axis that differs from two equal ones, else on the shortest at an end. Where that does not
decide, the space is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from gymnasium import spaces

if TYPE_CHECKING:
    from torch import Tensor

SMALLEST_IMAGE = 8  # pixels on a side; what is smaller is a vector
# Where height, width and the others are.
_AXES = {"hwc": (0, 1, 2), "chw": (1, 2, 0), "hw": (0, 1), "shwc": (1, 2, 0, 3), "schw": (2, 3, 0, 1)}


@dataclass(frozen=True)
class Layout:
    """How an image lies in an observation."""

    order: str  # of its axes, one of _AXES: h height, w width, c channels, s frames of a stack
    shape: tuple[int, int, int]  # (H, W, C) for the encoder
    scale: float  # what brings it into [0, 1]

    def as_hwc(self, image: Tensor) -> Tensor:
        """(B, *space.shape) -> (B, H, W, C) in [0, 1]."""
        if self.order != "hwc":
            image = image.permute(0, *(axis + 1 for axis in _AXES[self.order])).reshape(len(image), *self.shape)
        return image if self.scale == 1 else image * self.scale


def image_layout(space: spaces.Box) -> Layout | None:
    """None for what is no image. ValueError for one whose layout cannot be told."""
    shape = tuple(map(int, space.shape))
    order = _order(shape, is_grey=len(shape) == 2 and _has_pixels(space))
    if order is None:
        return None
    height, width, *others = (shape[axis] for axis in _AXES[order])
    return Layout(order, (height, width, int(np.prod(others))), to_unit(space))


def to_unit(space: spaces.Box) -> float:
    """The factor that brings values into [0, 1]: 1/255 for bytes, 1 for a space without a finite bound or within [0,
    1]."""
    high = float(np.max(space.high))
    return 1 / high if 1 < high < np.inf else 1.0


def _has_pixels(space: spaces.Box) -> bool:
    """Whether a matrix is a picture: it has bytes, or values that are bounded and not negative."""
    return space.dtype == np.uint8 or bool((space.low >= 0).all() and np.isfinite(space.high).all())


def _order(shape: tuple[int, ...], is_grey: bool = False) -> str | None:
    if sum(side >= SMALLEST_IMAGE for side in shape) < 2:
        return None
    if len(shape) == 2:
        return "hw" if is_grey else None
    if len(shape) == 3:
        return _channels(shape)
    if len(shape) == 4 and (frame := _channels(shape[1:])):
        return f"s{frame}"
    raise ValueError(f"an observation of shape {shape} is none of the images that the engine takes: (height, width, "
                     "channels), (channels, height, width), (height, width), or a stack of such frames. "
                     "gymnasium.wrappers.ReshapeObservation can change it.")


def _channels(shape: tuple[int, ...]) -> str | None:
    """Where the channels of a single image are; None if it is none."""
    a, b, c = shape
    last, first = min(a, b) >= SMALLEST_IMAGE, min(b, c) >= SMALLEST_IMAGE  # as (H, W, C), as (C, H, W)
    if last and a == b != c or last and c < min(a, b):
        return "hwc"
    if first and b == c != a or first and a < min(b, c):
        return "chw"
    if last or first:
        raise ValueError(f"an observation of shape {shape} may be an image with its channels first or last: the engine "
                         "tells them by their number, which is less than height and width. "
                         "gymnasium.wrappers.TransformObservation can turn it.")
    return None

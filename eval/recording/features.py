"""Which observation of an environment becomes which column of a data set, by its space.

    vector    float vectors, one after another in `observation.state`; the action
    video     uint8 (H, W, 3): colours, H.264
    depth     float32 (H, W, 1) from 0 to 1: a TIFF of 32-bit floats that are multiples of 2**-16 (0.15 mm of 10 m)
    depth_video   the same, where it is asked for: HEVC of 12 bits without further loss, as LeRobot 0.6 has depth
    image     uint8 or uint16 (H, W, 1), such as numbers of things: PNG, without loss
    array     other arrays of floats, as they are
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np

from rearrange.home.action_layout import action_names
from rearrange.home.errors import UserError
from rearrange.home.robot.robot import RANGE_M, Robot

DEPTH_STEPS = 1 << 16
"""A recorded depth is a multiple of 1 / DEPTH_STEPS; it is off by half of that at most."""
STATE, ACTION = "observation.state", "action"
NEAREST_M, SHIFT_M, MOST_CODE = 0.01, 3.5, 4095
"""Of depth videos: LeRobot's steps from NEAREST_M to the range of the camera are even in the logarithm of depth and
SHIFT_M."""
VIDEOS = ("video", "depth_video")


@dataclass(frozen=True)
class Feature:
    """One column. of: the observations that it is made of, in order; none for the action and what comes after it."""

    kind: str
    dtype: str  # of the numbers, as NumPy has it
    shape: tuple[int, ...]
    names: tuple[str, ...] | None = None
    of: tuple[str, ...] = ()


AFTER = {"next.reward": Feature("vector", "float32", (1,)), "next.done": Feature("vector", "bool", (1,)),
         "next.success": Feature("vector", "bool", (1,))}
"""What the action of a frame led to. done: the episode ended with it."""


def features_of(observations: gymnasium.spaces.Dict, action_names: tuple[str, ...],
                depth_video: bool = False) -> dict[str, Feature]:
    """The columns for these observations and an action of such parts. UserError for a space that cannot be recorded.

    Texts are left out: the task of an episode is kept in words. depth_video: depth is a video, not images.
    """
    vectors: dict[str, int] = {}
    found: dict[str, Feature] = {}
    for key, space in observations.spaces.items():
        if isinstance(space, gymnasium.spaces.Text):
            continue
        if not isinstance(space, gymnasium.spaces.Box):
            raise UserError(f"the observation {key} cannot be recorded: its space is {type(space).__name__}, and only "
                            "Box and Text can be.")
        kind = kind_of(space)
        if kind == "depth" and depth_video:
            kind = "depth_video"
        if kind == "vector":
            vectors[key] = space.shape[0]
        elif kind == "array":
            found[f"observation.{key}"] = Feature(kind, "float32", space.shape, None, (key,))
        else:
            found[f"observation.images.{key}"] = Feature(kind, str(space.dtype), space.shape,
                                                         ("height", "width", "channels"), (key,))
    state = tuple(name for key, size in vectors.items()
                  for name in ([key] if size == 1 else [f"{key}.{i}" for i in range(size)]))
    vector = {STATE: Feature("vector", "float32", (len(state),), state, tuple(vectors))} if state else {}
    return {**vector, **found, ACTION: Feature("vector", "float32", (len(action_names),), action_names), **AFTER}


def names_of_action(robot: Robot, parts: list[tuple[str, slice]]) -> tuple[str, ...]:
    """What each number of an action commands. parts: as `action_parts` of an environment has them."""
    names = action_names(robot)
    return tuple(name for part, _ in parts for name in names[part])


def kind_of(space: gymnasium.spaces.Box) -> str:
    """Which kind of column an observation of this space is."""
    shape, dtype = space.shape, space.dtype
    if len(shape) == 1:
        return "vector"
    one = len(shape) == 3 and shape[2] == 1
    if dtype == np.uint8 and len(shape) == 3 and shape[2] == 3:
        return "video"
    if one and dtype in (np.uint8, np.uint16):
        return "image"
    if one and dtype == np.float32 and space.low.min() >= 0.0 and space.high.max() <= 1.0:
        return "depth"
    return "array"


def as_image_file(feature: Feature, image: np.ndarray) -> bytes:
    """An image of kind depth or image as the content of a TIFF or PNG file.

    Depth is no PNG: LeRobot reads its 16 bits as whole numbers with a sign, and a TIFF's floats as they are.
    """
    from PIL import Image

    file = io.BytesIO()
    if feature.kind == "depth":
        Image.fromarray(rounded_depth(image[..., 0])).save(file, "tiff", compression="tiff_adobe_deflate",
                                                           tiffinfo={_PREDICTOR: 3})
    else:
        Image.fromarray(image[..., 0]).save(file, "png", compress_level=3)
    return file.getvalue()


_PREDICTOR = 317  # the TIFF tag; 3: differences of the bytes of floats, a third of the size


def rounded_depth(depth: np.ndarray) -> np.ndarray:
    """Depth (0..1) as it is recorded."""
    return (np.rint(depth * DEPTH_STEPS) / DEPTH_STEPS).astype(np.float32)


def depth_codes(depth: np.ndarray) -> np.ndarray:
    """Depth (0..1) as the numbers of 12 bits of a depth video; what is nearer than NEAREST_M, also a hole of 0, comes
    back as NEAREST_M."""
    low, high = math.log(NEAREST_M + SHIFT_M), math.log(RANGE_M + SHIFT_M)
    metres = np.clip(depth * RANGE_M, NEAREST_M, RANGE_M)
    steps = (np.log(metres + SHIFT_M) - low) / (high - low) * MOST_CODE
    return np.clip(np.rint(steps), 0, MOST_CODE).astype("<u2")


def depth_of_codes(codes: np.ndarray) -> np.ndarray:
    """Depth (0..1) of the numbers of a depth video."""
    low, high = math.log(NEAREST_M + SHIFT_M), math.log(RANGE_M + SHIFT_M)
    found_m = np.exp(codes.astype(np.float64) / MOST_CODE * (high - low) + low) - SHIFT_M
    return np.clip(found_m / RANGE_M, 0.0, 1.0).astype(np.float32)


def from_image_file(content: bytes, feature: Feature | None = None) -> np.ndarray:
    """The image (H, W, 1) of a file that `as_image_file` made. Whatever Pillow raises for what is no image.

    feature: what it has to be; ValueError for an image of another size or kind, before it is unpacked.
    """
    from PIL import Image

    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        opened = Image.open(io.BytesIO(content), formats=("TIFF", "PNG"))
    with opened as file:
        if feature and ((file.height, file.width, 1) != feature.shape or file.mode not in _MODES[feature.dtype]):
            raise ValueError(f"it has an image of {file.width} x {file.height} pixels of kind {file.mode} instead of "
                             f"{feature.dtype} {feature.shape}")
        return np.asarray(file)[..., None]


_MODES = {"float32": ("F",), "uint8": ("L",), "uint16": ("I;16", "I")}  # Pillow's names of pixels


def numbers_of(feature: Feature) -> dict[str, list[int]]:
    """Each vector of a column, and its numbers in the column."""
    found: dict[str, list[int]] = {key: [] for key in feature.of}
    for number, name in enumerate(feature.names or ()):
        found[name if name in found else name.rpartition(".")[0]].append(number)
    return found


def state_of(feature: Feature, observation: Mapping[str, Any]) -> np.ndarray:
    """The vectors of an observation, one after another."""
    return np.concatenate([np.asarray(observation[key], np.float32) for key in feature.of])

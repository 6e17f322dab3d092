"""What is put over or beside a picture: depth images in colour, and text. Images are uint8 (H, W, 3)."""

from __future__ import annotations

import math
from functools import cache, lru_cache

import numpy as np


def depth_picture(depth: np.ndarray, size: int | None = None, mask: np.ndarray | None = None) -> np.ndarray:
    """A normalised depth image (H, W) or (H, W, 1) as uint8 (size, size, 3): near bright yellow, far dark violet,
    nothing black, and green where `mask`, of the same shape, is above a half.

    The scale is the square root of nearness, which spends most colours on the first metres. Enlarged without smoothing.
    """
    depth = np.clip(np.asarray(depth, np.float32).reshape(depth.shape[:2]), 0.0, 1.0)
    image = _depth_colors()[np.round(255 * (1.0 - np.sqrt(depth))).astype(np.intp)]
    if mask is not None:
        shown = mask.reshape(depth.shape) > 0.5
        image[shown] = image[shown] // 2 + _MASK_RGB // 2
    if size is None:
        return image
    rows, columns = ((np.arange(size) * count) // size for count in depth.shape)
    return image[rows[:, None], columns[None, :]]


def floor_picture(floor_map: np.ndarray, cell_m: float, size: int, route: np.ndarray | None = None) -> np.ndarray:
    """A map of the floor as uint8 (size, size, 3).

    Unknown is dark, free grey, occupied pale and the target orange. The robot is a blue arrow that points up.

    Args:
        floor_map: (H, W, 2), as `floor_map.FloorMap.around` gives it, with cells of `cell_m`.
        route: Of `Route.ahead`; its points are blue dots.
    """
    rows, columns = ((np.arange(size) * count) // size for count in floor_map.shape[:2])
    seen, target = (floor_map[rows[:, None], columns[None, :], k] for k in (0, 1))
    image = _FLOOR_RGB[np.round(2 * seen).astype(np.intp)]
    image[target > 0] = _TARGET_RGB
    for ahead_m, left_m in () if route is None else route[1:].reshape(-1, 2):
        row, column = (int(size * (0.5 - m / (cell_m * len(floor_map)))) for m in (ahead_m, left_m))
        image[max(0, row - 1) : row + 2, max(0, column - 1) : column + 2] = _ROBOT_RGB
    reach = max(2, size // 24)
    for row in range(-reach, reach + 1):
        half = (row + reach) // 3
        image[size // 2 + row, size // 2 - half : size // 2 + half + 1] = _ROBOT_RGB
    return image


_FLOOR_RGB = np.array([[24, 27, 33], [92, 97, 107], [226, 226, 214]], np.uint8)
_TARGET_RGB, _ROBOT_RGB = (245, 125, 21), (72, 150, 235)
_MASK_RGB = np.array([40, 230, 90], np.uint8)


@cache
def _depth_colors() -> np.ndarray:
    """(256, 3) uint8: black, violet, red, orange, pale yellow in even steps of lightness (after matplotlib's inferno).
    """
    stops = np.array([[0, 0, 4], [40, 11, 84], [101, 21, 110], [159, 42, 99], [212, 72, 66], [245, 125, 21],
                      [250, 193, 39], [252, 255, 164]])
    at = np.linspace(0, 255, len(stops))
    return np.stack([np.interp(np.arange(256), at, stops[:, c]) for c in range(3)], axis=1).round().astype(np.uint8)


@cache
def _font(size: int):
    from PIL import ImageFont

    return ImageFont.load_default(size)


def text_width(text: str, size: int = 16) -> float:
    """Width in pixels of one line as `draw_text` writes it."""
    return _font(size).getlength(text)


def draw_text(image: np.ndarray, xy: tuple[int, int], text: str, size: int = 16,
              rgb: tuple[int, int, int] = (255, 255, 255), shadow: bool = False, line_gap: int | None = None) -> None:
    """Write text (lines separated by newlines, line_gap pixels apart) into a uint8 image, in place.

    xy: left and top in pixels; shadow: a dark edge, for use over pictures.
    """
    x, y = xy
    for n, line in enumerate(text.split("\n")):
        top = y + n * (line_gap or round(1.35 * size))
        if shadow:
            _stamp(image, x + 1, top + 1, _text_mask(line, size), (0, 0, 0))
        _stamp(image, x, top, _text_mask(line, size), rgb)


@lru_cache(maxsize=512)  # most lines of a video stay the same from frame to frame
def _text_mask(line: str, size: int) -> np.ndarray:
    """Coverage (rows, columns) in [0, 1] of one line of text."""
    from PIL import Image, ImageDraw

    canvas = Image.new("L", (math.ceil(text_width(line, size)) + 4, 2 * size))
    ImageDraw.Draw(canvas).text((0, 0), line, font=_font(size), fill=255)
    return np.asarray(canvas, np.float32) / 255


def _stamp(image: np.ndarray, x: int, y: int, mask: np.ndarray, rgb: tuple[int, int, int]) -> None:
    """Blend a colour into an image where the mask, placed with its corner at (x, y), covers it."""
    part = image[max(0, y) : max(0, y + mask.shape[0]), max(0, x) : max(0, x + mask.shape[1])]
    covered = mask[max(0, -y) : max(0, -y) + part.shape[0], max(0, -x) : max(0, -x) + part.shape[1], None]
    part[:] = np.round(part + covered * (np.array(rgb, np.float32) - part)).astype(np.uint8)

"""The measures of several sets of homes as a picture: a strip for each property, with the ranges of all sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from rearrange.home.simulation.measures.measured_set import OUTSIDE, MeasuredSet, beside, properties_of, said

_COLORS = ((70, 110, 180), (120, 160, 210), (170, 195, 225), (215, 120, 40), (120, 150, 60), (150, 90, 160),
           (190, 160, 40), (90, 90, 90))
_WORD_COLORS = ((110, 110, 110), (165, 165, 165), (205, 205, 205), (225, 225, 225))
_OUTSIDE_RGB, _HEAD_RGB, _INK, _FAINT = (190, 20, 20), (235, 238, 242), (20, 20, 20), (215, 215, 215)
_COLUMN_PX, _LABEL_PX, _STRIP_PX, _LINE_PX, _GAP_PX, _TITLE_PX = 860, 280, 380, 12, 8, 22
_TOP_PX, _COLUMNS = 34, 3


def picture_of(sets: Sequence[MeasuredSet], ours: int) -> Any:
    """An image of all sets, of which the first `ours` are our homes, and the first is what others are compared with."""
    from PIL import Image, ImageDraw

    properties = properties_of(sets)
    row_px = {key: sum(key in measured.values for measured in sets) * _LINE_PX + _GAP_PX for key in properties}
    groups = list(dict.fromkeys(group for group, _ in properties))
    heights = {group: _TITLE_PX + sum(row_px[key] for key in properties if key[0] == group) for group in groups}
    columns = _split(groups, heights)
    size = len(columns) * _COLUMN_PX, _TOP_PX + max(sum(heights[group] for group in column) for column in columns)
    image = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(image)
    for number, measured in enumerate(sets):
        x = 8 + number * 240
        draw.rectangle((x, 10, x + 14, 22), fill=_COLORS[number % len(_COLORS)])
        draw.text((x + 20, 10), f"{measured.name} ({measured.homes})", fill=_INK)
    for across, column in enumerate(columns):
        x, y = across * _COLUMN_PX, _TOP_PX
        for group in column:
            draw.rectangle((x, y, x + _COLUMN_PX - 12, y + _TITLE_PX - 4), fill=_HEAD_RGB)
            draw.text((x + 8, y + 3), group, fill=_INK)
            y += _TITLE_PX
            for key in (key for key in properties if key[0] == group):
                _row(draw, (x, y), sets, key, ours)
                y += row_px[key]
    return image


def _split(groups: list[str], heights: dict[str, int]) -> list[list[str]]:
    """The groups in columns of about one height."""
    each, columns, reached = sum(heights.values()) / _COLUMNS, [[] for _ in range(_COLUMNS)], 0.0
    for group in groups:
        columns[min(int((reached + heights[group] / 2) / each), _COLUMNS - 1)].append(group)
        reached += heights[group]
    return [column for column in columns if column]


def _row(draw: Any, corner: tuple[int, int], sets: Sequence[MeasuredSet], key: tuple[str, str], ours: int) -> None:
    """One property: its name, and a line for each set."""
    x, y = corner
    draw.text((x + 8, y), key[1], fill=_INK)
    numbers = [value for measured in sets for value in measured.values.get(key, []) if not isinstance(value, str)]
    words = [word for word, _ in Counter(value for measured in sets for value in measured.values.get(key, [])
                                         if isinstance(value, str)).most_common()]
    left, top = x + _LABEL_PX, y - _LINE_PX
    for number, measured in enumerate(sets):
        values = measured.values.get(key)
        if not values:
            continue
        top += _LINE_PX
        color = _COLORS[number % len(_COLORS)]
        outside = number >= ours and beside(key, measured, sets[0]) == OUTSIDE
        draw.line((left, top + 5, left + _STRIP_PX, top + 5), fill=_FAINT)
        if words:
            _shares(draw, (left, top), values, words)
            draw.rectangle((left - 8, top + 1, left - 3, top + 9), fill=color)
        else:
            _range(draw, (left, top), values, (min(numbers), max(numbers)), color)
        draw.text((left + _STRIP_PX + 10, top), said(values), fill=_OUTSIDE_RGB if outside else _INK)


def _range(draw: Any, corner: tuple[int, int], values: list, scale: tuple[float, float],
           color: tuple[int, int, int]) -> None:
    """From the lowest to the highest value, with a mark at the median."""
    left, top = corner
    span = scale[1] - scale[0]
    low, middle, high = (left + ((value - scale[0]) / span if span else 0.5) * _STRIP_PX
                         for value in (min(values), float(np.median(values)), max(values)))
    draw.rectangle((low - 1, top + 2, high + 1, top + 8), fill=color)
    draw.line((middle, top, middle, top + 10), fill=_INK)


def _shares(draw: Any, corner: tuple[int, int], values: list, words: list[str]) -> None:
    """The shares of words side by side."""
    left, top = corner
    for number, word in enumerate(words):
        width = values.count(word) / len(values) * _STRIP_PX
        if width:
            draw.rectangle((left, top + 1, left + width, top + 9), fill=_WORD_COLORS[number % len(_WORD_COLORS)])
        left += width

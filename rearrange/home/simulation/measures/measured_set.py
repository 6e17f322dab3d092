"""All measures of a set of homes, and which of them lie outside those of another."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from rearrange.home.simulation.measures.floor_measures import WAY, WIDEST_WAY_M, floors
from rearrange.home.simulation.measures.furniture_measures import (
    DRAWER,
    FLAP,
    FREE_FLOOR,
    FRIDGE_DOOR,
    MOST_FREE_M,
    OTHER_DOOR,
    SHORT_DRAWER,
    SLIDING_DOOR,
    openings,
    surfaces,
)
from rearrange.home.simulation.measures.shapes import HomeShapes

OUTSIDE, AT_EDGE, INSIDE = "outside", "at the edge", "inside"
MARGIN = 0.05  # of the range that a value should lie within
_SAME = 1e-3  # m, rad, N, ...: values that differ less are the same
_MOST = {WAY: WIDEST_WAY_M, FREE_FLOOR: MOST_FREE_M}  # property -> the most that is measured
_FIRST = (DRAWER, FRIDGE_DOOR, "counter", "sink", "fridge board", "board", "table", "coffee table", "chair", "sofa",
          "tv stand", "floor")
_LAST = (SHORT_DRAWER, OTHER_DOOR, SLIDING_DOOR, FLAP)

Property = tuple[str, str]
"""Group and property: ("drawer", "width (m)")."""


@dataclass
class MeasuredSet:
    """Values of each property over homes, of which there are `homes`: numbers, or words such as "bar"."""

    name: str
    homes: int = 0
    values: dict[Property, list[float] | list[str]] = field(default_factory=dict)

    def add(self, home: HomeShapes) -> None:
        """Measure one more home."""
        self.homes += 1
        for measures in (openings, surfaces, floors):
            for group, what, value in measures(home):
                self.values.setdefault((group, what), []).append(value if isinstance(value, str) else float(value))

    def has_group(self, group: str) -> bool:
        return any(own == group for own, _ in self.values)

    def count(self, group: str) -> int:
        """How many things of a group there are."""
        return max(len(values) for (own, _), values in self.values.items() if own == group)


def properties_of(sets: Iterable[MeasuredSet]) -> list[Property]:
    """All properties that any set has, group by group, in the order in which they are shown."""
    found = dict.fromkeys(key for measured in sets for key in measured.values)
    groups = list(dict.fromkeys(group for group, _ in found))
    between = [group for group in groups if group not in (*_FIRST, *_LAST)]
    order = {group: place for place, group in enumerate((*_FIRST, *between, *_LAST))}
    return sorted(found, key=lambda key: order[key[0]])


def position(values: list[float] | list[str], ours: list[float] | list[str], most: float = math.inf) -> str:
    """Where the values of a property lie beside ours: outside, at the edge, or inside with the margin.

    No margin is asked for at 0 and at `most`, beyond which there are no values, nor of what is the same everywhere.
    """
    if isinstance(values[0], str):
        if not set(values) <= set(ours):
            return OUTSIDE
        return INSIDE if all(ours.count(word) >= MARGIN * len(ours) for word in values) else AT_EDGE
    low, high = min(ours), max(ours)
    if min(values) < low - _SAME or max(values) > high + _SAME:
        return OUTSIDE
    margin = MARGIN * (high - low) - _SAME
    has_room = (low <= _SAME or min(values) >= low + margin, high >= most - _SAME or max(values) <= high - margin)
    return INSIDE if all(has_room) else AT_EDGE


def beside(key: Property, measured: MeasuredSet, ours: MeasuredSet) -> str:
    """`position` of a property of a set, which lies outside if ours does not have it."""
    own = ours.values.get(key)
    return position(measured.values[key], own, _MOST.get(key[1], math.inf)) if own else OUTSIDE


def said(values: list[float] | list[str]) -> str:
    """Low .. high, with the median of three or more; or how many of each word, in percent."""
    if isinstance(values[0], str):
        return ", ".join(f"{word} {100 * count / len(values):.0f} %" for word, count in Counter(values).most_common())
    low, high = _number(min(values)), _number(max(values))
    if low == high:
        return low
    median = f" ({_number(float(np.median(values)))})" if len(values) > 2 else ""
    return f"{low} .. {high}{median}"


def verdict(measured: MeasuredSet, ours: MeasuredSet) -> list[str]:
    """A line for each property of a set that does not lie inside ours with the margin, and a line that counts them."""
    properties = properties_of([measured])
    lacking = [group for group in dict.fromkeys(group for group, _ in properties) if not ours.has_group(group)]
    lines = [f"  not in ours: {group} ({measured.count(group)})" for group in lacking]
    shared, counted = [key for key in properties if key[0] not in lacking], Counter[str]()
    for key in shared:
        where, values, own = beside(key, measured, ours), measured.values[key], ours.values.get(key, [])
        counted[where] += 1
        if where != INSIDE:
            lines.append(f"  {where}: {', '.join(key)}: {said(values)}; ours {said(own) if own else 'none'}"
                         f"{_share(values, own) if where == OUTSIDE and own else ''}")
    inside = f"inside ours with a margin of {MARGIN:.0%} of its range"
    if counted[INSIDE] == len(shared):
        return [*lines, f"{measured.name}: all {len(shared)} properties lie {inside}."]
    return [*lines, f"{measured.name}: {counted[INSIDE]} of {len(shared)} properties lie {inside}, "
                    f"{counted[AT_EDGE]} at its edge, {counted[OUTSIDE]} outside."]


def _share(values: list[float] | list[str], own: list[float] | list[str]) -> str:
    """How many of the values lie outside."""
    if isinstance(values[0], str):
        beyond = sum(value not in own for value in values)
    else:
        beyond = sum(not min(own) - _SAME <= value <= max(own) + _SAME for value in values)
    return f" ({beyond} of {len(values)})"


def _number(value: float) -> str:
    return f"{value:.1f}" if abs(value) >= 10.0 else f"{value:.2f}" if abs(value) >= 1.0 else f"{value:.3f}"

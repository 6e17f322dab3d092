"""All measures of a set of homes, and which of them lie outside those of another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from rearrange.home.simulation.measures.floor_measures import floors
from rearrange.home.simulation.measures.furniture_measures import (
    DRAWER,
    FLAP,
    FRIDGE_DOOR,
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


def position(values: list[float] | list[str], ours: list[float] | list[str]) -> str:
    """Where the values of a property lie beside ours: outside, at the edge, or inside with the margin."""
    if isinstance(values[0], str):
        return INSIDE if set(values) <= set(ours) else OUTSIDE
    low, high, margin = min(ours), max(ours), MARGIN * (max(ours) - min(ours))
    if min(values) < low - _SAME or max(values) > high + _SAME:
        return OUTSIDE
    return INSIDE if low + margin - _SAME <= min(values) and max(values) <= high - margin + _SAME else AT_EDGE


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
    lines, counted, shared = [], Counter[str](), 0
    for group in dict.fromkeys(group for group, _ in properties_of([measured])):
        if not ours.has_group(group):
            lines.append(f"  outside: {group}: there are {measured.count(group)}; ours has none")
    for key in properties_of([measured]):
        if not ours.has_group(key[0]):
            continue
        values, own = measured.values[key], ours.values.get(key, [])
        where = position(values, own) if own else OUTSIDE
        counted[where] += 1
        shared += 1
        if where != INSIDE:
            has = said(own) if own else "none"
            lines.append(f"  {where}: {', '.join(key)}: {said(values)}; ours {has}{_share(values, own, where)}")
    missing = len(lines) - counted[OUTSIDE] - counted[AT_EDGE]
    groups = f"; {missing} kinds of furniture that ours lacks" if missing else ""
    if not lines:
        return [f"{measured.name}: every value lies inside ours with a margin of {MARGIN:.0%} of its range."]
    return [*lines, f"{measured.name}: of {shared} properties {counted[OUTSIDE]} lie outside ours, "
                    f"{counted[AT_EDGE]} at its edge (margin {MARGIN:.0%} of its range){groups}."]


def _share(values: list[float] | list[str], own: list[float] | list[str], where: str) -> str:
    """How many of the values lie outside."""
    if where != OUTSIDE or not own:
        return ""
    if isinstance(values[0], str):
        beyond = sum(value not in own for value in values)
    else:
        beyond = sum(not min(own) - _SAME <= value <= max(own) + _SAME for value in values)
    return f" ({beyond} of {len(values)})"


def _number(value: float) -> str:
    return f"{value:.1f}" if abs(value) >= 10.0 else f"{value:.2f}" if abs(value) >= 1.0 else f"{value:.3f}"

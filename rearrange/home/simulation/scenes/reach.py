"""How far a part can open that others follow: no farther than the limits of all of them allow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rearrange.home.simulation.scenes.scene_parts import Part

_SAMPLES = 1001  # of the range of a part that another follows by a polynomial
_DIGITS = 9  # of ends of ranges (m or rad): what is computed is as round as what files say


def limit_leaders(parts: Sequence[Part]) -> None:
    """Narrow the ranges of parts to what their followers can reach, where a simulator would stop them by force."""
    followers: dict[int, list[int]] = {}
    for number, part in enumerate(parts):
        if part.follows is not None:
            followers.setdefault(part.follows[0], []).append(number)
    order = [number for number, part in enumerate(parts) if part.follows is None]
    for number in order:  # which grows: followers stand behind those that they follow
        order += followers.get(number, ())
    for part in (parts[number] for number in reversed(order)):
        if part.follows is not None:
            leader, terms = parts[part.follows[0]], part.follows[1]
            leader.range = _allowed(leader.range, terms, part.range)


def _allowed(span: tuple[float, float], terms: Sequence[float], limits: tuple[float, float]) -> tuple[float, float]:
    """The part of a range, around 0, in which a polynomial, from x^0, stays within limits."""
    low, high = min(limits[0], 0.0), max(limits[1], 0.0)
    if not np.any(terms[2:]):
        ends = sorted(limit / terms[1] for limit in (low, high)) if terms[1] else [-np.inf, np.inf]
    elif np.isfinite(span).all():
        ends = [_first_beyond(np.linspace(0.0, end, _SAMPLES), terms, low, high) for end in span]
    else:
        ends = list(span)
    rounded = np.round(ends, _DIGITS).tolist()
    return tuple(own if abs(own) <= abs(end) else end for own, end in zip(span, rounded, strict=True))


def _first_beyond(openings: np.ndarray, terms: Sequence[float], low: float, high: float) -> float:
    """The last opening before the polynomial leaves its limits, or the last one of all."""
    values = np.round(np.polynomial.polynomial.polyval(openings, terms), _DIGITS)
    beyond = np.flatnonzero((values < low) | (values > high))
    return float(openings[beyond[0] - 1] if len(beyond) else openings[-1])

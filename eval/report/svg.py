"""Two kinds of picture as inline SVG text: a curve over steps, and shares with intervals over named places.

Written by hand: some kilobytes that the page's own script can hide, label and highlight. Plotly adds 4 MB to every
page, and matplotlib's SVG has no names that a script could find.

Colours and fonts come from the style sheet of the page (classes s0, s1, ...), so that a picture follows light, dark and
print. Series differ in colour, marker and dash, so that none is needed alone. One unit of the view box is one pixel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from html import escape

COLOURS = 6  # classes s0 .. s5 of the style sheet
DASHES = ("", "7 4", "2 3", "9 3 2 3")
FONT_PX = 12


@dataclass(frozen=True)
class Curve:
    """A line over steps. `faint` for one seed of several, whose mean is another curve of the same style."""

    label: str
    style: int
    points: tuple[tuple[float, float], ...]
    faint: bool = False


@dataclass(frozen=True)
class Shares:
    """One agent: for each place a share and its interval, all 0..1; None where it was not measured."""

    label: str
    style: int
    values: tuple[tuple[float, float, float] | None, ...]  # (share, low, high)


@dataclass(frozen=True)
class Plane:
    """From values to pixels: the rectangle inside the axes."""

    left: float
    top: float
    right: float
    bottom: float
    x_range: tuple[float, float]
    y_range: tuple[float, float]

    def x(self, value: float) -> float:
        low, high = self.x_range
        return self.left + (value - low) / (high - low) * (self.right - self.left)

    def y(self, value: float) -> float:
        low, high = self.y_range
        return self.bottom - (value - low) / (high - low) * (self.bottom - self.top)


def nice_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers (1, 2 or 5 times a power of ten apart), from at or below `low` to at or above `high`."""
    span = (high - low) or abs(high) or 1.0
    raw = span / max(count - 1, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(f * power for f in (1, 2, 5, 10) if f * power >= raw * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [k * step for k in range(first, max(last, first + 1) + 1)]


def short_number(value: float) -> str:
    """1500000 as 1.5M."""
    for limit, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{value / limit:.4g}{sign}"
    return f"{value:.4g}"


def percent(value: float) -> str:
    """0.5 as 50 %."""
    return f"{100 * value:.4g} %"


def curves(found: list[Curve], y_label: str, *, shares: bool = False, width: int = 360, height: int = 236) -> str:
    """Curves over steps; `shares` for an axis from 0 to 100 %."""
    points = [point for curve in found for point in curve.points]
    y_text = percent if shares else short_number
    ys = (
        [0.0, 0.25, 0.5, 0.75, 1.0]
        if shares
        else nice_ticks(min(0.0, *(y for _, y in points)), max(y for _, y in points))
    )
    last = max(x for x, _ in points) or 1.0
    xs = [x for x in nice_ticks(0.0, last, 4) if x <= last * 1.001]
    margin = 12 + 7 * max(len(y_text(y)) for y in ys)
    plane = Plane(margin, 26, width - 14, height - 40, (0.0, last), (ys[0], ys[-1]))
    parts = _axes(plane, ys, y_text, y_label) + _x_numbers(plane, xs)
    for curve in sorted(found, key=lambda c: not c.faint):
        path = "M" + "L".join(f"{plane.x(x):.1f} {plane.y(y):.1f}" for x, y in thinned(curve.points))
        end_x, end_y = curve.points[-1]
        title = f"<title>{escape(curve.label)}: {y_text(round(end_y, 4))} at {short_number(end_x)} steps</title>"
        kind = "line faint" if curve.faint else "line"
        parts.append(
            f'<g class="{_class(curve.style)}"><path class="{kind}"{_dash(curve.style)} d="{path}">{title}</path>')
        if not curve.faint:
            parts.append(_marker(plane.x(end_x), plane.y(end_y), curve.style, title))
        parts.append("</g>")
    return _svg(width, height, f"{y_label} over training steps", parts)


def intervals(found: list[Shares], places: list[str], y_label: str, *, width: int, height: int = 300) -> str:
    """Shares with 95 % intervals at each place, one line for each series, drawn side by side where they would cover."""
    steep = max(7 * len(place) for place in places) > (width - 70) / len(places)
    longest = max(len(place) for place in places)
    bottom = height - (26 + longest * 4.6 if steep else 34)
    plane = Plane(48, 26, width - 14, bottom, (-0.5, len(places) - 0.5), (0.0, 1.0))
    parts = _axes(plane, [0.0, 0.25, 0.5, 0.75, 1.0], percent, y_label)
    for i, place in enumerate(places):
        x, y = plane.x(i), plane.bottom + 17
        turned = f' transform="rotate(-45 {x:.1f} {y:.1f})"' if steep else ""
        anchor = "end" if steep else "middle"
        parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{turned}>{escape(place)}</text>')
    room = (plane.right - plane.left) / len(places)
    apart = min(11.0, 0.6 * room / max(len(found), 1))
    for number, series in enumerate(found):
        shift = (number - (len(found) - 1) / 2) * apart
        parts.append(_series(series, places, plane, shift))
    return _svg(width, height, f"{y_label} with 95 % intervals", parts)


def _series(series: Shares, places: list[str], plane: Plane, shift: float) -> str:
    at = [(plane.x(i) + shift, value) for i, value in enumerate(series.values)]
    parts, open_line = [f'<g class="{_class(series.style)}">'], ""
    for x, value in at:
        if value is not None:
            open_line += f"{'L' if open_line and not open_line.endswith(' ') else 'M'}{x:.1f} {plane.y(value[0]):.1f}"
        elif open_line:
            open_line += " "  # a gap
    parts.append(f'<path class="line"{_dash(series.style)} d="{open_line}"/>')
    for place, (x, value) in zip(places, at, strict=True):
        if value is None:
            continue
        share, low, high = value
        title = f"<title>{escape(series.label)}, {escape(place)}: {share:.1%} ({low:.1%} to {high:.1%})</title>"
        y_low, y_high = plane.y(low), plane.y(high)
        ends = "".join(f"M{x - 3:.1f} {y:.1f}h6" for y in (y_low, y_high))
        parts.append(f'<path class="whisker" d="M{x:.1f} {y_low:.1f}V{y_high:.1f}{ends}"/>')
        parts.append(_marker(x, plane.y(share), series.style, title))
    return "".join(parts) + "</g>"


def swatch(style: int) -> str:
    """The line and the marker of a series, for a legend."""
    line = f'<path class="line"{_dash(style)} d="M1 7H33"/>'
    size = 'viewBox="0 0 34 14" width="34" height="14" aria-hidden="true"'
    return f'<svg class="swatch {_class(style)}" {size}>{line}{_marker(17, 7, style)}</svg>'


def thinned(points: tuple[tuple[float, float], ...], most: int = 400) -> list[tuple[float, float]]:
    """At most about `most` points: of each stretch its lowest and its highest, so that no peak is lost."""
    if len(points) <= most:
        return list(points)
    size = math.ceil(2 * len(points) / most)
    kept = []
    for start in range(0, len(points), size):
        stretch = points[start : start + size]
        kept += sorted({min(stretch, key=lambda p: p[1]), max(stretch, key=lambda p: p[1])})
    return kept if kept[-1] == points[-1] else [*kept, points[-1]]


def _class(style: int) -> str:
    return f"s{style % COLOURS}"


def _dash(style: int) -> str:
    dash = DASHES[style % len(DASHES)]
    return f' stroke-dasharray="{dash}"' if dash else ""


def _marker(x: float, y: float, style: int, title: str = "") -> str:
    shapes: tuple[Callable[[], str], ...] = (
        lambda: f'<circle class="mark" cx="{x:.1f}" cy="{y:.1f}" r="4"',
        lambda: f'<path class="mark" d="M{x - 4:.1f} {y - 4:.1f}h8v8h-8z"',
        lambda: f'<path class="mark" d="M{x:.1f} {y - 5:.1f}l5 9h-10z"',
        lambda: f'<path class="mark" d="M{x:.1f} {y - 5.5:.1f}l5.5 5.5l-5.5 5.5l-5.5 -5.5z"',
        lambda: f'<path class="mark" d="M{x:.1f} {y + 5:.1f}l5 -9h-10z"',
        lambda: f'<circle class="mark hollow" cx="{x:.1f}" cy="{y:.1f}" r="4"')
    start = shapes[style % len(shapes)]()
    return f"{start}>{title}</{start[1:].split()[0]}>"


def _axes(plane: Plane, ys: list[float], text: Callable[[float], str], label: str) -> list[str]:
    parts = [f'<text class="axis-title" x="2" y="12">{escape(label)}</text>']
    for value in ys:
        y = plane.y(value)
        parts.append(f'<path class="grid" d="M{plane.left:.1f} {y:.1f}H{plane.right:.1f}"/>')
        parts.append(f'<text x="{plane.left - 7:.1f}" y="{y + 4:.1f}" text-anchor="end">{text(value)}</text>')
    parts.append(f'<path class="axis" d="M{plane.left:.1f} {plane.bottom:.1f}H{plane.right:.1f}"/>')
    return parts


def _x_numbers(plane: Plane, xs: list[float]) -> list[str]:
    parts = []
    for value in xs:
        x = plane.x(value)
        parts.append(f'<path class="axis" d="M{x:.1f} {plane.bottom:.1f}v4"/>')
        parts.append(f'<text x="{x:.1f}" y="{plane.bottom + 18:.1f}" text-anchor="middle">{short_number(value)}</text>')
    middle = (plane.left + plane.right) / 2
    parts.append(f'<text x="{middle:.1f}" y="{plane.bottom + 35:.1f}" text-anchor="middle">steps</text>')
    return parts


def _svg(width: int, height: int, label: str, parts: list[str]) -> str:
    return (
        f'<svg class="plot" viewBox="0 0 {width} {height:.0f}" role="img" aria-label="{escape(label)}" '
        f'font-size="{FONT_PX}">{"".join(parts)}</svg>'
    )

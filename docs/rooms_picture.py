"""Draws docs/images/rooms.svg from the table of docs/architecture.md: one row a floor, one box a room, as wide as its code is long.

    python -m docs.rooms_picture
"""

from __future__ import annotations

import math
from pathlib import Path

from tests.rooms import FILES, HOME, room_of, rooms

WIDTH, ROW, GAP = 900, 26, 4
COLOURS = {"trainer": "#cfe3f5", "rearrange": "#d9efd3", "skills": "#fbe6c2", "planner": "#f3d3dc", "eval": "#e3d8f0"}


def picture() -> str:
    """The SVG text."""
    floors: dict[int, list[str]] = {}
    for room, floor in rooms().items():
        floors.setdefault(floor, []).append(room)
    lines = dict.fromkeys(rooms(), 0)
    for file in FILES:
        lines[room_of(file)] += len((HOME / file).read_text(encoding="utf-8").splitlines())
    height = len(floors) * (ROW + GAP) + GAP
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{height}" fill="white"/>']
    for row, (_, names) in enumerate(sorted(floors.items(), reverse=True)):
        y, weight = GAP + row * (ROW + GAP), {name: math.sqrt(lines[name]) + 12 for name in names}
        x, unit = GAP, (WIDTH - GAP * (len(names) + 1)) / max(sum(weight.values()), 90)
        for name in names:
            width = weight[name] * unit
            out.append(f'<rect x="{x:.0f}" y="{y}" width="{width:.0f}" height="{ROW}" rx="4" fill="{COLOURS[name.split("/")[0]]}"/>'
                       f'<text x="{x + 8:.0f}" y="{y + 17}">{name}</text>'
                       f'<text x="{x + width - 8:.0f}" y="{y + 17}" text-anchor="end" fill="#666">{100 * round(lines[name] / 100):,}</text>')
            x += width + GAP
    return "\n".join([*out, "</svg>", ""])


if __name__ == "__main__":
    (HOME / "docs" / "images" / "rooms.svg").write_text(picture(), encoding="utf-8")

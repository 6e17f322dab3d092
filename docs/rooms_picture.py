"""Draws docs/images/rooms.svg from the table of docs/architecture.md: one row a floor, one box a room.

    python -m docs.rooms_picture
"""

from __future__ import annotations

from tests.rooms import HOME, rooms

WIDTH, ROW, GAP = 900, 26, 4
COLOURS = {"trainer": "#cfe3f5", "rearrange": "#d9efd3", "skills": "#fbe6c2", "planner": "#f3d3dc", "eval": "#e3d8f0",
           "benchmarks": "#e6e6e6"}


def picture() -> str:
    """The SVG text."""
    floors: dict[int, list[str]] = {}
    for room, floor in rooms().items():
        floors.setdefault(floor, []).append(room)
    height = len(floors) * (ROW + GAP) + GAP
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
           'font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{height}" fill="white"/>']
    for row, (_, names) in enumerate(sorted(floors.items(), reverse=True)):
        y, width = GAP + row * (ROW + GAP), (WIDTH - GAP * (len(names) + 1)) / len(names)
        for column, name in enumerate(names):
            x = GAP + column * (width + GAP)
            colour = COLOURS[name.split("/")[0]]
            out.append(f'<rect x="{x:.0f}" y="{y}" width="{width:.0f}" height="{ROW}" rx="4" fill="{colour}"/>'
                       f'<text x="{x + width / 2:.0f}" y="{y + 17}" text-anchor="middle">{name}</text>')
    return "\n".join([*out, "</svg>", ""])


if __name__ == "__main__":
    (HOME / "docs" / "images" / "rooms.svg").write_text(picture(), encoding="utf-8")

"""Kitchens as varied as the world's: fronts with a bar, flat or recessed, two or three rows, drawers stiff or light.

Measures span what furniture is sold in: columns of 0.40 to 0.95 m, counters of 0.82 to 0.95 m, bars 25 to 60 mm before
the front, fridge handles at 0.8 to 1.4 m. Frames as in `parts`.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from rearrange.home.apartments.furniture import FRONT
from rearrange.home.apartments.kitchen import (
    BACK_X,
    CARCASS_X,
    FACE_X,
    HANDLE_RGB,
    PANEL_M,
    SLAB_M,
    cupboard,
    drawer_panels,
    worktop,
)
from rearrange.home.apartments.palettes import Palette
from rearrange.home.apartments.parts import Body, Part, Piece, Receptacle, box

MARK_HALF_M = (0.001, 0.06, 0.004)
"""Of the line that shows where a front without a bar is held; nothing collides with it."""
SHOWN_SHARE = 0.5
"""Of fronts that are flat to the touch, how many show a bar: files of furniture often draw handles and leave them out
of what collides."""
_FRONT_X = FACE_X + 0.08  # footprint, with handles
_BOTTOM_M = 0.012
_HIGHEST_BOARD_M = 1.3  # of a fridge; higher ones the arm does not take things from
_EDGE_M = 0.015  # of a frame, beside a front
CLEAR_M = 1.05  # of floor before counter and fridge


def counter(rng: np.random.Generator, palette: Palette, columns: str, wall_cabinet: bool = True) -> Piece:
    """A counter of columns from left to right as one faces it: D drawers, C a cupboard, S the sink."""
    widths = [rng.uniform(0.40, 0.62) for _ in columns]
    widths[columns.index("D")] = rng.uniform(0.40, 0.95)
    half_y, height, plinth = sum(widths) / 2, rng.uniform(0.82, 0.95), rng.uniform(0.05, 0.12)
    under, top_x = height - SLAB_M, FACE_X + rng.uniform(-0.01, 0.05)
    bar = draw_bar(rng) if rng.random() < 0.45 else None
    panel = (rng.random() < 0.55) * rng.uniform(0.08, 0.24)
    rows = 2 if panel else int(rng.integers(2, 4))
    proud, depth = rng.uniform(0.0, 0.04), rng.uniform(0.40, 0.57)
    shown = draw_bar(rng) if bar is None and rng.random() < SHOWN_SHARE else None
    friction, travel = math.exp(rng.uniform(math.log(0.008), math.log(3.0))), rng.uniform(0.46, min(0.54, depth + 0.08))
    hollow = (bar is None and shown is None and rng.random() < 0.35) * rng.uniform(0.010, 0.026)
    density, framed = rng.uniform(150.0, 600.0), rng.random() < 0.4
    parts: list[Part] = [box((BACK_X, -half_y, 0), (BACK_X + PANEL_M, half_y, under), palette.cabinet),
                         box((BACK_X + PANEL_M, -half_y, 0), (CARCASS_X - 0.04, half_y, plinth), palette.wood_dark)]
    bodies: list[Body] = []
    receptacles: list[Receptacle] = []
    high_y = -half_y
    for column, width in zip(columns, widths):
        low_y, high_y = high_y, high_y + width
        middle_y = (low_y + high_y) / 2
        if column == "S":
            sink_y, sink_width = middle_y, width
        if column != "D":
            top = under if column == "C" else under - 0.14
            parts += cupboard(low_y, high_y, top, under, palette, plinth)
            continue
        parts += drawer_panels(low_y, high_y, under, palette, plinth)
        if framed:
            parts += [box((CARCASS_X, y, plinth), (FACE_X + proud, y + _EDGE_M, under), palette.cabinet)
                      for y in (low_y, high_y - _EDGE_M)]
        top = under - 0.005
        if panel:
            gap = _EDGE_M if framed else 0.004
            parts.append(box((CARCASS_X, low_y + gap, under - panel), (FACE_X + proud, high_y - gap, under),
                             palette.cabinet))
            top = under - panel - 0.005
        for low, high in _rows(rng, plinth + 0.01, top, rows):
            body, receptacle = drawer(f"drawer_{len(bodies)}", (FACE_X, middle_y), width - 2 * framed * _EDGE_M,
                                      (low, high), depth, bar, palette, friction, travel, hollow, shown)
            bodies.append(replace(body, density_kg_m3=density))
            receptacles.append(receptacle)
    basin_x, above = BACK_X + rng.uniform(0.16, 0.33), rng.uniform(0.50, 0.75)
    top_parts, surfaces = worktop(half_y, sink_y, sink_width / 2 - 0.06, height, palette, top_x, basin_x)
    parts += top_parts
    # The tap hangs over a basin that begins less than a quarter of a metre before the wall.
    over_sink = 0.35 if basin_x < BACK_X + 0.25 else above + 0.13
    surfaces = [replace(place, clearance_m=over_sink if place.kind == "sink" else above) for place in surfaces]
    if wall_cabinet:
        parts.append(box((BACK_X, -half_y, height + above), (BACK_X + 0.32, half_y, height + above + 0.6),
                         palette.cabinet))
    clear = ((_FRONT_X, -half_y, _FRONT_X + CLEAR_M, half_y),)
    return Piece("counter", _FRONT_X, half_y, tuple(parts), (*surfaces, *receptacles), tuple(bodies), clear)


def draw_bar(rng: np.random.Generator) -> tuple[float, float, float, float]:
    """Stand-off, radius and half length of a bar (m), and how high on its front it is, from 0 to 1."""
    return rng.uniform(0.025, 0.06), rng.uniform(0.006, 0.014), rng.uniform(0.03, 0.16), rng.uniform(0.45, 0.85)


def _rows(rng: np.random.Generator, low: float, top: float, rows: int) -> list[tuple[float, float]]:
    """Heights between which the fronts of a column lie, from the lowest; each at least 0.17 m high."""
    shares = rng.uniform(0.6, 1.4, rows)
    spare = (top - low) - rows * 0.17
    edges = low + np.cumsum([0.0, *(0.17 + spare * shares / shares.sum())])
    return [(a + 0.005, b - 0.005) for a, b in zip(edges.tolist(), edges.tolist()[1:])]


def drawer(name: str, at: tuple[float, float], width: float, face: tuple[float, float], depth: float,
           bar: tuple[float, float, float, float] | None, palette: Palette, friction: float, travel: float,
           hollow: float = 0.0, shown: tuple[float, float, float, float] | None = None) -> tuple[Body, Receptacle]:
    """One drawer; its frame sits in its front's outer face, at its floor.

    Args:
        name: Also of its joint.
        at: x, y of the middle of its front (m), in the frame of the piece.
        width: Of its front (m).
        face: Heights between which its front lies (m).
        depth: Of its box, behind the front's face (m).
        bar: See `draw_bar`; None: a flat front, which is held by its middle.
        palette: Its colours.
        friction: Dry friction of its joint (N).
        travel: How far it opens (m).
        hollow: How far the panel of its front lies behind its frame (m); a plate in its middle is flush with the frame.
        shown: Of a flat front: a bar that is seen and not touched, as `bar`; see `SHOWN_SHARE`.
    """
    floor, thickness, wall = face[0] + 0.03, FACE_X - CARCASS_X, 0.012
    half_front, half_box, rim = width / 2 - 0.004, width / 2 - 0.022, min(0.13, face[1] - face[0] - 0.06)
    inner_y, inner_back, wood = half_box - wall, -depth + wall, palette.wood
    low, high = face[0] - floor, face[1] - floor
    if bar is None:
        mark = (0.0, 0.0, (low + high) / 2)
        handle = Part("box", mark, MARK_HALF_M, HANDLE_RGB, name=f"{name}_handle", solid=False)
    else:
        standoff, radius, half, share = bar
        handle = Part("capsule", (standoff, 0.0, low + share * (high - low)),
                      (radius, min(half, half_front - 0.03)), HANDLE_RGB, axis="y", name=f"{name}_handle")
    front = (box((-thickness, -half_front, low), (0, half_front, high), palette.cabinet),)
    if hollow:
        front = _hollow_front(half_front, (low, high), thickness, hollow, palette)
    if shown:
        standoff, radius, half, share = shown
        front += (Part("capsule", (standoff, 0.0, low + share * (high - low)), (radius, min(half, half_front - 0.03)),
                       HANDLE_RGB, axis="y", name=f"{name}_bar", solid=False),)
    parts = (*front, box((-depth, -half_box, 0), (inner_back, half_box, rim), wood),
             box((inner_back, -half_box, 0), (-thickness, -inner_y, rim), wood),
             box((inner_back, inner_y, 0), (-thickness, half_box, rim), wood),
             box((-depth, -half_box, -_BOTTOM_M), (-thickness, half_box, 0), wood), handle)
    body = Body(name, "slide", 1.0, (0.0, travel), (*at, floor), 0.0, parts, friction)
    usable = min(0.40, depth - 0.08)  # what is out from under the worktop when it is open
    receptacle = Receptacle(name, "drawer", (-thickness - hollow - usable / 2, 0, 0), (usable / 2, inner_y),
                            clearance_m=high - 0.01, parent=name, sides=(FRONT,), closed=True, link=name)
    return body, receptacle


def _hollow_front(half: float, face: tuple[float, float], thickness: float, hollow: float,
                  palette: Palette) -> tuple[Part, ...]:
    """A frame, a panel in it that lies farther back, and on that a plate that is flush with the frame."""
    edge, middle, rgb, (low, high) = 0.04, sum(face) / 2, palette.cabinet, face
    frame = (((-half, low), (half, low + edge)), ((-half, high - edge), (half, high)),
             ((-half, low + edge), (edge - half, high - edge)), ((half - edge, low + edge), (half, high - edge)))
    return (box((-thickness - hollow, edge - half, low + edge), (-hollow, half - edge, high - edge), rgb),
            box((-hollow, -0.05, middle - 0.02), (0, 0.05, middle + 0.02), rgb),
            *(box((-thickness, *a), (0, *b), rgb) for a, b in frame))


def fridge(rng: np.random.Generator, palette: Palette, hinge_left: bool) -> Piece:
    """A fridge over a freezer, two or three boards behind its door, which has a bar or none.

    The door's frame sits on the hinge at the front of the carcass, so the closed door lies in x > 0.
    """
    half_y, freezer = rng.uniform(0.29, 0.40), rng.uniform(0.48, 0.85) if rng.random() < 0.6 else rng.uniform(0.85, 1.2)
    height = rng.uniform(max(1.55, freezer + 0.55), 2.15)
    depth, door = rng.uniform(0.55, 0.72), rng.uniform(0.03, 0.075)
    back = -(depth + door + 0.08) / 2
    hinge_x, front = back + depth, -back
    white, t, edge = palette.white, 0.03, hinge_x - 0.05
    levels = _levels(rng, freezer, height - t)
    parts = [box((back, -half_y, 0), (hinge_x, half_y, freezer), white, name="fridge_0"),
             box((hinge_x, -half_y, 0.05), (hinge_x + door, half_y, freezer - 0.005), white),
             box((back, -half_y, freezer), (back + t, half_y, height), white),
             box((back + t, -half_y, freezer), (hinge_x, -half_y + t, height), white),
             box((back + t, half_y - t, freezer), (hinge_x, half_y, height), white),
             box((back + t, -half_y + t, height - t), (hinge_x, half_y - t, height), white)]
    parts += [box((back + t, -half_y + t, z - _BOTTOM_M), (edge, half_y - t, z), (0.75, 0.84, 0.90),
                  name=f"fridge_{k}") for k, z in enumerate(levels) if k]
    middle_x, half_x = (back + t + edge) / 2, (edge - back - t) / 2
    tops = [*(z - _BOTTOM_M for z in levels[1:]), height - t]
    boards = tuple(Receptacle(f"fridge_{k}", "fridge", (middle_x, 0, z), (half_x, half_y - t), clearance_m=top - z,
                              sides=(FRONT,), closed=True, link="fridge_door")
                   for k, (z, top) in enumerate(zip(levels, tops)) if z < _HIGHEST_BOARD_M)
    widest = rng.uniform(2.15, 2.6)
    behind, ahead = hinge_x - door - 0.01, hinge_x + 2 * half_y + 0.05
    aside = half_y - 2 * half_y * math.cos(widest) + 0.15
    swing = (behind, half_y, ahead, aside) if hinge_left else (behind, -aside, ahead, -half_y)
    clear = ((front, -half_y - 0.1, front + CLEAR_M, half_y + 0.1), swing)
    body = _fridge_door(rng, (hinge_x, half_y), (freezer + 0.005, height), door, hinge_left, widest, palette)
    return Piece("fridge", front, half_y, tuple(parts), boards, (body,), clear)


def _levels(rng: np.random.Generator, freezer: float, top: float) -> list[float]:
    """Heights of the boards, from the lowest; one of them has 0.3 m above it, within the arm's reach."""
    levels = [freezer]
    while levels[-1] + 0.32 < min(top - 0.3, 1.5) and len(levels) < 3:
        levels.append(levels[-1] + rng.uniform(0.14, 0.45))
    return [z for z in levels if z < top - 0.3]


def _fridge_door(rng: np.random.Generator, hinge: tuple[float, float], height: tuple[float, float], thickness: float,
                 hinge_left: bool, widest: float, palette: Palette) -> Body:
    """The door over the fridge compartment, its handle at the edge away from the hinge, 0.8 to 1.4 m high."""
    sign = 1.0 if hinge_left else -1.0
    width, gap = 2 * hinge[1], 0.004
    low_y, high_y = sorted((0.0, -sign * width))
    at_z = rng.uniform(max(0.8, height[0] + 0.12), 1.4)
    at_y = -sign * (width - rng.uniform(0.04, 0.09))
    shown: tuple[Part, ...] = ()
    if rng.random() < 0.6:
        standoff, half = rng.uniform(0.03, 0.06), min(rng.uniform(0.07, 0.30), at_z - height[0] - 0.02)
        handle = Part("capsule", (thickness + standoff, at_y, at_z), (rng.uniform(0.008, 0.014), half), HANDLE_RGB,
                      name="fridge_door_handle")
    else:
        handle = Part("box", (thickness, at_y, at_z), (MARK_HALF_M[0], MARK_HALF_M[2], MARK_HALF_M[1]), HANDLE_RGB,
                      name="fridge_door_handle", solid=False)
        if rng.random() < SHOWN_SHARE:
            standoff, half = rng.uniform(0.03, 0.06), min(rng.uniform(0.07, 0.30), at_z - height[0] - 0.02)
            shown = (Part("capsule", (thickness + standoff, at_y, at_z), (rng.uniform(0.008, 0.014), half), HANDLE_RGB,
                          name="fridge_door_bar", solid=False),)
    parts = (box((gap, low_y, height[0]), (thickness, high_y, height[1]), palette.white), *shown, handle)
    friction = math.exp(rng.uniform(math.log(0.008), math.log(1.0)))
    return Body("fridge_door", "hinge", sign, (0.0, widest), (hinge[0], sign * hinge[1], 0.0), 0.0,
                parts, friction)

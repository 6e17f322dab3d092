"""The kitchen: a counter with drawers and a sink, and a fridge with a door.

Modelled on HAB's kitchen counter and fridge (ReplicaCAD): drawers slide 0.5 m, the fridge's upper door swings 2.4 rad,
the counter is `counter_left` and `counter_right` of the sink as one faces it. Frames as in `parts`.
"""

from __future__ import annotations

import numpy as np

from rearrange.home.apartments.furniture import FRONT
from rearrange.home.apartments.palettes import Palette
from rearrange.home.apartments.parts import Body, Part, Piece, Receptacle, box

DRAWER_RANGE_M = (0.0, 0.5)
FRIDGE_DOOR_RANGE_RAD = (0.0, 2.4)
HANDLE_RGB = (0.20, 0.20, 0.22)
HANDLE_RADIUS_M = 0.012
HANDLE_STANDOFF_M = 0.038
"""Distance from a front to the middle of its handle."""

BACK_X, CARCASS_X, FACE_X, TOP_X, FRONT_X = -0.33, 0.25, 0.27, 0.29, 0.33
"""Counter, from the wall outwards: back, carcass front, drawer fronts, edge of the worktop, footprint with handles."""
PLINTH_M, SLAB_M, PANEL_M = 0.10, 0.04, 0.018
DRAWER_DEPTH_M = 0.50
KITCHEN_CLEAR_M = 1.15
"""Free floor before counter and fridge: an open drawer plus a robot."""


def counter(rng: np.random.Generator, palette: Palette, columns: str, wall_cabinet: bool = True) -> Piece:
    """A counter of columns from left to right as one faces it: D two drawers, C a cupboard, S the sink."""
    width = rng.uniform(0.50, 0.60)
    height = rng.uniform(0.86, 0.93)
    half_y = width * len(columns) / 2
    under = height - SLAB_M
    parts: list[Part] = [box((BACK_X, -half_y, 0), (BACK_X + PANEL_M, half_y, under), palette.cabinet),
                         box((BACK_X + PANEL_M, -half_y, 0), (CARCASS_X - 0.04, half_y, PLINTH_M), palette.wood_dark)]
    bodies: list[Body] = []
    receptacles: list[Receptacle] = []
    for k, column in enumerate(columns):
        low_y, high_y = -half_y + k * width, -half_y + (k + 1) * width
        if column == "D":
            parts += drawer_panels(low_y, high_y, under, palette)
            for row in ((PLINTH_M + 0.01, 0.46), (0.47, under - 0.005)):
                body, receptacle = _drawer(len(bodies), (low_y + high_y) / 2, width, row, palette)
                bodies.append(body)
                receptacles.append(receptacle)
        else:
            top = under if column == "C" else under - 0.14
            parts += cupboard(low_y, high_y, top, under, palette)
    sink_y = -half_y + (columns.index("S") + 0.5) * width
    top_parts, surfaces = worktop(half_y, sink_y, width / 2 - 0.06, height, palette)
    parts += top_parts
    if wall_cabinet:
        parts.append(box((BACK_X, -half_y, height + 0.58), (BACK_X + 0.32, half_y, height + 1.2), palette.cabinet))
    clear = ((FRONT_X, -half_y, FRONT_X + KITCHEN_CLEAR_M, half_y),)
    return Piece("counter", FRONT_X, half_y, tuple(parts), (*surfaces, *receptacles), tuple(bodies), clear)


def drawer_panels(low_y: float, high_y: float, under: float, palette: Palette, plinth: float = PLINTH_M) -> list[Part]:
    """The two panels between which a column of drawers slides."""
    return [box((BACK_X + PANEL_M, low_y, plinth), (CARCASS_X, low_y + PANEL_M / 2, under), palette.cabinet),
            box((BACK_X + PANEL_M, high_y - PANEL_M / 2, plinth), (CARCASS_X, high_y, under), palette.cabinet)]


def cupboard(low_y: float, high_y: float, top: float, under: float, palette: Palette,
             plinth: float = PLINTH_M) -> list[Part]:
    """A closed cupboard: a solid block with a front and a knob bar."""
    knob_y = high_y - 0.06
    return [box((BACK_X + PANEL_M, low_y, plinth), (CARCASS_X, high_y, top), palette.cabinet),
            box((CARCASS_X, low_y + 0.003, plinth + 0.01), (FACE_X, high_y - 0.003, under - 0.005), palette.cabinet),
            box((FACE_X, knob_y - 0.008, 0.55), (FACE_X + 0.02, knob_y + 0.008, 0.70), HANDLE_RGB)]


def _drawer(index: int, y: float, width: float, face: tuple[float, float], palette: Palette) -> tuple[Body, Receptacle]:
    """One drawer whose front spans the heights `face`; its frame sits in the front's outer face, at its floor."""
    name = f"drawer_{index}"
    floor = face[0] + 0.09
    half_front, half_box = width / 2 - 0.004, width / 2 - 0.022
    back, wall, wood = -DRAWER_DEPTH_M, 0.012, palette.wood
    thickness = FACE_X - CARCASS_X
    inner_y, inner_back = half_box - wall, back + wall
    parts = (box((-thickness, -half_front, face[0] - floor), (0, half_front, face[1] - floor), palette.cabinet),
             box((back, -half_box, 0), (inner_back, half_box, 0.13), wood),
             box((inner_back, -half_box, 0), (-thickness, -inner_y, 0.13), wood),
             box((inner_back, inner_y, 0), (-thickness, half_box, 0.13), wood),
             box((back, -half_box, -wall), (-thickness, half_box, 0), wood),
             Part("capsule", (HANDLE_STANDOFF_M, 0, (face[0] + face[1]) / 2 + 0.02 - floor), (HANDLE_RADIUS_M, 0.075),
                  HANDLE_RGB, axis="y", name=f"{name}_handle"))
    body = Body(name, "slide", 1.0, DRAWER_RANGE_M, (FACE_X, y, floor), 0.0, parts)
    # Only the front 0.40 m count: at HAB's "open" (0.45 m) all of it is out from under the worktop.
    usable = 0.40
    receptacle = Receptacle(name, "drawer", (-thickness - usable / 2, 0, 0), (usable / 2, inner_y),
                            clearance_m=face[1] - floor - 0.01, parent=name, sides=(FRONT,), closed=True, link=name)
    return body, receptacle


def worktop(half_y: float, sink_y: float, basin_half_y: float, height: float, palette: Palette,
            edge_x: float = TOP_X, basin_x: float = BACK_X + 0.16) -> tuple[list[Part], list[Receptacle]]:
    """The slab left and right of the sink, up to its edge at `edge_x`, and the basin let into it from `basin_x` on."""
    under, floor = height - SLAB_M, height - 0.13
    low_x, high_x = basin_x, edge_x - 0.09
    low_y, high_y = sink_y - basin_half_y, sink_y + basin_half_y
    top, metal, t = palette.worktop, palette.metal, 0.006
    parts = [
        box((BACK_X, -half_y, under), (edge_x, low_y, height), top, name="counter_left"),
        box((BACK_X, high_y, under), (edge_x, half_y, height), top, name="counter_right"),
        box((BACK_X, low_y, under), (low_x, high_y, height), top),
        box((high_x, low_y, under), (edge_x, high_y, height), top),
        box((low_x, low_y, floor - t), (high_x, high_y, floor), metal, name="sink"),
        box((low_x, low_y, floor), (low_x + t, high_y, height - 0.002), metal),
        box((high_x - t, low_y, floor), (high_x, high_y, height - 0.002), metal),
        box((low_x + t, low_y, floor), (high_x - t, low_y + t, height - 0.002), metal),
        box((low_x + t, high_y - t, floor), (high_x - t, high_y, height - 0.002), metal),
        Part("cylinder", (BACK_X + 0.09, sink_y, height + 0.12), (0.014, 0.12), metal),
        box((BACK_X + 0.078, sink_y - 0.012, height + 0.24), (BACK_X + 0.24, sink_y + 0.012, height + 0.264), metal)]
    middle_x, half_x = (BACK_X + edge_x) / 2, (edge_x - BACK_X) / 2
    surfaces = [Receptacle("counter_left", "counter", (middle_x, (low_y - half_y) / 2, height),
                           (half_x, (low_y + half_y) / 2), clearance_m=0.58, sides=(FRONT,)),
                Receptacle("counter_right", "counter", (middle_x, (high_y + half_y) / 2, height),
                           (half_x, (half_y - high_y) / 2), clearance_m=0.58, sides=(FRONT,)),
                Receptacle("sink", "sink", ((low_x + high_x) / 2, sink_y, floor),
                           ((high_x - low_x) / 2 - t, basin_half_y - t), clearance_m=0.35, sides=(FRONT,))]
    return parts, surfaces


def fridge(rng: np.random.Generator, palette: Palette, hinge_left: bool) -> Piece:
    """A fridge over a freezer; the fridge door hinges at its left (y > 0) or right edge and hides two boards.

    The door's frame sits on the hinge at the front of the carcass, so the closed door lies in x > 0.
    """
    half_y, height = rng.uniform(0.32, 0.36), rng.uniform(1.70, 1.82)
    freezer, board = rng.uniform(0.52, 0.60), rng.uniform(0.92, 0.98)
    depth, door = 0.68, 0.055
    back = -(depth + door + HANDLE_STANDOFF_M + HANDLE_RADIUS_M + 0.002) / 2
    hinge_x, front = back + depth, -back
    white, t = palette.white, 0.03
    edge = hinge_x - 0.05
    parts = (box((back, -half_y, 0), (hinge_x, half_y, freezer), white, name="fridge_0"),
             box((hinge_x, -half_y, 0.05), (hinge_x + door, half_y, freezer - 0.005), white),
             box((back, -half_y, freezer), (back + t, half_y, height), white),
             box((back + t, -half_y, freezer), (hinge_x, -half_y + t, height), white),
             box((back + t, half_y - t, freezer), (hinge_x, half_y, height), white),
             box((back + t, -half_y + t, height - t), (hinge_x, half_y - t, height), white),
             box((back + t, -half_y + t, board - 0.012), (edge, half_y - t, board), (0.75, 0.84, 0.90),
                 name="fridge_1"), box((hinge_x + door, -0.6 * half_y, freezer - 0.08),
                                       (hinge_x + door + 0.02, 0.6 * half_y, freezer - 0.06), HANDLE_RGB))
    door_body = _fridge_door(hinge_x, half_y, freezer + 0.005, height, door, hinge_left, palette)
    middle_x, half_x = (back + t + edge) / 2, (edge - back - t) / 2
    boards = tuple(
        Receptacle(f"fridge_{k}", "fridge", (middle_x, 0, z), (half_x, half_y - t), clearance_m=clearance,
                   sides=(FRONT,), closed=True, link="fridge_door")
        for k, (z, clearance) in enumerate(((freezer, board - 0.012 - freezer), (board, height - t - board))))
    swing = ((hinge_x, half_y, hinge_x + 0.8, half_y + 0.6) if hinge_left
             else (hinge_x, -half_y - 0.6, hinge_x + 0.8, -half_y))
    clear = ((front, -half_y - 0.1, front + KITCHEN_CLEAR_M, half_y + 0.1), swing)
    return Piece("fridge", front, half_y, parts, boards, (door_body,), clear)


def _fridge_door(hinge_x: float, half_y: float, low_z: float, high_z: float, thickness: float, hinge_left: bool,
                 palette: Palette) -> Body:
    """The door over the fridge compartment, its handle at the edge away from the hinge."""
    sign = 1.0 if hinge_left else -1.0
    width, gap = 2 * half_y, 0.004
    low_y, high_y = sorted((0.0, -sign * width))
    handle_at = (thickness + HANDLE_STANDOFF_M, -sign * (width - 0.07), 1.02)
    parts = (box((gap, low_y, low_z), (thickness, high_y, high_z), palette.white),
             Part("capsule", handle_at, (HANDLE_RADIUS_M, 0.20), HANDLE_RGB, name="fridge_door_handle"))
    position = (hinge_x, sign * half_y, 0.0)
    return Body("fridge_door", "hinge", sign, FRIDGE_DOOR_RANGE_RAD, position, 0.0, parts)

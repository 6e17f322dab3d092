"""Living, dining and bedroom furniture in the measures that furniture is sold in: `furniture` with wider ranges.

Boards are 0.13 to 0.46 m apart and 0.1 to 1.2 m high, table tops 0.32 to 0.95 m, and some tables have a board below.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from rearrange.home.apartments import furniture, wide_kitchen
from rearrange.home.apartments.furniture import ALL_SIDES, FRONT, Range
from rearrange.home.apartments.palettes import Palette
from rearrange.home.apartments.parts import Body, Part, Piece, Receptacle, box

_HEIGHT_M: dict[str, Range] = {"table": (0.64, 0.95), "coffee_table": (0.32, 0.54)}
_BOARD_M = 0.02  # how thick boards are
_HIGHEST_M, _LOWEST_M = 1.3, 0.10  # of boards
_GAP_M = (0.13, 0.46)  # between two boards


def _widened(low_high: Range) -> Range:
    return 0.85 * low_high[0], 1.1 * low_high[1]


def table(rng: np.random.Generator, palette: Palette, name: str, kind: str = "table", length_m: Range = (1.1, 1.6),
          depth_m: Range = (0.75, 0.95), height_m: Range = (0.70, 0.78), style: str = "legs") -> Piece:
    """A rectangular table; one in three with legs has a board below its top."""
    piece = furniture.table(rng, palette, name, kind, _widened(length_m), _widened(depth_m), _HEIGHT_M[kind], style)
    top = piece.receptacles[0]
    if style != "legs" or kind != "table" or rng.random() > 1 / 3:
        return piece
    half_x, half_y = piece.half_depth_m - 0.08, piece.half_width_m - 0.02
    z = rng.uniform(0.15, top.center_m[2] - 0.30)
    board = box((-half_x, -half_y, z - _BOARD_M), (half_x, half_y, z), palette.wood, f"{name}_below")
    below = Receptacle(f"{name}_below", "shelf", (0, 0, z), (half_x, half_y), sides=ALL_SIDES,
                       clearance_m=top.center_m[2] - 0.035 - z)
    return replace(piece, parts=(*piece.parts, board), receptacles=(top, below))


def chair(rng: np.random.Generator, palette: Palette, name: str) -> Piece:
    """A chair without arms, low or high."""
    return _raised(furniture.chair(rng, palette, name), rng.uniform(-0.05, 0.04))


def armchair(rng: np.random.Generator, palette: Palette, name: str = "armchair") -> Piece:
    """An upholstered chair with arms."""
    return _raised(furniture.armchair(rng, palette, name), rng.uniform(-0.03, 0.06))


def sofa(rng: np.random.Generator, palette: Palette, name: str = "sofa") -> Piece:
    """A sofa with arms."""
    return _raised(furniture.sofa(rng, palette, name, (0.36, 0.48)), rng.uniform(-0.05, 0.05))


def nightstand(rng: np.random.Generator, palette: Palette, name: str = "nightstand") -> Piece:
    """A small cupboard beside a bed."""
    return _raised(furniture.nightstand(rng, palette, name), rng.uniform(-0.10, 0.12))


def _raised(piece: Piece, by_m: float) -> Piece:
    """A piece whose upper half is higher: parts that reach above 0.25 m keep their lower end."""
    def part(old: Part) -> Part:
        x, y, z = old.center_m
        if old.top_m < 0.25:
            return old
        stands = old.shape == "box" and z - old.half_extent_m[2] < 0.1
        if not stands:
            return replace(old, center_m=(x, y, z + by_m))
        half = old.half_size_m[2] + by_m / 2
        return replace(old, center_m=(x, y, z + by_m / 2), half_size_m=(*old.half_size_m[:2], half))

    def raised(place: Receptacle) -> Receptacle:
        return replace(place, center_m=(*place.center_m[:2], place.center_m[2] + by_m))

    return replace(piece, parts=tuple(map(part, piece.parts)), receptacles=tuple(map(raised, piece.receptacles)))


def tv_stand(rng: np.random.Generator, palette: Palette, name: str = "tv_stand") -> Piece:
    """A low board along a wall with a flat screen; half of them have an open compartment below the top."""
    piece = _raised(furniture.tv_stand(rng, palette, name, (0.16, 0.30)), rng.uniform(-0.04, 0.10))
    if rng.random() < 0.5:
        return piece
    half_x, half_y, _ = piece.parts[0].half_size_m
    height, slab = piece.parts[0].top_m, 0.03
    floor = rng.uniform(0.12, height - slab - 0.105)
    wood, inner = palette.wood_dark, half_y - 0.03
    case = (box((-half_x, -half_y, 0.06), (half_x, half_y, floor), wood, f"{name}_1"),
            box((-half_x, -half_y, height - slab), (half_x, half_y, height), wood, name),
            box((-half_x, -half_y, floor), (-half_x + _BOARD_M, half_y, height - slab), wood),
            box((-half_x + _BOARD_M, -half_y, floor), (half_x, -inner, height - slab), wood),
            box((-half_x + _BOARD_M, inner, floor), (half_x, half_y, height - slab), wood))
    below = Receptacle(f"{name}_1", "shelf", (_BOARD_M / 2, 0, floor), (half_x - _BOARD_M / 2, inner), sides=(FRONT,),
                       clearance_m=height - slab - floor)
    return replace(piece, parts=(*case, *piece.parts[1:]), receptacles=(*piece.receptacles, below))


def bookcase(rng: np.random.Generator, palette: Palette, name: str = "bookcase") -> Piece:
    """A tall open case: boards from near the floor to as high as the arm reaches, books above."""
    return _case(rng, palette, name, "bookcase", _HIGHEST_M)


def low_shelf(rng: np.random.Generator, palette: Palette, name: str = "bookcase") -> Piece:
    """A waist-high open case, its top a board as well."""
    return _case(rng, palette, name, "low_shelf", rng.uniform(0.70, 1.0))


def _case(rng: np.random.Generator, palette: Palette, name: str, kind: str, most_m: float) -> Piece:
    half_x, half_y = rng.uniform(0.13, 0.20), rng.uniform(0.17, 0.65)
    levels = [rng.uniform(_LOWEST_M, 0.50)]
    while (z := levels[-1] + rng.uniform(*_GAP_M)) < most_m:
        levels.append(z)
    back, inner, wood = -half_x + _BOARD_M, half_y - _BOARD_M, palette.wood
    top = levels[-1] if kind == "low_shelf" else levels[-1] + rng.uniform(0.25, 0.45)
    parts = [box((-half_x, -half_y, 0), (half_x, half_y, levels[0]), palette.wood_dark, f"{name}_0")]
    if top > levels[0]:
        parts += [box((-half_x, -half_y, levels[0]), (back, half_y, top - _BOARD_M), palette.wood_dark),
                  box((back, -half_y, levels[0]), (half_x, -inner, top - _BOARD_M), wood),
                  box((back, inner, levels[0]), (half_x, half_y, top - _BOARD_M), wood)]
        if kind != "low_shelf":
            parts.append(box((-half_x, -half_y, top - _BOARD_M), (half_x, half_y, top), wood))
    places = []
    for k, z in enumerate(levels):
        is_top = z == top
        across = half_y if is_top or not k else inner
        if k:
            parts.append(box((-half_x if is_top else back, -across, z - _BOARD_M), (half_x, across, z), wood,
                             f"{name}_{k}"))
        above = math.inf if is_top else (levels[k + 1] if k + 1 < len(levels) else top) - _BOARD_M - z
        places.append(Receptacle(f"{name}_{k}", "shelf", (0.01, 0, z), (half_x - 0.01, inner), clearance_m=above,
                                 sides=(FRONT,)))
    return Piece(kind, half_x, half_y, tuple(parts), tuple(places))


def sideboard(rng: np.random.Generator, palette: Palette, name: str = "sideboard") -> Piece:
    """A closed cupboard along a wall, or, as often, a chest of drawers."""
    if rng.random() < 0.5:
        return _raised(furniture.sideboard(rng, palette, name), rng.uniform(-0.14, 0.08))
    columns, rows = int(rng.integers(1, 3)), int(rng.integers(2, 5))
    width, height, low = rng.uniform(0.40, 0.70), rng.uniform(0.25 * rows, 1.25), rng.uniform(0.05, 0.12)
    half_y, face_x, half_x, t = columns * width / 2, 0.24, 0.30, 0.02
    bar = wide_kitchen.draw_bar(rng) if rng.random() < 0.4 else None
    friction, travel, depth = rng.uniform(0.01, 3.0), rng.uniform(0.46, 0.52), rng.uniform(0.42, 0.46)
    under = height - t
    parts = [box((-half_x, -half_y, 0), (-half_x + t, half_y, under), palette.wood_dark),
             box((-half_x + t, -half_y, 0), (face_x - 0.06, half_y, low), palette.wood_dark),
             box((-half_x, -half_y, under), (face_x + 0.01, half_y, height), palette.wood, name)]
    bodies: list[Body] = []
    places = [Receptacle(name, "table", (-0.02, 0, height), (half_x - 0.05, half_y), sides=(FRONT,))]
    for column in range(columns):
        low_y = -half_y + column * width
        parts += [box((-half_x + t, y, low), (face_x - t, y + t / 2, under), palette.wood)
                  for y in (low_y, low_y + width - t / 2)]
        edges = np.linspace(low + 0.005, under - 0.005, rows + 1).tolist()
        for face in zip(edges, edges[1:]):
            body, place = wide_kitchen.drawer(f"drawer_{name}_{len(bodies)}", (face_x, low_y + width / 2), width,
                                              (face[0] + 0.004, face[1] - 0.004), depth, bar, palette, friction, travel)
            bodies.append(body)
            places.append(place)
    clear = ((half_x, -half_y, half_x + wide_kitchen.CLEAR_M, half_y),)
    return Piece("sideboard", half_x, half_y, tuple(parts), tuple(places), tuple(bodies), clear)

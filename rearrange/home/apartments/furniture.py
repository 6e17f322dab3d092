"""Living-room, dining-room and bedroom furniture, each drawn once with random dimensions.

Every function takes a random generator and a palette and returns a `Piece` in its own frame (x out of its front).
Dimensions follow ordinary furniture; heights of surfaces stay within 0.38-0.95 m, where a Fetch arm picks and places.
"""

from __future__ import annotations

import numpy as np

from rearrange.home.apartments.palettes import Palette
from rearrange.home.apartments.parts import Part, Piece, Receptacle, Rgb, box

Range = tuple[float, float]

_TOP_M = 0.035  # how thick table tops are
FRONT, LEFT, BACK, RIGHT = (1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)
ALL_SIDES = (FRONT, LEFT, BACK, RIGHT)


def clear_of_deck(height_m: float) -> float:
    """The height of a table top, raised where its edge would catch the robot's deck.

    Tops are 3.5 cm thick and the deck is 0.36 m high. An edge less than 15 mm above or below it holds the robot fast:
    the deck gets under it, and the joints of the base hold it down.
    """
    return 0.397 if 0.345 < height_m - _TOP_M < 0.361 else height_m


def _block(half_x: float, half_y: float, low: float, high: float, rgb: Rgb, name: str = "") -> Part:
    """A box over the middle of the footprint, between two heights."""
    return box((-half_x, -half_y, low), (half_x, half_y, high), rgb, name)


def _legs(x: float, y: float, half: float, top: float, rgb: Rgb) -> list[Part]:
    """Four square legs whose middles are at (+-x, +-y)."""
    return [box((sx * x - half, sy * y - half, 0), (sx * x + half, sy * y + half, top), rgb)
            for sx in (-1, 1) for sy in (-1, 1)]


def _surface(name: str, kind: str, height: float, half_x: float, half_y: float, sides: tuple = (FRONT,),
             back: float = 0, **more: float) -> Receptacle:
    """The surface of a piece, without a strip of depth 2 * `back` at its back."""
    return Receptacle(name, kind, (back, 0, height), (half_x - back, half_y), sides=sides, **more)


def table(rng: np.random.Generator, palette: Palette, name: str, kind: str = "table", length_m: Range = (1.1, 1.6),
          depth_m: Range = (0.75, 0.95), height_m: Range = (0.70, 0.78), style: str = "legs") -> Piece:
    """A rectangular table, open on all sides: four legs, two side panels ("panels") or one foot ("pedestal")."""
    half_y, half_x = rng.uniform(*length_m) / 2, rng.uniform(*depth_m) / 2
    height = clear_of_deck(rng.uniform(*height_m))
    under, dark = height - _TOP_M, palette.wood_dark
    parts = [_block(half_x, half_y, under, height, palette.wood, name)]
    if style == "legs":
        parts += _legs(half_x - 0.05, half_y - 0.05, 0.025, under, dark)
    elif style == "panels":
        for y in (-(half_y - 0.10), half_y - 0.10):
            parts.append(box((-half_x + 0.08, y - 0.02, 0), (half_x - 0.08, y + 0.02, under), dark))
    else:
        parts.append(Part("cylinder", (0, 0, (under + 0.025) / 2), (0.06, (under - 0.025) / 2), dark))
        parts.append(_block(0.22, 0.30, 0, 0.025, dark))
    return Piece(kind, half_x, half_y, tuple(parts), (_surface(name, kind, height, half_x, half_y, ALL_SIDES),))


def round_table(rng: np.random.Generator, palette: Palette, name: str) -> Piece:
    """A round table on one foot; its receptacle is the square inside the disc."""
    radius, height = rng.uniform(0.48, 0.56), rng.uniform(0.70, 0.78)
    parts = (Part("cylinder", (0, 0, height - 0.018), (radius, 0.018), palette.wood, name=name),
             Part("cylinder", (0, 0, (height - 0.006) / 2), (0.05, (height - 0.066) / 2), palette.wood_dark),
             Part("cylinder", (0, 0, 0.015), (0.6 * radius, 0.015), palette.wood_dark))
    half = radius * 0.5**0.5
    return Piece("table", radius, radius, parts, (_surface(name, "table", height, half, half, ALL_SIDES),))


def chair(rng: np.random.Generator, palette: Palette, name: str) -> Piece:
    """A chair without arms, reached from its front and both sides."""
    half, seat, back = rng.uniform(0.20, 0.225), rng.uniform(0.43, 0.47), rng.uniform(0.82, 0.95)
    parts = (_block(half, half, seat - 0.04, seat, palette.wood, name),
             box((-half, -half, seat), (-half + 0.03, half, back), palette.wood),
             *_legs(half - 0.02, half - 0.02, 0.02, seat - 0.04, palette.wood_dark))
    return Piece("chair", half, half, parts, (_surface(name, "chair", seat, half, half, (FRONT, LEFT, RIGHT), 0.02),))


def _upholstered(half_x: float, half_y: float, foot: float, seat: float, arm: tuple[float, float],
                 back: tuple[float, float], rgb: Rgb, name: str) -> tuple[Part, ...]:
    """Seat, back and arms; `arm`, `back`: how thick, and up to which height."""
    y = half_y - arm[0]
    return (_block(half_x, y, foot, seat, rgb, name), box((-half_x, -y, seat), (-half_x + back[0], y, back[1]), rgb),
            box((-half_x, -half_y, 0), (half_x, -y, arm[1]), rgb), box((-half_x, y, 0), (half_x, half_y, arm[1]), rgb))


def armchair(rng: np.random.Generator, palette: Palette, name: str = "armchair") -> Piece:
    """An upholstered chair with arms, reached from its front."""
    half_x, half_y, seat = rng.uniform(0.38, 0.43), rng.uniform(0.38, 0.43), rng.uniform(0.40, 0.44)
    parts = _upholstered(half_x, half_y, 0.08, seat, (0.13, 0.6), (0.2, 0.85), palette.fabric_light, name)
    return Piece("armchair", half_x, half_y, parts, (_surface(name, "chair", seat, half_x, half_y - 0.13, back=0.1),))


def sofa(rng: np.random.Generator, palette: Palette, name: str = "sofa", half_depth_m: Range = (0.42, 0.48)) -> Piece:
    """A sofa with arms, reached from its front."""
    half_x, half_y, seat = rng.uniform(*half_depth_m), rng.uniform(1.7, 2.3) / 2, rng.uniform(0.40, 0.46)
    back = 0.22, rng.uniform(0.78, 0.88)
    parts = _upholstered(half_x, half_y, 0.07, seat, (0.16, seat + 0.18), back, palette.fabric, name)
    return Piece("sofa", half_x, half_y, parts, (_surface(name, "sofa", seat, half_x, half_y - 0.16, back=0.11),))


def tv_stand(rng: np.random.Generator, palette: Palette, name: str = "tv_stand",
             half_depth_m: Range = (0.20, 0.24)) -> Piece:
    """A low board along a wall with a flat screen above its back edge."""
    half_x, half_y, height = rng.uniform(*half_depth_m), rng.uniform(0.65, 0.95), rng.uniform(0.42, 0.58)
    wide, back = min(half_y - 0.1, rng.uniform(0.5, 0.65)), -half_x + 0.01
    parts = (_block(half_x, half_y, 0.06, height, palette.wood_dark, name),
             _block(half_x - 0.03, half_y - 0.05, 0, 0.06, palette.wood_dark),
             box((back, -wide, height + 0.10), (-half_x + 0.05, wide, height + 0.85), palette.screen),
             box((back, -0.10, height), (-half_x + 0.06, 0.10, height + 0.10), palette.screen))
    return Piece("tv_stand", half_x, half_y, parts, (_surface(name, "tv_stand", height, half_x, half_y, back=0.04),))


def _case(half_x: float, half_y: float, low: float, top: float, base: Rgb, palette: Palette, name: str) -> list[Part]:
    """A cupboard up to `low`, and above it a back and two sides up to `top`."""
    back, inner = -half_x + 0.02, half_y - 0.02
    return [_block(half_x, half_y, 0, low, base, f"{name}_0"),
            box((-half_x, -half_y, low), (back, half_y, top), palette.wood_dark),
            box((back, -half_y, low), (half_x, -inner, top), palette.wood),
            box((back, inner, low), (half_x, half_y, top), palette.wood)]


def bookcase(rng: np.random.Generator, palette: Palette, name: str = "bookcase") -> Piece:
    """A tall case: a cupboard below, two open boards in the arm's reach, books out of reach above."""
    half_x, half_y = rng.uniform(0.16, 0.19), rng.uniform(0.42, 0.60)
    low, gap = rng.uniform(0.42, 0.50), rng.uniform(0.40, 0.46)
    mid, high, top = low + gap, low + 2 * gap, low + 2 * gap + 0.36
    back, inner, wood = -half_x + 0.02, half_y - 0.02, palette.wood
    parts = [*_case(half_x, half_y, low, top, wood, palette, name),
             box((back, -inner, mid - 0.02), (half_x, inner, mid), wood, f"{name}_1"),
             box((back, -inner, high - 0.02), (half_x, inner, high), wood),
             _block(half_x, half_y, top, top + 0.02, wood)]
    for color, start, end in ((palette.accent, -0.9, -0.2), (palette.fabric, -0.1, 0.5),
                              (palette.wood_dark, 0.55, 0.9)):
        book_m = rng.uniform(0.2, 0.3)
        parts.append(box((-half_x + 0.03, start * inner, high), (half_x - 0.06, end * inner, high + book_m), color))
    boards = (_surface(f"{name}_{k}", "shelf", z, half_x, inner, back=0.01, clearance_m=gap - 0.02)
              for k, z in enumerate((low, mid)))
    return Piece("bookcase", half_x, half_y, tuple(parts), tuple(boards))


def low_shelf(rng: np.random.Generator, palette: Palette, name: str = "bookcase") -> Piece:
    """A waist-high open case: one board inside it and its open top."""
    half_x, half_y = rng.uniform(0.17, 0.20), rng.uniform(0.45, 0.70)
    low, gap = rng.uniform(0.38, 0.45), rng.uniform(0.40, 0.46)
    top = low + gap
    parts = (*_case(half_x, half_y, low, top - 0.02, palette.wood_dark, palette, name),
             _block(half_x, half_y, top - 0.02, top, palette.wood, f"{name}_1"))
    boards = (_surface(f"{name}_0", "shelf", low, half_x, half_y - 0.02, back=0.01, clearance_m=gap - 0.02),
              _surface(f"{name}_1", "shelf", top, half_x, half_y))
    return Piece("low_shelf", half_x, half_y, parts, boards)


def sideboard(rng: np.random.Generator, palette: Palette, name: str = "sideboard") -> Piece:
    """A closed cupboard at table height along a wall."""
    half_x, half_y, height = rng.uniform(0.20, 0.24), rng.uniform(0.5, 0.8), rng.uniform(0.74, 0.88)
    parts = (_block(half_x, half_y, 0.08, height, palette.wood, name),
             _block(half_x - 0.03, half_y - 0.03, 0, 0.08, palette.wood_dark))
    return Piece("sideboard", half_x, half_y, parts, (_surface(name, "table", height, half_x, half_y),))


def bed(rng: np.random.Generator, palette: Palette) -> Piece:
    """A bed with its head at the back; too soft and low to be a receptacle."""
    half_x, half_y, height = rng.uniform(1.0, 1.05), rng.uniform(0.6, 0.82), rng.uniform(0.45, 0.55)
    head, frame, soft = -half_x + 0.05, height - 0.12, palette.fabric_light
    parts = (box((head, -half_y, 0.08), (half_x, half_y, frame), palette.wood_dark),
             box((head, -half_y + 0.02, frame), (half_x - 0.02, half_y - 0.02, height), soft),
             box((-half_x, -half_y, 0), (head, half_y, 1.0), palette.wood_dark),
             box((-half_x + 0.1, -half_y + 0.12, height), (-half_x + 0.5, half_y - 0.12, height + 0.1), palette.white))
    return Piece("bed", half_x, half_y, parts)


def nightstand(rng: np.random.Generator, palette: Palette, name: str = "nightstand") -> Piece:
    """A small cupboard beside a bed."""
    half_x, half_y, height = rng.uniform(0.19, 0.22), rng.uniform(0.20, 0.26), rng.uniform(0.48, 0.60)
    return Piece("nightstand", half_x, half_y, (_block(half_x, half_y, 0, height, palette.wood, name),),
                 (_surface(name, "table", height, half_x, half_y),))


def wardrobe(rng: np.random.Generator, palette: Palette) -> Piece:
    """A closed wardrobe; nothing stands on it."""
    half_x, half_y, height = rng.uniform(0.27, 0.30), rng.uniform(0.5, 0.85), rng.uniform(1.9, 2.1)
    front = half_x - 0.01
    seam = box((front, -0.005, 0.05), (half_x, 0.005, height - 0.05), palette.wood_dark)
    return Piece("wardrobe", half_x, half_y,
                 (box((-half_x, -half_y, 0), (front, half_y, height), palette.cabinet), seam))


def plant(rng: np.random.Generator, palette: Palette) -> Piece:
    """A potted plant for a corner."""
    pot, leaves, green = rng.uniform(0.13, 0.16), rng.uniform(0.19, 0.23), (0.27, 0.46, 0.25)
    parts = (Part("cylinder", (0, 0, 0.15), (pot, 0.15), palette.accent),
             Part("cylinder", (0, 0, 0.375), (0.02, 0.075), palette.wood_dark),
             Part("capsule", (0, 0, 0.45 + leaves + 0.15), (leaves, 0.15), green))
    return Piece("plant", leaves, leaves, parts)

"""Living-room, dining-room and bedroom furniture, each drawn once with random dimensions.

Every function takes a random generator and a palette and returns a `Piece` in its own frame (x out of its front).
Dimensions follow ordinary furniture; heights of surfaces stay within 0.38-0.95 m, where a Fetch arm picks and places.
"""

from __future__ import annotations

import numpy as np

from rearrange.home.apartments.palettes import Palette
from rearrange.home.apartments.parts import Part, Piece, Receptacle, box

_TOP_M = 0.035  # how thick table tops are
FRONT, LEFT, BACK, RIGHT = (1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)
ALL_SIDES = (FRONT, LEFT, BACK, RIGHT)


def clear_of_deck(height_m: float) -> float:
    """The height of a table top, 3.5 cm thick, raised where its underside would come less than 15 mm below the robot's deck, which is
    0.36 m high: the deck gets under its edge, and held down by the joints of its base the robot is stuck there.
    """
    return 0.397 if 0.345 < height_m - _TOP_M < 0.361 else height_m


def table(rng: np.random.Generator, palette: Palette, name: str, kind: str = "table",
          length_m: tuple[float, float] = (1.1, 1.6), depth_m: tuple[float, float] = (0.75, 0.95),
          height_m: tuple[float, float] = (0.70, 0.78), style: str = "legs") -> Piece:
    """A rectangular table, open on all sides: four legs, two side panels ("panels") or one foot ("pedestal")."""
    half_y, half_x = rng.uniform(*length_m) / 2, rng.uniform(*depth_m) / 2
    height = clear_of_deck(rng.uniform(*height_m))
    under = height - _TOP_M
    parts = [box((-half_x, -half_y, under), (half_x, half_y, height), palette.wood, name=name)]
    if style == "legs":
        for sx in (-1, 1):
            for sy in (-1, 1):
                x, y = sx * (half_x - 0.05), sy * (half_y - 0.05)
                parts.append(box((x - 0.025, y - 0.025, 0), (x + 0.025, y + 0.025, under), palette.wood_dark))
    elif style == "panels":
        for sy in (-1, 1):
            y = sy * (half_y - 0.10)
            parts.append(box((-half_x + 0.08, y - 0.02, 0), (half_x - 0.08, y + 0.02, under), palette.wood_dark))
    else:
        parts.append(Part("cylinder", (0, 0, (under + 0.025) / 2), (0.06, (under - 0.025) / 2), palette.wood_dark))
        parts.append(box((-0.22, -0.30, 0), (0.22, 0.30, 0.025), palette.wood_dark))
    top = Receptacle(name, kind, (0, 0, height), (half_x, half_y), sides=ALL_SIDES)
    return Piece(kind, half_x, half_y, tuple(parts), (top,))


def round_table(rng: np.random.Generator, palette: Palette, name: str, kind: str = "table",
                radius_m: tuple[float, float] = (0.48, 0.56), height_m: tuple[float, float] = (0.70, 0.78)) -> Piece:
    """A round table on one foot; its receptacle is the square inside the disc."""
    radius, height = rng.uniform(*radius_m), rng.uniform(*height_m)
    parts = (Part("cylinder", (0, 0, height - 0.018), (radius, 0.018), palette.wood, name=name),
             Part("cylinder", (0, 0, (height - 0.006) / 2), (0.05, (height - 0.066) / 2), palette.wood_dark),
             Part("cylinder", (0, 0, 0.015), (0.6 * radius, 0.015), palette.wood_dark))
    half = radius * 0.5**0.5
    top = Receptacle(name, kind, (0, 0, height), (half, half), sides=ALL_SIDES)
    return Piece(kind, radius, radius, parts, (top,))


def chair(rng: np.random.Generator, palette: Palette, name: str) -> Piece:
    """A chair without arms, reached from its front and both sides."""
    half, seat, back = rng.uniform(0.20, 0.225), rng.uniform(0.43, 0.47), rng.uniform(0.82, 0.95)
    parts = [box((-half, -half, seat - 0.04), (half, half, seat), palette.wood, name=name),
             box((-half, -half, seat), (-half + 0.03, half, back), palette.wood)]
    for sx in (-1, 1):
        for sy in (-1, 1):
            x, y = sx * (half - 0.02), sy * (half - 0.02)
            parts.append(box((x - 0.02, y - 0.02, 0), (x + 0.02, y + 0.02, seat - 0.04), palette.wood_dark))
    half_x = half - 0.02
    surface = Receptacle(name, "chair", (0.02, 0, seat), (half_x, half), sides=(FRONT, LEFT, RIGHT))
    return Piece("chair", half, half, tuple(parts), (surface,))


def armchair(rng: np.random.Generator, palette: Palette, name: str) -> Piece:
    """An upholstered chair with arms, reached from its front."""
    half_x, half_y, seat = rng.uniform(0.38, 0.43), rng.uniform(0.38, 0.43), rng.uniform(0.40, 0.44)
    parts = (box((-half_x, -half_y + 0.13, 0.08), (half_x, half_y - 0.13, seat), palette.fabric_light, name=name),
             box((-half_x, -half_y + 0.13, seat), (-half_x + 0.2, half_y - 0.13, 0.85), palette.fabric_light),
             box((-half_x, -half_y, 0), (half_x, -half_y + 0.13, 0.6), palette.fabric_light),
             box((-half_x, half_y - 0.13, 0), (half_x, half_y, 0.6), palette.fabric_light))
    surface = Receptacle(name, "chair", (0.1, 0, seat), (half_x - 0.1, half_y - 0.13), sides=(FRONT,))
    return Piece("armchair", half_x, half_y, parts, (surface,))


def sofa(rng: np.random.Generator, palette: Palette, name: str = "sofa",
         width_m: tuple[float, float] = (1.7, 2.3)) -> Piece:
    """A sofa with arms, reached from its front."""
    half_x, half_y, seat = rng.uniform(0.42, 0.48), rng.uniform(*width_m) / 2, rng.uniform(0.40, 0.46)
    arm, back = 0.16, 0.22
    parts = (box((-half_x, -half_y + arm, 0.07), (half_x, half_y - arm, seat), palette.fabric, name=name),
             box((-half_x, -half_y + arm, seat), (-half_x + back, half_y - arm, rng.uniform(0.78, 0.88)),
                 palette.fabric), box((-half_x, -half_y, 0), (half_x, -half_y + arm, seat + 0.18), palette.fabric),
             box((-half_x, half_y - arm, 0), (half_x, half_y, seat + 0.18), palette.fabric))
    surface = Receptacle(name, "sofa", (back / 2, 0, seat), (half_x - back / 2, half_y - arm), sides=(FRONT,))
    return Piece("sofa", half_x, half_y, parts, (surface,))


def tv_stand(rng: np.random.Generator, palette: Palette, name: str = "tv_stand") -> Piece:
    """A low board along a wall with a flat screen above its back edge."""
    half_x, half_y, height = rng.uniform(0.20, 0.24), rng.uniform(0.65, 0.95), rng.uniform(0.42, 0.58)
    screen_half = min(half_y - 0.1, rng.uniform(0.5, 0.65))
    parts = (box((-half_x, -half_y, 0.06), (half_x, half_y, height), palette.wood_dark, name=name),
             box((-half_x + 0.03, -half_y + 0.05, 0), (half_x - 0.03, half_y - 0.05, 0.06), palette.wood_dark),
             box((-half_x + 0.01, -screen_half, height + 0.10), (-half_x + 0.05, screen_half, height + 0.85),
                 palette.screen),
             box((-half_x + 0.01, -0.10, height), (-half_x + 0.06, 0.10, height + 0.10), palette.screen))
    surface = Receptacle(name, "tv_stand", (0.04, 0, height), (half_x - 0.04, half_y), sides=(FRONT,))
    return Piece("tv_stand", half_x, half_y, parts, (surface,))


def bookcase(rng: np.random.Generator, palette: Palette, name: str = "bookcase") -> Piece:
    """A tall case: a cupboard below, two open boards in the arm's reach, books out of reach above."""
    half_x, half_y = rng.uniform(0.16, 0.19), rng.uniform(0.42, 0.60)
    low, gap = rng.uniform(0.42, 0.50), rng.uniform(0.40, 0.46)
    mid, high, top = low + gap, low + 2 * gap, low + 2 * gap + 0.36
    inner, wood = half_y - 0.02, palette.wood
    parts = [box((-half_x, -half_y, 0), (half_x, half_y, low), wood, name=f"{name}_0"),
             box((-half_x, -half_y, low), (-half_x + 0.02, half_y, top), palette.wood_dark),
             box((-half_x + 0.02, -half_y, low), (half_x, -inner, top), wood),
             box((-half_x + 0.02, inner, low), (half_x, half_y, top), wood),
             box((-half_x + 0.02, -inner, mid - 0.02), (half_x, inner, mid), wood, name=f"{name}_1"),
             box((-half_x + 0.02, -inner, high - 0.02), (half_x, inner, high), wood),
             box((-half_x, -half_y, top), (half_x, half_y, top + 0.02), wood)]
    for color, start, end in ((palette.accent, -0.9, -0.2), (palette.fabric, -0.1, 0.5),
                              (palette.wood_dark, 0.55, 0.9)):
        parts.append(box((-half_x + 0.03, start * inner, high),
                         (half_x - 0.06, end * inner, high + rng.uniform(0.2, 0.3)), color))
    boards = tuple(Receptacle(f"{name}_{k}", "shelf", (0.01, 0, z), (half_x - 0.01, inner), clearance_m=gap - 0.02,
                              sides=(FRONT,)) for k, z in enumerate((low, mid)))
    return Piece("bookcase", half_x, half_y, tuple(parts), boards)


def low_shelf(rng: np.random.Generator, palette: Palette, name: str = "bookcase") -> Piece:
    """A waist-high open case: one board inside it and its open top."""
    half_x, half_y = rng.uniform(0.17, 0.20), rng.uniform(0.45, 0.70)
    low, gap = rng.uniform(0.38, 0.45), rng.uniform(0.40, 0.46)
    top, inner, wood = low + gap, half_y - 0.02, palette.wood
    parts = (box((-half_x, -half_y, 0), (half_x, half_y, low), palette.wood_dark, name=f"{name}_0"),
             box((-half_x, -half_y, low), (-half_x + 0.02, half_y, top - 0.02), palette.wood_dark),
             box((-half_x + 0.02, -half_y, low), (half_x, -inner, top - 0.02), wood),
             box((-half_x + 0.02, inner, low), (half_x, half_y, top - 0.02), wood),
             box((-half_x, -half_y, top - 0.02), (half_x, half_y, top), wood, name=f"{name}_1"))
    boards = (Receptacle(f"{name}_0", "shelf", (0.01, 0, low), (half_x - 0.01, inner), clearance_m=gap - 0.02,
                         sides=(FRONT,)),
              Receptacle(f"{name}_1", "shelf", (0, 0, top), (half_x, half_y), sides=(FRONT,)))
    return Piece("low_shelf", half_x, half_y, parts, boards)


def sideboard(rng: np.random.Generator, palette: Palette, name: str = "sideboard") -> Piece:
    """A closed cupboard at table height along a wall."""
    half_x, half_y, height = rng.uniform(0.20, 0.24), rng.uniform(0.5, 0.8), rng.uniform(0.74, 0.88)
    parts = (box((-half_x, -half_y, 0.08), (half_x, half_y, height), palette.wood, name=name),
             box((-half_x + 0.03, -half_y + 0.03, 0), (half_x - 0.03, half_y - 0.03, 0.08), palette.wood_dark))
    surface = Receptacle(name, "table", (0, 0, height), (half_x, half_y), sides=(FRONT,))
    return Piece("sideboard", half_x, half_y, parts, (surface,))


def bed(rng: np.random.Generator, palette: Palette) -> Piece:
    """A bed with its head at the back; too soft and low to be a receptacle."""
    half_x, half_y, height = rng.uniform(1.0, 1.05), rng.uniform(0.6, 0.82), rng.uniform(0.45, 0.55)
    parts = (box((-half_x + 0.05, -half_y, 0.08), (half_x, half_y, height - 0.12), palette.wood_dark),
             box((-half_x + 0.05, -half_y + 0.02, height - 0.12), (half_x - 0.02, half_y - 0.02, height),
                 palette.fabric_light), box((-half_x, -half_y, 0), (-half_x + 0.05, half_y, 1.0), palette.wood_dark),
             box((-half_x + 0.1, -half_y + 0.12, height), (-half_x + 0.5, half_y - 0.12, height + 0.1), palette.white))
    return Piece("bed", half_x, half_y, parts)


def nightstand(rng: np.random.Generator, palette: Palette, name: str = "nightstand") -> Piece:
    """A small cupboard beside a bed."""
    half_x, half_y, height = rng.uniform(0.19, 0.22), rng.uniform(0.20, 0.26), rng.uniform(0.48, 0.60)
    parts = (box((-half_x, -half_y, 0), (half_x, half_y, height), palette.wood, name=name),)
    surface = Receptacle(name, "table", (0, 0, height), (half_x, half_y), sides=(FRONT,))
    return Piece("nightstand", half_x, half_y, parts, (surface,))


def wardrobe(rng: np.random.Generator, palette: Palette) -> Piece:
    """A closed wardrobe; nothing stands on it."""
    half_x, half_y, height = rng.uniform(0.27, 0.30), rng.uniform(0.5, 0.85), rng.uniform(1.9, 2.1)
    seam = palette.wood_dark
    parts = (box((-half_x, -half_y, 0), (half_x - 0.01, half_y, height), palette.cabinet),
             box((half_x - 0.01, -0.005, 0.05), (half_x, 0.005, height - 0.05), seam))
    return Piece("wardrobe", half_x, half_y, parts)


def plant(rng: np.random.Generator, palette: Palette) -> Piece:
    """A potted plant for a corner."""
    pot, leaves, green = rng.uniform(0.13, 0.16), rng.uniform(0.19, 0.23), (0.27, 0.46, 0.25)
    parts = (Part("cylinder", (0, 0, 0.15), (pot, 0.15), palette.accent),
             Part("cylinder", (0, 0, 0.375), (0.02, 0.075), palette.wood_dark),
             Part("capsule", (0, 0, 0.45 + leaves + 0.15), (leaves, 0.15), green))
    return Piece("plant", leaves, leaves, parts)

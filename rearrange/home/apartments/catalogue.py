"""What a home is furnished with: the pieces of version 0.2, or ones as varied as the world's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rearrange.home.apartments import furniture, kitchen, wide_furniture, wide_kitchen
from rearrange.home.apartments.parts import Piece


@dataclass(frozen=True)
class Catalogue:
    """Of each kind, what draws a piece from a random generator, a palette and sizes."""

    counter: Callable[..., Piece]
    fridge: Callable[..., Piece]
    table: Callable[..., Piece]
    chair: Callable[..., Piece]
    armchair: Callable[..., Piece]
    sofa: Callable[..., Piece]
    tv_stand: Callable[..., Piece]
    bookcase: Callable[..., Piece]
    low_shelf: Callable[..., Piece]
    sideboard: Callable[..., Piece]
    nightstand: Callable[..., Piece]
    largest: float = 1.0
    """How many times as long and as wide flats are, at most."""


def _of(kitchen: object, other: object, largest: float) -> Catalogue:
    in_kitchen = {name: getattr(kitchen, name) for name in ("counter", "fridge")}
    names = [name for name in Catalogue.__dataclass_fields__ if name not in (*in_kitchen, "largest")]
    return Catalogue(**in_kitchen, **{name: getattr(other, name) for name in names}, largest=largest)


CATALOGUES = {"standard": _of(kitchen, furniture, 1.0), "wide": _of(wide_kitchen, wide_furniture, 1.45)}
"""By what `sim.furniture` calls them."""

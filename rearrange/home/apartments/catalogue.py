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


def _of(kitchen: object, other: object) -> Catalogue:
    in_kitchen = {name: getattr(kitchen, name) for name in ("counter", "fridge")}
    names = [name for name in Catalogue.__dataclass_fields__ if name not in in_kitchen]
    return Catalogue(**in_kitchen, **{name: getattr(other, name) for name in names})


CATALOGUES = {"standard": _of(kitchen, furniture), "wide": _of(wide_kitchen, wide_furniture)}
"""By what `sim.furniture` calls them."""

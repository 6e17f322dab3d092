"""Layouts that were drawn before, kept in files.

Drawing one takes 14 ms, two thirds of a home's first visit. Every worker of a training visits all 96 of its split.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from rearrange.home.apartments.layouts import Layout, make_layout
from rearrange.home.errors import UserError
from rearrange.home.kept_files import KeptFiles

HERE = Path(__file__).resolve().parent
CACHED_LAYOUTS = 128


def layout_sources() -> list[Path]:
    """The code that draws layouts."""
    return [*HERE.glob("*.py"), *HERE.parent.glob("*.py"), *HERE.parent.glob("robot/*.py")]


KEPT = KeptFiles("layouts", layout_sources)


def kept_layout(split: str, index: int) -> Layout:
    """`make_layout`, read from a file if the same code has drawn it before."""
    return KEPT.get(f"{split}-{index}".replace("/", "-"), lambda: make_layout(split, index))


@lru_cache(maxsize=CACHED_LAYOUTS)
def scene_layout(scene: str) -> Layout:
    """The layout of a scene such as "train/17"."""
    split, _, index = scene.rpartition("/")
    if not index.isdigit():
        raise UserError(f"the embedded simulator has no scene {scene!r}; scenes are called like train/17 or val/3.")
    return kept_layout(split, int(index))

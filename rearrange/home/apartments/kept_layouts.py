"""Layouts that were drawn before, kept beside numba's compiled code.

Drawing one takes 14 ms, two thirds of a home's first visit. Every worker of a training visits all 96 of its split.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import shutil
from functools import lru_cache
from pathlib import Path

from rearrange.home.apartments.layouts import Layout, make_layout
from rearrange.home.errors import UserError
from rearrange.home.numba_cache import kept_in

HERE = Path(__file__).resolve().parent
CACHED_LAYOUTS = 128


def kept_layout(split: str, index: int) -> Layout:
    """`make_layout`, read from a file if the same code has drawn it before."""
    folder = _folder()
    if folder is None:
        return make_layout(split, index)
    file = folder / f"{split}-{index}.pickle"
    try:
        return pickle.loads(file.read_bytes())
    except Exception:  # there is none yet, or what is there was cut off
        layout = make_layout(split, index)
        _keep(file, pickle.dumps(layout))
        return layout


@lru_cache(maxsize=CACHED_LAYOUTS)
def scene_layout(scene: str) -> Layout:
    """The layout of a scene such as "train/17"."""
    split, _, index = scene.partition("/")
    if not index.isdigit():
        raise UserError(f"the embedded simulator has no scene {scene!r}; scenes are called like train/17 or val/3.")
    return kept_layout(split, int(index))


@lru_cache
def _folder() -> Path | None:
    """That of layouts that this very code draws; None if nothing can be kept."""
    kept = kept_in()
    if kept is None:
        return None
    digest = hashlib.sha256()
    for source in sorted([*HERE.glob("*.py"), *HERE.parent.glob("*.py"), *HERE.parent.glob("robot/*.py")]):
        digest.update(source.read_bytes())
    return kept / f"layouts-{digest.hexdigest()[:16]}"


def _keep(file: Path, content: bytes) -> None:
    """Write a file whole, if that is possible; what other code has drawn is removed when the first is written."""
    try:
        if not file.parent.is_dir():
            for other in file.parent.parent.glob("layouts-*"):
                shutil.rmtree(other, ignore_errors=True)
            file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(f".{os.getpid()}")
        partial.write_bytes(content)
        partial.replace(file)
    except OSError:
        pass

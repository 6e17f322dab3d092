"""Habitat-Sim, when it is there; and which device it can draw with."""

from __future__ import annotations

import importlib.util
import os
from types import ModuleType

from rearrange.errors import UserError

MISSING = ("sim=habitat needs habitat-sim with Bullet, which is not installed here: see docs/habitat.md, or leave sim=habitat "
           "out to use the embedded simulator.")


def is_installed() -> bool:
    """Whether `import habitat_sim` can work."""
    return importlib.util.find_spec("habitat_sim") is not None


def need_habitat() -> ModuleType:
    """The module habitat_sim, told to be quiet and to draw with as few threads as is fastest. Raises UserError."""
    if not is_installed():
        raise UserError(MISSING)
    os.environ.setdefault("HABITAT_SIM_LOG", "quiet")
    os.environ.setdefault("MAGNUM_LOG", "quiet")
    os.environ.setdefault("LP_NUM_THREADS", "0")  # of Mesa's software renderer: with more it is slower
    try:
        import habitat_sim
    except ImportError as error:
        raise UserError(f"habitat-sim is installed but does not load ({error}): install the one that docs/habitat.md names for "
                        "this version of Python.") from None
    if not habitat_sim.built_with_bullet:
        raise UserError("this habitat-sim was built without Bullet: install the one with physics, see docs/habitat.md.")
    return habitat_sim


def device(asked: int | None, nvidia: bool) -> int:
    """Number of the GPU to draw with, -1 for the CPU. Habitat's own default, 0, ends the process where there is none."""
    if asked is not None:
        return asked
    return 0 if nvidia else -1

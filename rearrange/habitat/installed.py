"""Habitat-Sim, when it is there; and which device it can draw with."""

from __future__ import annotations

import importlib.util
import os
from types import ModuleType

from rearrange.home.errors import UserError

MISSING = ("sim=habitat needs habitat-sim with Bullet, which is not installed here: see docs/habitat.md, or leave "
           "sim=habitat out to use the embedded simulator.")
_INSTALL = "install the one that docs/habitat.md names for this version of Python"


def is_installed() -> bool:
    """Whether `import habitat_sim` can work."""
    try:
        return importlib.util.find_spec("habitat_sim") is not None
    except (ImportError, ValueError):  # half installed
        return False


def need_habitat() -> ModuleType:
    """The module habitat_sim, told to be quiet and to draw with as few threads as is fastest. Raises UserError."""
    if not is_installed():
        raise UserError(MISSING)
    os.environ.setdefault("HABITAT_SIM_LOG", "quiet")
    os.environ.setdefault("MAGNUM_LOG", "quiet")
    os.environ.setdefault("LP_NUM_THREADS", "0")  # of Mesa's software renderer: with more it is slower
    try:
        import habitat_sim
    except Exception as error:  # noqa: BLE001 built for another numpy or Python, it raises whatever it likes
        said = " ".join(f"{type(error).__name__}: {error}".split())
        raise UserError(f"habitat-sim is installed but does not load ({said}): {_INSTALL}.") from None
    if not hasattr(habitat_sim, "Simulator"):
        raise UserError(f"habitat-sim is installed only in part, it has no Simulator: {_INSTALL}.")
    if not getattr(habitat_sim, "built_with_bullet", False):
        raise UserError("this habitat-sim was built without Bullet: install the one with physics, see docs/habitat.md.")
    return habitat_sim


def device(asked: int | None, nvidia: bool) -> int:
    """Number of the GPU to draw with, -1 for the CPU. UserError where it is not: Habitat would end the process."""
    if asked is None:
        return 0 if nvidia else -1
    if asked >= 0 and not nvidia:
        raise UserError(f"sim.gpu_device={asked}: there is no NVIDIA device here; write sim.gpu_device=-1 to draw on "
                        "the CPU, or leave it out.")
    return asked

"""Whether Python finds our packages by their common names: a folder `trainer` or `eval` may be in the way.

Standard library only, and quick: every command asks first.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from rearrange.home.errors import UserError

ROOT = Path(__file__).resolve().parents[2]
IMPORTED = ("eval", "planner", "skills", "trainer")
MARK = b"rearrange"  # in the first lines of each package's __init__.py


class InTheWay(UserError, ImportError):
    """Something else has the name of one of our packages."""


def check(*names: str) -> None:
    """Raise InTheWay, in one sentence, if one of these packages of ours, or any of all, would not be found."""
    for name in names or IMPORTED:
        if problem := in_the_way(name):
            raise InTheWay(problem)


def load(name: str) -> ModuleType:
    """One of our packages, by name; raises InTheWay. Projects with a package `trainer` of their own can use `skills`.
    """
    check(name)
    return import_module(name)


def in_the_way(name: str) -> str | None:
    """What stands in the way of our package `name`, in one sentence; None if it is found."""
    place = _place(name)
    if place is None:
        return f"the package {name} of rearrange is missing from {ROOT}: install rearrange again."
    ours = ROOT / name
    if place != ours:
        return (f"{place} is in the way: it is called {name}, as a package of rearrange is, and Python finds it "
                f"first. Rename it, or take {place.parent} out of where Python looks (the working directory, "
                "PYTHONPATH).")
    if not _is_marked(ours / "__init__.py"):
        return (f"{ours} is in the way: another installed package has overwritten what rearrange had there. "
                "Install rearrange in an environment without it.")
    return None


def _place(name: str) -> Path | None:
    """Where Python finds a package or module of this name, or has found it."""
    try:
        spec: ModuleSpec | None = find_spec(name)
    except (ImportError, ValueError):  # something that was put into sys.modules by hand
        spec = getattr(sys.modules.get(name), "__spec__", None)
    if spec is None:
        return None
    if spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations))).resolve()
    return Path(spec.origin or name).resolve()


def _is_marked(file: Path) -> bool:
    try:
        with open(file, "rb") as opened:
            return MARK in opened.read(1000)
    except OSError:
        return False

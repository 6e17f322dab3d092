"""Our packages with common names, where a project has an `eval/`, a `skills/` or a `trainer.py` of its own.

Python has one module of a name in a process. Ours are taken when something of ours needs them, whatever lies before
them on the path; where theirs has been imported before, one sentence names both files. Standard library only.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from types import ModuleType

from rearrange.home.errors import UserError

ROOT = Path(__file__).resolve().parents[2]
IMPORTED = ("trainer", "eval", "planner", "skills")
MARK = b"rearrange"  # in the first lines of each package's __init__.py


class InTheWay(UserError, ImportError):
    """Something else has the name of one of our packages."""


def come_first() -> None:
    """Put folders with something of the name of a package of ours behind ours: in the processes of our commands, and in
    those that they start."""
    hiding = [place for place in sys.path if _hides(Path(place or "."))]
    if hiding:
        others = [place for place in sys.path if place not in hiding]
        sys.path[:] = [*others, *[str(ROOT)] * (str(ROOT) not in others), *hiding]


def _hides(folder: Path) -> bool:
    return folder.resolve() != ROOT and any((folder / name).is_dir() or (folder / f"{name}.py").is_file()
                                            for name in IMPORTED)


def claim(*names: str) -> None:
    """Import these packages of ours, or all, whatever else Python would find first. Raises InTheWay where something
    else of the name has been imported before, or has overwritten ours."""
    for name in names or IMPORTED:
        if name not in sys.modules and _place(name) not in (None, ROOT / name):
            _import_ours(name)
        if problem := in_the_way(name):
            raise InTheWay(problem)


def _import_ours(name: str) -> None:
    spec = PathFinder.find_spec(name, [str(ROOT)])
    if spec is None or spec.loader is None:
        return
    sys.modules[name] = module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise


def load(name: str) -> ModuleType:
    """One of our packages, by name; raises InTheWay."""
    claim(name)
    return import_module(name)


def overwritten() -> list[str]:
    """A sentence for each of our packages that another installed one has overwritten, or that is missing."""
    return [_damage(name) for name in IMPORTED if not _is_marked(ROOT / name / "__init__.py")]


def in_the_way(name: str) -> str | None:
    """What stands in the way of our package `name`, in one sentence; None if it is found."""
    place, ours = _place(name), ROOT / name
    if place is not None and place != ours:
        how = "has been imported before" if name in sys.modules else "is found first"
        return (f"{place} is in the way: rearrange needs {ours} under the name {name}, and yours {how}. Rename it, or "
                "use rearrange in a process of its own.")
    return None if _is_marked(ours / "__init__.py") else _damage(name)


def _damage(name: str) -> str:
    if not (ROOT / name).is_dir():
        return f"the package {name} of rearrange is missing from {ROOT}: install rearrange again."
    return (f"{ROOT / name} is in the way: another installed package has overwritten what rearrange had there. "
            "Install rearrange in an environment without it.")


def hint(error: BaseException, folder: Path) -> str:
    """What to say of an import that failed because a package of ours has the name of a file of the user's."""
    top = str(getattr(error, "name", None)).partition(".")[0]
    theirs = next((each for each in (folder / top, folder / f"{top}.py") if each.exists()), None)
    if not isinstance(error, ImportError) or top not in IMPORTED or theirs is None:
        return ""
    return f" {top} is {ROOT / top} here: give your {theirs} another name."


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

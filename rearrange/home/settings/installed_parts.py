"""What installed packages and the user's own code add to ours: networks, skills, scenarios, robots, agents.

A word names each: `package.module:Name`, or the name of an entry point of an installed package, which a group lists:

    [project.entry-points."rearrange.skills"]
    push_chair = "my_package.push_chair:PushChair"

What a file from elsewhere says (a checkpoint, a recording) is loaded by the name of an entry point alone:
`package.module:Name` is imported only where the user typed it.
"""

from __future__ import annotations

import functools
import os
import re
import sys
import traceback
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rearrange.home import own_packages
from rearrange.home.errors import UserError
from rearrange.home.settings.setting_fields import TEXTS
from trainer.logs.printable import first_line, printable

_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)


@dataclass(frozen=True)
class Offered:
    """What installed packages may offer of one kind. group: of their entry points. kind: as people call one."""

    group: str
    kind: str

    def installed(self) -> dict[str, str]:
        """Name -> `package.module:Name`; of two of one name the first. Nothing is imported."""
        return {entry.name: entry.value for entry in reversed(_entries(self.group)) if _NAME.fullmatch(entry.name)}

    def is_own(self, word: str) -> bool:
        """Whether a word may be one of these."""
        return is_importable(word) or word in self.installed()

    def as_typed(self, key: str, word: str | None) -> str:
        """The setting that a later command needs to find it again, after a space; empty where it needs none."""
        return f" {key}={word}" if word and is_importable(word) else ""

    def refuse_two(self, word: str, key: str) -> None:
        """UserError where several packages offer different ones of one name."""
        values = {entry.value: _package(entry) for entry in _entries(self.group) if entry.name == word}
        if len(values) > 1:
            offered = ", ".join(f"{value} by {package}" for value, package in sorted(values.items()))
            raise UserError(f"{key}={word} is what several installed packages call a {self.kind} "
                            f"({printable(offered)}): write package.module:Name, or uninstall one.")

    def load(self, word: str, key: str) -> Any:
        """What `key`=`word` means. UserError if it cannot be imported, or is not one thing."""
        self.refuse_two(word, key)
        return imported(word, key, self.installed().get(word, word))

    def broken(self) -> list[str]:
        """A sentence for every entry point that cannot be loaded; all of them are imported."""
        said = []
        for entry in _entries(self.group):
            try:
                (file_of if entry.value.endswith((".yaml", ".yml")) else imported)(entry.name, self.group, entry.value)
            except UserError as error:
                said.append(f"{self.kind} of the package {_package(entry)}: {str(error).rstrip('.')}")
        return said

    def left_out(self, ours: Any) -> list[str]:
        """A sentence for every entry point that its name keeps from being used. ours: names that are taken."""
        said = []
        for entry in _entries(self.group):
            who = f"{self.kind} {printable(entry.name)} ({printable(entry.value)}) of the package {_package(entry)}"
            if entry.name in ours:
                said.append(f"{who} is left out: rearrange has one of that name; write {printable(entry.value)}")
            elif not _NAME.fullmatch(entry.name):
                said.append(f"{who} is left out: its name has to be letters, digits and '_'")
        return said


NETWORKS = Offered("rearrange.policies", "network")
SKILLS = Offered("rearrange.skills", "skill")
SCENARIOS = Offered("rearrange.scenarios", "scenario")
ROBOTS = Offered("rearrange.robots", "robot")


@functools.cache
def _all() -> metadata.EntryPoints:
    return metadata.entry_points()


@functools.cache
def _entries(group: str) -> tuple[metadata.EntryPoint, ...]:
    return tuple(_all().select(group=group))


def forget() -> None:
    """Look for installed packages again."""
    _all.cache_clear()
    _entries.cache_clear()


def _package(entry: metadata.EntryPoint) -> str:
    return entry.dist.name if entry.dist else "?"


def is_importable(word: str) -> bool:
    """Whether a word has the form `package.module:Name`."""
    return bool(TEXTS["importable"][0].fullmatch(word))


def imported(word: str, key: str, value: str | None = None) -> Any:
    """What `package.module:Name` is, the word itself or the value that it stands for. UserError if it cannot be
    imported."""
    if value is None and not is_importable(word):
        raise UserError(f"{key}={word} is no package.module:Name.")
    _look_here(value or word)
    try:
        return metadata.EntryPoint(word, value or word, "").load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever foreign code raises, SystemExit too
        missing = isinstance(error, ModuleNotFoundError) and str(error.name).partition(".")[0] not in sys.modules
        hint = f" Put the folder of {error.name} on PYTHONPATH, or install it." if missing else ""
        hint = hint or own_packages.hint(error, Path.cwd()) or _another(value or word)
        raise UserError(f"{key}={word} cannot be loaded: {told(error)}.{hint}") from error


def _look_here(word: str) -> None:
    """Let Python also look in the working directory for a module, behind everything else."""
    top, here = re.split(r"[.:]", word)[0], os.getcwd()
    if here not in sys.path and any(os.path.exists(os.path.join(here, name)) for name in (top, f"{top}.py")):
        sys.path.append(here)


def _another(word: str) -> str:
    """What to say where a module of the working directory has the name of one that Python found elsewhere."""
    top = re.split(r"[.:]", word)[0]
    there = getattr(sys.modules.get(top), "__file__", None)
    here = next((path for path in (Path.cwd() / f"{top}.py", Path.cwd() / top / "__init__.py") if path.is_file()), None)
    if there is None or here is None or Path(there).resolve() == here:
        return ""
    return f" {top} is {there}, which Python finds before {here}: give yours another name."


def told(error: BaseException) -> str:
    """An error of the user's code in one line, and where in it."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    callers = ("importlib", os.path.join("trainer", "networks.py"))
    where = "" if any(caller in place.filename for caller in callers) else f" ({place.filename}, line {place.lineno})"
    return f"{type(error).__name__}: {first_line(error)}{where}"


def file_of(word: str, key: str, value: str) -> Path:
    """The file that `package.module:file.yaml` means: in the folder of a package, or beside a module, which is not
    imported itself. UserError where there is none."""
    module, _, name = value.partition(":")
    try:
        spec = find_spec(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # of a package above it, which is imported
        raise UserError(f"{key}={word} cannot be read: {told(error)}.") from error
    if spec is None or not (spec.origin or spec.submodule_search_locations):
        raise UserError(f"{key}={word} cannot be read: there is no module {module}. Put its folder on PYTHONPATH, or "
                        "install it.")
    folder = Path(next(iter(spec.submodule_search_locations or ()), None) or Path(spec.origin).parent)
    if not name.endswith((".yaml", ".yml")):
        raise UserError(f"{key}={word} names no YAML file: {printable(value)} should be package.module:file.yaml.")
    if not (folder / name).is_file():
        raise UserError(f"{key}={word} cannot be read: there is no file {name} in {folder}; a package names it in its "
                        "package-data.")
    return folder / name

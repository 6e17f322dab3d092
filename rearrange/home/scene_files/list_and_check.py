"""`rearrange scenes list` and `rearrange scenes check`: what is in a data set, and what of it cannot be used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any, Protocol

from rearrange.home.errors import UserError
from rearrange.home.scene_files.data_set import Figures
from rearrange.home.text_table import columns

_MOST_SHOWN = 20  # problems that `check` prints
_NAMED = 3  # scenes that are named with a reason
_HEAD = ("scene", *(field.name.replace("_", " ") for field in fields(Figures)))


class Scenes(Protocol):
    """A data set that has been opened."""

    path: Path

    @property
    def scenes(self) -> list[str]: ...

    def figures(self, name: str) -> tuple[Figures | None, list[str]]: ...

    def unused(self, name: str) -> list[str]: ...


def show(action: str, path: str | None, opened: Callable[[Path], Scenes], skills: tuple[str, ...],
         refused: Callable[[Path, str], dict[str, str]],
         progress_of: Callable[[int], AbstractContextManager[Any]]) -> None:
    """The command. Raises UserError when `check` finds files that are missing or cannot be used.

    Args:
        action: "list" or "check".
        path: Of the data set.
        opened: Opens a data set.
        skills: Names of all skills.
        refused: Tells which skills cannot be run in a scene of a data set, and why. Raises UserError for a scene in
            which nothing can.
        progress_of: Makes a `trainer.logs.progress.Progress` for a number of scenes.
    """
    if path is None:
        raise UserError(f"which data set? For example: rearrange scenes {action} "
                        "dataset=replica_cad/replicaCAD.scene_dataset_config.json.")
    data = opened(Path(path))
    if not data.scenes:
        raise UserError(f"dataset={path} has no scenes: its scene_instances should name folders with "
                        "*.scene_instance.json files.")
    if action == "list":
        print("\n".join(data.scenes))
        return
    whole, fits, found, unused = [], {}, Counter[str](), Counter[str]()
    with progress_of(len(data.scenes)) as progress:
        for done, name in enumerate(data.scenes, 1):
            try:
                figures, problems = data.figures(name)
                if figures is not None:
                    whole.append((name, *map(str, astuple(figures))))
                    fits[name] = refused(data.path, name)
                    unused.update(data.unused(name))
            except UserError as error:
                problems = [str(error)]
            found.update(problems)
            progress.update(done, {})
    if whole:
        print("\n".join(columns([_HEAD, *whole])))
    print(f"{len(whole)} of {len(data.scenes)} scenes have all their files")
    if fits:
        print("\n" + "\n".join(_skills_table(skills, fits)))
    if unused:
        counted = (f"{what} ({scenes})" for what, scenes in sorted(unused.items()))
        print(f"  not used, though files have it: {', '.join(counted)}")
    for problem, scenes in found.most_common(_MOST_SHOWN):
        print(f"  {problem} ({scenes} scene{'s' if scenes > 1 else ''})")
    if found:
        more = f", of which {_MOST_SHOWN} are shown" if len(found) > _MOST_SHOWN else ""
        raise UserError(f"dataset={path}: {len(found)} problem{'s' if len(found) > 1 else ''}{more}.")


def _skills_table(skills: tuple[str, ...], fits: dict[str, dict[str, str]]) -> list[str]:
    """Lines: which skills can be run in which scene, and why others cannot. fits: scene -> skill -> reason."""
    rows = [(name, *("no" if skill in reasons else "yes" for skill in skills)) for name, reasons in fits.items()]
    lines = columns([("scene", *skills), *rows])
    shared: dict[tuple[str, str], list[str]] = {}  # skills and reason -> scenes
    for name, reasons in fits.items():
        for why in dict.fromkeys(reasons.values()):
            lacking = [skill for skill in skills if reasons.get(skill) == why]
            which = "skill at all" if len(lacking) == len(skills) else ", ".join(lacking)
            shared.setdefault((which, why), []).append(name)
    for (which, why), names in shared.items():
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        lines.append(f"  no {which}: the scene {why} ({', '.join(names[:_NAMED])}{more})")
    return lines

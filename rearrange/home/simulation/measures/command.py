"""`rearrange scenes measure`: our homes and others side by side, as a table, a picture and a verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

from rearrange.home.apartments.layouts import SPLIT_FAMILIES
from rearrange.home.errors import UserError
from rearrange.home.files import may_be_written
from rearrange.home.settings.environment import homes_called
from rearrange.home.simulation.measures.measured_set import (
    AT_EDGE,
    OUTSIDE,
    MeasuredSet,
    beside,
    properties_of,
    said,
    verdict,
)
from rearrange.home.simulation.measures.shapes import HomeShapes, shapes_of_apartment, shapes_of_scene
from rearrange.home.simulation.measures.strips import picture_of
from rearrange.home.simulation.scenes.scene import data_set, matching, short_name
from rearrange.home.text_table import columns

SPLITS = ("train", "val", "test")
HOMES_OF_FAMILY = 20
_MARKS = {OUTSIDE: " !", AT_EDGE: " ~"}
MOST_SETS = 5

Progress = Callable[[int], AbstractContextManager[Any]]
_Reader = Callable[[], HomeShapes]


def measure(dataset: str | None, wanted: str | None, furniture: str, out: str | None, progress_of: Progress) -> None:
    """Print the table and the verdict, and write the picture. Raises UserError, at the end, for scenes that cannot be
    used.

    Args:
        dataset: Paths of data sets, separated by commas; None: our homes alone.
        wanted: Names of scenes with *, separated by commas; None: all. A data set with no such scene is measured whole.
        furniture: Of our homes: standard or wide.
        out: The PNG file; None: measures.png.
        progress_of: Makes a `trainer.logs.progress.Progress` for a number of scenes.
    """
    file = Path(out or "measures.png")
    if file.suffix.lower() != ".png":
        raise UserError(f"out={file} should be a file *.png.")
    if not file.parent.is_dir() or not may_be_written(file):
        raise UserError(f"out={file} cannot be written: name a file in a folder that is there and may be written.")
    paths = [Path(path.strip()).expanduser() for path in (dataset or "").split(",") if path.strip()]
    if len(paths) > MOST_SETS:
        raise UserError(f"dataset= names {len(paths)} data sets; {MOST_SETS} at most fit side by side.")
    if wanted is not None and not paths:
        raise UserError(f"scenes={wanted} chooses among the scenes of a data set: name one with dataset=.")
    readers = [(f"ours, {homes_called(split, furniture)}", _of_split(split, furniture)) for split in SPLITS]
    readers += [(short_name(path), scenes) for path, scenes in zip(paths, _of_data_sets(paths, wanted), strict=True)]
    sets, problems = _measured(readers, progress_of)
    found = [measured for measured in sets if measured.homes]
    _print_table(found)
    try:
        picture_of(found, len(SPLITS)).save(file)
    except OSError as error:
        raise UserError(f"out={file} cannot be written ({error.strerror or error}).") from None
    homes = sum(measured.homes for measured in found)
    print(f"\n{file}: {homes} homes of {len(found)} sets side by side")
    for problem in problems:
        print(f"  {problem}")
    for measured in found[len(SPLITS):]:
        print("\n" + "\n".join(verdict(measured, found[0])))
    if problems:
        raise UserError(f"dataset={dataset}: {len(problems)} scene{'s' if len(problems) > 1 else ''} cannot be used.")


def _of_split(split: str, furniture: str) -> list[_Reader]:
    count, homes = HOMES_OF_FAMILY * len(SPLIT_FAMILIES[split]), homes_called(split, furniture)
    return [partial(shapes_of_apartment, f"{homes}/{index}") for index in range(count)]


def _of_data_sets(paths: Sequence[Path], wanted: str | None) -> list[list[_Reader]]:
    """Of each data set the scenes that are wanted, or all where none of them is in it."""
    chosen = [_matching(data_set(path).scenes, wanted) for path in paths]
    if wanted is not None and not any(chosen):
        matching(paths[0], wanted, "scenes")  # which says what there is
    return [[partial(shapes_of_scene, path, name) for name in names or data_set(path).scenes]
            for path, names in zip(paths, chosen, strict=True)]


def _matching(names: Sequence[str], wanted: str | None) -> list[str]:
    patterns = [pattern.strip() for pattern in (wanted or "").split(",")]
    return [name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)]


def _measured(readers: Sequence[tuple[str, list[_Reader]]], progress_of: Progress) -> tuple[list[MeasuredSet],
                                                                                         list[str]]:
    """The sets, and a sentence for each scene that cannot be used."""
    sets, problems, done = [], [], 0
    with progress_of(sum(len(homes) for _, homes in readers)) as progress:
        for name, homes in readers:
            sets.append(MeasuredSet(name))
            for read in homes:
                try:
                    sets[-1].add(read())
                except UserError as error:
                    problems.append(str(error))
                done += 1
                progress.update(done, {})
    return sets, problems


def _print_table(sets: Sequence[MeasuredSet]) -> None:
    """A row for each property: low .. high (median)."""
    rows = [("", *(f"{measured.name} ({measured.homes})" for measured in sets))]
    group = ""
    for key in properties_of(sets):
        if key[0] != group:
            group = key[0]
            rows.append((group, *[""] * len(sets)))
        rows.append((f"  {key[1]}", *(_cell(measured, key, sets[0], k >= len(SPLITS))
                                      for k, measured in enumerate(sets))))
    print("\n".join(columns(rows)))
    if len(sets) > len(SPLITS):
        print(f"! outside {sets[0].name}   ~ at its edge")


def _cell(measured: MeasuredSet, key: tuple[str, str], ours: MeasuredSet, is_marked: bool) -> str:
    if key not in measured.values:
        return "-"
    return said(measured.values[key]) + (_MARKS.get(beside(key, measured, ours), "") if is_marked else "")

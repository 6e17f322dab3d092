"""What a person has driven, as the data sets of `rearrange record`: one folder for each skill and scenario."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from eval.recording.folder import Folder, Full
from eval.recording.formats import files_of
from eval.recording.record import Prepared, spoken_size
from eval.recording.tape import Recorded
from rearrange.errors import UserError
from rearrange.runs.run_directory import check_writable

FORMAT = "lerobot"
OF_THE_DATA = ("skill", "hab", "sim", "split", "image_size")  # settings that episodes of one data set share


def check(root: Path) -> None:
    """UserError where a package that recording needs is not installed, or nothing can be written below `root`."""
    files_of(FORMAT)
    try:
        check_writable(root)
    except UserError as error:
        raise UserError(str(error).replace("output=", "out=")) from error


def add(root: Path, made: Prepared, plain: dict[str, Any], episode: Recorded) -> str:
    """Add an episode to the data set of its task below `root`, which is complete afterwards; failed ones where the settings keep them.
    A line for people. UserError where it cannot be written."""
    path = root / made.name
    command = {key: plain[key] for key in OF_THE_DATA if key in plain} | {"agent": "teleop", "format": FORMAT}
    folder = Folder(path, files_of(FORMAT)(path, made.features, made.fps), command, made.about, plain["max_gb"] * 1e9)
    keep = episode.success or not plain["successes_only"]
    try:
        folder.add(dataclasses.replace(episode, attempt=len(folder.tried)), keep)
        folder.write()
    except Full:
        raise UserError(f"{path} would be larger than max_gb={plain['max_gb']:g}: raise it, or choose another out=.") from None
    except OSError as error:
        raise UserError(f"{error.filename or path} cannot be written: {error.strerror or error}. Make room, or choose another out=.") from error
    finally:
        folder.close()
    what = "kept" if keep else "not kept, since it failed"
    return f"{what}: {folder.kept} episodes, {spoken_size(folder.size)} in {path}"

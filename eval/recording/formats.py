"""The formats of data sets by their words, `format=`."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from eval.recording.lerobot import LeRobotFiles
from rearrange.errors import UserError

FORMATS = {"lerobot": LeRobotFiles}


def files_of(name: str) -> Any:
    """What writes and reads a format. UserError where a package that it needs is not installed."""
    missing = [package for package in FORMATS[name].packages if find_spec(package) is None]
    if missing:
        raise UserError(f"format={name} needs {' and '.join(missing)}: pip install 'rearrange[record]'.")
    return FORMATS[name]

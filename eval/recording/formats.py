"""The formats of data sets by their words, `format=`."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from rearrange.command_line.composition.options import RECORD_FORMATS
from rearrange.home.errors import UserError
from trainer.logs.printable import printable


def files_of(name: Any) -> Any:
    """What writes and reads a format. UserError where there is none of that name, or a package that it needs is not installed."""
    if not isinstance(name, str) or name not in RECORD_FORMATS:
        raise UserError(f"format={printable(name, 60)} is none of {', '.join(RECORD_FORMATS)}.")
    module, _, what = RECORD_FORMATS[name].partition(":")
    files = getattr(import_module(module), what)
    missing = [package for package in files.packages if find_spec(package) is None]
    if missing:
        raise UserError(f"format={name} needs {' and '.join(missing)}: pip install 'rearrange[record]'.")
    return files

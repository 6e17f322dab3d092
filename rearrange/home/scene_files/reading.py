"""Reading the files of a scene, whoever wrote them: regular files of at most `MOST_BYTES`, numbers up to `MOST_NUMBER`.

Each refusal is a UserError of one sentence that names the file. Every reader of scene files reads through these
functions.
"""

from __future__ import annotations

import codecs
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np

from rearrange.home.errors import UserError
from rearrange.home.files import open_regular, parse_json, read_bytes
from trainer.logs.printable import printable

MOST_BYTES = 1 << 28  # of one file
MOST_NUMBER = 1e6  # in metres and everything else: no home is larger
MOST_NAME = 1000  # characters of the path of a file
_AGAIN = "export or download the data set again"


def scene_bytes(path: Path, what: str = "the file") -> bytes:
    """The content of a regular file of at most `MOST_BYTES`. Raises UserError, in which the file is called `what`."""
    try:
        return read_bytes(path, MOST_BYTES)
    except (OSError, ValueError) as error:  # ValueError: of a name with a null character
        why = (getattr(error, "strerror", None) or str(error)).removesuffix(".")
        raise UserError(f"{what} {path} cannot be read ({why}): {_AGAIN}.") from None


def need_json(path: Path, what: str = "the data set's file") -> dict:
    """The object that a JSON file holds, in UTF-8. Raises UserError."""
    raw = scene_bytes(path, what)
    try:
        content = parse_json(raw.removeprefix(codecs.BOM_UTF8).decode().encode())
    except UnicodeDecodeError as error:
        raise UserError(f"{what} {path} is no text in UTF-8 (byte {error.start}): {_AGAIN}.") from None
    except ValueError as error:
        raise UserError(f"{what} {path} is damaged, it should be JSON ({error}): {_AGAIN}.") from None
    if not isinstance(content, dict):
        raise UserError(f"{what} {path} should hold a JSON object, not {type(content).__name__}: {_AGAIN}.")
    return content


def need_mesh(path: Path, of: Path) -> None:
    """Raises UserError unless a mesh, named by the file `of`, is there and, if it is a GLB, as long as it says.

    Habitat answers a damaged file with a failed assertion, an exception, or the end of the process.
    """
    try:
        with open_regular(path) as file:
            head = file.read(12)
        size = path.stat().st_size
    except (OSError, ValueError) as error:  # ValueError: of a name with a null character
        why = getattr(error, "strerror", None) or error
        raise UserError(f"{path}, which {of} names, cannot be read ({why}): {_AGAIN}.") from None
    is_whole = len(head) == 12 and head[:4] == b"glTF" and struct.unpack("<I", head[8:])[0] <= size
    if path.suffix.lower() == ".glb" and not is_whole:
        raise UserError(f"{path}, which {of} names, is a damaged GLB file ({size} bytes are there): {_AGAIN}.")


def finite(value: Any) -> bool:
    """Whether a value is a finite number of at most `MOST_NUMBER` in size; True and False are none."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and math.isfinite(value) and abs(value) <= MOST_NUMBER


def numbers(path: Path, content: dict, key: str, count: int) -> np.ndarray | None:
    """The numbers (count,) that an object of a JSON file has under a key; None where there are none."""
    value = content.get(key)
    if value is None:
        return None
    values = [value] if count == 1 else value
    if not isinstance(values, list) or len(values) != count or not all(map(finite, values)):
        plural = f"{count} finite numbers" if count > 1 else "a finite number"
        raise UserError(f"{path}: {key} should be {plural} of at most {MOST_NUMBER:g}, not {shown(value)}.")
    return np.array(values, float)


def beside(path: Path, name: str) -> Path:
    """The file that another one names, from where that one lies. Raises UserError for what no file can be called."""
    is_long = len(name) > MOST_NAME or any(len(part.encode(errors="replace")) > 255 for part in name.split("/"))
    if is_long or "\0" in name or any("\ud800" <= char <= "\udfff" for char in name):
        raise UserError(f"{path} names the file {shown(name)}, which no file can be called.")
    return path.parent / name


def flag(path: Path, content: dict, key: str, default: bool) -> bool:
    """Whether an object of a JSON file says true under a key."""
    value = content.get(key)
    if value is not None and not isinstance(value, bool):
        raise UserError(f"{path}: {key} should be true or false, not {shown(value)}.")
    return default if value is None else value


def shown(value: Any) -> str:
    """A value as a message shows it: printable, on one line, at most 60 characters."""
    return printable(repr(value), 60)


def word(value: Any) -> str:
    """The name of something in a file as a message shows it, as `shown` without quotes."""
    return printable(value, 60)

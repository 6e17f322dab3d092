"""Reading files that others may have written: regular files only, and never more than a limit."""

# rearrange/home/files.py has the same functions: the engine and the homes each stand alone.

from __future__ import annotations

import errno
import json
import os
import stat
from typing import IO, Any

MOST_VALUES = 50_000_000  # of a JSON text; each takes some 60 bytes of memory at most


def read_bytes(path: str | os.PathLike, most: int) -> bytes:
    """The content of a regular file of at most `most` bytes. Raises OSError, with the reason, for any other."""
    with open_regular(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EINVAL, f"it holds more than {most / 1e6:,.0f} MB, the most that is read", os.fspath(path))
    return content


def parse_json(text: bytes) -> Any:
    """The values of a JSON text. Raises ValueError if it is none, nests too deep, or holds more than `MOST_VALUES`."""
    if sum(map(text.count, (b",", b"[", b"{"))) > MOST_VALUES:
        raise ValueError(f"it holds more than {MOST_VALUES:,} values")
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("its values are nested too deep") from None


def open_regular(path: str | os.PathLike) -> IO[bytes]:
    """A regular file, open for reading. Raises OSError, without waiting, for a directory, pipe, socket or device."""
    file = open(path, "rb", opener=_not_waiting)
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is no regular file, but a pipe, a socket or a device", os.fspath(path))
    return file


def _not_waiting(name: str, flags: int) -> int:
    """An `opener` for `open` that does not wait for the other end of a pipe."""
    return os.open(name, flags | os.O_NONBLOCK | os.O_NOCTTY, 0o666)

"""Reading files that others may have written: regular files only, and never more than a limit.

Opening a pipe waits for its other end, and a device may never end. A file that inflates, or nests, takes memory and
time without bound. Whoever reads a file that a user can name reads it here. Imports nothing heavy.
"""

from __future__ import annotations

import errno
import gzip
import io
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

GZIP = b"\x1f\x8b"
MOST_JSON = 1 << 24  # bytes of a small file of figures or settings
MOST_VALUES = 50_000_000  # of a JSON text; each takes some 60 bytes of memory at most
MOST_DIGITS = 300  # of a whole number in a JSON text; a longer one is read as infinite, as 1e400 is


def read_bytes(path: str | os.PathLike, most: int) -> bytes:
    """The content of a regular file of at most `most` bytes. Raises OSError with its reason in `strerror` for others.
    """
    with open_regular(path) as file:
        return _at_most(file.read, most, path)


def read_text(path: str | os.PathLike, most: int, encoding: str = "utf-8", errors: str = "strict") -> str:
    """The text of a regular file of at most `most` bytes. Raises OSError as `read_bytes`, and UnicodeDecodeError."""
    return read_bytes(path, most).decode(encoding, errors)


def read_json(path: str | os.PathLike, most: int = MOST_JSON) -> Any:
    """What a JSON file holds. Raises OSError as `read_bytes`, and ValueError for what is no JSON."""
    return parse_json(read_bytes(path, most))


def parse_json(text: bytes) -> Any:
    """The values of a JSON text.

    Raises ValueError if it is none, nests too deep or holds more than `MOST_VALUES`. The same for an object that names
    a key twice: some readers take the first value, others the last one.
    """
    if sum(map(text.count, (b",", b"[", b"{"))) > MOST_VALUES:
        raise ValueError(f"it holds more than {MOST_VALUES:,} values")
    try:
        return json.loads(text, parse_int=_whole_number, object_pairs_hook=_object)
    except RecursionError:
        raise ValueError("its values are nested too deep") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"an object names {next(key for key in keys if keys.count(key) > 1)[:60]!r} twice")
    return made


def _whole_number(digits: str) -> int | float:
    return int(digits) if len(digits) <= MOST_DIGITS else float(digits)


def unzipped(content: bytes, most: int, path: str | os.PathLike) -> bytes:
    """`content` without its gzip compression, if it has one.

    Raises OSError for more than `most` bytes, and OSError, EOFError or zlib.error if it is damaged.
    """
    if not content.startswith(GZIP):
        return content
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
        return _at_most(file.read, most, path)


def open_regular(path: str | os.PathLike) -> IO[bytes]:
    """A regular file, open for reading. Raises OSError for directories, pipes, sockets and devices, and waits for none.
    """
    file = open(path, "rb", opener=not_waiting)
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is no regular file, but a pipe, a socket or a device", os.fspath(path))
    return file


def not_waiting(name: str, flags: int) -> int:
    """An `opener` for `open` that does not wait for the other end of a pipe."""
    return os.open(name, flags | os.O_NONBLOCK | os.O_NOCTTY, 0o666)


def may_be_written(path: Path) -> bool:
    """Whether `path` is free, or a regular file: what is written to a pipe or a device is lost, or waits for ever."""
    return not os.path.lexists(path) or path.is_file() or path.is_symlink() and not path.exists()


def _at_most(read: Callable[[int], bytes], most: int, path: str | os.PathLike) -> bytes:
    content = read(most + 1)
    if len(content) > most:
        raise OSError(errno.EINVAL, f"it holds more than {most / 1e6:,.0f} MB, the most that is read", os.fspath(path))
    return content

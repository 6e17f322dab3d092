"""What a file of a run may be and hold: regular files within a limit, plain values, and the checksum of a checkpoint,
with which every changed bit is noticed.

torch writes a zip archive. `seal` gives it a comment, which torch passes over: a mark and the SHA-256 of all bytes
before it. Archives of version 0.2 and before have no comment. Of those, each record is checked against its CRC-32,
which torch does not do. The bytes that this leaves out change nothing of what is loaded. rearrange/home/files.py reads
files in the same way: the engine and the homes each stand alone.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import zipfile
from typing import IO, Any

import numpy as np
import torch

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


MARK = b"sha256:"
END = b"PK\5\6"  # of the record that ends an archive: 22 bytes, of which the last two are the length of the comment
END_BYTES, LENGTH = 22, len(MARK) + hashlib.sha256().digest_size


def seal(file: IO[bytes]) -> None:
    """Add the checksum to an archive that is complete, open for reading and writing."""
    size = file.seek(0, os.SEEK_END)
    file.seek(size - 2)
    file.write(LENGTH.to_bytes(2, "little"))
    digest = _digest(file, size)
    file.seek(size)
    file.write(MARK + digest)


def check_unchanged(file: IO[bytes]) -> None:
    """Raise ValueError, or whatever zipfile raises for damaged archives, if a file is not as it was written."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - LENGTH - END_BYTES))
    tail = file.read()
    end, comment = tail[:-LENGTH], tail[-LENGTH:]
    if end.startswith(END) and end.endswith(LENGTH.to_bytes(2, "little")) and comment.startswith(MARK):
        if _digest(file, size - LENGTH) != comment[len(MARK):]:
            raise ValueError("its checksum is another")
        return
    if not (tail[-END_BYTES:].startswith(END) and tail.endswith(b"\0\0")):
        raise ValueError("it ends otherwise than an archive")
    with zipfile.ZipFile(file) as archive:
        if any(record.external_attr for record in archive.infolist()):  # of a directory, torch reads arbitrary memory
            raise ValueError("it holds something else than files")
        if damaged := archive.testzip():
            raise ValueError(f"the checksum of {damaged} is another")


def _digest(file: IO[bytes], length: int) -> bytes:
    """SHA-256 of the first `length` bytes."""
    file.seek(0)
    digest = hashlib.sha256()
    while length:
        if not (part := file.read(min(length, 1 << 20))):
            raise ValueError("it has become shorter")
        digest.update(part)
        length -= len(part)
    return digest.digest()


def plain(value: Any) -> Any:
    """Values as a checkpoint holds them: lists, Python's numbers, paths as text. ValueError for what cannot be."""
    if isinstance(value, dict):
        return {key if isinstance(key, int) else str(key): plain(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, (np.generic, np.ndarray)):
        return plain(value.tolist())
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if value is None or isinstance(value, (str, bool, int, float, torch.Tensor)):
        return value
    raise ValueError(f"{value!r} is a {type(value).__name__}; a checkpoint holds numbers, text, lists and dicts only.")


def plain_rng(rng: np.random.Generator) -> dict[str, Any]:
    """State of a PCG64 generator; its 128-bit integers as strings."""
    state = rng.bit_generator.state
    return {"state": str(state["state"]["state"]), "inc": str(state["state"]["inc"]),
            "has_uint32": int(state["has_uint32"]), "uinteger": int(state["uinteger"])}


def rng_from_plain(plain: dict[str, Any]) -> np.random.Generator:
    """The generator whose state a checkpoint holds."""
    rng = np.random.default_rng()
    state = {"state": int(plain["state"]), "inc": int(plain["inc"])}
    rng.bit_generator.state = {"bit_generator": "PCG64", "state": state,
                               "has_uint32": plain["has_uint32"], "uinteger": plain["uinteger"]}
    return rng

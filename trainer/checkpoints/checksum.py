"""The checksum of a checkpoint, with which every changed bit is noticed.

torch writes a zip archive. `seal` gives it a comment, which torch passes over: a mark and the SHA-256 of all bytes
before it. Archives of version 0.2 and before have no comment. Of those, each record is checked against its CRC-32,
which torch does not do. The bytes that this leaves out change nothing of what is loaded.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from typing import IO

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

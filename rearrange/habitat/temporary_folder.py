"""A temporary folder of this process, and the removal of those whose process was killed."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path

_PREFIX = "rearrange-habitat-"
_YOUNG_S = 60.0  # it may not be locked yet


def own_folder() -> tempfile.TemporaryDirectory:
    """A new folder, locked until this process ends, however it ends."""
    _remove_left()
    folder = tempfile.TemporaryDirectory(prefix=_PREFIX)
    lock = os.open(folder.name, os.O_RDONLY)  # stays open on purpose; a process id means nothing in another container
    fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    return folder


def _remove_left() -> None:
    """Folders that nobody has locked."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            if time.time() - path.stat().st_mtime < _YOUNG_S:
                continue
            handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:  # of another user, or gone meanwhile
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
        except OSError:  # in use, or a file system without locks
            pass
        finally:
            os.close(handle)

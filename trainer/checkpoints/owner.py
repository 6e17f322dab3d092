"""One process works in a directory: it holds a lock of the operating system on the file `lock` there.

The lock ends with the process, however that ends. The file stays, and only says who held it last. A child process does
not hold the lock: one that is started anew never gets the open file, one that is forked closes its copy.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import logging
import os
import socket
import time
from pathlib import Path
from typing import Any

FILE = "lock"
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)  # some network file systems
TRIES, BETWEEN_S = 25, 0.02  # `is_held` takes the lock for a moment, which must not look like an owner

_held: dict[Path, _Lock] = {}  # of this process


class InUse(ValueError):
    """Another process works in the directory; the message names it."""


class _Lock:
    def __init__(self, descriptor: int):
        self.descriptor, self.times = descriptor, 0  # how often this process has asked for it and not let go


class Hold:
    """A directory is this process's own until `release`, or the end of a `with`."""

    def __init__(self, file: Path):
        self._file: Path | None = file

    def release(self) -> None:
        """Let go; safe to call twice."""
        file, self._file = self._file, None
        if file is None or file not in _held:
            return
        _held[file].times -= 1
        if not _held[file].times:
            os.close(_held.pop(file).descriptor)

    def is_lost(self) -> bool:
        """Whether somebody has removed or renamed the file, or a folder above it."""
        if self._file is None or self._file not in _held:
            return False
        descriptor = _held[self._file].descriptor
        try:
            there, ours = os.stat(self._file), os.fstat(descriptor)
            if (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino):
                return False
            return self._file.read_bytes() != os.pread(descriptor, 1000, 0)  # some file systems number a file anew
        except OSError as error:
            return error.errno in (errno.ENOENT, errno.ENOTDIR)

    def take_again(self) -> None:
        """After `is_lost`: make the directory where it is not there, and this process's own. Raises as `hold` does."""
        assert self._file is not None
        self._file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = _locked(self._file)
        os.close(_held[self._file].descriptor)
        _held[self._file].descriptor = descriptor

    def __enter__(self) -> Hold:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def hold(directory: str | os.PathLike) -> Hold:
    """Make an existing directory this process's own; it may ask again for what it holds. Raises InUse if another
    process holds it, OSError if the file cannot be written. Where the file system has no locks, a warning says so."""
    file = Path(directory).resolve() / FILE
    if file not in _held:
        _held[file] = _Lock(_locked(file, Path(directory)))
    _held[file].times += 1
    return Hold(file)


def _locked(file: Path, directory: Path | None = None) -> int:
    """The descriptor of a file that this process has locked. directory: its name in messages."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)  # Python closes it in every program that is started
    try:
        _take(descriptor, directory or file.parent)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def is_held(directory: str | os.PathLike) -> bool | None:
    """Whether a process works in the directory; None if that cannot be known."""
    try:
        descriptor = os.open(Path(directory) / FILE, os.O_RDONLY | os.O_NONBLOCK)  # opening a pipe would wait for ever
    except FileNotFoundError:
        return False
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return False


def refuse_if_held(directory: str | os.PathLike) -> None:
    """InUse if another process works in the directory. Writes nothing."""
    if Path(directory).resolve() / FILE not in _held and is_held(directory):
        raise InUse(in_use(Path(directory)))


def _take(descriptor: int, directory: Path) -> None:
    for left in reversed(range(TRIES)):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if not left:
                raise InUse(in_use(directory)) from None
            time.sleep(BETWEEN_S)
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
            logging.getLogger(__name__).warning(
                "the file system of %s has no locks: nothing refuses a second process that works there.", directory)
            break
    name = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}
    with contextlib.suppress(OSError):  # on a full disk it has no name
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(name).encode() + b"\n", 0)


def in_use(directory: Path) -> str:
    """Who works in a directory, in words."""
    try:
        with open(directory / FILE, "rb") as file:
            name: Any = json.loads(file.read(1000))
        who = f"process {name['pid']} on {name['host']}, since {name['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        who = "another process"
    return f"{directory} is in use by {who}"


def _let_go_after_fork() -> None:
    """In a forked child: closing a copy of the open file does not unlock it."""
    for lock in _held.values():
        os.close(lock.descriptor)
    _held.clear()


os.register_at_fork(after_in_child=_let_go_after_fork)

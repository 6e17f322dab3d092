"""A file system with little room, which a test fills and frees."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def mount(folder: Path, options: str) -> None:
    """Mount a file system in memory at a folder, or mount it again with other options; the test is skipped where that
    is not allowed.
    """
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", folder], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no small file system can be mounted here: {done.stderr.strip()}")


def unmount(folder: Path) -> None:
    """Take it away, whoever still uses it."""
    subprocess.run(["umount", "-l", folder], check=True)


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Path]:
    """A file system of that size at a new folder, for a while."""
    folder.mkdir()
    mount(folder, f"size={megabytes}m")
    try:
        yield folder
    finally:
        unmount(folder)


def fill(disk: Path, leave: int = 0) -> None:
    """Leave so many bytes free, or none, where somebody writes at the same time and takes the last ones first."""
    (disk / "filling").unlink(missing_ok=True)
    about = os.statvfs(disk)
    try:
        (disk / "filling").write_bytes(b"0" * max(0, about.f_bavail * about.f_frsize - leave))
    except OSError as error:
        if error.errno != errno.ENOSPC or leave:
            raise


def free(disk: Path) -> None:
    """Give the room back."""
    (disk / "filling").unlink(missing_ok=True)

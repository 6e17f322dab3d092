"""What our own code has made before, kept in files beside numba's compiled code until that code changes."""

from __future__ import annotations

import hashlib
import os
import pickle
import shutil
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from rearrange.home.numba_cache import kept_in

Thing = TypeVar("Thing")


class KeptFiles:
    """Things of one kind.

    kind: how their folder is called. sources: all code that has a part in making them. version: of what else has one.
    """

    def __init__(self, kind: str, sources: Callable[[], Iterable[Path]], version: str = "") -> None:
        self._kind, self._sources, self._version = kind, sources, version

    @cached_property
    def folder(self) -> Path | None:
        """That of things which this very code makes; None if nothing can be kept."""
        kept = kept_in()
        if kept is None:
            return None
        digest = hashlib.sha256(self._version.encode())
        for source in sorted(self._sources()):
            digest.update(source.read_bytes())
        return kept / f"{self._kind}-{digest.hexdigest()[:16]}"

    def get(self, name: str, make: Callable[[], Thing]) -> Thing:
        """What `make` gives, read from the file of this name if it was made before."""
        if self.folder is None:
            return make()
        file = self.folder / f"{name}.pickle"
        try:
            return pickle.loads(file.read_bytes())
        except Exception:  # there is none yet, or what is there was cut off
            thing = make()
            self._keep(file, pickle.dumps(thing))
            return thing

    def _keep(self, file: Path, content: bytes) -> None:
        """Write a file whole, if that is possible; what other code has made is removed when the first is written."""
        try:
            if not file.parent.is_dir():
                for other in file.parent.parent.glob(f"{self._kind}-*"):
                    shutil.rmtree(other, ignore_errors=True)
                file.parent.mkdir(parents=True, exist_ok=True)
            partial = file.with_suffix(f".{os.getpid()}")
            partial.write_bytes(content)
            partial.replace(file)
        except OSError:
            pass

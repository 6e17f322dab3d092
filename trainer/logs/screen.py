"""Standard output and error that can be lost: a pipe without a reader, a full disk behind `> log`, a closed terminal.

What is lost is the screen. A stream that cannot be written leads nowhere from then on, for this process and for those
that it starts; what is done about it is decided in one place.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from trainer.logs.printable import without_codes


class Lost(OSError):
    """Standard output cannot be written, and what is shown there is all that the command does."""


class Screen:
    """A stream for text. `lost` is called once, with the error, when it cannot be written; what it raises reaches the
    writer. codes: False shows terminal codes as visible letters, whoever put them into a name or an answer."""

    def __init__(self, stream: TextIO | None, lost: Callable[[OSError | ValueError], None] = lambda error: None,
                 codes: bool = True):
        self._stream: TextIO = open(os.devnull, "w", encoding="utf-8") if stream is None else stream
        self.lost, self._codes = lost, codes

    def write(self, text: str) -> int:
        self._try(self._stream.write, text if self._codes else without_codes(text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        self._try(self._stream.flush)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _try(self, call: Callable[..., Any], *arguments: str) -> None:
        try:
            call(*arguments)
        except UnicodeError:  # a mistake of the writer
            raise
        except (OSError, ValueError) as error:  # ValueError: it has been closed
            self._lead_nowhere()
            self.lost(error)

    def _lead_nowhere(self) -> None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, self._stream.fileno())  # what is still in buffers goes there, too
        except (OSError, ValueError):
            self._stream = open(os.devnull, "w", encoding="utf-8")
        finally:
            os.close(nowhere)


def safe(stream: TextIO | None) -> TextIO:
    """The stream, which nobody notices when it is lost."""
    return stream if isinstance(stream, Screen) else Screen(stream)


def with_codes(screen: TextIO) -> TextIO:
    """The screen for who draws on it: terminal codes go through."""
    return Screen(screen._stream, lambda error: screen.lost(error)) if isinstance(screen, Screen) else screen


@contextmanager
def guarded() -> Iterator[None]:
    """Meanwhile sys.stdout and sys.stderr are Screens without terminal codes. Until `is_expendable`, a lost standard
    output raises Lost."""
    _open_standard_files()
    before = sys.stdout, sys.stderr

    def end(error: OSError | ValueError) -> None:
        raise Lost(getattr(error, "errno", None), _why(error)) from error

    sys.stdout, sys.stderr = Screen(before[0], end, codes=False), Screen(before[1], codes=False)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def is_expendable(tell: Callable[[str], None] = lambda text: None) -> None:
    """From here on the work goes on without a stream that is lost: a warning on the other one, and to `tell`."""
    screens = {"standard output": sys.stdout, "standard error": sys.stderr}
    for (name, screen), other in zip(screens.items(), reversed(screens.values()), strict=True):
        if isinstance(screen, Screen):
            screen.lost = _warning(name, other, tell)


def _warning(name: str, other: TextIO, tell: Callable[[str], None]) -> Callable[[OSError | ValueError], None]:
    def lost(error: OSError | ValueError) -> None:
        text = f"warning: {name} cannot be written ({_why(error)}); nothing more is shown there, and the work goes on."
        tell(text)
        print(text, file=other, flush=True)

    return lost


def _why(error: OSError | ValueError) -> str:
    return getattr(error, "strerror", None) or str(error)


def _open_standard_files() -> None:
    """Open the descriptors 0 to 2 that are closed (`>&-`), lest the next file takes the place of the screen."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)

"""Text from outside reaches the screen short and without terminal codes."""

from __future__ import annotations

import io
import sys

import pytest

from trainer.logs import screen
from trainer.logs.printable import MOST, first_line, last_line, printable, without_codes
from trainer.logs.progress import Progress

HOSTILE = ("\x1b[2J\x1b[H", "\x1b]0;title\x07", "\x9b31m", "\x08" * 5, "\rover", "\u202egnp", "\x00", "a\u2028b",
           "\ud800", "\x1bc", "\x7f", "\u200b")


class Rude(Exception):
    def __str__(self) -> str:
        raise ValueError


@pytest.mark.parametrize("text", [
    *HOSTILE, "x" * 20_000_000, " " * 10_000_000 + "x", b"\x1b" * 9999, Rude(), "é" * 301, "a b\n" * 500])
def test_text_from_outside_is_one_short_printable_line(text):
    for shown in (printable(text), first_line(ValueError(text)), last_line(f"a\n{printable(text)}")):
        assert shown.isprintable() and len(shown) <= MOST


def test_what_is_printable_stays_as_it_is():
    assert printable("  naïve 東京 \n 3") == "naïve 東京 3" and printable("x" * MOST) == "x" * MOST
    assert printable(b"a") == "b'a'"
    assert last_line("Traceback\nValueError: no.\n\n") == "ValueError: no" and last_line("") == "nothing"
    assert first_line(OSError()) == "OSError"
    assert without_codes("a\tb\r\n\x1b[33mWARN\x1b[0m \udcff") == "a\tb\r\n\x1b[33mWARN\x1b[0m \udcff"


@pytest.mark.parametrize("text", HOSTILE)
def test_a_command_shows_no_terminal_codes_and_draws_with_them(text, monkeypatch):
    class Terminal(io.StringIO):
        encoding = "utf-8"

        def isatty(self) -> bool:
            return True

    shown = Terminal()
    monkeypatch.setattr(sys, "stdout", shown)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    with screen.guarded():
        print(f"scene {text}")
        assert not any(code in shown.getvalue() for code in ("\x1b", "\x07", "\x9b", "\x08", "\x00", "\x7f", "\rover"))
        with Progress(2, f"record {text}") as progress:
            progress.print(f"of {text}")
            progress.update(1, {})
    drawn = shown.getvalue()
    assert "\x1b[2K" in drawn and not any(code in drawn
                                          for code in ("\x1b[2J", "\x1b]0", "\x07", "\x9b", "\x08", "\x1bc"))

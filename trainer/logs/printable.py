"""Text from servers, files and foreign code for the screen: it may hold terminal codes, and be very long."""

from __future__ import annotations

import re

MOST = 300
"""Characters that are shown of such a text."""
_COLOUR = r"\x1b\[[0-9;]*m"
_CODE = re.compile(rf"(?P<colour>{_COLOUR})|[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)")


def printable(text: object, most: int = MOST) -> str:
    """`text`, or what an exception says, in one line of at most `most` printable characters; the rest is left out."""
    try:
        said = str(text)
    except Exception as error:  # of foreign code, which may fail here, too
        said = f"{type(text).__name__}, which cannot be shown ({type(error).__name__})"
    said = " ".join(said[:8 * most].split())
    shown = "".join(char if char.isprintable() or "\udc80" <= char <= "\udcff" else _escaped(char)
                    for char in said[:most])
    return shown if len(shown) <= most and len(said) <= most else f"{shown[:most - 4]} ..."


def first_line(error: BaseException) -> str:
    """What an exception says in its first line, printable and without a full stop; its type where it says nothing."""
    return printable(next(iter(_said(error)[:8 * MOST].strip().splitlines()), "")).rstrip(".") or type(error).__name__


def last_line(text: str) -> str:
    """The last line of a text, where tracebacks say what is wrong; printable, without a full stop."""
    return printable(next(iter(text.rstrip()[-8 * MOST:].splitlines()[-1:]), "")).rstrip(".") or "nothing"


def without_codes(text: str) -> str:
    """The text with terminal codes as visible letters, but for line ends, tabs and colours."""
    return _CODE.sub(lambda found: found["colour"] or _escaped(found[0]), text)


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode()


def _said(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return ""

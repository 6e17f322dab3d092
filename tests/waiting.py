"""How tests wait: for an event, with a limit of a minute, never for a time.

    python -m tests.waiting         lists every place of the tests that sleeps, measures or has a limit below a minute

`tests/test_waiting.py` allows such a place only where a comment `# timed: why` on its line says why a busy machine
cannot break it, or `# all timed: why` says so for a whole file.
"""

from __future__ import annotations

import ast
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).parent
LIMIT_S = 60.0  # longer than any event takes on a machine that is busy with other things
MARK, FILE_MARK = "# timed:", "# all timed:"
CLOCKS = {"monotonic", "perf_counter", "process_time", "thread_time", "time", "time_ns", "monotonic_ns",
          "perf_counter_ns"}
WAITS = {"wait", "join", "communicate", "recv", "get", "acquire", "result", "poll", "settimeout"}
LIMITS = ("timeout", "timeout_s", "limit_s", "deadline")


def until(condition: Callable[[], object], what: str, limit_s: float = LIMIT_S,
          process: subprocess.Popen | None = None) -> None:
    """Wait until a condition holds.

    Args:
        condition: asked again and again, 50 times a second.
        what: what is waited for, as the message of a failure names it.
        limit_s: after so many seconds the test fails.
        process: its end fails the test at once, since the event cannot come any more.
    """
    deadline = time.monotonic() + limit_s  # timed: the one limit
    while not condition():
        assert process is None or process.poll() is None, f"the process ended with {process.returncode} before {what}"
        assert time.monotonic() < deadline, f"{what}: not within {limit_s:.0f} s"  # timed: the one limit
        time.sleep(0.02)  # timed: the one pause between two looks


def is_alive(pid: int) -> bool:
    """Whether a process runs (Linux); one that has ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@dataclass(frozen=True)
class Place:
    """A line of the tests that depends on a clock: it `sleeps`, `measures`, or has a `limit` below a minute."""

    file: Path
    line: int
    kind: str
    text: str
    reason: str  # what its comment says; empty without one

    def __str__(self) -> str:
        return f"{self.file.relative_to(TESTS.parent)}:{self.line}: {self.kind}: {self.text.strip()}"


def _is_short(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, (int, float)) and 0 < value.value < LIMIT_S


def _kind(call: ast.Call) -> str:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    module = getattr(getattr(call.func, "value", None), "id", "")
    if name == "sleep":
        return "sleeps"
    if name in CLOCKS and (module == "time" or isinstance(call.func, ast.Name) and name != "time"):
        return "measures"
    keywords = [k.value for k in call.keywords if (k.arg or "").endswith(LIMITS)]
    waits = call.args[:1] if name in WAITS and isinstance(call.func, ast.Attribute) else []
    if name == "recv" and waits and isinstance(getattr(waits[0], "value", None), int):
        waits = []  # a number of bytes
    return "limit" if any(map(_is_short, keywords + waits)) else ""


def places(file: Path) -> Iterator[Place]:
    """Every place of one file that depends on a clock; the code of child processes, in strings, is searched by
    words.
    """
    lines = file.read_text().splitlines()
    for_all = next((line.partition(FILE_MARK)[2].strip() for line in lines if line.startswith(FILE_MARK)), "")
    found: dict[tuple[int, str], int] = {}  # line and kind -> last line of the expression
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, ast.Call) and (kind := _kind(node)):
            found.setdefault((node.lineno, kind), node.end_lineno)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and re.search(r"\bsleep\(", node.value):
            for line in range(node.lineno, node.end_lineno + 1):
                if re.search(r"\bsleep\(", lines[line - 1]):
                    found.setdefault((line, "sleeps"), line)
    for (line, kind), end in found.items():
        reasons = [text.partition(MARK)[2].strip() for text in lines[line - 1:end] if MARK in text]
        yield Place(file, line, kind, lines[line - 1], reasons[0] if reasons else for_all)


def all_places() -> list[Place]:
    """Those of all tests, file by file."""
    return [place for file in sorted(TESTS.rglob("*.py"))
            for place in sorted(places(file), key=lambda place: place.line)]


if __name__ == "__main__":
    for each in all_places():
        print(each, *([f"({each.reason})"] if each.reason and MARK not in each.text else []))

"""What the scripts share that write pages of docs/ from the code."""

from __future__ import annotations

import textwrap
from pathlib import Path

HOME = Path(__file__).resolve().parents[1]
WIDTH = 120


def wrapped(text: str, first: str = "") -> str:
    """A paragraph, or a list item that begins with `first`, in lines of readable length."""
    return textwrap.fill(first + text, WIDTH, subsequent_indent=" " * len(first),
                         break_long_words=False, break_on_hyphens=False)


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    """Lines of a Markdown table."""
    lines = [head, ("---",) * len(head), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in lines]


def write(pages: dict[Path, str], script: str, check: bool) -> int:
    """Write the pages that differ, or say which do. Returns the exit status: 1 if `check` finds one."""
    stale = [path for path, text in pages.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in stale:
        if not check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(pages[path], encoding="utf-8")
        told = f"is not what the code says; run python docs/{script}.py" if check else "written"
        print(f"{path.relative_to(HOME)} {told}")
    return int(check and bool(stale))

"""What the pages contain: code blocks, tables, commands, prose."""

from __future__ import annotations

import re
from pathlib import Path

HOME = Path(__file__).resolve().parents[2]
PAGES = [HOME / "README.md", *sorted((HOME / "docs").rglob("*.md"))]
PROGRAMS = HOME / "examples"


def blocks(page: Path, language: str) -> list[str]:
    """The fenced code blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def shown(page: Path) -> list[tuple[str, str]]:
    """The files of examples/ that a page shows: each code block below a paragraph that names one and ends with a
    colon.
    """
    link, rest = r"\]\((?:\.\./)*examples/([\w.]+)\)", r"(?:(?!\n\n).)*:\n\n"
    return re.findall(rf"{link}{rest}```\w+\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def prose(page: Path) -> str:
    """A page without its code blocks."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def table(page: str, first: str) -> list[dict[str, str]]:
    """The rows of the table of docs/<page> whose first column is called `first`, by column name."""
    rows: list[list[str]] = []
    for line in (HOME / "docs" / page).read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if rows and not cells:
            break
        if rows or (cells and cells[0] == first):
            rows.append(cells)
    assert rows, f"docs/{page} has no table that begins with '{first}'"
    head, _, *body = rows
    return [dict(zip(head, row, strict=True)) for row in body]


def commands(page: Path) -> list[str]:
    """Every `rearrange ...` command of a page, without comments: lines of shell blocks, and inline code.

    A backslash at the end of a line goes on in the next.
    """
    shell = "\n".join(blocks(page, "bash")).replace("\\\n", " ")
    names = "train|eval|record|reproduce|bench|report|export|scenes|serve|tools|view|list|doctor"
    inline = re.findall(rf"`(rearrange (?:{names})[^`]*)`", page.read_text(encoding="utf-8"))
    lines = [*(line.split("  #")[0].strip() for line in shell.splitlines()), *inline]
    return [line for line in dict.fromkeys(lines) if line.startswith("rearrange")]

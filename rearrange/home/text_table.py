"""Rows of text as a table."""

from __future__ import annotations

from collections.abc import Sequence


def columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """One line for each row, its cells under those of the others."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]

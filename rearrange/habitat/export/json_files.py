"""JSON files that are the same, byte for byte, whenever they say the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """With lists for tuples and arrays, and numbers of nine decimals without -0."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return round(value, 9) + 0.0 if isinstance(value, float) else value


def write_json(path: Path, content: dict) -> None:
    """Write what `plain` makes of the content; the folder is made where it is not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(plain(content), indent=1) + "\n", encoding="utf-8")

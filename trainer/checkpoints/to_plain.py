"""Plain values, all that a checkpoint holds beside tensors: numbers, text, lists and dicts."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import torch

__all__ = ["plain", "plain_rng", "rng_from_plain"]


def plain(value: Any) -> Any:
    """Values as a checkpoint holds them: lists, Python's numbers, paths as text. ValueError for what cannot be."""
    if isinstance(value, dict):
        return {key if isinstance(key, int) else str(key): plain(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, (np.generic, np.ndarray)):
        return plain(value.tolist())
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if value is None or isinstance(value, (str, bool, int, float, torch.Tensor)):
        return value
    raise ValueError(f"{value!r} is a {type(value).__name__}; a checkpoint holds numbers, text, lists and dicts only.")


def plain_rng(rng: np.random.Generator) -> dict[str, Any]:
    """State of a PCG64 generator; its 128-bit integers as strings."""
    state = rng.bit_generator.state
    return {"state": str(state["state"]["state"]), "inc": str(state["state"]["inc"]),
            "has_uint32": int(state["has_uint32"]), "uinteger": int(state["uinteger"])}


def rng_from_plain(plain: dict[str, Any]) -> np.random.Generator:
    """The generator whose state a checkpoint holds."""
    rng = np.random.default_rng()
    state = {"state": int(plain["state"]), "inc": int(plain["inc"])}
    rng.bit_generator.state = {"bit_generator": "PCG64", "state": state,
                               "has_uint32": plain["has_uint32"], "uinteger": plain["uinteger"]}
    return rng

"""Whether an observation stays what it is in the engine, which keeps bytes as bytes and all others as float32."""

from __future__ import annotations

from typing import Any

import numpy as np

LARGEST_WHOLE = 1 << 24  # up to which every whole number is one of single precision
_WIDE = tuple(np.dtype(kind) for kind in ("i4", "u4", "i8", "u8"))


class NotOfItsSpace(ValueError):
    """An observation that its space does not have, or that would be changed by keeping it; the sentence says all."""

    in_plain_words = True


def is_flag(value: Any) -> bool:
    """Whether it says true or false: a truth value, or 1 or 0, of any type but texts, which are all true."""
    flag = np.asarray(value)
    return flag.size == 1 and flag.dtype.kind in "biuf" and flag.item() in (0, 1)


def may_change(kind: np.dtype | None) -> bool:
    """Whether values of a space of this type may be others once they are kept."""
    return kind == np.uint8 or kind in _WIDE


def changed(name: str, kind: np.dtype | None, value: Any) -> str | None:
    """Why `value` of an observation `name`, whose space has this type, would change for the policy; None if not."""
    if kind == np.uint8 and getattr(value, "dtype", None) != np.uint8:
        value = np.asarray(value)
        with np.errstate(invalid="ignore"):
            wrong = value.astype(np.uint8) != value
        if wrong.any():
            return (f"observation '{name}' has the value {value[wrong].flat[0]}, its space says uint8: whole numbers "
                    "from 0 to 255; give the space the type and bounds of what is shown.")
    if kind in _WIDE and (most := np.abs(np.asarray(value, np.float64)).max(initial=0)) > LARGEST_WHOLE:
        return (f"observation '{name}' has the whole number {most:.0f}; the engine computes in single precision, which "
                f"rounds those above {LARGEST_WHOLE:,}: scale it.")
    return None


def cast(name: str, kind: np.dtype, value: Any) -> str | None:
    """Why `value`, of an inner part of an observation, would be changed by giving it the type of its space, as becoming
    part of a vector does; None if it would not, but for the rounding of fractions."""
    given = np.asarray(value)
    if given.dtype == kind or np.issubdtype(kind, np.floating):
        return None
    with np.errstate(invalid="ignore"):
        wrong = given.astype(kind) != given
    return f"observation '{name}' has the value {given[wrong].flat[0]}, its space says {kind}." if wrong.any() else None

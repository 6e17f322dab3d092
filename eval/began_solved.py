"""Episodes that begin solved: success held before the agent did anything. They are counted apart from all figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

Result = TypeVar("Result")


def apart(results: Sequence[Result]) -> tuple[list[Result], list[Result]]:
    """The results that count, and those of episodes that began solved."""
    return [each for each in results if not each.began_solved], [each for each in results if each.began_solved]


def mean(values: Sequence[float]) -> float | None:
    """None of no values."""
    return float(np.mean(values)) if len(values) else None


def share(count: int, n: int) -> float | None:
    """None where there are none."""
    return count / n if n else None


def figures(solved: Sequence[Any], measures: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """`began_solved`, how many there were; where there were any, also their success, and their SPL if it is
    measured."""
    if not solved:
        return {"began_solved": 0}
    spl = mean([each["spl"] for each in measures if "spl" in each])
    return {"began_solved": len(solved), "began_solved_success": mean([float(each.success) for each in solved]),
            **({} if spl is None else {"began_solved_spl": spl})}


def lines(of: Mapping[str, Any]) -> list[str]:
    """A sentence for those that began solved; none where there were none."""
    count, others = of.get("began_solved") or 0, of["episodes"]
    if not count:
        return []
    spl = f" and SPL {of['began_solved_spl']:.3f}" if "began_solved_spl" in of else ""
    rest = f"all figures are those of the other {others}" if others else "there are no others, and so no figures"
    return [f"{count} of {count + others} episodes began solved and are counted apart, with success "
            f"{of['began_solved_success']:.1%}{spl}: {rest}"]

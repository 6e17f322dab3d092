"""Figures of navigation: SPL with its interval, success and SPL by the distance to the goal (DD-PPO, Figure 13)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from eval.intervals import bootstrap, wilson

BINS_M = (0, 2, 4, 6, 8, 10, 15, 20, 30)  # edges of the bins; what is longer belongs to the last


def path_figures(measures: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """`spl_interval_95` and `by_distance` from the measures of episodes; nothing where they have no SPL."""
    rows = [m for m in measures if "spl" in m and "shortest_m" in m]
    if not rows:
        return {}
    shortest, found = np.array([m["shortest_m"] for m in rows]), []
    of_bin = np.clip(np.searchsorted(BINS_M, shortest, side="right") - 1, 0, len(BINS_M) - 2)
    for k in range(len(BINS_M) - 1):
        mine = [m for m, b in zip(rows, of_bin) if b == k]
        if mine:
            wins = int(sum(m["success"] for m in mine))
            found.append({"from_m": BINS_M[k], "to_m": BINS_M[k + 1], "episodes": len(mine),
                          "success": wins / len(mine), "success_interval_95": list(wilson(wins, len(mine))),
                          "spl": float(np.mean([m["spl"] for m in mine]))})
    return {"spl_interval_95": list(bootstrap([m["spl"] for m in rows])), "by_distance": found}


def path_lines(figures: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Rows of the table that an evaluation prints; none for what is no navigation."""
    if "by_distance" not in figures:
        return []
    low, high = figures["spl_interval_95"]
    rows = [("SPL", f"{figures['measures']['spl']:.3f}   95 % interval {low:.3f} .. {high:.3f}")]
    return rows + [(f"{row['from_m']} to {row['to_m']} m", f"success {row['success']:.1%}   SPL {row['spl']:.3f}   n "
                    f"= {row['episodes']}") for row in figures["by_distance"]]

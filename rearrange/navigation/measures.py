"""Measures of navigation (Anderson et al., "On Evaluation of Embodied Navigation Agents", 2018; Habitat's SoftSPL)."""

from __future__ import annotations


def spl(success: bool, shortest_m: float, driven_m: float) -> float:
    """Success weighted by path length: of a success, the shortest way over what was driven, at most 1."""
    return shortest_m / max(shortest_m, driven_m, 1e-9) if success else 0.0


def soft_spl(shortest_m: float, driven_m: float, left_m: float) -> float:
    """The same without the need to stop: the share of the way that was made instead of success."""
    return max(0.0, 1.0 - left_m / max(shortest_m, 1e-9)) * shortest_m / max(shortest_m, driven_m, 1e-9)

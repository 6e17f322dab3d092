"""Intervals for success rates and for means of a few repeats.

SciPy and statsmodels have both, but are no dependencies of ours: they would add 100 MB for these twenty lines.
"""

from __future__ import annotations

import math

import numpy as np

__all__ = ["bootstrap", "wilson"]

Z_95 = 1.959964


def wilson(successes: int, n: int) -> tuple[float, float]:
    """95 % Wilson score interval of a proportion (Wilson 1927); (0, 1) for n = 0. It stays calibrated near 0 and 1,
    unlike +-1.96 standard errors."""
    if n == 0:
        return 0.0, 1.0
    p, z2 = successes / n, Z_95**2
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = Z_95 * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return max(0.0, centre - half), min(1.0, centre + half)


def bootstrap(values: list[float], draws: int = 2000, seed: int = 0) -> tuple[float, float]:
    """95 % percentile bootstrap interval of a mean; the value itself for one value."""
    picks = np.random.default_rng(seed).integers(0, len(values), (draws, len(values)))
    low, high = np.percentile(np.asarray(values, float)[picks].mean(1), (2.5, 97.5))
    return float(low), float(high)

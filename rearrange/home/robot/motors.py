"""Targets of the arm's motors."""

from __future__ import annotations

from rearrange.home.numba_cache import float64, njit


@njit((float64[::1], float64[::1], float64[::1], float64, float64, float64[::1], float64[::1], float64[::1]),
      cache=True, nogil=True)
def move_targets(target, command, angle, delta, lag, low, high, ctrl):
    """Add `delta` times the commands to the targets, which stay near the joint's angle (`lag`) and inside its limits.

    All arrays (joints,), rad; `target` and the controls `ctrl` are written.
    """
    for i in range(target.shape[0]):
        wanted = max(max(target[i] + delta * command[i], angle[i] - lag), low[i])
        target[i] = ctrl[i] = min(min(wanted, angle[i] + lag), high[i])

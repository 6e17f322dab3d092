"""Targets of the arm's motors."""

from __future__ import annotations

from rearrange.home.numba_cache import float64, njit


@njit((float64[::1],) * 8, cache=True, nogil=True)
def move_targets(target, command, position, delta, lag, low, high, ctrl):
    """Add `delta` times the commands to the targets, which stay near the joints (`lag`) and inside their limits.

    All arrays (joints,), rad or m; `target` and the controls `ctrl` are written.
    """
    for i in range(target.shape[0]):
        wanted = max(max(target[i] + delta[i] * command[i], position[i] - lag[i]), low[i])
        target[i] = ctrl[i] = min(min(wanted, position[i] + lag[i]), high[i])

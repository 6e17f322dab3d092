"""The switch of what is done to MuJoCo's insides to make it faster: REARRANGE_PLAIN_MUJOCO=1 leaves MuJoCo as it is.

There are two such paths, `collision_filter` and the clock below, each with its gain and a test that the states are the same bit for bit
without it (tests/rearrange/test_collision_filter.py).
"""

from __future__ import annotations

import os

import mujoco

from rearrange.home.numba_cache import cfunc, float64

PLAIN = "REARRANGE_PLAIN_MUJOCO"


def is_plain() -> bool:
    """Whether MuJoCo is to be left as it is."""
    return os.environ.get(PLAIN, "") not in ("", "0")


@cfunc(float64(), cache=True)
def _no_time():
    return 0.0


def stop_clock() -> None:
    """Do without MuJoCo's profiler: it reads the clock thirty times per substep, for `data.timer`, which nothing here looks at.

    The clock is a setting of the whole process, so that other users of MuJoCo in it find timers of 0 as well; one that somebody has set
    stays. Gain: 1.02 times the steps per second of a core, 1.01 to 1.08 (measured as that of `collision_filter`).
    """
    if not is_plain() and mujoco.get_mjcb_time() is None:
        mujoco.set_mjcb_time(_no_time.ctypes)

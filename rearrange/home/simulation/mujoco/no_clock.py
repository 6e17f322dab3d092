"""MuJoCo without its profiler: it reads the clock thirty times per substep, for `data.timer`, which nothing here looks at.

The clock is a setting of the whole process, so that other users of MuJoCo in it find timers of 0 as well.
Gain: 1.02 times the steps per second of a core, 1.01 to 1.08 (measured as that of `nearness`).
"""

from __future__ import annotations

import mujoco

from rearrange.home.numba_cache import cfunc, float64
from rearrange.home.simulation.mujoco.plain import is_plain


@cfunc(float64(), cache=True)
def _no_time():
    return 0.0


def stop_clock() -> None:
    """Leave the clock unread from now on, unless somebody set one; not with the switch of `plain`."""
    if not is_plain() and mujoco.get_mjcb_time() is None:
        mujoco.set_mjcb_time(_no_time.ctypes)

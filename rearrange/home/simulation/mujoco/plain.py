"""The switch of what is done to MuJoCo's insides to make it faster: REARRANGE_PLAIN_MUJOCO=1 leaves MuJoCo as it is.

There are two such tricks, `nearness` and `no_clock`, each with its gain and a test that the states are the same bit for bit without
it (tests/rearrange/test_nearness.py).
"""

from __future__ import annotations

import os

PLAIN = "REARRANGE_PLAIN_MUJOCO"


def is_plain() -> bool:
    """Whether MuJoCo is to be left as it is."""
    return os.environ.get(PLAIN, "") not in ("", "0")

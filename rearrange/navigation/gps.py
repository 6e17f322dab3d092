"""GPS and compass relative to the start, as policies see them."""

from __future__ import annotations

import math

import gymnasium
import numpy as np

from rearrange.geometry import PlanePose, to_frame

UNIT_M = 5.0
_MOST = np.array([12.0, 12.0, 1.0, 1.0], np.float32)
SPACE = gymnasium.spaces.Box(-_MOST, _MOST, (4,), np.float32)


def gps_compass(start: PlanePose, pose: PlanePose) -> np.ndarray:
    """Place ahead and left of the start (in 5 m), cosine and sine of the heading relative to it: (4,) float32."""
    ahead, left = to_frame(pose[0], pose[1], start)
    turned = pose[2] - start[2]
    return np.clip(np.array([ahead / UNIT_M, left / UNIT_M, math.cos(turned), math.sin(turned)], np.float32), SPACE.low, SPACE.high)

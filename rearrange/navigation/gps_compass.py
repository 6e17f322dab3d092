"""What odometry tells policies: GPS and compass relative to the start, and the motion since the last step."""

from __future__ import annotations

import math

import gymnasium
import numpy as np

from rearrange.home.geometry import PlanePose, to_frame, wrap_angle

UNIT_M = 5.0
_MOST = np.array([12.0, 12.0, 1.0, 1.0], np.float32)
SPACE = gymnasium.spaces.Box(-_MOST, _MOST, (4,), np.float32)
MOTION_UNIT_M, MOTION_UNIT_RAD = 0.25, math.pi / 6
_FASTEST = (12.0, 12.0, 6.0)
EGOMOTION_SPACE = gymnasium.spaces.Box(-np.array(_FASTEST, np.float32), np.array(_FASTEST, np.float32), (3,),
                                       np.float32)
"""Of the observation `egomotion`."""


def gps_compass(start: PlanePose, pose: PlanePose) -> np.ndarray:
    """Place ahead and left of the start (in 5 m), cosine and sine of the heading relative to it: (4,) float32."""
    ahead, left = to_frame(pose[0], pose[1], start)
    turned = pose[2] - start[2]
    return np.clip(np.array([ahead / UNIT_M, left / UNIT_M, math.cos(turned), math.sin(turned)], np.float32), SPACE.low,
                   SPACE.high)


def egomotion(before: PlanePose, pose: PlanePose) -> np.ndarray:
    """Motion since the pose before: ahead and to the left (in 0.25 m), turn to the left (in 30 degrees), (3,) float32.

    A step forward that shows as 0 was blocked.
    """
    ahead, left = to_frame(pose[0], pose[1], before)
    seen = ahead / MOTION_UNIT_M, left / MOTION_UNIT_M, wrap_angle(pose[2] - before[2]) / MOTION_UNIT_RAD
    return np.array([min(max(value, -most), most) for value, most in zip(seen, _FASTEST)], np.float32)

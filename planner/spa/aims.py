"""Where the sense-plan-act agent brings its hand: targets that are equally good to reach, for `plan_reach`."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from skills.experts.reach_plan import Aim, Target

_TILTS_RAD = tuple(math.radians(a) for a in (90, 75, 60, 45, 30))  # of the cup below the horizontal
_HANDLE_TILTS_RAD = tuple(math.radians(a) for a in (0, 20, 40, 60))
_AROUND_M, _BESIDE_M = 0.16, 0.03  # points of an object: around its middle, and this near to the cup's axis
_SURFACE_M, _INTO_M = 0.04, 0.006  # from the middle to the surface where it was not seen; aimed beyond the surface
_LEANS_RAD = tuple(math.radians(a) for a in (0, 15, 30, 45))  # of the object when it is let go
_LEAN_COST_STEPS = 120.0  # per radian: a leaning object may fall over
_DROP_M = 0.03  # height from which it is let go
_UP = np.array([0.0, 0.0, 1.0])


def surface_aim(middle: np.ndarray, points: np.ndarray) -> Aim:
    """Aims the cup at an object whose middle is known, from above and from the side; its surface is where the camera's
    points (n, 3) around the middle are.
    """
    near = points[np.linalg.norm(points - middle, axis=1) < _AROUND_M] - middle

    def aim(heading: float) -> Iterator[Target]:
        for tilt in _TILTS_RAD:
            axis = np.array([math.cos(tilt) * math.cos(heading), math.cos(tilt) * math.sin(heading), -math.sin(tilt)])
            along = -near @ axis
            beside = np.linalg.norm(near + along[:, None] * axis, axis=1)
            seen = along[(beside < _BESIDE_M) & (along > 0.0)]
            depth = float(seen.max()) if len(seen) else _SURFACE_M
            yield Target(middle - (depth - _INTO_M) * axis, axis, -axis)

    return aim


def upright_aim(goal: np.ndarray) -> Aim:
    """Puts what is held a little above its goal, upright or leaning towards the hand."""
    def aim(heading: float) -> Iterator[Target]:
        for lean in _LEANS_RAD:
            up = np.array([-math.sin(lean) * math.cos(heading), -math.sin(lean) * math.sin(heading), math.cos(lean)])
            yield Target(goal + _DROP_M * _UP, up, _UP, _LEAN_COST_STEPS * lean)

    return aim


def front_aim(handle: np.ndarray) -> Aim:
    """Aims the cup at a handle from in front and from above."""
    def aim(heading: float) -> Iterator[Target]:
        for tilt in _HANDLE_TILTS_RAD:
            axis = np.array([math.cos(tilt) * math.cos(heading), math.cos(tilt) * math.sin(heading), -math.sin(tilt)])
            yield Target(handle - 0.005 * axis, axis, -axis)

    return aim

"""The noise of Habitat's PointNav challenge of 2020: on motion, as PyRobot measured it on a LoCoBot, and on depth.

Numbers: habitat-sim, pyrobot_noisy_controls.py (LoCoBot, Proportional; the variances there are squared deviations) and
redwood_depth_noise_model.py (after Choi et al., "Robust Reconstruction of Indoor Scenes", CVPR 2015), whose table of a lens's
distortion is left out.
"""

from __future__ import annotations

import math

import numpy as np

from rearrange.compiled import njit

# Mean and standard deviation, along and across the heading (m) and about the vertical (rad), of a step forward and of a turn.
FORWARD = ((0.017, 0.007**0.5), (0.042, 0.023**0.5), (0.031, 0.026**0.5))
TURN = ((0.001, 0.001**0.5), (0.005, 0.004**0.5), (0.043, 0.017**0.5))
CUT = 3.0  # standard deviations, beyond which nothing is drawn
LEAST = 0.95  # share of a motion that noise may take away


def motion_noise(ahead_m: float, turn_rad: float, multiplier: float, rng: np.random.Generator) -> tuple[float, float, float]:
    """What is added to a commanded motion: ahead (m), to the right (m), turned (rad)."""
    forward = ahead_m != 0.0
    ahead, across, about = FORWARD if forward else TURN
    a = _drawn(*ahead, rng, -LEAST * abs(ahead_m) if forward else -math.inf)
    c = _drawn(*across, rng)
    t = _drawn(*about, rng, -math.inf if forward else -LEAST * abs(turn_rad))
    sign = -1.0 if turn_rad < 0.0 else 1.0
    return multiplier * a, multiplier * c, multiplier * t * sign


def _drawn(mean: float, deviation: float, rng: np.random.Generator, least: float = -math.inf) -> float:
    """From a normal distribution that is cut off."""
    while True:
        value = mean + deviation * rng.standard_normal()
        if abs(value - mean) <= CUT * deviation and value >= least:
            return value


def noisy_depth(depth: np.ndarray, far_m: float, multiplier: float, rng: np.random.Generator) -> None:
    """Add noise to a depth image (size, size, 1), 0..1 over `far_m`, in place. What is not seen, from 10 m on, reads 0."""
    _noisy_depth(depth, far_m, multiplier, rng.standard_normal((*depth.shape[:2], 3), np.float32))


@njit(cache=True, nogil=True)
def _noisy_depth(depth, far, multiplier, drawn):
    rows, columns = depth.shape[0], depth.shape[1]
    before = depth.copy()
    for i in range(rows):
        for j in range(columns):
            y = int(min(max(i + drawn[i, j, 0] * 0.25 * multiplier, 0.0), rows - 1.0) + 0.5)
            x = int(min(max(j + drawn[i, j, 1] * 0.25 * multiplier, 0.0), columns - 1.0) + 0.5)
            z = before[y - y % 2, x - x % 2, 0] * far
            disparity = round((35.13 / max(z, 1e-3) + drawn[i, j, 2] * 0.027778 * multiplier) * 8.0)
            seen = z < 10.0 and disparity > 0
            depth[i, j, 0] = min(35.13 * 8.0 / disparity / far, 1.0) if seen else 0.0

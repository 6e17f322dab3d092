"""The noise on motion of Habitat's PointNav challenge of 2020, as PyRobot measured it on a LoCoBot. That on depth:
`rearrange.pictures.depth_noise`.

Numbers: habitat-sim, pyrobot_noisy_controls.py (LoCoBot, Proportional; the variances there are squared deviations).
"""

from __future__ import annotations

import math

import numpy as np

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


def usual_motion(ahead_m: float, turn_rad: float, multiplier: float) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """What a commanded motion leads to on the average, ahead, to the left (m), turned (rad), and its standard deviations."""
    (a, ahead), (c, across), (t, about) = FORWARD if ahead_m else TURN
    sign = -1.0 if turn_rad < 0.0 else 1.0
    return ((ahead_m + multiplier * a, -multiplier * c, turn_rad + sign * multiplier * t),
            (multiplier * ahead, multiplier * across, multiplier * about))


def _drawn(mean: float, deviation: float, rng: np.random.Generator, least: float = -math.inf) -> float:
    """From a normal distribution that is cut off."""
    while True:
        value = mean + deviation * rng.standard_normal()
        if abs(value - mean) <= CUT * deviation and value >= least:
            return value

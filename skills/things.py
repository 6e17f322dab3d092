"""Furniture that a scene marks to be moved as a whole, as a chair: where it is, and a start before it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rearrange.home.errors import NoStartPose, UserError
from skills.skill import can_start

if TYPE_CHECKING:
    import numpy as np

    from rearrange.home.simulation.simulator_interface import Point, Simulator

_TRIES = 50


def place_of(sim: Simulator, thing: str) -> Point:
    """The mark of a thing in the world. UserError where the scene has none of that name."""
    if thing not in sim.home.things:
        known = ", ".join(sim.home.things) or "none"
        raise UserError(f"scene {sim.episode.scene} marks no thing {thing!r} to be moved; it has {known}. A scene in "
                        f"MJCF marks one by a site thing_{thing} in a body with a free or a hinge joint.")
    return sim.thing_pose(thing)[:3]


def tilt_rad(sim: Simulator, thing: str) -> float:
    """How far a thing leans from how its mark stands upright."""
    _, x, y, _ = sim.thing_pose(thing)[3:]
    return math.acos(max(-1.0, min(1.0, 1.0 - 2.0 * (x * x + y * y))))


def start_facing(sim: Simulator, thing: str, rng: np.random.Generator, *, away_m: tuple[float, float],
                 yaw_noise_rad: float = 0.0) -> None:
    """Put the robot on a free place from which it faces a thing.

    Args:
        thing: one of the scene's.
        away_m: from the middle of the base to the mark, least and most.
        yaw_noise_rad: standard deviation of the direction.

    Raises:
        NoStartPose: the robot touches something everywhere.
        UserError: the scene marks no such thing.
    """
    x, y, _ = place_of(sim, thing)
    for _ in range(_TRIES):
        way, away = rng.uniform(-math.pi, math.pi), rng.uniform(*away_m)
        facing = way + math.pi + yaw_noise_rad * rng.standard_normal()
        if can_start(sim, x + away * math.cos(way), y + away * math.sin(way), facing, (x, y)):
            return
    raise NoStartPose(f"no collision-free pose before the {thing} in scene {sim.episode.scene}")

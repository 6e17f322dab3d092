"""What touches the robot, from Habitat's list of contact points; needs no simulator.

A point has object_id_a, object_id_b, link_id_a, link_id_b, contact_distance (m, negative inside), normal_force (N),
contact_normal_on_b_in_ws (from b to a) and position_on_a_in_ws, y up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rearrange.habitat.frames import numbers

TOUCH_M = 0.002  # Bullet keeps things that touch this far apart, or less


@dataclass(frozen=True)
class Touch:
    """A contact of the suction cup."""

    object_id: int
    link_id: int  # of an articulated object
    position: tuple[float, float, float]  # y up
    towards: tuple[float, float, float]  # normal, from the cup into what it touches, y up


@dataclass(frozen=True)
class RobotParts:
    """The robot's number in Habitat, and the numbers of its links: those that drive, and the suction cup."""

    robot: int
    base_links: frozenset[int]
    cup_link: int


def forces(points: Iterable[Any], parts: RobotParts, held: int | None) -> tuple[float, float, list[Touch]]:
    """Largest normal force (N) on the arm and on the base, as HAB measures it, and what the cup touches.

    The held object (its number, or None) counts as part of the arm; contacts between it and the robot do not count.
    """
    arm_n = base_n = 0.0
    touches = []
    robot = parts.robot
    for point in points:
        a, b = point.object_id_a, point.object_id_b
        if a == robot:
            if b == robot:
                continue
            link, other = point.link_id_a, b
        elif b == robot:
            link, other = point.link_id_b, a
        elif held is not None and (a == held or b == held):
            arm_n = max(arm_n, point.normal_force)
            continue
        else:
            continue
        if link == parts.cup_link and point.contact_distance < TOUCH_M:
            touches.append(_touch(point, a == robot))
        if held is not None and other == held:
            continue
        if link in parts.base_links:
            base_n = max(base_n, point.normal_force)
        else:
            arm_n = max(arm_n, point.normal_force)
    return arm_n, base_n, touches


def _touch(point: Any, cup_is_a: bool) -> Touch:
    number, link, sign = ((point.object_id_b, point.link_id_b, -1.0) if cup_is_a else
                          (point.object_id_a, point.link_id_a, 1.0))
    normal = numbers(point.contact_normal_on_b_in_ws)
    return Touch(number, link, numbers(point.position_on_a_in_ws), tuple(sign * value for value in normal))


def collides(points: Iterable[Any], robot: int, held: int | None, tolerance_m: float) -> bool:
    """True when any contact deeper than the tolerance is between the robot, or what it holds, and something else."""
    own = (robot, robot if held is None else held)
    return any(point.contact_distance < -tolerance_m and (point.object_id_a in own) != (point.object_id_b in own)
               for point in points)


def within_angle(touch: Touch, axis: Sequence[float], least_cosine: float) -> bool:
    """The cup faces what it touches: the cosine between its axis (y up) and the normal is large enough."""
    return sum(a * n for a, n in zip(axis, touch.towards)) >= least_cosine

"""The robots, a file each. `ROBOTS` lists them; `robot_named` loads one.

A robot of somebody else has the name of an entry point `rearrange.robots` of an installed package, or is written
`package.module:Name`: a `rearrange.home.robot.robot.Robot`, or a tuple of them with one name and different hands, the
usual one first.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from rearrange.home.errors import UserError, suggestion
from rearrange.home.settings.installed_parts import ROBOTS as OFFERED
from rearrange.home.settings.installed_parts import imported

if TYPE_CHECKING:
    from rearrange.home.robot.robot import Robot

ROBOTS = {"fetch": "rearrange.home.robot.fetch:HANDS", "stretch3": "rearrange.home.robot.stretch3:STRETCH3"}
"""Name of a robot -> where it is."""
DEFAULT = "fetch"


def names() -> tuple[str, ...]:
    """The robots that there are by name: ours, then those of installed packages, which are not imported."""
    return (*ROBOTS, *sorted(set(OFFERED.installed()) - set(ROBOTS)))


@cache
def robot_named(word: str = DEFAULT, hand: str | None = None, key: str = "sim.robot") -> Robot:
    """A robot with a hand; None: its usual one. UserError for `key` if there is none."""
    said, robots = f"{key}={word}", hands_of(word, key)
    if hand is None:
        return robots[0]
    found = next((robot for robot in robots if robot.hand.kind == hand), None)
    if found is None:
        kinds = ", ".join(robot.hand.kind for robot in robots)
        raise UserError(f"{key.removesuffix('robot')}hand={hand} is not a hand of {said}; it has {kinds}.")
    return found


def robot_of(env: Mapping[str, Any]) -> Robot:
    """The robot in the settings of an environment."""
    return robot_named(env.get("robot") or DEFAULT, env.get("hand"))


def hands_of(word: str, key: str = "sim.robot") -> tuple[Robot, ...]:
    """A robot with each of its hands, the usual one first. UserError if there is none."""
    from rearrange.home.robot.robot import Robot

    if word not in ROBOTS and not OFFERED.is_own(word):
        also = " nav.agent=cylinder is a body without an arm." if key == "nav.agent" else ""
        raise UserError(f"{key}={word} is no robot{suggestion(word, names())}; robots are {', '.join(names())}, or "
                        f"one of your own: package.module:Name.{also}")
    found: Any = imported(word, key, ROBOTS[word]) if word in ROBOTS else OFFERED.load(word, key)
    robots = found if isinstance(found, tuple) else (found,)
    if not robots or not all(isinstance(robot, Robot) for robot in robots):
        kind = type(next((robot for robot in robots if not isinstance(robot, Robot)), found)).__name__
        raise UserError(f"{key}={word} is no robot, but of type {kind}: give a rearrange.home.robot.robot.Robot, or "
                        "a tuple of them, one for each hand.")
    return robots

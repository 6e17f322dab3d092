"""What a policy commands: the parts of an action, always in this order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rearrange.home.errors import UserError

if TYPE_CHECKING:
    from rearrange.home.robot.robot import Robot

ACTION_PARTS = ("arm", "grip", "base", "stop")


def action_names(robot: Robot) -> dict[str, tuple[str, ...]]:
    """What each number of a part commands."""
    return {"arm": tuple(f"arm.{name}" for name in robot.arm.names), "grip": ("grip",),
            "base": ("base.forward", "base.left_turn"), "stop": ("stop",)}


def action_size(robot: Robot, parts: Sequence[str] = ACTION_PARTS) -> int:
    """How many numbers an action of these parts has."""
    return sum(len(names) for part, names in action_names(robot).items() if part in parts)


def action_meanings(robot: Robot, base_speed_m_s: float, base_turn_rad_s: float) -> dict[str, str]:
    """What the numbers of each part, from -1 to 1, do."""
    base_speed_m_s = min(base_speed_m_s, robot.base.most_m_s)
    base_turn_rad_s = min(base_turn_rad_s, robot.base.most_rad_s)
    deltas = ", ".join(dict.fromkeys(f"±{joint.delta:g} {joint.unit}" for joint in robot.arm.joints))
    return {"arm": f"joint deltas; ±1 is {deltas} per step", "grip": robot.hand.command,
            "base": f"forward speed, turn rate; ±1 is ±{base_speed_m_s:g} m/s, ±{base_turn_rad_s:g} rad/s",
            "stop": "more than 0: stop"}


def action_slices(robot: Robot, parts: Sequence[str]) -> dict[str, slice]:
    """Where each part stands in the action of a skill that commands these parts."""
    unknown = [part for part in parts if part not in ACTION_PARTS]
    if unknown or not parts:
        raise UserError(f"action_parts={list(parts)} should be some of {', '.join(ACTION_PARTS)}.")
    slices, start = {}, 0
    for part, names in action_names(robot).items():
        if part in parts:
            slices[part] = slice(start, start + len(names))
            start += len(names)
    return slices

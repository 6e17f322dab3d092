"""What a policy commands: the parts of an action, always in this order."""

from __future__ import annotations

from collections.abc import Sequence

from rearrange.home.errors import UserError
from rearrange.home.robot.fetch import ARM_DELTA_RAD

ACTION_SIZES = {"arm": 7, "grip": 1, "base": 2, "stop": 1}
ACTION_NAMES = {"arm": ("arm.shoulder_pan", "arm.shoulder_lift", "arm.upperarm_roll", "arm.elbow_flex",
                        "arm.forearm_roll", "arm.wrist_flex", "arm.wrist_roll"),
                "grip": ("grip",), "base": ("base.forward", "base.left_turn"), "stop": ("stop",)}
"""What each number of a part commands."""


def action_meanings(base_speed_m_s: float, base_turn_rad_s: float) -> dict[str, str]:
    """What the numbers of each part, from -1 to 1, do."""
    return {"arm": f"joint deltas; ±1 is ±{ARM_DELTA_RAD:g} rad per step",
            "grip": "0 or more: suction on; less: release",
            "base": f"forward speed, turn rate; ±1 is ±{base_speed_m_s:g} m/s, ±{base_turn_rad_s:g} rad/s",
            "stop": "more than 0: stop"}


def action_slices(parts: Sequence[str]) -> dict[str, slice]:
    """Where each part stands in the action of a skill that commands these parts."""
    unknown = [part for part in parts if part not in ACTION_SIZES]
    if unknown or not parts:
        raise UserError(f"action_parts={list(parts)} should be some of {', '.join(ACTION_SIZES)}.")
    slices, start = {}, 0
    for name, size in ACTION_SIZES.items():
        if name in parts:
            slices[name] = slice(start, start + size)
            start += size
    return slices

"""Close fridge: push the fridge's open door shut and bring the hand back to rest.

Observation: depth image, arm joint angles, whether something is held, the vector from the end-effector to its resting
place, end-effector position, the handle in the end-effector frame, position and speed of the door.
Action: arm joint deltas, base speed and turn (also in Szot et al.'s space); no grip, as in HAB.
Success: the door is open by less than 0.05 rad, and the end-effector is within 0.15 m of rest.
Failure: too much force on the arm; with a grip, also as in `skills.open_fridge`.
Start: the door open by 45 to 120 degrees, the robot before the fridge as near as the door allows, facing the handle.

Source: HAB's close-fridge skill (habitat-lab v0.2.2), whose limited action space has the base already.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rearrange.home.settings.setting_fields import like
from skills.articulated import Articulated, ArticulatedConfig, scales
from skills.settings import action_parts


@dataclass(frozen=True)
class CloseFridgeConfig(ArticulatedConfig):
    """Choices of the task; the defaults are HAB's where HAB has them."""

    skill = "close_fridge"
    action_parts: tuple[str, ...] = action_parts(
        "arm", "base", text="the base belongs to Szot et al.'s action space too; [arm, grip, base] adds the hand")
    target_opening: float = like(ArticulatedConfig, "target_opening", text="of the door, rad")
    start_aside_m: float = like(ArticulatedConfig, "start_aside_m", 0.12)
    reward_scales: Mapping[str, float] = scales("door", "radian", "closed", rest=1.0, grasped=0.0, hold_broken=-10.0)


class CloseFridge(Articulated):
    """The close-fridge task. See the top of this file."""

    name = "close_fridge"
    settings = CloseFridgeConfig
    joint_prefix = "fridge"
    closes = True

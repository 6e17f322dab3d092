"""Open fridge: pull the fridge's door open by its handle and bring the hand back to rest.

Observation: depth image, arm joint angles, whether something is held, the vector from the end-effector to its resting
place, end-effector position, the handle in the end-effector frame, position and speed of the door.
Action: arm joint deltas, grip, base speed and turn (also in Szot et al.'s space, which limits this skill in nothing).
Success: the door is open by more than 1.17 rad, nothing is held, and the end-effector is within 0.15 m of rest.
Failure: the hand takes anything but the handle, the hold is torn off, too much force on the arm.
Start: the door closed, the robot before the fridge as near as its hand allows, facing the handle, with noise.

Source: HAB's open-fridge skill (habitat-lab v0.2.2), on which VER (Wijmans et al. 2022) measures its speed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rearrange.home.settings.setting_fields import like
from skills.articulated import Articulated, ArticulatedConfig, holding_on, scales
from skills.settings import action_parts


@dataclass(frozen=True)
class OpenFridgeConfig(ArticulatedConfig):
    """Choices of the task; the defaults are HAB's where HAB has them."""

    skill = "open_fridge"
    action_parts: tuple[str, ...] = action_parts(
        "arm", "grip", "base", text="the base belongs to Szot et al.'s action space too")
    target_opening: float = like(ArticulatedConfig, "target_opening", 1.2207963, "of the door, rad")  # pi/2 - 0.35
    start_aside_m: float = like(ArticulatedConfig, "start_aside_m", 0.12)
    reward_scales: Mapping[str, float] = scales("door", "radian", "open", rest=1.0, grasped=5.0, hold_broken=-1.0)
    initial_mean: Mapping[str, float | None] = holding_on()


class OpenFridge(Articulated):
    """The open-fridge task. See the top of this file."""

    name = "open_fridge"
    settings = OpenFridgeConfig
    joint_prefix = "fridge"

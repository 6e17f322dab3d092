"""Open cabinet: pull a drawer of the kitchen counter open by its handle and bring the hand back to rest.

Observation: depth image, arm joint angles, whether something is held, the vector from the end-effector to its resting
place, end-effector position, the handle in the end-effector frame, position and speed of the drawer.
Action: arm joint deltas, grip, base speed and turn; Szot et al.'s (2021) limited space has no base.
Success: the drawer is open by more than 0.40 m, nothing is held, and the end-effector is within 0.15 m of rest.
Failure: the hand takes anything but the handle, the hold is torn off, too much force on the arm.
Start: the drawer closed, the robot 0.86 to 0.89 m before its handle, facing it, with noise.

Source: HAB's open-cabinet skill (habitat-lab v0.2.2) with the mobile action space of VER (Wijmans et al. 2022).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rearrange.home.settings.setting_fields import like
from skills.articulated import Articulated, ArticulatedConfig, holding_on, scales
from skills.settings import action_parts


@dataclass(frozen=True)
class OpenCabinetConfig(ArticulatedConfig):
    """Choices of the task; the defaults are HAB's where HAB has them."""

    skill = "open_cabinet"
    action_parts: tuple[str, ...] = action_parts(
        "arm", "grip", "base", text="[arm, grip] is the limited action space of Szot et al.")
    target_opening: float = like(ArticulatedConfig, "target_opening", 0.45, "of the drawer, m")
    start_distance_m: tuple[float, float] = like(ArticulatedConfig, "start_distance_m", (0.86, 0.89))
    reward_scales: Mapping[str, float] = scales("drawer", "metre", "open", rest=10.0, grasped=5.0, hold_broken=-1.0)
    initial_mean: Mapping[str, float | None] = holding_on()


class OpenCabinet(Articulated):
    """The open-cabinet task. See the top of this file."""

    name = "open_cabinet"
    settings = OpenCabinetConfig
    joint_prefix = "drawer"

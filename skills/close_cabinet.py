"""Close cabinet: push an open drawer of the kitchen counter shut and bring the hand back to rest.

Observation: depth image, arm joint angles, whether something is held, the vector from the end-effector to its resting
place, end-effector position, the handle in the end-effector frame, position and speed of the drawer.
Action: arm joint deltas, base speed and turn; no grip, as in HAB. Szot et al.'s (2021) limited space is the arm alone.
Success: the drawer is open by less than 0.05 m, and the end-effector is within 0.15 m of rest.
Failure: too much force on the arm; with a grip, also as in `skills.open_cabinet`.
Start: the drawer open by 0.40 to 0.50 m, the robot 0.82 to 0.83 m before its handle, facing it, with noise.

Source: HAB's close-cabinet skill (habitat-lab v0.2.2) with the base of VER's mobile action space (Wijmans et al. 2022).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rearrange.home.settings.setting_fields import like
from skills.articulated import Articulated, ArticulatedConfig, scales
from skills.settings import action_parts


@dataclass(frozen=True)
class CloseCabinetConfig(ArticulatedConfig):
    """Choices of the task; the defaults are HAB's where HAB has them."""

    skill = "close_cabinet"
    action_parts: tuple[str, ...] = action_parts(
        "arm", "base", text="[arm] is the limited action space of Szot et al.; [arm, grip, base] adds the hand")
    target_opening: float = like(ArticulatedConfig, "target_opening", text="of the drawer, m")
    start_distance_m: tuple[float, float] = like(ArticulatedConfig, "start_distance_m", (0.82, 0.83))
    reward_scales: Mapping[str, float] = scales("drawer", "metre", "closed", rest=1.0, grasped=0.0, hold_broken=-10.0)


class CloseCabinet(Articulated):
    """The close-cabinet task. See the top of this file."""

    name = "close_cabinet"
    settings = CloseCabinetConfig
    joint_prefix = "drawer"
    closes = True

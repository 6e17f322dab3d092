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
from dataclasses import dataclass, field

from skills.articulated import OBSERVATION_KEYS, Articulated, ArticulatedConfig, check
from skills.skill import merge_scales

REWARD_SCALES = {
    "opening": 10.0,  # per radian that the door comes nearer to its target, until it first stands there
    "handle": 1.0,  # per metre nearer: end-effector to handle, until the door is closed
    "rest": 1.0,  # per metre nearer: end-effector to rest, once the door is closed
    "grasped": 0.0,  # once, when the handle is first held, where there is a grip
    "reached": 5.0,  # once, when the door is first closed
    "released": 0.0,  # once, when the handle is first let go after the door has been closed
    "success": 10.0,
    "wrong_grasp": -5.0,
    "hold_broken": -10.0,
    "force_limit": 0.0,
    "force": 0.0,  # per newton that the arm's contact force rises
    "base_contact": -0.005,  # at the full push of the base's motors
    "slack": 0.0,  # every step
}


@dataclass(frozen=True)
class CloseFridgeConfig(ArticulatedConfig):
    """Choices of the task; the defaults are HAB's where HAB has them."""

    action_parts: tuple[str, ...] = ("arm", "base")
    observation_keys: tuple[str, ...] = OBSERVATION_KEYS
    max_steps: int = 200
    target_opening: float = 0.0  # rad
    opening_tolerance: float = 0.05
    start_distance_m: tuple[float, float] = (1.0, 1.083)
    start_aside_m: float = 0.12
    start_yaw_noise_rad: float = 0.15
    rest_position_m: tuple[float, float, float] = (0.5, 0.0, 1.0)
    rest_radius_m: float = 0.15
    max_accumulated_force_n: float | None = 20_000.0  # HAB's from v0.2.3 on; none before
    max_force_step_n: float = 1000.0
    reward_scales: Mapping[str, float] = field(default_factory=lambda: dict(REWARD_SCALES))

    def __post_init__(self) -> None:
        check(self)
        object.__setattr__(self, "reward_scales", merge_scales("close_fridge", REWARD_SCALES, self.reward_scales))


class CloseFridge(Articulated):
    """The close-fridge task. See the top of this file."""

    name = "close_fridge"
    description = "Push the fridge's open door shut."
    episode_kind = "close_fridge"
    joint_prefix = "fridge"
    closes = True

    def __init__(self, config: CloseFridgeConfig = CloseFridgeConfig()) -> None:
        self.config = config

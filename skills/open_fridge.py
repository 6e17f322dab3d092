"""Open fridge: pull the fridge's door open by its handle and bring the hand back to rest.

Observation: depth image, arm joint angles, whether something is held, the vector from the end-effector to its resting
place, end-effector position, the handle in the end-effector frame, position and speed of the door.
Action: arm joint deltas, grip, base speed and turn (also in Szot et al.'s space, which limits this skill in nothing).
Success: the door is open by more than 1.17 rad, nothing is held, and the end-effector is within 0.15 m of rest.
Failure: the suction takes anything but the handle, the hold is torn off, too much force on the arm.
Start: the door closed, the robot before the fridge as near as its hand allows, facing the handle, with noise.

Source: HAB's open-fridge skill (habitat-lab v0.2.2), on which VER (Wijmans et al. 2022) measures its speed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from skills.articulated import OBSERVATION_KEYS, Articulated, ArticulatedConfig, check
from skills.skill import merge_scales

REWARD_SCALES = {
    "opening": 10.0,  # per radian that the door comes nearer to its target, until it first stands there
    "handle": 1.0,  # per metre nearer: end-effector to handle, while it holds nothing
    "rest": 1.0,  # per metre nearer: end-effector to rest, once the door is open
    "grasped": 5.0,  # once, when the handle is first held
    "reached": 5.0,  # once, when the door is first open
    "released": 0.0,  # once, when the handle is first let go after the door has been open
    "success": 10.0,
    "wrong_grasp": -5.0,
    "hold_broken": -1.0,
    "force_limit": 0.0,
    "force": 0.0,  # per newton that the arm's contact force rises
    "base_contact": -0.005,  # at the full push of the base's motors
    "slack": 0.0,  # every step
}


@dataclass(frozen=True)
class OpenFridgeConfig(ArticulatedConfig):
    """Choices of the task; the defaults are HAB's where HAB has them."""

    action_parts: tuple[str, ...] = ("arm", "grip", "base")
    observation_keys: tuple[str, ...] = OBSERVATION_KEYS
    max_steps: int = 200
    target_opening: float = 1.2207963  # rad: pi/2 - 0.35
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
        object.__setattr__(self, "reward_scales", merge_scales("open_fridge", REWARD_SCALES, self.reward_scales))


class OpenFridge(Articulated):
    """The open-fridge task. See the top of this file."""

    name = "open_fridge"
    description = "Pull the fridge's door open by its handle."
    episode_kind = "open_fridge"
    joint_prefix = "fridge"

    def __init__(self, config: OpenFridgeConfig = OpenFridgeConfig()) -> None:
        self.config = config

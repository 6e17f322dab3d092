"""Open cabinet: pull a drawer of the kitchen counter open by its handle and bring the hand back to rest.

Observation: depth image, arm joint angles, whether something is held, the vector from the end-effector to its resting
place, end-effector position, the handle in the end-effector frame, position and speed of the drawer.
Action: arm joint deltas, grip, base speed and turn; Szot et al.'s (2021) limited space has no base.
Success: the drawer is open by more than 0.40 m, nothing is held, and the end-effector is within 0.15 m of rest.
Failure: the suction takes anything but the handle, the hold is torn off, too much force on the arm.
Start: the drawer closed, the robot 0.86 to 0.89 m before its handle, facing it, with noise.

Source: HAB's open-cabinet skill (habitat-lab v0.2.2) with the mobile action space of VER (Wijmans et al. 2022).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from skills.articulated import OBSERVATION_KEYS, Articulated, ArticulatedConfig, check
from skills.skill import merge_scales

REWARD_SCALES = {
    "opening": 10.0,  # per metre that the drawer comes nearer to its target, until it first stands there
    "handle": 1.0,  # per metre nearer: end-effector to handle, while it holds nothing
    "rest": 10.0,  # per metre nearer: end-effector to rest, once the drawer is open
    "grasped": 5.0,  # once, when the handle is first held
    "reached": 5.0,  # once, when the drawer is first open
    "released": 0.0,  # once, when the handle is first let go after the drawer has been open
    "success": 10.0,
    "wrong_grasp": -5.0,
    "hold_broken": -1.0,
    "force_limit": 0.0,
    "force": 0.0,  # per newton that the arm's contact force rises
    "base_contact": -0.005,  # at the full push of the base's motors
    "slack": 0.0,  # every step
}


@dataclass(frozen=True)
class OpenCabinetConfig(ArticulatedConfig):
    """Choices of the task; the defaults are HAB's where HAB has them."""

    action_parts: tuple[str, ...] = ("arm", "grip", "base")  # ("arm", "grip") is the limited action space
    observation_keys: tuple[str, ...] = OBSERVATION_KEYS
    max_steps: int = 200
    target_opening: float = 0.45  # m
    opening_tolerance: float = 0.05
    start_distance_m: tuple[float, float] = (0.86, 0.89)
    start_aside_m: float = 0.07
    start_yaw_noise_rad: float = 0.15
    rest_position_m: tuple[float, float, float] = (0.5, 0.0, 1.0)
    rest_radius_m: float = 0.15
    max_accumulated_force_n: float | None = 20_000.0  # HAB's from v0.2.3 on; none before
    max_force_step_n: float = 1000.0
    reward_scales: Mapping[str, float] = field(default_factory=lambda: dict(REWARD_SCALES))

    def __post_init__(self) -> None:
        check(self)
        object.__setattr__(self, "reward_scales", merge_scales("open_cabinet", REWARD_SCALES, self.reward_scales))


class OpenCabinet(Articulated):
    """The open-cabinet task. See the top of this file."""

    name = "open_cabinet"
    description = "Pull a drawer of the kitchen counter open by its handle."
    episode_kind = "open_cabinet"
    joint_prefix = "drawer"

    def __init__(self, config: OpenCabinetConfig = OpenCabinetConfig()) -> None:
        self.config = config

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
from dataclasses import dataclass, field

from skills.articulated import OBSERVATION_KEYS, Articulated, ArticulatedConfig, check
from skills.skill import merge_scales

REWARD_SCALES = {
    "opening": 10.0,  # per metre that the drawer comes nearer to its target, until it first stands there
    "handle": 1.0,  # per metre nearer: end-effector to handle, until the drawer is closed
    "rest": 1.0,  # per metre nearer: end-effector to rest, once the drawer is closed
    "grasped": 0.0,  # once, when the handle is first held, where there is a grip
    "reached": 5.0,  # once, when the drawer is first closed
    "released": 0.0,  # once, when the handle is first let go after the drawer has been closed
    "success": 10.0,
    "wrong_grasp": -5.0,
    "hold_broken": -10.0,
    "force_limit": 0.0,
    "force": 0.0,  # per newton that the arm's contact force rises
    "base_contact": -0.005,  # at the full push of the base's motors
    "slack": 0.0,  # every step
}


@dataclass(frozen=True)
class CloseCabinetConfig(ArticulatedConfig):
    """Choices of the task; the defaults are HAB's where HAB has them."""

    action_parts: tuple[str, ...] = ("arm", "base")  # ("arm",) is the limited action space
    observation_keys: tuple[str, ...] = OBSERVATION_KEYS
    max_steps: int = 200
    target_opening: float = 0.0  # m
    opening_tolerance: float = 0.05
    start_distance_m: tuple[float, float] = (0.82, 0.83)
    start_aside_m: float = 0.07
    start_yaw_noise_rad: float = 0.15
    rest_position_m: tuple[float, float, float] = (0.5, 0.0, 1.0)
    rest_radius_m: float = 0.15
    max_accumulated_force_n: float | None = 20_000.0  # HAB's from v0.2.3 on; none before
    max_force_step_n: float = 1000.0
    reward_scales: Mapping[str, float] = field(default_factory=lambda: dict(REWARD_SCALES))

    def __post_init__(self) -> None:
        check(self)
        object.__setattr__(self, "reward_scales", merge_scales("close_cabinet", REWARD_SCALES, self.reward_scales))


class CloseCabinet(Articulated):
    """The close-cabinet task. See the top of this file."""

    name = "close_cabinet"
    description = "Push an open drawer of the kitchen counter shut."
    episode_kind = "close_cabinet"
    joint_prefix = "drawer"
    closes = True

    def __init__(self, config: CloseCabinetConfig = CloseCabinetConfig()) -> None:
        self.config = config

"""Pick: take one object in the hand and bring the hand back to its resting place.

Observation: depth image, start position of the object in the end-effector frame, arm joint angles, whether something is
held, the vector from the end-effector to its resting place, end-effector position (see `PickConfig.observation_keys`).
Action: arm joint deltas, grip, base speed and turn; without the base for the limited action space of Szot et al.
(2021). Reward: HAB's, see `PickConfig.reward_scales`.
Success: the right object in the hand, and the end-effector within 0.15 m of its resting place.
Failure: another object or a handle taken, the object dropped, the hold torn off, too much force on the arm.
Start: close to the receptacle on which the object stands, facing it, with noise. With `any_start`,
anywhere around it from where the object is in reach.

Source: Habitat 2.0's Pick (habitat-lab v0.2.2) with the mobile action space of VER (Wijmans et al. 2022, section 4).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from rearrange.errors import UserError
from skills.arguments import SkillArguments, about_object
from skills.marks import held_name, object_box, rest_ball, spoken_name
from skills.skill import Skill, contact_terms, distance_to_rest, draw_target, merge_scales, receptacle_of, start_near

if TYPE_CHECKING:
    from rearrange.apartments.episodes import Episode
    from rearrange.simulator import Simulator
    from skills.skill import Mark

REWARD_SCALES = {
    "distance": 20.0,  # per metre nearer: end-effector to object, then end-effector to rest
    "picked": 20.0,  # once, when the right object is first held
    "success": 100.0,
    "wrong_object": -5.0,
    "dropped": -5.0,
    "hold_broken": -10.0,
    "force": -0.001,  # per newton that the arm's contact force rises
    "force_limit": -10.0,
    "base_contact": -0.05,  # at the full push of the base's motors
    "slack": -0.01,  # every step
}


@dataclass(frozen=True)
class PickConfig:
    """Choices of the Pick task; the defaults are HAB's where HAB has them."""

    action_parts: tuple[str, ...] = ("arm", "grip", "base")  # ("arm", "grip") is the limited action space
    observation_keys: tuple[str, ...] = (
        "depth", "obj_start", "joint", "is_holding", "relative_resting_position", "ee_pos")
    max_steps: int = 200
    reward_scales: Mapping[str, float] = field(default_factory=lambda: dict(REWARD_SCALES))
    rest_position_m: tuple[float, float, float] = (0.5, 0.0, 1.0)  # of the end-effector, base frame
    rest_radius_m: float = 0.15
    max_accumulated_force_n: float = 5000.0  # of the arm, over the episode
    max_force_step_n: float = 1000.0  # cap of the force term in one step
    allow_release: bool = False  # HAB ignores the release command while the object is held
    start_position_noise_m: float = 0.05
    start_yaw_noise_rad: float = 0.15
    any_start: bool = False  # anywhere from where the object is in reach, not only HAB's nearest place

    def __post_init__(self) -> None:
        object.__setattr__(self, "reward_scales", merge_scales("pick", REWARD_SCALES, self.reward_scales))
        if len(self.rest_position_m) != 3:
            raise UserError(f"skill.rest_position_m={list(self.rest_position_m)} must be three numbers: x, y, z in the "
                            "base frame, in metres.")


class Pick(Skill):
    """The Pick task. See the top of this file."""

    name = "pick"
    description = "Take an object from where it stands and bring the hand back to rest."
    episode_kind = "pick"
    failures = ("wrong_object", "dropped", "hold_broken", "force_limit")

    def __init__(self, config: PickConfig = PickConfig()) -> None:
        self.config = config

    def start(self, sim: Simulator, episode: Episode, rng: np.random.Generator) -> None:
        order = draw_target(episode, rng)
        arguments = about_object(sim, episode, list(episode.targets)[order])
        start_near(sim, arguments.position, receptacle_of(sim, episode, "target_receptacles", order), rng,
                   position_noise_m=self.config.start_position_noise_m, yaw_noise_rad=self.config.start_yaw_noise_rad,
                   any_start=self.config.any_start)
        self.begin(sim, arguments)

    def begin(self, sim: Simulator, arguments: SkillArguments) -> None:
        self.arguments = arguments
        sim.want(arguments.target)
        self._picked = False
        self._distance_m = self._distance(sim)

    def grip_command(self, sim: Simulator, grip: float) -> float:
        return 1.0 if sim.is_holding and not self.config.allow_release else grip

    def success(self, sim: Simulator) -> bool:
        at_rest = distance_to_rest(sim, self.config.rest_position_m) < self.config.rest_radius_m
        return sim.held == self.target and at_rest

    def failure(self, sim: Simulator) -> str | None:
        if sim.hold_broken:
            return "hold_broken"
        if sim.held_handle is not None or sim.held not in (None, self.target):
            return "wrong_object"
        if sim.released:
            return "dropped"
        if sim.accumulated_arm_force_n > self.config.max_accumulated_force_n:
            return "force_limit"
        return None

    def reward_terms(self, sim: Simulator) -> dict[str, float]:
        failure = self.failure(sim)
        distance = self._distance(sim)
        picked_now = sim.held == self.target and not self._picked
        # At the moment of the grasp the distance changes its meaning: no progress is counted then.
        nearer = 0.0 if picked_now or failure in ("dropped", "hold_broken") else self._distance_m - distance
        self._distance_m = distance
        self._picked = self._picked or picked_now
        return {
            "distance": nearer,
            "picked": float(picked_now),
            "success": float(failure is None and self.success(sim)),
            **{name: float(failure == name) for name in self.failures},
            **contact_terms(sim, self.config.max_force_step_n),
            "slack": 1.0,
        }

    def measures(self) -> dict[str, float]:
        """How far the episode got."""
        return {"picked": float(self._picked)}

    def marks(self, sim: Simulator) -> list[Mark]:
        return [object_box(sim, self.target), rest_ball(sim, self.config.rest_position_m)]

    def status_lines(self, sim: Simulator) -> list[str]:
        to_object = math.dist(sim.ee_position, sim.object_position(self.target))
        to_rest = distance_to_rest(sim, self.config.rest_position_m)
        return [f"object: {spoken_name(sim, self.target)}", f"holds {held_name(sim, self.target)}",
                f"hand to object {to_object:.2f} m", f"hand to rest {to_rest:.2f} m"]

    def _distance(self, sim: Simulator) -> float:
        """From the end-effector to the object, or to rest once the object is held (m)."""
        if sim.held == self.target:
            return distance_to_rest(sim, self.config.rest_position_m)
        return math.dist(sim.ee_position, sim.object_position(self.target))

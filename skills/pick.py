"""Pick: take an object from where it stands and bring the hand back to rest.

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
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rearrange.home.settings.setting_fields import block, setting
from skills.arguments import SkillArguments, about_object
from skills.picture_marks import away_from, held_name, object_box, place_name, rest_ball, spoken_name
from skills.settings import SLOW_BASE, SkillConfig, action_parts, initial_std, observation_keys
from skills.skill import Skill, contact_terms, distance_to_rest, draw_target, receptacle_of, start_near

if TYPE_CHECKING:
    import numpy as np

    from rearrange.home.apartments.episodes import Episode
    from rearrange.home.simulation.simulator_interface import Simulator
    from skills.skill import Mark


@dataclass(frozen=True)
class PickConfig(SkillConfig):
    """Choices of the Pick task; the defaults are HAB's where HAB has them."""

    skill = "pick"
    action_parts: tuple[str, ...] = action_parts(
        "arm", "grip", "base", text="[arm, grip] is the limited action space of Szot et al.")
    observation_keys: tuple[str, ...] = observation_keys(
        "depth", "obj_start", "joint", "is_holding", "relative_resting_position", "ee_pos")
    max_steps: int = setting(200, "steps of an episode, 30 a second", above=0, at_most=1_000_000)
    rest_position_m: tuple[float, float, float] | None = setting(
        None, "where the end-effector rests, in the base frame; null = the robot's, of the Fetch (0.5, 0, 1)")
    rest_radius_m: float = setting(0.15, "success: the object held, and the end-effector this close to rest", above=0)
    max_accumulated_force_n: float = setting(5000.0, "sum of the arm's contact force that ends an episode", above=0)
    max_force_step_n: float = setting(1000.0, "cap of the force term in one step", above=0)
    allow_release: bool = setting(False, "false ignores the release command while the object is held, as HAB")
    start_position_noise_m: float = setting(0.05, "standard deviation of the robot's start position", at_least=0)
    start_yaw_noise_rad: float = setting(0.15, "standard deviation of the robot's start direction", at_least=0)
    any_start: bool = setting(
        False, "it starts anywhere from where the object is in reach, not only at the nearest place")
    reward_scales: Mapping[str, float] = block(
        distance=setting(20.0, "per metre nearer: end-effector to object, then end-effector to rest"),
        picked=setting(20.0, "once, when the right object is first held"),
        success=setting(100.0, "once, at success"),
        wrong_object=setting(-5.0, "another object or a handle taken; ends the episode"),
        dropped=setting(-5.0, "the object fell; ends the episode"),
        hold_broken=setting(-10.0, "the hold was torn off; ends the episode"),
        force=setting(-0.001, "per newton that the arm's contact force rises"),
        force_limit=setting(-10.0, "too much force on the arm; ends the episode"),
        base_contact=setting(-0.05, "at the full push of the base's motors"),
        slack=setting(-0.01, "every step"),
    )
    initial_std: Mapping[str, float | None] = initial_std("arm", "grip", "base", base=SLOW_BASE)


class Pick(Skill):
    """The Pick task. See the top of this file."""

    name = "pick"
    settings = PickConfig
    config: PickConfig
    failures = ("wrong_object", "dropped", "hold_broken", "force_limit")

    def start(self, sim: Simulator, episode: Episode, rng: np.random.Generator) -> None:
        order = draw_target(episode, rng, sim)
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
        at_rest = distance_to_rest(sim, self.rest_m(sim)) < self.config.rest_radius_m
        return sim.held == self.arguments.target and at_rest

    def failure(self, sim: Simulator) -> str | None:
        if sim.hold_broken:
            return "hold_broken"
        if sim.held_handle is not None or sim.held not in (None, self.arguments.target):
            return "wrong_object"
        if sim.released:
            return "dropped"
        if sim.accumulated_arm_force_n > self.config.max_accumulated_force_n:
            return "force_limit"
        return None

    def reward_terms(self, sim: Simulator) -> dict[str, float]:
        failure = self.failure(sim)
        distance = self._distance(sim)
        picked_now = sim.held == self.arguments.target and not self._picked
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
        return [object_box(sim, self.arguments.target), rest_ball(sim, self.rest_m(sim))]

    def status_lines(self, sim: Simulator) -> list[str]:
        to_object = math.dist(sim.ee_position, sim.object_position(self.arguments.target))
        to_rest = distance_to_rest(sim, self.rest_m(sim))
        return [f"object: {spoken_name(sim, self.arguments.target)}", f"holds {held_name(sim, self.arguments.target)}",
                f"hand to object {to_object:.2f} m", f"hand to rest {to_rest:.2f} m"]

    def instructions(self, sim: Simulator) -> tuple[str, ...]:
        thing, place = spoken_name(sim, self.arguments.target), place_name(sim, self.arguments.position)
        return tuple(" ".join(words.split()) for words in (
            f"take the {thing} {away_from(place)}", f"pick up the {thing} {place and f'that is {place}'}",
            f"grasp the {thing} {place} and lift it"))

    def _distance(self, sim: Simulator) -> float:
        """From the end-effector to the object, or to rest once the object is held (m)."""
        if sim.held == self.arguments.target:
            return distance_to_rest(sim, self.rest_m(sim))
        return math.dist(sim.ee_position, sim.object_position(self.arguments.target))

"""Place: put the object in the hand down at its goal and bring the hand back to rest.

Observation: depth image, goal of the object in the end-effector frame, arm joint angles, whether something is held, the
vector from the end-effector to its resting place, end-effector position (see `PlaceConfig.observation_keys`).
Action: arm joint deltas, grip, base speed and turn; without the base for the limited action space of Szot et al.
(2021). What has been let go cannot be taken again. Reward: HAB's, see `PlaceConfig.reward_scales`.
Success: the hand empty, the object within 0.15 m of its goal, and the end-effector within 0.15 m of its resting place;
with `settle_steps`, the object for that long already.
Failure: too much force on the arm. An object let go elsewhere does not end the episode unless `end_on_drop` says so.
Start: the object in the hand, held by its top; close to the receptacle on which the goal is, facing it, with noise.
With `any_start`, anywhere around it from where the goal is in reach.

Source: Habitat 2.0's Place (habitat-lab v0.2.2) with the mobile action space of VER (Wijmans et al. 2022, section 4).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rearrange.home.settings.setting_fields import block, like, setting
from skills.arguments import SkillArguments, about_object
from skills.pick import PickConfig
from skills.picture_marks import held_name, object_box, object_ghost, place_name, rest_ball, spoken_name
from skills.settings import SkillConfig, initial_mean, observation_keys
from skills.skill import Skill, contact_terms, distance_to_rest, draw_target, receptacle_of, start_near

if TYPE_CHECKING:
    import numpy as np

    from rearrange.home.apartments.episodes import Episode
    from rearrange.home.simulation.simulator_interface import Simulator
    from skills.skill import Mark


@dataclass(frozen=True)
class PlaceConfig(SkillConfig):
    """Choices of the Place task; the defaults are HAB's where HAB has them."""

    skill = "place"
    action_parts: tuple[str, ...] = like(PickConfig, "action_parts")
    observation_keys: tuple[str, ...] = observation_keys(
        "depth", "obj_goal", "joint", "is_holding", "relative_resting_position", "ee_pos")
    max_steps: int = like(PickConfig, "max_steps")
    rest_position_m: tuple[float, float, float] | None = like(PickConfig, "rest_position_m")
    rest_radius_m: float = like(
        PickConfig, "rest_radius_m", text="success: the object at its goal, and the end-effector this close to rest")
    goal_radius_m: float = setting(0.15, "how close to its goal the object has to be", above=0)
    placed_radius_m: float = setting(
        0.15, "how close when it is let go, for the reward; less teaches to set down, not to drop", above=0)
    settle_steps: int = setting(
        0, "steps for which the object has to have been there; 0, as HAB, counts it while it still falls", at_least=0,
        at_most=1000)
    max_accumulated_force_n: float = like(PickConfig, "max_accumulated_force_n")
    max_force_step_n: float = like(PickConfig, "max_force_step_n")
    end_on_drop: bool = setting(False, "true ends the episode when the object is let go elsewhere; HAB goes on")
    start_position_noise_m: float = like(PickConfig, "start_position_noise_m")
    start_yaw_noise_rad: float = like(PickConfig, "start_yaw_noise_rad")
    any_start: bool = like(
        PickConfig, "any_start",
        text="it starts anywhere from where the goal is in reach, not only at the nearest place")
    reward_scales: Mapping[str, float] = block(
        distance=setting(20.0, "per metre nearer: object to goal, then end-effector to rest"),
        placed=setting(20.0, "once, when the object is let go at its goal"),
        success=setting(10.0, "once, at success"),
        dropped=setting(0.0, "once, when the object is let go elsewhere"),
        tilt=setting(
            0.0,
            "once, per radian by which the object leans when it is let go; less than 0 teaches to hold it upright"),
        tossed=setting(
            0.0, "once, per m/s at which the object moves when it is let go; less than 0 teaches to set it down"),
        hold_broken=setting(-10.0, "the hold was torn off; the episode goes on"),
        force=setting(-0.001, "per newton that the arm's contact force rises"),
        force_limit=setting(-10.0, "too much force on the arm; ends the episode"),
        base_contact=setting(-0.05, "at the full push of the base's motors"),
        slack=setting(0.0, "every step"),
    )
    initial_std: Mapping[str, float | None] = like(PickConfig, "initial_std")
    initial_mean: Mapping[str, float | None] = initial_mean(
        "arm", "grip", "base", grip=(1.5, "more than 0 lets it hold on until it finds out when to let go"))


class Place(Skill):
    """The Place task. See the top of this file."""

    name = "place"
    settings = PlaceConfig
    config: PlaceConfig
    failures = ("dropped", "force_limit")

    def start(self, sim: Simulator, episode: Episode, rng: np.random.Generator) -> None:
        order = draw_target(episode, rng, sim)
        arguments = about_object(sim, episode, list(episode.targets)[order])
        start_near(sim, arguments.goal[:3], receptacle_of(sim, episode, "goal_receptacles", order), rng,
                   position_noise_m=self.config.start_position_noise_m, yaw_noise_rad=self.config.start_yaw_noise_rad,
                   held=arguments.target, any_start=self.config.any_start)
        self.begin(sim, arguments)

    def may_be_about(self, sim: Simulator, episode: Episode) -> list[int | str]:
        return list(episode.targets)  # which have a goal

    def begin(self, sim: Simulator, arguments: SkillArguments) -> None:
        """Start from where the robot stands with the object in the hand."""
        self.arguments = arguments
        sim.want(arguments.target)
        self._let_go = self._put_down = False
        self._placed = False  # at the last step
        self._placed_steps = 0  # one after another
        self._distance_m = self._distance(sim)
        self._stood = tuple(sim.object_position(arguments.target))  # where the object was at the last step

    def grip_command(self, sim: Simulator, grip: float) -> float:
        return grip if sim.is_holding else -1.0  # HAB does not let it take anything again

    def success(self, sim: Simulator) -> bool:
        at_rest = distance_to_rest(sim, self.rest_m(sim)) < self.config.rest_radius_m
        return at_rest and self._is_placed(sim) and self._placed_steps >= self.config.settle_steps

    def begins_solved(self, sim: Simulator) -> bool:
        """Whether the object has been put down at its goal already, wherever the hand is."""
        return self._is_placed(sim)

    def failure(self, sim: Simulator) -> str | None:
        if sim.accumulated_arm_force_n > self.config.max_accumulated_force_n:
            return "force_limit"
        if self.config.end_on_drop and not sim.is_holding and self._to_goal(sim) >= self.config.goal_radius_m:
            return "dropped"
        return None

    def reward_terms(self, sim: Simulator) -> dict[str, float]:
        from rearrange.home.simulation.simulator_interface import STEP_S  # imports numpy, which `--help` must not

        failure = self.failure(sim)
        was_placed, self._placed = self._placed, self._is_placed(sim)
        self._placed_steps = self._placed_steps + 1 if self._placed else 0
        distance = self._distance(sim)
        # When the object arrives or leaves, the distance changes its meaning: no progress is counted then.
        nearer = 0.0 if self._placed != was_placed else self._distance_m - distance
        self._distance_m = distance
        before, self._stood = self._stood, tuple(sim.object_position(self.arguments.target))
        let_go_now = not (sim.is_holding or self._let_go)
        self._let_go |= let_go_now
        self._put_down |= let_go_now and self._placed
        return {
            "distance": nearer,
            "placed": float(let_go_now and self._to_goal(sim) < self.config.placed_radius_m),
            "success": float(failure is None and self.success(sim)),
            "dropped": float(let_go_now and not self._placed),
            "tilt": self._tilt_rad(sim) if let_go_now else 0.0,
            "tossed": math.dist(before, self._stood) / STEP_S if let_go_now else 0.0,
            "hold_broken": float(sim.hold_broken),
            "force_limit": float(failure == "force_limit"),
            **contact_terms(sim, self.config.max_force_step_n),
            "slack": 1.0,
        }

    def measures(self) -> dict[str, float]:
        """How far the episode got: the object was let go at its goal, or elsewhere, or not at all; and at the end it is
        at its goal and out of the hand.
        """
        return {"placed": float(self._put_down), "let_go_elsewhere": float(self._let_go and not self._put_down),
                "at_goal": float(self._placed)}

    def marks(self, sim: Simulator) -> list[Mark]:
        ghost = object_ghost(sim.episode.objects[self.arguments.target], self.arguments.goal)
        return [object_box(sim, self.arguments.target), ghost, rest_ball(sim, self.rest_m(sim))]

    def status_lines(self, sim: Simulator) -> list[str]:
        to_rest = distance_to_rest(sim, self.rest_m(sim))
        return [f"object: {spoken_name(sim, self.arguments.target)}", f"holds {held_name(sim, self.arguments.target)}",
                f"object to goal {self._to_goal(sim):.2f} m", f"hand to rest {to_rest:.2f} m"]

    def instructions(self, sim: Simulator) -> tuple[str, ...]:
        thing = spoken_name(sim, self.arguments.target)
        place = place_name(sim, self.arguments.goal[:3]) or "on the floor"
        return f"put the {thing} {place}", f"place the {thing} {place}", f"set the {thing} down {place}"

    def _to_goal(self, sim: Simulator) -> float:
        return math.dist(sim.object_position(self.arguments.target), self.arguments.goal[:3])

    def _tilt_rad(self, sim: Simulator) -> float:
        """Between the upward axis of the object and that at its goal."""
        from rearrange.home.geometry import quat_inverse, quat_multiply  # as above

        _, x, y, _ = quat_multiply(sim.object_pose(self.arguments.target)[3:], quat_inverse(self.arguments.goal[3:]))
        return math.acos(max(-1.0, 1.0 - 2.0 * (x * x + y * y)))

    def _is_placed(self, sim: Simulator) -> bool:
        """The hand is empty and the object is at its goal."""
        return not sim.is_holding and self._to_goal(sim) < self.config.goal_radius_m

    def _distance(self, sim: Simulator) -> float:
        """From the object to its goal, or once it is placed from the end-effector to rest (m)."""
        if self._placed:
            return distance_to_rest(sim, self.rest_m(sim))
        return self._to_goal(sim)

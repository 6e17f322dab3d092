"""TP-SRL: a plan carried out by skills, one after another, in one running scenario.

A skill is run by a policy, whose action is asked for from outside so that many episodes can share a batch, or by its
scripted expert. `Executor.request` says what is needed next; `Executor.advance` takes it and makes one step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.arguments import Arguments
from planner.deploy import Rules, Step, believed_stop, is_over, kept_grip, reset_arm_action, steps_of
from planner.pddl import Atom
from planner.predicates import holds
from planner.scenario import Plan, plan, require_solved
from planner.scenario_env import ScenarioEnv
from planner.search import Outcome
from rearrange.env import OF_MAP, Observation, action_slices, takes_images
from rearrange.episodes import Episode
from rearrange.errors import UserError
from rearrange.fetch import ARM_DELTA_RAD, ARM_START_RAD
from skills.skill import distance_to_rest

if TYPE_CHECKING:
    from skills.skill import Skill

_AT_HOME_RAD = 1e-6  # motors' targets that have been led there are nearer


@dataclass(frozen=True)
class Request:
    """What a policy has to decide next. `first`: the skill has just begun, so recurrent state and previous action are
    to be forgotten.
    """

    skill: str
    observation: Observation
    first: bool


@dataclass
class Record:
    """How one step of the plan went."""

    operator: str
    skill: str
    steps: int = 0
    ended: str = "running"  # done, time_limit, or what ended the episode
    effects_hold: bool | None = None  # measured when it ended
    goal_distance_m: float | None = None  # of navigate: where it handed over, relative to the start of the next skill
    goal_angle_rad: float | None = None
    in_start_zone: bool = False  # of open and close: at rest, with an empty hand that never left where it began


@dataclass
class Report:
    """How an episode went."""

    episode_id: str
    scene: str
    plan: Plan | None  # None: done without one
    records: list[Record] = field(default_factory=list)
    end: str | None = None  # success, bad_stop, time_limit, unstable, or "<skill>: <why>"
    recoveries: int = 0
    never_held: tuple[Atom, ...] = ()  # of the goal, at any step
    metrics: dict[str, float] = field(default_factory=dict)


class Executor:
    """Plans and carries out one episode after another in an environment.

    skills: the skills that the plan may use, each with the configuration that it was trained with. experts: name of a
    skill -> class of the scripted expert that runs it instead of a policy. depth_sizes: pixels of the image that each
    policy sees.
    """

    def __init__(self, env: ScenarioEnv, skills: Mapping[str, Skill], experts: Mapping[str, type] | None = None,
                 rules: Rules = Rules(), depth_sizes: Mapping[str, int] | None = None) -> None:
        self.env, self.sim, self.rules = env, env.sim, rules
        self.skills, self.experts = dict(skills), dict(experts or {})
        self._depth_sizes = dict(depth_sizes or {})
        self.report: Report | None = None
        self.request: Request | None = None
        self.done = True

    # ------------------------------------------------------------------ episodes

    def reset(self, episode: int | Episode, seed: int = 0) -> Report:
        """Load an episode and plan. Raises UserError when there is no plan, or no skill for a step of it."""
        self.env.reset(seed=seed, options={"episode": episode})
        self.episode = self.env.episode
        found = plan(self.sim, self.env.config.problem)
        require_solved(found, self.episode.scene)
        self.report = Report(self.episode.id, self.episode.scene, found)
        self.symbols = found.symbols
        # Start poses are looked for in a second simulator.
        self._arguments = Arguments(self.sim, self.sim.shadow(), self.symbols, self.rules, np.random.default_rng([seed, 1]))
        self.steps = steps_of(found.steps, self.rules)
        for step in self.steps:
            if step.skill not in self.skills:
                raise UserError(f"the plan needs skill {step.skill}, and there is no policy for it: train one with "
                                f"'rearrange train skill={step.skill}', or take skills.{step.skill}=expert.")
        self.at, self.done, self.recoveries, self._has_goal = 0, False, 0, False
        self._begin_next()
        return self.report

    @property
    def step(self) -> Step | None:
        """The step of the plan that is being carried out; None between steps."""
        return self.steps[self.at] if self._phase == "skill" else None

    @property
    def has_goal_pose(self) -> bool:
        """Whether it is known, while navigating, where the next skill would start."""
        return self._has_goal

    def _begin_next(self) -> None:
        """Take up the step `at` of the plan, or the wait before the end."""
        self._count, self._left_start, self._stopped = 0, False, False
        if self.at >= len(self.steps):
            self._phase, self.request = "wait", None
            return
        step = self.steps[self.at]
        self._phase, self._skill = "skill", self.skills[step.skill]
        self._slices = action_slices(self._skill.action_parts)
        self.report.records.append(Record(str(step.operator), step.skill))
        self._has_goal = self._arguments.give(self._skill, step)
        self._start_ee = self.sim.ee_in_base
        self.sim.start_here(self.sim.base_pose)  # what gps, compass and the map of the floor are relative to
        self._expert = self.experts[step.skill](self.sim, self._skill) if step.skill in self.experts else None
        if self._expert is not None:
            self._expert.in_plan = True
        size = self._depth_sizes.get(step.skill, self.env.depth_size)
        self.env.depth_size = size if self._expert is None and takes_images(self._skill.observation_keys) else 0
        self.env.maps_floor = any(key in OF_MAP for key in self._skill.observation_keys)
        self.env.image = self.env.take_image()  # the first image of a skill is not delayed, as in training
        self._ask(first=True)

    def _ask(self, first: bool) -> None:
        self.request = None
        if self._expert is None and self._count % self._skill.action_repeat == 0:
            self.request = Request(self._skill.name, self.env.observe_skill(self._skill, self.env.image), first)

    # ------------------------------------------------------------------ one step

    def advance(self, action: np.ndarray | None = None) -> bool:
        """One step of the environment: with a policy's `action` when `request` asked for one. True when the episode is
        over.
        """
        phases = {"skill": self._advance_skill, "reset_arm": self._advance_reset_arm, "wait": self._advance_wait}
        phases[self._phase](action)
        return self.done

    def _advance_skill(self, action: np.ndarray | None) -> None:
        sim, skill, rules = self.sim, self._skill, self.rules
        if action is not None:
            self._action = action  # holds until the policy is asked again
        values = (self._expert.act() if self._expert is not None else self._action).tolist()
        parts = {name: values[part] for name, part in self._slices.items()}
        grip = skill.grip_command(sim, parts["grip"][0]) if "grip" in parts else None
        if skill.name == "navigate":
            grip = kept_grip(sim.is_holding)
            # Without a stop of its own it drives until its time limit.
            away_m = math.dist(sim.base_pose[:2], skill.nav_point(sim)[:2])
            self._stopped = "stop" in parts and believed_stop(parts["stop"][0], away_m, rules)
        record = self.report.records[-1]
        record.steps += 1
        self._count += 1
        if self._move(parts.get("arm"), grip, parts.get("base")):
            record.ended = self.report.end
            return
        self._left_start = self._left_start or math.dist(sim.ee_in_base, self._start_ee) > rules.start_zone_m
        to_rest_m = distance_to_rest(sim, skill.rest_position_m)
        # A door is pushed shut without reaching out: the way from the start posture to rest alone stays in the zone.
        begun = self._left_start or (skill.closes and skill.at_target(sim))
        limit = self._count >= rules.max_steps[skill.name]
        over = is_over(skill.name, rules, holding=sim.is_holding, rest_distance_m=to_rest_m,
                       left_start=begun, stopped=self._stopped)
        record.in_start_zone = (not begun and skill.name not in ("navigate", "pick", "place") and not sim.is_holding
                                and to_rest_m < rules.rest_radius_m)
        # An expert whose hand passes its resting place on the way out of somewhere is not over yet.
        if limit or (over and not getattr(self._expert, "busy", False)):
            self._end_skill(record, "done" if over else "time_limit")
        else:
            self._ask(first=False)

    def _advance_reset_arm(self, action: None) -> None:
        sim, rules = self.sim, self.rules
        # The motors' targets are led back, not the joints, which they are ahead of: where they stand at the end, the arm goes.
        if self._move(reset_arm_action(sim.arm_targets().tolist(), ARM_START_RAD, ARM_DELTA_RAD), kept_grip(sim.is_holding), None):
            return
        self._count += 1
        arm_off, targets_off = (np.abs(angles - ARM_START_RAD).max() for angles in (sim.arm_positions(), sim.arm_targets()))
        if (arm_off < rules.reset_arm_rad and targets_off < _AT_HOME_RAD) or self._count >= rules.reset_arm_steps:
            self._begin_next()

    def _advance_wait(self, action: None) -> None:
        self._count += 1
        self._move(None, kept_grip(self.sim.is_holding), None, stop=self._count > self.rules.wait_steps)

    def _move(self, arm: list[float] | None, grip: float | None, base: list[float] | None, stop: bool = False) -> bool:
        """One step of the environment; True when it ended the episode."""
        _, terminated, truncated, info = self.env.advance(arm, grip, base, stop)
        if terminated or truncated:
            self.report.metrics = info["metrics"]
            failed = (name.removeprefix("failure/") for name, value in info["metrics"].items()
                      if name.startswith("failure/") and value)
            self._finish(next(failed, "success"))
        return self.done

    # ------------------------------------------------------------------ between steps

    def _end_skill(self, record: Record, ended: str) -> None:
        step = self.steps[self.at]
        record.ended, record.effects_hold = ended, self._effects_hold(step)
        if step.skill == "navigate" and self._has_goal:
            record.goal_distance_m = self._skill.distance_m(self.sim)
            record.goal_angle_rad = self._skill.angle_rad(self.sim)
        wrong = step.skill == "pick" and not record.effects_hold and self.sim.is_holding
        if wrong and self.rules.drop_wrong_object:
            self._move(None, -1.0, None)
            if self.done:
                return
        goes_on = ended == "done" or step.skill == "navigate" or (record.effects_hold and self.rules.recovery != "none")
        if record.effects_hold or not self._recover():
            if not goes_on:
                return self._give_up(f"{step.skill}: time limit")
            self.at += 1
        if self.done:
            return
        if self.rules.reset_arm and self.at < len(self.steps):
            self._phase, self._count, self.request = "reset_arm", 0, None
        else:
            self._begin_next()

    def _effects_hold(self, step: Step) -> bool:
        """What the operator promises is true now. Where the robot is counts for navigate alone."""
        def counts(atom: Atom) -> bool:
            return atom[0] != "robot_free" and (step.skill == "navigate" or atom[0] != "robot_at")

        operator = step.operator
        return (all(holds(self.sim, self.symbols, atom) for atom in operator.add if counts(atom))
                and not any(holds(self.sim, self.symbols, atom) for atom in operator.delete if counts(atom)))

    def _possible(self, step: Step) -> bool:
        """The object that the step places is in the hand; no object is in a hand that has to be empty."""
        needed = step.operator.preconditions
        held = [self.symbols.objects[atom[1]] for atom in needed if atom[0] == "holding"]
        return self.sim.held in held if held else ("hand_empty",) not in needed or self.sim.held is None

    def _recover(self) -> bool:
        """Do the step again, or plan again from what is observed, when the rules say so and it was not too often; objects
        are then where they are seen. A place that let go elsewhere, or a pick with another object in the hand, is not done
        again: it would end at once.
        """
        again = self.rules.recovery in ("retry", "replan") and self.report.recoveries < self.rules.max_recoveries
        if not again or (self.rules.recovery == "retry" and not self._possible(self.steps[self.at])):
            return False
        self.report.recoveries += 1
        self._arguments.look_again()
        if self.rules.recovery == "replan":
            self.sim.episode = self.episode
            found = plan(self.sim, self.env.config.problem)
            steps = steps_of(found.steps, self.rules)
            if found.result.outcome is not Outcome.SOLVED or any(step.skill not in self.skills for step in steps):
                return False  # a door that fell shut may need a skill that there is no policy for
            self.report.plan, self.steps, self.at = found, steps, 0
        return True

    def _give_up(self, why: str) -> None:
        """End the episode as it stands, without the stop action."""
        self.report.metrics = self.env.end_now()
        self._finish(why)

    def _finish(self, end: str) -> None:
        self.report.end, self.report.never_held = end, self.env.never_held
        self.done, self.request = True, None


def run_episode(executor: Executor, episode: int | Episode, policies: Mapping[str, Any] | None = None,
                seed: int = 0) -> Report:
    """One episode from beginning to end. `policies`: skill -> callable (observation, first) -> action, for the skills
    that no expert runs.
    """
    report = executor.reset(episode, seed)
    while not executor.done:
        request = executor.request
        executor.advance(None if request is None else policies[request.skill](request.observation, request.first))
    return report

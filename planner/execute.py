"""TP-SRL: a plan carried out by skills, one after another, in one running scenario.

A skill is run by its scripted expert, or by a policy outside, so that many episodes can share a batch.
`Executor.request` holds the observation for the policy; `Executor.advance` takes its action and makes one step.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from planner.arguments import StepArguments
from planner.belief import Belief
from planner.pddl import Atom, Operator
from planner.predicates import World, holds
from planner.progress import Progress
from planner.rules import Rules, Step, believed_stop, is_over, kept_grip, needed_in_hand, reset_arm_action, steps_of
from planner.scenario import Plan, plan, require_solved
from planner.scenario_env import ScenarioEnv
from planner.search import Outcome
from rearrange.home.action_layout import action_slices
from rearrange.home.apartments.episodes import Episode, Handoff
from rearrange.home.errors import UserError
from rearrange.home.simulation.observations import OF_MAP, Observation, shown, takes_images, wording
from rearrange.home.simulation.simulator_interface import STEP_S, Simulator
from skills.experts.motion import servo
from skills.skill import Skill, distance_to_rest

RETREAT_M_S = 0.6
SCAN_RAD_S = 1.0
LIFT_M = 0.01  # of the hand in a step
_LIFTED_M, _LIFT_STEPS = 0.02, 25  # stop lifting this near to the goal, or after so many steps
_RETREAT_HELD_UP = (8, 0.02)  # stop retreating after 8 steps with less than 2 cm of progress
_DRIVE_HELD_UP = (60, 0.05, 0.15)  # a drive is held up after 60 steps with less than 5 cm and 0.15 rad of progress
_PUT_OFF_AFTER = 2  # an object comes last after so many failures of its steps
_SHUT = 0.005  # m or rad: a drawer or door that is not farther open counts as shut in a recorded state
_AT_HOME_RAD = 1e-6  # the targets of the motors are at home when they are nearer to it than this


@dataclass(frozen=True)
class Request:
    """What a policy has to decide next. `first`: the skill has just begun, so the policy forgets its recurrent state
    and its previous action.
    """

    skill: str
    observation: Observation
    first: bool
    mean: bool = False  # the policy's mean action, not a sample


@dataclass
class Record:
    """How one step of the plan went."""

    operator: str
    skill: str
    steps: int = 0
    ended: str = "running"  # done, time_limit, of navigate also held_up, lost or seen, or the end of the episode
    effects_hold: bool | None = None  # measured when it ended
    goal_distance_m: float | None = None  # of navigate: where it handed over, relative to the start of the next skill
    goal_angle_rad: float | None = None
    from_m: float | None = None  # of pick and place: how far the base stood from the object or its goal when it began
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
    handoffs: list[Episode] = field(default_factory=list)  # states in which manipulation skills began, if recorded


def reason_of_end(metrics: Mapping[str, float]) -> str:
    """How an episode ended: success, or the name of the failure."""
    failed = (name.removeprefix("failure/") for name, value in metrics.items() if name.startswith("failure/") and value)
    return next(failed, "success")


def handed_over(sim: Simulator, episode: Episode, skill: str, about: int | str, number: int) -> Episode:
    """The state of the simulator as an episode that begins with a skill.

    Args:
        episode: What is run; the new one is called after it, with `number`.
        about: The object, by its place in the episode, or the joint that the skill is about.
    """
    held = sim.held
    # What is in the hand waits where it once stood, until the hand takes it.
    poses = [pose if i == held else tuple(sim.object_pose(i)) for i, pose in enumerate(episode.start_poses)]
    most = {body.name: body.range_m_or_rad[1] for body in sim.home.layout.bodies}  # which contacts may push it past
    openings = {name: min(sim.joint_position(name), most[name]) for name in sim.home.handles}
    return replace(episode, id=f"{episode.id}/{number}", start_poses=tuple(poses), robot_start=tuple(sim.base_pose),
                   articulated={name: value for name, value in openings.items() if value > _SHUT},
                   handoff=Handoff(skill, about, held, None if held is None else tuple(sim.object_pose(held)),
                                   tuple(sim.arm_positions().tolist())))


class Executor:
    """Plans and carries out one episode after another in an environment.

    skills: the skills that the plan may use, each with the configuration that it was trained with. experts: name of a
    skill -> class of the scripted expert that runs it instead of a policy. depth_sizes: pixels of the image that each
    policy sees. records_handoffs: keep the states in which manipulation skills begin. seen: name of a skill -> what its
    policy sees beside the observations of the skill (`rearrange.home.settings.environment.SEEN`), and the pixels of
    these images.
    """

    instruction = ""
    """The present step, or the last one, in words."""

    def __init__(self, env: ScenarioEnv, skills: Mapping[str, Skill], experts: Mapping[str, type] | None = None,
                 rules: Rules = Rules(), depth_sizes: Mapping[str, int] | None = None, records_handoffs: bool = False,
                 seen: Mapping[str, tuple[tuple[str, ...], int]] | None = None) -> None:
        self.env, self.sim, self.rules = env, env.sim, rules.for_robot(env.sim.robot.time)
        self.skills, self.experts = dict(skills), dict(experts or {})
        self._depth_sizes, self._seen = dict(depth_sizes or {}), dict(seen or {})
        self.records_handoffs = records_handoffs
        self.report: Report | None = None
        self.request: Request | None = None
        self.done = True

    # ------------------------------------------------------------------ episodes

    def reset(self, episode: int | Episode, seed: int = 0) -> Report:
        """Load an episode and plan. Raises UserError when there is no plan, or no skill for a step of it."""
        rules = self.rules
        self.env.scene.seen = ()  # until a policy begins
        self.env.reset(seed=seed, options={"episode": episode})
        self.episode = self.env.episode
        self.belief = None
        if rules.knowledge == "seen":
            rng = np.random.default_rng([seed, 2])
            self.belief = Belief.begin(self.sim, rules.detector_pixels, rules.detector_noise_m, rng,
                                       rules.detector_misses, rules.detector_confusions)
        # Source of all decisions, and of the door and drawer readings of policies: belief or simulator.
        self.world = self.env.scene.known = self.belief or self.sim
        found = plan(self.world, self.env.config.problem, rules.at_m)
        require_solved(found, self.episode.scene)
        self.report = Report(self.episode.id, self.episode.scene, found)
        self.symbols, self._goal = found.symbols, found.goal
        self._failures: Counter[str] = Counter()  # of steps, by operator and by object
        self._looked_at: set[str] = set()
        self._arguments = StepArguments(
            self.sim, self.sim.shadow(), self.symbols, rules, np.random.default_rng([seed, 1]), self.belief)
        self.steps = steps_of(found.steps, rules)
        for step in self.steps:
            if step.skill not in self.skills:
                raise UserError(f"the plan needs skill {step.skill}, and there is no policy for it: train one with "
                                f"'rearrange train skill={step.skill}', or take skills.{step.skill}=expert.")
        self.at, self.done, self._has_goal = 0, False, False
        self._ended: tuple[Step, str] | None = None  # the step and how it ended, while the robot withdraws from it
        self._begin_next()
        return self.report

    @property
    def step(self) -> Step | None:
        """The step of the plan that is being carried out; None between steps."""
        return self.steps[self.at] if self._phase == "skill" else None

    @property
    def has_goal_pose(self) -> bool:
        """Whether it is known, while the robot navigates, where the next skill would start."""
        return self._has_goal

    def _begin_next(self) -> None:
        """Begin the step `at` of the plan, or the wait before the end."""
        self._count, self._left_start, self._stopped, self._gave_room = 0, False, False, False
        self._driven = Progress(*_DRIVE_HELD_UP)
        if self.at >= len(self.steps) and self.rules.last_look:
            self._check_goal()
        if self.at >= len(self.steps):
            self._phase, self.request = "wait", None
            return
        step = self.steps[self.at]
        self._phase, self._skill = "skill", self.skills[step.skill]
        self._slices = action_slices(self.sim.robot, self._skill.action_parts)
        self.report.records.append(Record(str(step.operator), step.skill))
        self._has_goal = self._arguments.give(self._skill, step)
        self.report.records[-1].from_m = self._distance_from_target()
        if self.belief is not None:
            self.belief.intend(self._taken_by(step))
        if self.records_handoffs and step.skill != "navigate":
            self.report.handoffs.append(self._handoff(step))
        self._start_ee = self.sim.ee_in_base
        self._expert = self.experts[step.skill](self.sim, self._skill) if step.skill in self.experts else None
        if self._expert is not None:
            self._expert.in_plan = True
        scene, keys = self.env.scene, self._skill.observation_keys
        size = self._depth_sizes.get(step.skill, scene.depth_size)
        scene.depth_size = size if self._expert is None and takes_images(keys) else 0
        scene.maps_floor = any(key in OF_MAP for key in keys)
        scene.seen, scene.camera_size = ((), 0) if self._expert is not None else self._seen.get(step.skill, ((), 0))
        self.instruction = scene.instruction = self._in_words()
        scene.start_here()
        self._ask(first=True)

    def _ask(self, first: bool) -> None:
        self.request = None
        if self._expert is None and self._count % self._skill.action_repeat == 0:
            tried_before = self._failures[str(self.steps[self.at].operator)] > 0
            mean = self.rules.actions == "mean" or (self.rules.actions == "mean_first" and not tried_before)
            scene = self.env.scene
            keys = shown(self._skill.observation_keys, scene.image is not None)
            self.request = Request(self._skill.name, scene.observe(keys, self._skill), first, mean)

    def _handoff(self, step: Step) -> Episode:
        thing = step.operator.args[0]
        about = self.symbols.objects[thing] if thing in self.symbols.objects else self.symbols.joints[thing]
        return handed_over(self.sim, self.episode, step.skill, about, len(self.report.handoffs))

    def _distance_from_target(self) -> float | None:
        """Of pick and place: from the base to the object, or to where it goes, along the floor (m)."""
        told = self._skill.arguments
        where = {"pick": told.position, "place": told.goal}.get(self._skill.name)
        return None if where is None else math.dist(self.sim.base_pose[:2], where[:2])

    def _taken_by(self, step: Step) -> int | str | None:
        """The object or handle that the hand shall take in a step."""
        thing = step.operator.args[0]
        if ("holding", thing) in step.operator.add:
            return self.symbols.objects[thing]
        return self.symbols.joints[thing] if self.skills[step.skill].about == "handle" else None

    # ------------------------------------------------------------------ one step

    def advance(self, action: np.ndarray | None = None) -> bool:
        """One step of the environment: with a policy's `action` when `request` asked for one. True when the episode is
        over.
        """
        phases = {"skill": self._advance_skill, "retreat": self._advance_retreat, "reset_arm": self._advance_reset_arm,
                  "scan": self._advance_scan, "wait": self._advance_wait}
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
            away_m = math.dist(sim.base_pose[:2], skill.nav_point[:2])
            self._stopped = "stop" in parts and believed_stop(parts["stop"][0], away_m, rules)
        record = self.report.records[-1]
        record.steps += 1
        self._count += 1
        if self._move(parts.get("arm"), grip, parts.get("base")):
            record.ended = self.report.end
            return
        self._left_start = self._left_start or math.dist(sim.ee_in_base, self._start_ee) > rules.start_zone_m
        to_rest_m = distance_to_rest(sim, skill.rest_m(sim))
        # A door is pushed shut without reaching out: the way from the start posture to rest alone stays in the zone.
        begun = self._left_start or (skill.closes and skill.at_target(self.world))
        step = self.steps[self.at]
        limit = self._count >= (rules.look_steps if self._is_look(step) else rules.max_steps[skill.name])
        over = is_over(skill.name, rules, holding=sim.is_holding, rest_distance_m=to_rest_m,
                       left_start=begun, stopped=self._stopped, success=lambda: skill.success(sim))
        record.in_start_zone = (not begun and skill.about == "handle" and not sim.is_holding
                                and to_rest_m < rules.rest_radius_m)
        # An expert whose hand passes its resting place on the way out of somewhere is not over yet.
        if limit or (over and not getattr(self._expert, "busy", False)):
            self._end_skill(record, "done" if over else "time_limit")
        elif skill.name == "navigate" and (why := self._cut_short(parts["base"][0])):
            self._end_skill(record, why)
        else:
            self._ask(first=False)

    def _cut_short(self, forward: float) -> str | None:
        """Why the robot need not drive on, if so. `forward`: the last command of the base, -1 .. 1."""
        if self.rules.recovery != "replan":
            return None
        step = self.steps[self.at]
        if self._is_look(step) and not self.belief.unsure(self.symbols.objects[step.operator.args[0]]):
            return "seen"
        carries = step.next is not None and step.next_kind.startswith("place")
        if carries and not self.world.is_holding:
            return "lost"
        self._driven.step(self.sim.base_pose, forward)
        return "held_up" if self.rules.retreat_m > 0.0 and self._driven.held_up else None

    def _retreat(self, lift_m: float, way: float = -1.0) -> None:
        """Begin to withdraw: first lift the hand by `lift_m`, then drive, `way` -1 backwards, 1 forwards."""
        self._phase, self._count, self.request = "retreat", 0, None
        x, y, z = self.sim.ee_position
        self._lift_to = (x, y, z + lift_m) if lift_m else None
        self._retreat_from, self._retreat_way = self.sim.base_pose[:2], way
        self._withdrawn = Progress(*_RETREAT_HELD_UP)

    def _advance_retreat(self, action: None) -> None:
        """Lift the hand, then drive straight until the odometry says far enough, or something holds the base up."""
        if self._lift_to is not None:
            return self._advance_lift()
        speed = self._retreat_way * min(RETREAT_M_S / self.sim.config.base_speed_m_s, 1.0)
        if self._move(None, kept_grip(self.sim.is_holding), [speed, 0.0]):
            return
        self._count += 1
        self._withdrawn.step(self.sim.base_pose, speed)
        if math.dist(self._retreat_from, self.sim.base_pose[:2]) >= self.rules.retreat_m or self._withdrawn.held_up:
            if not self.rules.reset_arm:
                ended, self._ended = self._ended, None
                return self._take_stock(*ended)
            self._phase, self._count = "reset_arm", 0  # the arm hides nothing from the camera then

    def _advance_lift(self) -> None:
        """Lift the hand away from what stands beside it."""
        arm = servo(self.sim, np.array(self._lift_to), LIFT_M)
        if self._move(arm.tolist(), kept_grip(self.sim.is_holding), None):
            return
        self._count += 1
        if math.dist(self.sim.ee_position, self._lift_to) < _LIFTED_M or self._count >= _LIFT_STEPS:
            self._lift_to = None

    def _advance_reset_arm(self, action: None) -> None:
        sim, rules, start = self.sim, self.rules, self.sim.robot.arm.start
        # This moves the targets of the motors, which are ahead of the joints: the arm follows to where they stop.
        arm = reset_arm_action(sim.arm_targets().tolist(), start, sim.robot.arm.delta.tolist())
        if self._move(arm, kept_grip(sim.is_holding), None):
            return
        self._count += 1
        arm_off, targets_off = (np.abs(angles - start).max()
                                for angles in (sim.arm_positions(), sim.arm_targets()))
        home = arm_off < rules.reset_arm_rad and targets_off < _AT_HOME_RAD
        if home or self._count >= rules.reset_arm_steps:
            if not home and rules.retreat_m > 0.0 and not self._gave_room:  # something is in its way
                self._gave_room = True
                return self._retreat(lift_m=0.0)
            ended, self._ended = self._ended, None
            self._begin_next() if ended is None else self._take_stock(*ended, arm_is_home=True)

    def _advance_scan(self, action: None) -> None:
        """Turn around once in place, until the object to look at is seen."""
        index = self.symbols.objects[self.steps[self.at].operator.args[0]]
        if self._move(None, kept_grip(self.sim.is_holding), [0.0, SCAN_RAD_S / self.sim.config.base_turn_rad_s]):
            return
        self._count += 1
        around = self._count * STEP_S * SCAN_RAD_S > 2 * math.pi
        if not self.belief.unsure(index) or self.belief.missing(index) or around:
            self.at += 1
            self._begin_next()

    def _advance_wait(self, action: None) -> None:
        self._count += 1
        self._move(None, kept_grip(self.sim.is_holding), None, stop=self._count > self.rules.wait_steps)

    def _move(self, arm: list[float] | None, grip: float | None, base: list[float] | None, stop: bool = False) -> bool:
        """One step of the environment; True when it ended the episode."""
        _, terminated, truncated, info = self.env.advance(arm, grip, base, stop)
        if self.belief is not None:
            self.belief.step()
        if terminated or truncated:
            self.report.metrics = info["metrics"]
            self._finish(reason_of_end(info["metrics"]))
        return self.done

    def _in_words(self) -> str:
        """The task of the step that begins; in the same wording whenever the episode is run."""
        return wording(self._skill.instructions(self.sim), f"{self.episode.id}/{len(self.report.records)}")

    # ------------------------------------------------------------------ between steps

    def _end_skill(self, record: Record, ended: str) -> None:
        step, sim = self.steps[self.at], self.sim
        record.ended, record.effects_hold = ended, self._effects_hold(step, sim)
        if step.skill == "navigate" and self._has_goal:
            record.goal_distance_m = self._skill.distance_m(sim)
            record.goal_angle_rad = self._skill.angle_rad(sim)
        if step.skill == "pick" and self.rules.drop_wrong_object and self._holds_wrong_object(step):
            self._move(None, -1.0, None)
            if self.done:
                return
        if ended == "held_up":
            self._ended = step, ended
            self._retreat(0.0, self._driven.way_out)
        elif self.rules.retreat_m > 0.0 and step.skill in self.rules.retreat_after:
            self._ended = step, ended
            self._retreat(self.rules.lift_m)
        else:
            self._take_stock(step, ended)

    def _holds_wrong_object(self, step: Step) -> bool:
        """The hand holds something else than the object of the step."""
        return self.world.is_holding and self.world.held != self._taken_by(step)

    def _take_stock(self, step: Step, ended: str, arm_is_home: bool = False) -> None:
        """Decide from what is known what comes after a step that has ended: the next step, recovery, or the end."""
        if self._is_look(step) and ended != "seen" and self.belief.unsure(self.symbols.objects[step.operator.args[0]]):
            self._phase, self._count, self.request = "scan", 0, None
            return
        hold = self._effects_hold(step, self.world)
        goes_on = ended == "done" or step.skill == "navigate" or (hold and self.rules.recovery != "none")
        held_up = ended == "held_up" and not self._failures[str(step.operator)]  # the next time it may be near enough
        if not hold or held_up:
            self._note_failure(step)
        if (hold and ended != "lost" and not held_up) or self._is_look(step) or not self._recover():
            if not goes_on:
                return self._give_up(f"{step.skill}: time limit")
            self.at += 1
        if self.done:
            return
        more = self.at < len(self.steps) or self.rules.last_look  # which may add a step
        if self.rules.reset_arm and more and not arm_is_home:
            self._phase, self._count, self.request = "reset_arm", 0, None
        else:
            self._begin_next()

    def _note_failure(self, step: Step) -> None:
        self._failures.update({str(step.operator), *(self.symbols.objects.keys() & step.operator.args)})

    def _effects_hold(self, step: Step, world: World) -> bool:
        """Whether the effects of the step are true in a world; where the robot is counts for navigate alone."""
        def holding(atoms: frozenset[Atom]) -> list[bool]:
            left_out = ("robot_free",) if step.skill == "navigate" else ("robot_free", "robot_at")
            return [holds(world, self.symbols, atom, self.rules.at_m) for atom in atoms if atom[0] not in left_out]

        return all(holding(step.operator.add)) and not any(holding(step.operator.delete))

    def _possible(self, step: Step) -> bool:
        """Whether the hand is as the step needs it: with the object to place, or empty where it has to be."""
        needed, held = needed_in_hand(step), self.world.held
        if needed is not None:
            return held == self.symbols.objects[needed]
        return ("hand_empty",) not in step.operator.preconditions or held is None

    def _recover(self) -> bool:
        """Do the step again, or plan again from what is observed, if the rules say so and it was not too often.

        Objects are then where they are seen. A place that let go elsewhere, or a pick with another object in the hand,
        is not done again: it would end at once.
        """
        again = self.rules.recovery in ("retry", "replan") and self.report.recoveries < self.rules.max_recoveries
        if not again or (self.rules.recovery == "retry" and not self._possible(self.steps[self.at])):
            return False
        self.report.recoveries += 1
        self._arguments.look_again()
        return self.rules.recovery == "retry" or self._plan_again()

    def _plan_again(self) -> bool:
        """Make a new plan from what is known; False when there is none. Objects that failed several times come last."""
        held = self.world.held
        if self.rules.drop_wrong_object and self.world.is_holding and held not in self.symbols.objects.values():
            self._move(None, -1.0, None)
            if self.done:
                return True
        unmet = {arg for atom in self._unmet() for arg in atom if arg in self.symbols.objects}
        least = min((self._failures[name] for name in unmet), default=0)
        later = {name for name in unmet if self._failures[name] >= max(_PUT_OFF_AFTER, least + 1)
                 and self.symbols.objects[name] != held}
        for put_off in (later, set()):
            found = plan(self.world, self.env.config.problem, self.rules.at_m, put_off)
            steps = steps_of(found.steps, self.rules)
            # A door that fell shut may need a skill that there is no policy for.
            known = all(step.skill in self.skills for step in steps)
            if (steps or not put_off) and found.result.outcome is Outcome.SOLVED and known:
                self.report.plan, self.steps, self.at = found, steps, 0
                self._looked_at.clear()
                return True
        return False

    def _unmet(self) -> list[Atom]:
        """The atoms of the goal that do not hold, as far as is known."""
        return [atom for atom in self._goal if not holds(self.world, self.symbols, atom, self.rules.at_m)]

    def _check_goal(self) -> None:
        """At the end of a plan: plan again for what does not hold, or look at what may have been disturbed."""
        if self._unmet():
            if self.report.recoveries < self.rules.max_recoveries:
                self.report.recoveries += 1
                self._plan_again()
            return
        left = self.env.max_steps - self.env.steps
        scan_steps = 2 * math.pi / SCAN_RAD_S / STEP_S
        time = left > self.rules.look_steps + self.rules.reset_arm_steps + scan_steps + 2 * self.rules.wait_steps
        if self.belief is None or "navigate" not in self.skills or not self.rules.navigate or not time:
            return
        for name, index in self.symbols.objects.items():
            if self.belief.unsure(index) and name not in self._looked_at and any(name in atom for atom in self._goal):
                self._looked_at.add(name)
                look = Operator("navigate_to_object", (name,), frozenset(), frozenset(), frozenset())
                self.steps = [*self.steps, Step(look, "navigate", None)]
                return

    def _is_look(self, step: Step) -> bool:
        """Whether a step only drives somewhere to see whether an object is still there."""
        return step.skill == "navigate" and not step.operator.preconditions

    def _give_up(self, why: str) -> None:
        """End the episode as it stands, without the stop action."""
        self.report.metrics = self.env.end_now()
        self._finish(why)

    def _finish(self, end: str) -> None:
        self.report.end, self.report.never_held = end, self.env.never_held
        self.done, self.request = True, None

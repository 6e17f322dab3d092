"""How skills are run one after another, where that differs from how they were trained.

Rules after TP-SRL (Szot et al. 2021; habitat-lab's hierarchical policy) and VER (Wijmans et al. 2022, appendix B). What
is decided from a state is a function of that state alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from planner.pddl import Operator
from planner.predicates import AT_M
from rearrange.errors import UserError

SKILL_NAMES = ("navigate", "pick", "place", "open_cabinet", "close_cabinet", "open_fridge", "close_fridge")
RECOVERIES = ("none", "hand_over", "retry", "replan")
KNOWLEDGE = ("state", "seen")
ACTIONS = ("sampled", "mean", "mean_first")
# Of a skill in a plan. HAB: 300 for navigate and 200 for the others, with the same arm and a base 3.75 times as fast.
MAX_STEPS = {"navigate": 900, **dict.fromkeys(SKILL_NAMES[1:], 400)}


@dataclass(frozen=True)
class Rules:
    """Choices of the deployment; the defaults are the paper's."""

    navigate: bool = True  # False leaves the navigate steps out: TP-SRL(NoNav)
    navigate_after_open_cabinet: bool = True  # False picks at once, as HAB's own plan does
    reset_arm: bool = True  # between two steps of the plan
    mask_stop_beyond_m: float | None = 2.0  # of navigate, while its target is farther away; None believes every stop
    tell_next_skill: bool = True  # False leaves `nav_to_skill` all zeros, as habitat-lab's deployment does
    rest_radius_m: float = 0.15  # of the hand, for a manipulation skill to count as over
    start_zone_m: float = 0.30  # an open or close skill is not over before the hand was this far from its start, or it is shut
    wait_steps: int = 30  # after the last skill, before the stop
    reset_arm_steps: int = 50
    reset_arm_rad: float = 0.05
    max_steps: Mapping[str, int] = field(default_factory=lambda: dict(MAX_STEPS))
    recovery: str = "none"  # beyond the paper: when effects do not hold, retry or replan; all but none hand over late
    max_recoveries: int = 5  # in an episode
    drop_wrong_object: bool = False  # beyond the paper: let go of what was not meant to be picked
    follow_drawer: bool = False  # beyond the paper: coordinates of what lies in a drawer move with it
    knowledge: str = "state"  # what recovery looks at: the simulator's state, or what the robot has seen (planner.belief)
    at_m: float = AT_M  # how near an object has to be to its goal for a plan that is made again
    retreat_m: float = 0.0  # beyond the paper: straight back after these skills, before the arm is led home
    lift_m: float = 0.0  # beyond the paper: before a retreat the hand goes straight up, away from what stands beside it
    retreat_after: tuple[str, ...] = ("pick", "place")
    last_look: bool = False  # beyond the paper: before the stop, look at goals that may have been disturbed, and plan again
    look_steps: int = 300  # of the way to such a goal, at most; none is begun when fewer are left in the episode
    actions: str = "sampled"  # of policies: sampled, their mean, or the mean in the first try of a step
    detector_pixels: int = 12  # of an object, for knowledge=seen to recognise it in an image of 128 x 128
    detector_noise_m: float = 0.0  # standard deviation of the error of each of its coordinates

    def __post_init__(self) -> None:
        for name, allowed in (("recovery", RECOVERIES), ("knowledge", KNOWLEDGE), ("actions", ACTIONS)):
            if getattr(self, name) not in allowed:
                raise UserError(f"{name}={getattr(self, name)} is not one of {', '.join(allowed)}.")
        unknown = sorted(set(self.retreat_after) - set(SKILL_NAMES[1:]))
        if unknown:
            raise UserError(f"retreat_after: {unknown[0]} is not one of {', '.join(SKILL_NAMES[1:])}.")
        unknown = sorted(set(self.max_steps) - set(SKILL_NAMES))
        if unknown:
            raise UserError(f"max_steps.{unknown[0]}: there is no such skill; skills are {', '.join(SKILL_NAMES)}.")
        object.__setattr__(self, "retreat_after", tuple(self.retreat_after))
        object.__setattr__(self, "max_steps", {**MAX_STEPS, **self.max_steps})

    @property
    def beyond_paper(self) -> list[str]:
        """The rules that the paper's deployment does not have, as they are typed: `recovery=retry`."""
        paper = Rules()
        names = ("recovery", "drop_wrong_object", "follow_drawer", "knowledge", "retreat_m", "lift_m", "last_look", "actions")
        found = {name: getattr(self, name) for name in names if getattr(self, name) != getattr(paper, name)}
        return [f"{name}={str(value).lower()}" for name, value in found.items()]


@dataclass(frozen=True)
class Step:
    """One step of a plan: the operator, the skill that carries it out, and which skill comes after it."""

    operator: Operator
    skill: str
    next: Operator | None  # the next one in the plan that is not navigation

    @property
    def next_kind(self) -> str | None:
        """What Navigate is told to lead to: the next skill, with "_inside" for a drawer or fridge."""
        if self.next is None:
            return None
        inside = "_from_" in self.next.name or "_in_" in self.next.name
        return skill_of(self.next.name) + ("_inside" if inside else "")


def skill_of(operator: str) -> str:
    """The skill that carries out an operator: the beginning of its name."""
    for name in SKILL_NAMES:
        if operator == name or operator.startswith(name + "_"):
            return name
    raise UserError(f"the action {operator!r} of the planning domain names no skill: its name should begin with one of "
                    f"{', '.join(SKILL_NAMES)}.")


def steps_of(plan: Sequence[Operator], rules: Rules) -> list[Step]:
    """The steps to carry out for a plan."""
    steps: list[Step] = []
    for i, operator in enumerate(plan):
        skill = skill_of(operator.name)
        if skill == "navigate":
            again = not rules.navigate_after_open_cabinet and i > 0 and skill_of(plan[i - 1].name) == "open_cabinet"
            if not rules.navigate or (again and operator.name == "navigate_to_object"):
                continue
        after = next((other for other in plan[i + 1:] if skill_of(other.name) != "navigate"), None)
        steps.append(Step(operator, skill, after))
    return steps


def is_over(skill: str, rules: Rules, *, holding: bool, rest_distance_m: float, left_start: bool,
            stopped: bool) -> bool:
    """Whether a skill says that it is done. `holding`: anything at all, so a wrong object passes, as in TP-SRL;
    `left_start`: an open or close skill's hand was out of its start zone, or what it closes is shut.
    """
    if skill == "navigate":
        return stopped
    if rest_distance_m >= rules.rest_radius_m:
        return False
    if skill == "pick":
        return holding
    if skill == "place":
        return not holding
    return not holding and left_start


def believed_stop(stop: float, target_distance_m: float, rules: Rules) -> bool:
    """Whether navigate's stop action counts: it was masked in the paper while the target was more than 2 m away."""
    return stop > 0.0 and (rules.mask_stop_beyond_m is None or target_distance_m <= rules.mask_stop_beyond_m)


def kept_grip(holding: bool) -> float:
    """The grip while a skill that does not command it drives or waits: what is held stays held."""
    return 1.0 if holding else -1.0


def needed_in_hand(step: Step) -> str | None:
    """The object that has to be in the hand for this step to make sense; None for none."""
    return next((atom[1] for atom in step.operator.preconditions if atom[0] == "holding"), None)


def reset_arm_action(target_rad: Sequence[float], home_rad: Sequence[float], step_rad: float) -> list[float]:
    """Arm command (7) that leads the targets of its motors to its start posture, so that the one that is farthest off moves
    at full speed (`step_rad` a step) and all arrive together. habitat-lab divides by the largest error at the beginning,
    which slows down on the way and often times out.
    """
    errors = [home - target for target, home in zip(target_rad, home_rad, strict=True)]
    scale = max(step_rad, max(abs(error) for error in errors))
    return [error / scale for error in errors]

"""How skills run one after another, where that differs from how they were trained.

The rules are those of TP-SRL (Szot et al. 2021; habitat-lab's hierarchical policy) and VER (Wijmans et al. 2022,
appendix B). Decisions about a state depend on that state alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from rearrange.home.errors import UserError
from rearrange.home.settings.setting_fields import block, check, setting
from skills import SKILLS, names

if TYPE_CHECKING:
    from planner.pddl import Operator

SKILL_NAMES = names()
OTHERS = SKILL_NAMES[1:]  # than Navigate
AT_M = 0.30  # between an object and its goal

# Of a skill in a plan. HAB: 300 for navigate and 200 for the others, with the same arm and a base 3.75 times as fast.
_STEPS = {
    "navigate": setting(
        900, "steps of one navigate, then the next skill takes over; HAB: 300 with a base 3.75 times as fast", above=0),
    "pick": setting(400, "steps of one pick, then the episode ends; HAB: 200", above=0),
} | {name: setting(400, f"the same for {name}", above=0) for name in SKILL_NAMES[2:]}


@dataclass(frozen=True)
class Rules:
    """Choices of the deployment; the defaults are the paper's."""

    navigate: bool = True  # False leaves the navigate steps out: TP-SRL(NoNav), which `agent=` says
    navigate_after_open_cabinet: bool = setting(
        True, "once more before picking, as in the paper; false = as in HAB's own plan")
    reset_arm: bool = setting(True, "the arm goes back to its start posture between two steps")
    mask_stop_beyond_m: float | None = setting(
        2.0, "navigate's stop is ignored while its target is farther away; null = never", above=0)
    tell_next_skill: bool = setting(True, "false leaves nav_to_skill zero, as habitat-lab's deployment does")
    rest_radius_m: float = setting(0.15, "of the hand, for a manipulation skill to be over", above=0)
    start_zone_m: float = setting(
        0.30, "how far the hand has to be from its start before open and close can be over", above=0)
    wait_steps: int = setting(30, "after the last skill, before the stop", at_least=0)
    reset_arm_steps: int = setting(50, "at most", above=0)
    reset_arm_rad: float = setting(0.05, "largest joint error that counts as there", above=0)
    recovery: str = setting(
        "none", "beyond the paper: what becomes of a skill that failed, or was late",
        choices=("none", "hand_over", "retry", "replan"))
    max_recoveries: int = setting(5, "in an episode", at_least=0)
    drop_wrong_object: bool = setting(False, "beyond the paper: let go of what was not meant to be picked")
    follow_drawer: bool = setting(False, "beyond the paper: coordinates of what lies in a drawer move with it")
    knowledge: str = setting(
        "state",
        "what recovery looks at: the simulator's state, or the robot's own body and what its head camera has seen",
        choices=("state", "seen"))
    at_m: float = setting(
        AT_M, "how near to its goal an object has to be for a plan; success is reported for 0.30 and 0.15 m",
        above=0, at_most=1)
    retreat_m: float = setting(
        0.0, "beyond the paper: the base backs off so far, the arm held, before the arm is led home, and where "
        "something holds it up", at_least=0, at_most=2)
    lift_m: float = setting(
        0.0, "beyond the paper: before that the hand goes straight up, away from what stands beside it",
        at_least=0, at_most=0.5)
    retreat_after: tuple[str, ...] = setting(("pick", "place"), "the skills after which it does", choices=OTHERS)
    last_look: bool = setting(
        False, "beyond the paper: before the stop, plan again for what is not done, and drive to see what may have "
        "been disturbed")
    look_steps: int = setting(
        300, "of last_look: steps of the way to one goal, at most; none is begun when fewer are left", above=0)
    actions: str = setting(
        "sampled", "of policies: drawn as in training, their mean, or the mean in the first try of a step",
        choices=("sampled", "mean", "mean_first"))
    detector_pixels: int = setting(
        12, "of knowledge=seen: pixels of an object that have to be seen, of 128 x 128", above=0, at_most=16384)
    detector_noise_m: float = setting(
        0.0, "of knowledge=seen: standard deviation of the error of each coordinate", at_least=0, at_most=1)
    detector_misses: float = setting(
        0.0, "of knowledge=seen: share of looks in which a thing in view is not recognised", at_least=0, at_most=1)
    detector_confusions: float = setting(
        0.0, "of knowledge=seen: share of looks in which an object in view is taken for another one of the episode",
        at_least=0, at_most=1)
    max_steps: Mapping[str, int] = block(**_STEPS)

    def __post_init__(self) -> None:
        unknown = sorted(set(self.max_steps) - set(SKILL_NAMES))
        if unknown:
            raise UserError(f"max_steps.{unknown[0]}: there is no such skill; skills are {', '.join(SKILL_NAMES)}.")
        object.__setattr__(self, "retreat_after", tuple(self.retreat_after))
        steps = {name: each.default for name, each in _STEPS.items()} | dict(self.max_steps)
        object.__setattr__(self, "max_steps", steps)
        check(self)

    def for_robot(self, time: float) -> Rules:
        """These rules for a robot whose skills last so many times as long (`rearrange.home.robot.robot.Robot.time`)."""
        if time == 1.0:
            return self
        return replace(self, look_steps=round(time * self.look_steps),
                       reset_arm_steps=round(time * self.reset_arm_steps),
                       max_steps={skill: round(time * steps) for skill, steps in self.max_steps.items()})

    @property
    def beyond_paper(self) -> list[str]:
        """The rules that are not those of the paper's deployment, as they are typed: `recovery=retry`."""
        paper = _as_typed(Rules())
        return [f"{name}={'null' if value is None else str(value).lower()}"
                for name, value in _as_typed(self).items() if value != paper[name]]


def _as_typed(rules: Rules) -> dict[str, object]:
    """The rules by the names under which they are typed, but for `navigate`, which the agent decides."""
    given = {each.name: getattr(rules, each.name) for each in fields(rules)}
    del given["navigate"]
    return given | {f"max_steps.{skill}": steps for skill, steps in given.pop("max_steps").items()}


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
    named = [name for name in SKILL_NAMES if operator == name or operator.startswith(name + "_")]
    if named:
        return max(named, key=len)
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
            stopped: bool, success: Callable[[], bool]) -> bool:
    """Whether a skill says that it is done.

    Args:
        holding: whether the hand holds anything at all: a wrong object passes, as in TP-SRL.
        rest_distance_m: from the hand to its resting place.
        left_start: the hand of an open or close skill was out of its start zone, or what it closes is shut.
        stopped: navigate has called stop.
        success: what a skill of somebody else judges itself by.
    """
    if skill not in SKILLS:
        return success()
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


def reset_arm_action(targets: Sequence[float], home: Sequence[float], delta: Sequence[float]) -> list[float]:
    """Arm command that leads the targets of the motors to the start posture.

    The joint that is farthest off moves at full speed, its `delta` a step, and all arrive together. habitat-lab divides
    by the largest error at the beginning, which slows down on the way and often times out.
    """
    errors = [(end - target) * (delta[0] / step) for target, end, step in zip(targets, home, delta, strict=True)]
    scale = max(delta[0], max(abs(error) for error in errors))
    return [error / scale for error in errors]

"""Settings of scenarios (configs/hab/*.yaml), and of training one policy for a whole scenario. Light to import."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass

from rearrange.home.settings.setting_fields import block, setting
from skills.settings import initial_mean, initial_std


@dataclass(frozen=True)
class ScenarioSettings:
    """A scenario; those of its settings that have a default may be left out."""

    problem: str = setting(MISSING, "planning problem: one of planner/problems, or a PDDL file", path=True)
    objects: tuple[str, ...] = setting(MISSING, "what is moved, in this order: objects by name, or any")
    starts: tuple[str, ...] = setting(
        MISSING, "where each stands: a kind of place, the name of one, open, top_drawer, top_fridge_board or "
        "widest_table")
    goals: tuple[str, ...] = setting(MISSING, "where each belongs, in the same words")
    opened: tuple[str, ...] = setting((), "what stands open at the start: fridge, drawer")
    clutter: int = setting(
        13, "other objects; HAB has 25 to 27, but our homes hold two of each of its nine kinds",
        at_least=0, at_most=100)
    clutter_on: tuple[str, ...] = setting(("open",), "where they stand")
    min_move_m: float = setting(0.5, "between the start of an object and its goal", at_least=0)
    max_steps: int = setting(
        7500, "steps of an episode, 30 a second; HAB: two thirds of it with a base 2.5 times as fast",
        above=0, at_most=1_000_000)


@dataclass(frozen=True)
class WholeTaskSettings:
    """One policy for a whole scenario."""

    max_steps: int | None = setting(
        1000, "of an episode of a scenario (hab=) in training: short ones show more homes; null = as the scenario",
        above=0, at_most=1_000_000)
    reward_scales: Mapping[str, float] = block(
        distance=setting(1.0, "per metre nearer: hand to the next object, or object in the hand to its goal"),
        picked=setting(1.0, "once for every object"),
        placed=setting(1.0, "once for every object"),
        hold_broken=setting(-10.0, "what was held is lost; the episode goes on"),
        success=setting(100.0, "once, when stop is called with everything at its goal"),
        slack=setting(-0.01, "every step"),
    )
    initial_std: Mapping[str, float | None] = initial_std(
        "arm", "grip", "base", "stop", stop=(0.2, ""))
    initial_mean: Mapping[str, float | None] = initial_mean(
        "arm", "grip", "base", "stop",
        stop=(-1.0, "it ends the episode: less than 0 lets it work before it has found out when to stop"))


REWARD_SCALES = WholeTaskSettings().reward_scales

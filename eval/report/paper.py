"""What the VER paper and others report of HAB, and how the paper's setting differs from ours.

Wijmans et al. 2022, section 1, section 6 and the caption of Figure 6. Only figures that its text states are here: the
other points of Figure 6 are drawn and nowhere written, so nothing is read off the figure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from eval.intervals import wilson

WHOLE = "whole task"


@dataclass(frozen=True)
class Stated:
    """One figure of the paper: success (0..1) of an agent of ours in a scenario, after an interaction or of the whole
    task. agent: one of ours, or LIMITED_AGENT.
    """

    scenario: str
    after: str  # "pick 1", "place 1" ... as in metrics.json, or WHOLE
    success: float
    agent: str
    words: str  # the paper's name of the agent, and where the figure stands


LIMITED_AGENT = "tp_srl, limited actions"  # all that manipulates without driving
ALONE = {"pick", "place", "open_cabinet"}  # skills that have the arm alone then; Open fridge has the base, too
GOALS = {"set_table": "set_table_paper"}  # of a scenario of another problem than that of its name
# Words that choose other homes for the same task.
HOMES = ("sim=", "sim.scene_dataset=", "sim.scenes=", "sim.robot=", "sim.num_layouts=", "sim.episodes=")
NAV, NONAV = "TP-SRL, skills that can drive", "TP-SRL(NoNav)"
LIMITED = "TP-SRL, the limited actions of Szot et al. 2021"
STATED = (
    Stated("tidy_house", "pick 1", 0.50, "tp_srl_nonav", f"{NONAV}: section 6.2"),
    Stated("tidy_house", "place 1", 0.20, "tp_srl_nonav", f"{NONAV}: section 6.2"),
    Stated("tidy_house", "place 1", 0.90, "tp_srl", f"{NAV}: section 1"),
    Stated("tidy_house", WHOLE, 0.32, "tp_srl", f"{NAV}: sections 1 and 6.1"),
    Stated("tidy_house", "place 1", 0.58, LIMITED_AGENT, f"{LIMITED}: 90 % less the 32 % of difference, section 1"),
    Stated("tidy_house", WHOLE, 0.02, LIMITED_AGENT, f"{LIMITED}: section 6.1"),
    Stated("prepare_groceries", "pick 1", 0.15, "tp_srl_nonav", f"{NONAV}: section 6.2"),
    Stated("prepare_groceries", WHOLE, 0.05, "tp_srl", f"{NAV}: sections 1 and 6.1"),
    Stated("prepare_groceries", WHOLE, 0.0, LIMITED_AGENT, f"{LIMITED}: section 6.1"),
    Stated("set_table", "pick 1", 0.04, "tp_srl_nonav", f"{NONAV}: section 6.2"),
    Stated("set_table", "place 1", 0.075, "tp_srl", f"{NAV}: section 6.1"),
    Stated("set_table", WHOLE, 0.0, "tp_srl", f"{NAV}: section 1"),
    Stated("set_table", "place 1", 0.0, LIMITED_AGENT, f"{LIMITED}: section 6.1"),
)


@dataclass(frozen=True)
class Published:
    """Whole tasks of another system: success (0..1) by scenario."""

    system: str
    success: Mapping[str, float]
    conditions: str
    source: str


PUBLISHED = (
    Published("active inference (Pezzato et al. 2025)",
              {"tidy_house": 0.725, "prepare_groceries": 0.77, "set_table": 0.50},
              "Habitat; floor map and joint states are given; tries again", "arXiv 2507.17338, section 3.2"),
    Published("M3 (Gu et al. 2023)", {"tidy_house": 0.71, "prepare_groceries": 0.64, "set_table": 0.29},
              "objects within 0.15 m; Set Table closes drawer and fridge again; 100 M steps for each of 7 skills",
              "as arXiv 2507.17338 quotes it"),
)
IN_WORDS = (
    "Tidy House, place 1: TP-SRL(NoNav) is on a par with the sense-plan-act baseline and significantly better than the "
    "monolithic policy of Szot et al. 2021 (section 6.2); their figures are not stated.",
)
DIFFERENCES = (
    "Homes: the paper's are ReplicaCAD apartments in Habitat 2.0, with its physics; ours are generated from boxes and "
    "cylinders, on MuJoCo, with 18 or 19 objects instead of 29 or 30.",
    "Robot: the base drives at 1.0 m/s here and 2.5 m/s in HAB, so navigate has 900 steps instead of 300 and an "
    "episode 1.5 times as many; a manipulation skill has 400 instead of 200 (planner.max_steps).",
    "Policies: the paper's are trained for 500 million steps each, on 8 GPUs, with a ResNet18 on a 128 x 128 image; "
    "those here as listed.",
    "The same: the skills, the plan, the arm's reset between steps, navigate's masked "
    "stop, the stages, 0.30 m at the goal, sampled actions.",
)


@dataclass(frozen=True)
class Beside:
    """A figure of the paper, and ours where it was measured."""

    stated: Stated
    measured: float | None
    interval: tuple[float, float] | None
    episodes: int


def beside(figures: Iterable[Mapping[str, Any]]) -> list[Beside]:
    """The paper's figures beside those of evaluations (contents of metrics.json); scenarios that nobody evaluated are
    left out. Of several evaluations of one agent the last counts.
    """
    made = {(each.get("scenario"), agent): each for each in figures if (agent := _agent(each))}
    scenarios = {scenario for scenario, _ in made}
    known = [stated for stated in STATED if stated.scenario in scenarios]
    return [_one(stated, made.get((stated.scenario, stated.agent))) for stated in known]


def _agent(figures: Mapping[str, Any]) -> str | None:
    """Which agent of the paper an evaluation is of; None for one that cannot stand beside the paper.

    That is one with an expert, say, another task, rules or goal, some of its skills limited, or that was interrupted.
    """
    skills = figures.get("skills", {})
    if {"expert", "random"} & set(skills.values()) or set(figures.get("run_by", {}).values()) - {"policy"}:
        return None
    if any(figures.get(key) for key in ("beyond_paper", "deterministic", "interrupted")) or _another_task(figures):
        return None
    limited = set(figures.get("limited_skills", ()))
    if not limited:
        return figures.get("agent")
    drive = {*skills, *figures.get("mean_skill_steps", ())} & ALONE - limited  # those, too, that never began
    return LIMITED_AGENT if figures.get("agent") == "tp_srl" and not drive else None


def _another_task(figures: Mapping[str, Any]) -> bool:
    """Whether a scenario is not the paper's: another goal, or something was changed beside its homes."""
    scenario, changed = figures.get("scenario"), figures.get("changed", ())
    goal = GOALS.get(scenario, scenario)
    homes = HOMES if any(word.startswith("sim.scene_dataset=") for word in changed) else ()
    return figures.get("problem", goal) != goal or not all(word.startswith(homes) for word in changed)


def _one(stated: Stated, figures: Mapping[str, Any] | None) -> Beside:
    if figures is None:
        return Beside(stated, None, None, 0)
    n, row = figures["episodes"], {"success": figures["success"], "interval_95": figures.get("success_interval_95")}
    if stated.after != WHOLE:
        row = next((row for row in figures.get("interactions", ()) if row["name"] == stated.after), {})
    value = row.get("success")
    if value is None:
        return Beside(stated, None, None, n)
    return Beside(stated, value, tuple(row.get("interval_95") or wilson(round(value * n), n)), n)

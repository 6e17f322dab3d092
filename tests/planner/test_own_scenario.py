"""The example of docs/own_scenario.md, in examples/: a scenario of one's own, its plan, and a mistake in it."""

from __future__ import annotations

import math
import re
import shutil
from pathlib import Path

import pytest

from eval.scenario.evaluate import why_ended
from planner.execute import Executor
from planner.rules import Rules
from planner.scenarios import load_scenario
from rearrange.home.errors import UserError
from tests.planner.puppet import AWAY_RAD, REST_RAD, Puppet, executor, run_episode, scenario_env

HOME = Path(__file__).resolve().parents[2]
DOCS, EXAMPLES = HOME / "docs", HOME / "examples"
PAGE = "".join((DOCS / name).read_text() for name in ("own_scenario.md", "planner.md", "planner_rules.md"))


def block(language: str, containing: str) -> str:
    blocks = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return next(text for text in blocks if containing in text)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in ("put_away.yaml", "put_away.pddl"):
        shutil.copy(EXAMPLES / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_plan_of_the_page(folder):
    plan = executor(scenario_env(folder / "put_away.yaml")).reset(0).plan
    assert "".join(f"{step}\n" for step in plan.steps) == block("text", "navigate_to_fridge")


def test_it_can_be_run(folder):
    run = executor(scenario_env(folder / "put_away.yaml"))
    report = run_episode(run, 0)
    assert report.end == "success" and len(report.records) == 8
    assert run.sim.joint_position("fridge_door") < 0.15
    assert report.metrics["stage_1"] == 1.0


def own(folder, goal: str, **rules) -> Executor:
    """An executor of the scenario with another goal, whose skills are puppets."""
    path = folder / "put_away.pddl"
    path.write_text(path.read_text().replace("$at_goals (closed fridge)", goal).replace("$init", "${init}"))
    return executor(scenario_env(folder / "put_away.yaml"), Rules(**rules))


@pytest.mark.parametrize("goal, steps, stages", [
    ("(opened fridge)", 2, 0), ("(in object_0 fridge)", 6, 2), ("$at_goals (holding object_0)", 8, 2),
    ("(robot_at object_0)", 1, 0),
])
def test_success_is_the_goal_of_the_problem(folder, goal, steps, stages):
    report = run_episode(own(folder, goal), 0)
    assert len(report.records) == steps
    assert (report.end == "success") == (goal != "$at_goals (holding object_0)"), "what is held is nowhere"
    assert sum(name.startswith("stage_") for name in report.metrics) == stages


def test_a_goal_that_is_undone_or_never_held_is_no_success(folder):
    run = own(folder, "$at_goals (closed fridge)")
    run.reset(0)
    while not run.done:
        if run.step is None and run.at == 8:
            run.sim.set_joint("fridge_door", 0.5)  # it swings open again
        run.advance()
    assert run.report.end == "bad_stop" and run.report.metrics["stage_1"] == 1.0 and run.report.never_held == ()
    assert why_ended(run.report, False) == ("stop", "bad stop: undone later")


def test_what_never_held_is_named(folder):
    run = own(folder, "(robot_at object_0)", navigate=False)
    report = run_episode(run, 0)
    assert report.end == "bad_stop" and report.records == []
    assert why_ended(report, False) == ("stop", "bad stop: (robot_at object_0) never held")


def test_the_way_to_a_container_leads_to_what_was_placed_there(folder):
    run = own(folder, "$at_goals (closed fridge)")
    run.reset(0)
    while run.at < 6 or run.step is None:
        run.advance()
    assert run.step.operator.name == "navigate_to_fridge"
    goal, start = run.episode.targets[0][:3], run.sim.start_positions[0]
    assert run.skills["navigate"].nav_point == goal and math.dist(goal, start) > 1.0


def test_a_door_may_be_closed_without_leaving_the_start_zone(folder):
    class Still(Puppet):
        def _open(self, sim, skill, opening):
            sim.set_joint(skill.target_handle, opening)
            sim.place_robot(*sim.episode.robot_start, REST_RAD if opening == 0.0 or self.count > 1 else AWAY_RAD)

    run = own(folder, "$at_goals (closed fridge)")
    run.experts = dict.fromkeys(run.experts, Still)
    report = run_episode(run, 0)
    assert report.end == "success" and report.records[-1].steps < 5


def test_the_mistake_of_the_page(folder):
    assert refusal(folder, "(closed fridge)", "(shut fridge)") == block("text", "'shut'").strip()


def refusal(folder, old: str, new: str) -> str:
    """What is said about the scenario of the page with a change in its problem."""
    path = folder / "put_away.pddl"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(UserError) as caught:
        Executor(scenario_env("put_away.yaml"), {}).reset(0)
    return str(caught.value)


@pytest.mark.parametrize("old, new, message", [
    ("$init", "(robot_free)", r"put_away.pddl, line 4: expected \(:init \$init\)"),
    ("$objects", "$things", r"put_away.pddl, line 3: expected one of \$objects, \$init, \$at_goals, found \$things"),
    ("(closed fridge)", "(holding object_7)", "put_away.pddl, line 5: expected something declared .*found object_7"),
    ("(closed fridge)", "(closed fridge)(opened fridge)",
     r"no plan in scene val/0: no sequence of skills brings about \(closed fridge\) \(opened fridge\) together"),
    ("$objects", "$objects drawer_0 - cabinet", r"put_away.pddl, line 3: expected only objects that the episode has "
     r"\(object_0 - movable, goal_0 - goal, fridge - fridge\), found drawer_0 - cabinet"),
    ("$objects", "object_0 - movable goal_0 - goal\n fridge - cabinet",
     "line 4: expected only objects .* found fridge - cabinet"),
    ("$objects", "${objects", r"put_away.pddl, line 3: expected one of \$objects, .*found \${objects"),
    ("(closed fridge)", "(in goal_0 fridge)(in_the_open goal_0)",
     r"no sequence of skills brings about \(in_the_open goal_0\)"),
])
def test_other_mistakes(folder, old, new, message):
    said = refusal(folder, old, new)
    assert re.search(message, said) and "\n" not in said


def test_the_page_tells_the_truth_about_scenarios_and_rules():
    for name in ("tidy_house", "prepare_groceries", "set_table"):
        row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{name}`"))
        assert f"| {load_scenario(name).scenario.clutter} |" in row
    first_cells = " ".join(line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `"))
    rules = set(Rules.__dataclass_fields__) - {"reset_arm_steps", "reset_arm_rad"}
    assert rules <= set(re.findall(r"`(\w+)`", first_cells))
    exec(compile(block("python", "first_three"), "docs/planner.md", "exec"), {"print": lambda ids: None})  # noqa: S102

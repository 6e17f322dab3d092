"""The example of docs/planner.md, word for word: a scenario of one's own, its plan, and a mistake in it."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from planner.deploy import Rules
from planner.execute import Executor, run_episode
from planner.scenario_env import ScenarioEnv
from planner.scenarios import load_scenario
from rearrange.errors import UserError
from skills import SKILL_CONFIGS, SKILLS
from tests.planner.puppet import Puppet

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "planner.md").read_text()


def block(language: str, containing: str) -> str:
    blocks = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return next(text for text in blocks if containing in text)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "put_away.yaml").write_text(block("yaml", "put_away"))
    (tmp_path / "put_away.pddl").write_text(block("lisp", "put_away"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def printed(code: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "docs/planner.md", "exec"), {})  # noqa: S102
    return out.getvalue()


def test_the_plan_of_the_page(folder):
    assert printed(block("py", "put_away.yaml")) == block("text", "navigate_to_fridge")


def test_it_can_be_run(folder):
    env = ScenarioEnv(load_scenario(folder / "put_away.yaml"), depth_size=0)
    skills = {name: SKILLS[name](SKILL_CONFIGS[name]()) for name in SKILLS}
    Puppet.fails, Puppet.begun = {}, 0
    run = Executor(env, skills, dict.fromkeys(skills, Puppet), Rules())
    report = run_episode(run, 0)
    assert report.end == "success" and len(report.records) == 8
    assert run.sim.joint_position("fridge_door") < 0.15
    assert report.metrics["stage_1"] == 1.0


def test_the_mistake_of_the_page(folder):
    path = folder / "put_away.pddl"
    path.write_text(path.read_text().replace("(closed fridge)", "(shut fridge)"))
    env = ScenarioEnv(load_scenario("put_away.yaml"), depth_size=0)
    with pytest.raises(UserError) as caught:
        Executor(env, {}).reset(0)
    assert str(caught.value) == block("text", "'shut'").strip()


@pytest.mark.parametrize("old, new, message", [
    ("$init", "(robot_free)", r"put_away.pddl, line 4: expected \(:init \$init\)"),
    ("$objects", "$things", r"put_away.pddl, line 3: expected one of \$objects, \$init, \$at_goals, found \$things"),
    ("(closed fridge)", "(holding object_7)", "put_away.pddl, line 5: expected something declared .*found object_7"),
    ("(closed fridge)", "(closed fridge)(opened fridge)", 
     r"no plan in scene val/0: no .* brings about \(at object_0 goal_0\) \(closed fridge\) \(opened fridge\) together"),
    ("(closed fridge)", "(in goal_0 fridge)(in_the_open goal_0)",
     r"no sequence of skills brings about \(in_the_open goal_0\)"),
])
def test_other_mistakes(folder, old, new, message):
    path = folder / "put_away.pddl"
    path.write_text(path.read_text().replace(old, new))
    env = ScenarioEnv(load_scenario("put_away.yaml"), depth_size=0)
    with pytest.raises(UserError, match=message) as caught:
        Executor(env, {}).reset(0)
    assert "\n" not in str(caught.value)


def test_the_page_tells_the_truth_about_scenarios_and_rules():
    for name in ("tidy_house", "prepare_groceries", "set_table"):
        row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{name}`"))
        assert f"| {load_scenario(name).scenario.clutter} |" in row
    first_cells = " ".join(line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `"))
    rules = set(Rules.__dataclass_fields__) - {"reset_arm_steps", "reset_arm_rad"}
    assert rules <= set(re.findall(r"`(\w+)`", first_cells))
    exec(compile(block("python", "first_three"), "docs/planner.md", "exec"), {"print": lambda ids: None})  # noqa: S102

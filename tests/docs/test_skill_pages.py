"""The pages of the skills are what the code says."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

from skills import SKILLS, make_env
from tests.docs.markdown import table


@pytest.fixture(scope="module")
def script():
    return import_module("docs.skill_pages")


@pytest.mark.parametrize("name", SKILLS)
def test_the_page_is_up_to_date(script, name):
    assert (script.PAGES / f"{name}.md").read_text(encoding="utf-8") == script.page(name), (
        "run python docs/skill_pages.py")


def test_there_is_no_page_of_a_skill_that_is_gone(script):
    assert {path.stem for path in script.PAGES.glob("*.md")} == set(SKILLS)


@pytest.mark.parametrize("name", SKILLS)
def test_the_tables_name_everything(name):
    env, page = make_env(name, depth_size=64), f"skills/{name}.md"
    assert {row["key"] for row in table(page, "key")} == set(env.observation_space)
    assert sum(int(row["numbers"]) for row in table(page, "part")) == env.action_space.shape[0]
    assert {row["term"]: float(row["scale"]) for row in table(page, "term")} == dict(env.skill.reward_scales)
    assert {row["failure"] for row in table(page, "failure")} >= set(env.skill.failures)
    assert all(cell for first in ("key", "part", "term", "failure", "setting") for row in table(page, first)
               for cell in row.values())


def test_a_docstring_is_cut_at_its_labels(script):
    cut = script.sections("Jump: leave the\nfloor.\n\nAction: legs. Reward: height, see\n`X`.\nSuccess: up.\n\nSource: none.\n")
    assert cut == {"first": "Leave the floor.", "Action": "Legs.", "Reward": "Height, see `X`.", "Success": "Up.",
                   "Source": "None."}


def test_a_change_of_a_scale_changes_the_page(script):
    env = make_env("pick", depth_size=16, reward_scales={"picked": 7.5})
    config = {key.name.removeprefix("skill."): key for key in script.options.keys("skill", "pick")}
    assert any(re.match(r"\| picked \| 7.5 \|", line) for line in script.reward_table(env, config))

"""The pages of the skills are what the code says."""

from __future__ import annotations

import pytest

from docs import skill_pages
from skills import SKILLS, make_env
from tests.docs.markdown import table


def test_the_pages_are_up_to_date():
    written = {path: path.read_text(encoding="utf-8") for path in skill_pages.PAGES.glob("*.md")}
    assert written == skill_pages.pages(), "run python docs/skill_pages.py"


@pytest.mark.parametrize("name", SKILLS)
def test_the_tables_name_everything(name):
    env = make_env(name, depth_size=64)
    key, part, term, failure, setting = (table(f"skills/{name}.md", first)
                                         for first in ("key", "part", "term", "failure", "setting"))
    assert {row["key"] for row in key} == set(env.observation_space)
    assert sum(int(row["numbers"]) for row in part) == env.action_space.shape[0]
    assert {row["term"]: float(row["scale"]) for row in term} == dict(env.skill.reward_scales)
    assert {row["failure"] for row in failure} >= set(env.skill.failures)
    assert all(cell for row in [*key, *part, *term, *failure, *setting] for cell in row.values())


def test_a_docstring_is_cut_at_its_labels():
    said = "Jump: leave the\nfloor.\n\nAction: legs. Reward: height, see\n`X`.\nSuccess: up.\n\nSource: none.\n"
    assert skill_pages.sections(said) == {"first": "Leave the floor.", "Action": "Legs.", "Reward": "Height, see `X`.",
                                          "Success": "Up.", "Source": "None."}


def test_a_change_of_a_scale_changes_the_page():
    env = make_env("pick", depth_size=16, reward_scales={"picked": 7.5})
    config = {key.name.removeprefix("skill."): key for key in skill_pages.options.keys("skill", "pick")}
    assert any(line.startswith("| picked | 7.5 |") for line in skill_pages.reward_table(env, config))

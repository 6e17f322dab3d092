"""Equal names of protocols mean equal protocols."""

from __future__ import annotations

from typing import Any

import pytest

from eval.protocol import _OF_THE_AGENT, _usual, protocol, words
from rearrange.navigation import settings as navigation
from skills import OF_TRAINING, SKILLS


def others(value: Any) -> list[Any]:
    """Values of a setting beside its usual one."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [value + 1, value + 0.125]
    return [[*value, 9]] if isinstance(value, list) else ["x", "/y/x"] if value is None else [f"{value}x"]


@pytest.mark.parametrize("task", [*SKILLS, *navigation.CONFIGS])
def test_each_value_of_each_setting_gives_a_name_of_its_own_and_what_the_agent_is_gives_none(task):
    usual = _usual(task)
    of_agent = {*_OF_THE_AGENT, *OF_TRAINING}
    changed = [{key: value} for key in usual if key not in of_agent for value in others(usual[key])]
    begun = [each for each in ({}, *changed[:3]) if "episodes" not in each]
    changed += [{**each, "episodes": f"/{folder}/val.json"} for each in begun for folder in "ab"]
    names = [protocol(task, usual | each) for each in ({}, *changed)]
    assert len(names) > 15 and sorted(names) == sorted(set(names))
    assert {protocol(task, usual | {key: "x"}) for key in of_agent & set(usual)} == {names[0]}


ANY = {"any_start": True, "start_position_noise_m": 0.15, "start_yaw_noise_rad": 0.25}


def test_the_words_bring_an_evaluation_to_the_protocol_of_a_policy():
    wide = {"start_distance_m": [0.75, 1.4], "start_aside_m": 0.35, "start_yaw_noise_rad": 0.25, "split": "train"}
    assert words("open_fridge", wide) == ["skill.start_distance_m=[0.75,1.4]", "skill.start_aside_m=0.35",
                                          "skill.start_yaw_noise_rad=0.25"]
    driving = words("navigate", {"any_start": True, "action_repeat": 4})
    assert driving == ["skill.any_start=true", "skill.action_repeat=4"]
    assert words("pick", {"max_steps": 200, "reward_scales": {"pick": 1.0}, "furniture": "wide"}) == []


@pytest.mark.parametrize("task, settings, name",
                         [("pick", {}, "HAB's start"), ("pick", ANY, "any start"),
                          ("pick", ANY | {"substeps": 8}, "any start, sim.substeps=8"),
                          ("pick", ANY | {"start_yaw_noise_rad": 0.5}, "any start, skill.start_yaw_noise_rad=0.5"),
                          ("navigate", {"stop_within_m": 2.0}, "HAB's pose"),
                          ("navigate", {"stop_within_m": None}, "HAB's pose, skill.stop_within_m=null"),
                          ("navigate", {"any_start": True, "stop_within_m": 2.0}, "any place"),
                          ("place", {"episodes": "a.json", "substeps": 2}, "sim.episodes=a.json, sim.substeps=2"),
                          ("pointnav", {"agent": "fetch"}, "Habitat's rule, nav.agent=fetch")])
def test_the_name_is_that_of_the_nearest_protocol_with_what_differs_as_it_is_typed(task, settings, name):
    assert protocol(task, settings) == name

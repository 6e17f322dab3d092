"""Deployment rules, by hand."""

import pytest

from planner.pddl import Operator, ground
from planner.rules import Rules, Step, believed_stop, is_over, kept_grip, reset_arm_action, skill_of, steps_of
from planner.search import search
from rearrange.home.errors import UserError
from skills import SKILLS
from tests.planner.worlds import PROBLEMS, SOLUTIONS


def plan(name):
    return search(ground(PROBLEMS[name], name)).plan


def names(steps) -> list[str]:
    return [str(step.operator) for step in steps]


def test_steps_of_the_paper_of_nonav_and_of_hab():
    assert names(steps_of(plan("set_table_paper"), Rules())) == SOLUTIONS["set_table_paper"]
    nonav = names(steps_of(plan("set_table_paper"), Rules(navigate=False)))
    paper = [step for step in SOLUTIONS["set_table_paper"] if not step.startswith("navigate")]
    assert nonav == paper and len(nonav) == 6
    hab = names(steps_of(plan("set_table_paper"), Rules(navigate_after_open_cabinet=False)))
    assert len(hab) == 11 and hab[1:3] == ["open_cabinet cabinet_0", "pick_from_cabinet object_0 cabinet_0"]
    assert "navigate_to_object object_1" in hab, "after the fridge HAB navigates again"


def test_navigate_knows_what_comes_next():
    kinds = {name: [step.next_kind for step in steps_of(plan(name), Rules()) if step.skill == "navigate"]
             for name in ("set_table", "prepare_groceries")}
    assert kinds == {
        "set_table": ["open_cabinet", "pick_inside", "place", "close_cabinet",
                      "open_fridge", "pick_inside", "place", "close_fridge"],
        "prepare_groceries": ["pick_inside", "place", "pick_inside", "place", "pick", "place_inside"]}


def test_every_action_of_the_domain_belongs_to_a_skill():
    for operator in ground(PROBLEMS["set_table"], "p").operators:
        assert skill_of(operator.name) in SKILLS
    assert skill_of("place_in_fridge") == "place" and skill_of("navigate_to_goal") == "navigate"
    with pytest.raises(UserError, match="'placed' of the planning domain names no skill"):
        skill_of("placed")


def over(skill, holding=False, rest_distance_m=0.0, left_start=True, stopped=False):
    return is_over(skill, Rules(), holding=holding, rest_distance_m=rest_distance_m, left_start=left_start,
                   stopped=stopped, success=lambda: False)


def test_when_skills_are_over():
    assert over("pick", holding=True) and not over("pick", holding=False)
    assert not over("pick", holding=True, rest_distance_m=0.15) and over("pick", holding=True, rest_distance_m=0.149)
    assert over("place", holding=False) and not over("place", holding=True)
    for skill in ("open_cabinet", "close_cabinet", "open_fridge", "close_fridge"):
        assert over(skill) and not over(skill, holding=True) and not over(skill, left_start=False)
        assert not over(skill, rest_distance_m=0.2)
    assert over("navigate", stopped=True, rest_distance_m=9.0, holding=True) and not over("navigate", stopped=False)


def test_stop_is_masked_beyond_two_metres():
    assert believed_stop(0.1, 1.99, Rules()) and not believed_stop(0.1, 2.01, Rules())
    assert not believed_stop(0.0, 1.0, Rules()) and not believed_stop(-1.0, 1.0, Rules())
    assert believed_stop(0.1, 9.0, Rules(mask_stop_beyond_m=None))


def test_what_is_held_stays_held():
    assert kept_grip(True) >= 0.0 > kept_grip(False)


def test_the_arm_goes_home_on_a_straight_line_at_full_speed():
    home, start, step = [0.0] * 7, [0.5, -0.25, 0.0, 0.0, 0.0, 0.0, 0.1], 0.0125
    arm, count = list(start), 0
    while max(map(abs, arm)) > 1e-9:
        action = reset_arm_action(arm, home, [step] * 7)
        assert max(map(abs, action)) <= 1.0
        arm = [angle + step * a for angle, a in zip(arm, action)]
        assert arm[1] == pytest.approx(-0.5 * arm[0], abs=1e-9)
        count += 1
    assert count == 40


def test_rules_refuse_what_does_not_exist():
    with pytest.raises(UserError, match="recovery=pray is not allowed: it must be none, hand_over, retry or replan"):
        Rules(recovery="pray")
    with pytest.raises(UserError, match="max_steps.fly: there is no such skill"):
        Rules(max_steps={"fly": 3})
    assert Rules(max_steps={"pick": 3}).max_steps["place"] == 400
    assert Rules().beyond_paper == []
    assert Rules(recovery="retry", follow_drawer=True).beyond_paper == ["recovery=retry", "follow_drawer=true"]
    assert Rules(navigate=False).beyond_paper == []  # which is the agent's
    changed = Rules(at_m=0.2, mask_stop_beyond_m=None, max_steps={"pick": 2000})
    assert changed.beyond_paper == ["mask_stop_beyond_m=null", "at_m=0.2", "max_steps.pick=2000"]


def test_what_takes_a_slow_robot_longer_may_last_longer():
    rules = Rules(max_steps={"pick": 3}, look_steps=10, wait_steps=7)
    slow = rules.for_robot(2.5)
    assert slow.max_steps["pick"] == 8 and slow.max_steps["navigate"] == 2250
    assert (slow.look_steps, slow.reset_arm_steps, slow.wait_steps) == (25, 125, 7)
    assert rules.for_robot(1.0) is rules


def test_a_step_says_nothing_about_the_end():
    nothing = frozenset()
    operator = Operator("navigate_to_goal", ("goal_0",), nothing, nothing, nothing)
    assert Step(operator, "navigate", None).next_kind is None

"""Plans: right by an independent judge, HAB's own where HAB has one, as short as can be, and found without detours."""

from __future__ import annotations

import random
from collections import deque

import pytest

from planner.pddl import DOMAIN_FILE, Task, ground
from planner.search import Outcome, search
from tests.planner.validator import operators, validate
from tests.planner.worlds import PROBLEMS, SOLUTIONS, moves, problem

DOMAIN = DOMAIN_FILE.read_text()


def words(plan) -> list[str]:
    return [str(step) for step in plan]


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_plan_is_the_hand_written_solution(name):
    result = search(ground(PROBLEMS[name], name))
    assert result.outcome is Outcome.SOLVED
    assert words(result.plan) == SOLUTIONS[name]
    assert validate(DOMAIN, PROBLEMS[name], [(s.name, *s.args) for s in result.plan]) is None


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_judge_refuses_a_plan_with_a_step_missing_or_two_exchanged(name):
    plan = [tuple(step.split()) for step in SOLUTIONS[name]]
    assert validate(DOMAIN, PROBLEMS[name], plan) is None
    for i in range(len(plan)):
        assert validate(DOMAIN, PROBLEMS[name], plan[:i] + plan[i + 1:])
    for i in range(len(plan) - 1):
        assert validate(DOMAIN, PROBLEMS[name], plan[:i] + [plan[i + 1], plan[i]] + plan[i + 2:])


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_search_goes_straight_to_the_goal(name):
    """One state for each step of the plan. The heuristic does not see what must be undone (closed, opened, closed)."""
    result = search(ground(PROBLEMS[name], name))
    undone = 20 if name == "set_table" else 0
    assert result.outcome is Outcome.SOLVED and result.expanded <= len(result.plan) + undone


def test_a_fridge_that_is_open_is_not_opened_again():
    text = PROBLEMS["set_table_paper"].replace("(closed fridge)", "(opened fridge)")
    plan = words(search(ground(text, "p")).plan)
    assert "open_fridge fridge" not in plan and "open_cabinet cabinet_0" in plan and len(plan) == 10


def test_a_door_that_stands_ajar_is_opened_and_an_object_at_its_goal_is_left_alone():
    text = PROBLEMS["set_table_paper"].replace("(closed fridge)", "")
    assert words(search(ground(text, "p")).plan) == SOLUTIONS["set_table_paper"]
    text = PROBLEMS["tidy_house"].replace("(in_the_open object_3)", "(in_the_open object_3) (at object_3 goal_3)")
    plan = words(search(ground(text, "p")).plan)
    assert len(plan) == 16 and not any("object_3" in step for step in plan)


def test_the_fridge_is_opened_before_something_is_taken_that_belongs_in_it_and_closed_when_asked():
    init = "(closed fridge) (in_the_open object_0) (in goal_0 fridge)"
    text = problem(init, "(at object_0 goal_0) (closed fridge)", 1)
    plan = words(search(ground(text, "p")).plan)
    assert plan == ["navigate_to_fridge fridge", "open_fridge fridge", "navigate_to_object object_0", "pick object_0",
                    "navigate_to_goal goal_0", "place_in_fridge object_0 goal_0 fridge", "navigate_to_fridge fridge",
                    "close_fridge fridge"]
    assert validate(DOMAIN, text, [tuple(step.split()) for step in plan]) is None


def test_planning_goes_on_from_the_middle():
    text = PROBLEMS["tidy_house"].replace("(hand_empty)", "(holding object_2)").replace("(in_the_open object_2)", "")
    plan = words(search(ground(text, "p")).plan)
    assert plan[:2] == ["navigate_to_goal goal_2", "place object_2 goal_2"] and len(plan) == 18


def test_a_goal_that_holds_already_needs_no_step():
    result = search(ground(problem("(at object_0 goal_0)", moves(1), 1), "p"))
    assert result.outcome is Outcome.SOLVED and result.plan == ()


def test_what_cannot_be_reached_is_proved_and_named():
    result = search(ground(problem("(in_the_open goal_0)", moves(1), 1), "p"))  # the object is nowhere
    assert result.outcome is Outcome.UNSOLVABLE and result.plan is None
    assert result.unreachable == (("at", "object_0", "goal_0"),)
    text = problem("(in_the_open object_0) (in_the_open object_1)", "(holding object_0) (holding object_1)", 2)
    result = search(ground(text, "p"))  # each alone can be had
    assert result.outcome is Outcome.UNSOLVABLE and result.unreachable == ()
    assert result.exclusive == (("holding", "object_0"), ("holding", "object_1"))


@pytest.mark.parametrize("both", [
    "(opened fridge) (closed fridge)", "(holding object_0) (holding object_1)", "(holding object_4) (hand_empty)",
    "(robot_at goal_0) (robot_at object_0)"])
def test_what_is_never_true_together_is_proved_without_a_search(both):
    init = "(closed fridge) " + " ".join(f"(in_the_open object_{k}) (in_the_open goal_{k})" for k in range(5))
    result = search(ground(problem(init, moves(5) + both, 5), "p"))
    assert result.outcome is Outcome.UNSOLVABLE and result.expanded == 0
    assert {f"({' '.join(atom)})" for atom in result.exclusive} == set(both.replace(") (", ")|(").split("|"))


def test_a_door_that_is_neither_open_nor_closed_can_be_either_but_not_both():
    for goal in ("(opened fridge)", "(closed fridge)"):
        assert search(ground(problem("", goal, 1), "p")).outcome is Outcome.SOLVED
    assert search(ground(problem("", "(opened fridge) (closed fridge)", 1), "p")).outcome is Outcome.UNSOLVABLE


def test_limits_of_states_and_of_time():
    task = ground(PROBLEMS["tidy_house"], "p")
    result = search(task, max_nodes=3)
    assert result.outcome is Outcome.NODE_LIMIT and result.expanded == 3
    assert search(task, timeout_s=0.0).outcome is Outcome.TIMEOUT


def shortest(task: Task) -> int | None:
    """Length of a shortest plan, by looking at every state."""
    seen, queue = {task.init}, deque([(task.init, 0)])
    while queue:
        state, length = queue.popleft()
        if task.goal <= state:
            return length
        for operator in task.operators:
            if operator.preconditions <= state:
                after = (state - operator.delete) | operator.add
                if after not in seen:
                    seen.add(after)
                    queue.append((after, length + 1))
    return None


@pytest.mark.parametrize("seed", range(12))
def test_plans_of_random_small_worlds_are_right_and_as_short_as_can_be(seed):
    rng = random.Random(seed)
    spots = ["(in_the_open {0})", "(in {0} cabinet_0)", "(in {0} fridge)"]
    facts = [rng.choice(spots).format(f"{kind}_{k}") for k in range(2) for kind in ("object", "goal")]
    facts += [f"({rng.choice(['opened', 'closed'])} {c})" for c in ("cabinet_0", "fridge")]
    goal = moves(2) + rng.choice(["", " (closed fridge)", " (opened cabinet_0)"])
    text = problem(" ".join(facts), goal, 2, "cabinet_0 - cabinet fridge - fridge")
    task = ground(text, "p")
    result = search(task)
    assert result.outcome is Outcome.SOLVED
    assert validate(DOMAIN, text, [(s.name, *s.args) for s in result.plan]) is None
    assert len(result.plan) == shortest(task)


def test_a_type_without_objects_gives_no_operators_with_open_parameters():
    text = "(define (problem p) (:domain home) (:objects a - movable g - goal) (:init (robot_free)) (:goal (at a g)))"
    operators = ground(text, "p").operators
    assert {o.name for o in operators} == {"navigate_to_object", "navigate_to_goal", "pick", "place"}
    atoms = [atom for o in operators for atom in o.preconditions | o.add | o.delete]
    assert not any(word.startswith("?") for atom in atoms for word in atom)


def test_operators_stand_in_the_order_of_domain_and_problem():
    text = problem("", "(holding object_1)", 3)
    picks = [o.args for o in ground(text, "p").operators if o.name == "pick"]
    assert picks == [("object_0",), ("object_1",), ("object_2",)]


TWO_HANDS = """(define (domain two_hands)
  (:requirements :strips :typing)
  (:types movable cup hand)
  (:predicates (on ?x - (either movable cup)) (held ?x - (either cup movable) ?h - hand) (done))
  (:action pick
    :parameters (?x - (either movable cup) ?h - hand)
    :precondition (on ?x)
    :effect (and (held ?x ?h) (not (on ?x)))))"""
ON_A_TABLE = """(define (problem table) (:domain two_hands)
  (:objects a b - movable c - cup l r - hand) (:init (on a)) (:goal (held a l)))"""


@pytest.mark.parametrize("change_domain, change_problem, count", [
    (("", ""), ("", ""), 6),
    (("?x - (either movable cup) ?h", "?x - (either cup) ?h"), ("", ""), 2),
    (("?x - (either movable cup) ?h - hand", "?x ?y - (either movable cup) ?h - hand"), ("", ""), 18),
    (("", ""), ("c - cup", "c - (either cup)"), 6),
    (("", ""), ("a b - movable c - cup", "a b c - cup"), 6),
    (("", ""), ("c - cup l r - hand", "c - cup"), 0),
    (("(:predicates", "(:constants d - cup m - hand) (:predicates"), ("", ""), 12),
    ((":precondition (on ?x)", ":precondition (and (on ?x) (and (done) (on ?x)))"), ("", ""), 6),
    (("(:action pick", "(:action finish :parameters () :precondition (done) :effect (not (done))) (:action pick"),
     ("", ""), 7),
], ids=lambda change: str(change))
def test_every_operator_is_found_that_another_reader_finds(change_domain, change_problem, count, tmp_path):
    domain, problem_text = TWO_HANDS.replace(*change_domain), ON_A_TABLE.replace(*change_problem)
    (tmp_path / "domain.pddl").write_text(domain)
    if count == 0:
        problem_text = problem_text.replace("(held a l)", "(done)")
    found = ground(problem_text, "p", tmp_path / "domain.pddl").operators
    ours = {(each.name, *each.args): (set(each.preconditions), set(each.add), set(each.delete)) for each in found}
    assert ours == operators(domain, problem_text.upper()) and len(found) == count

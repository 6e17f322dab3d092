"""A broken PDDL file gets its name, the line and what was expected, in one sentence, and nothing is printed."""

from __future__ import annotations

import pytest

from planner.pddl import DOMAIN_FILE, domain_of, ground
from rearrange.home.errors import UserError

GOOD = """(define (problem p)
  (:domain home)
  (:objects apple bowl - movable apple_goal - goal)
  (:init (robot_free) (hand_empty)
         (in_the_open apple) (in_the_open apple_goal))
  (:goal (and (at apple apple_goal))))
"""

BROKEN_PROBLEMS = [
    (GOOD.rstrip()[:-1], 6, "')'"),
    (GOOD.replace("- goal)\n", "- goal\n", 1), 4, "')' to close the '(:objects' of line 3"),
    (GOOD.replace("apple_goal))\n", "apple_goal)\n", 1), 6, "')' to close the '(:init' of line 4"),
    (GOOD + ")", 7, "the end of the file"),
    (GOOD.replace("(define", "(defin"), 1, "(define (problem name)"),
    (GOOD.replace("(problem p)", "(problem)"), 1, "(problem name)"),
    (GOOD.replace(":domain home", ":domain house"), 2, "(:domain home)"),
    (GOOD.replace(":goal", ":gaol"), 6, "(:goal ...)"),
    (GOOD.replace("- movable", "- fruit"), 3, "cabinet, fridge, goal, movable"),
    (GOOD.replace("- movable", "- (either movable goal)"), 3, "every object once, with one type"),
    (GOOD.replace("- movable", "- (either)"), 3, "name - type"),
    (GOOD.replace("- movable", "- (either movable (either goal))"), 3, "name - type"),
    (GOOD.replace("(at apple apple_goal)", "(forall (?x - movable) (at ?x apple_goal))"), 6,
     "neither negated nor quantified"),
    (GOOD.replace("(robot_free)", "(= (cost) 0)"), 4, "a fact"),
    (GOOD.replace("(robot_free)", "(not (robot_free))"), 4, "a fact"),
    (GOOD.replace("(:goal", "(:metric minimize (cost)) (:goal"), 6, "one of (:domain ...)"),
    (GOOD.replace("- movable", ""), 6, "a movable in (at apple apple_goal)"),
    (GOOD.replace("apple bowl -", "apple apple -"), 3, "every object once"),
    (GOOD.replace(" - goal)", ")"), 3, "a type after apple_goal"),
    (GOOD.replace("(in_the_open apple)", "(in_the_open pear)"), 5, "something declared (apple, bowl, apple_goal)"),
    (GOOD.replace("(in_the_open apple)", "(is_in_the_open apple)"), 5, "a predicate of the domain"),
    (GOOD.replace("(in_the_open apple)", "(in_the_open apple bowl)"), 5, "1 arguments of in_the_open"),
    (GOOD.replace("(in_the_open apple)", "in_the_open"), 5, "a fact"),
    (GOOD.replace("at apple apple_goal", "at apple bowl"), 6, "a goal in (at apple bowl)"),
    (GOOD.replace("(at apple apple_goal)", "(not (at apple apple_goal))"), 6, "neither negated nor quantified"),
    (GOOD.replace("(and (at apple apple_goal))", "(or (at apple apple_goal) (at bowl apple_goal))"), 6, "a fact"),
    (GOOD.replace("(and (at apple apple_goal))", "(and)"), 6, "at least one fact"),
    (GOOD[:GOOD.index("  (:init")] + GOOD[GOOD.index("  (:goal"):], 1, "(:init ...)"),
    ("", 1, "(define ...)"),
    (GOOD.replace("apple bowl -", "apple b%wl -"), 3, "name - type"),
    (GOOD.replace("- movable apple_goal", "- movable\n apple_goal\n - goal\n apple_goal"), 6, "every object once"),
    (GOOD.replace("(at apple apple_goal)", "(and " * 2000 + "(at apple apple_goal)" + ")" * 2000), 6,
     "at most 50 lists inside"),
    ("(" * 5000 + GOOD, 1, "at most 50 lists inside"),
]


@pytest.mark.parametrize("text, line, expected", BROKEN_PROBLEMS)
def test_broken_problems(text, line, expected, capfd):
    with pytest.raises(UserError) as caught:
        ground(text, "my_problem.pddl")
    message = str(caught.value)
    assert message.startswith(f"my_problem.pddl, line {line}: expected ") and expected in message and "found" in message
    assert "\n" not in message
    assert capfd.readouterr() == ("", "")


def test_the_unbroken_one_is_understood():
    assert ground(GOOD, "p").goal == {("at", "apple", "apple_goal")}
    assert ground(GOOD.upper(), "p").goal == {("at", "apple", "apple_goal")}, "PDDL does not care about case"


@pytest.mark.parametrize("old, new, expected", [
    ("(:types movable goal cabinet fridge)", "(:types movable goal - thing cabinet fridge)", "a type without a parent"),
    ("(:action place\n", "(:action\n", "(:action name :parameters"),
    (":effect (and (robot_at ?o) (not (robot_free)))", ":effects (and (robot_at ?o) (not (robot_free)))", ":effect"),
    ("(robot_at ?o) (in_the_open ?o)", "(robot_at ?x) (in_the_open ?o)", "something declared"),
    ("(robot_at ?o) (in_the_open ?o)", "(not (robot_at ?o)) (in_the_open ?o)", "an atom"),
    ("(:parameters (?o - movable)", "(:parameters (?o)", "a type after"),
    ("(and (holding ?o) (robot_free)", "(and (forall (?x - goal) (not (robot_at ?x)))", "an atom"),
    ("goal cabinet fridge)", "goal cabinet fridge goal)", "every type once, found a second goal"),
    ("    (hand_empty)\n", "    (hand_empty) (holding ?g - goal)\n", "every predicate once, found a second holding"),
    ("(:action place\n", "(:action pick\n", "every action once, found a second pick"),
    ("(?o - movable ?g - goal)\n", "(?o - movable ?o - goal)\n", "every parameter once, found ?o"),
    ("(:action pick\n", "(:action pick :parameters ()\n", ":parameters once in action pick"),
    ("(?o - movable)\n    :precondition (and (robot_free))",
     "(?o - (either movable goal fruit))\n    :precondition (and (robot_free))", "name - type, of the types"),
    ("(?o - movable)\n    :precondition (and (robot_at",
     "(?o - (either movable goal))\n    :precondition (and (robot_at",
     "a movable in (holding ?o), found ?o, a goal or movable"),
    ("?o - movable ?g - goal)          ;", "?o - (either) ?g - goal)          ;", "name - type"),
    ("(:types movable goal cabinet fridge)", "(:types object movable goal cabinet fridge)", "not called object"),
    ("    (hand_empty)\n", "    (hand_empty) (and)\n", "(predicate ?argument - type ...)"),
    ("(and (holding ?o) (robot_free)", "(and (when (robot_free) (holding ?o))", "an atom"),
    ("(and (holding ?o) (robot_free)", "(and (increase (cost) 1)", "a predicate of the domain"),
    ("(robot_at ?o) (in_the_open ?o)", "(or (robot_at ?o) (hand_empty)) (in_the_open ?o)", "an atom"),
    ("(robot_at ?o) (in_the_open ?o)", "(= ?o ?o) (in_the_open ?o)", "an atom"),
    ("(:predicates\n", "(:functions (cost)) (:predicates\n", "one of (:requirements ...)"),
    ("(:action place\n", "(:durative-action place\n", "one of (:requirements ...)"),
])
def test_broken_domains(old, new, expected, tmp_path, capfd):
    text = DOMAIN_FILE.read_text()
    if old.startswith("(:parameters"):
        old, new = old[1:], new[1:]
    assert old in text
    line = text[:text.index(old)].count("\n") + 1
    path = tmp_path / "domain.pddl"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(UserError) as caught:
        ground(GOOD, "p", path)
    message = str(caught.value)
    assert message.startswith(f"{path}, line ") and expected in message
    assert abs(int(message.split("line ")[1].split(":")[0]) - line) <= 2
    assert capfd.readouterr() == ("", "")


def test_the_domain_beside_a_problem_is_called_as_its_file_is(tmp_path):
    problem, wrong, right = tmp_path / "lift_one.pddl", tmp_path / "lifting.pddl", tmp_path / "right" / "lifting.pddl"
    text = "; (:domain other)\n" + GOOD.replace(":domain home", ":domain lifting")
    assert domain_of(GOOD, problem) == DOMAIN_FILE
    with pytest.raises(UserError, match=r"lift_one.pddl, line 3: expected \(:domain home\), or a file lifting.pddl"):
        domain_of(text, problem)
    wrong.write_text(DOMAIN_FILE.read_text())
    with pytest.raises(UserError, match=r"lifting.pddl: the domain is called home, .* \(define \(domain lifting\)\.$"):
        domain_of(text, problem)
    right.parent.mkdir()
    right.write_text(DOMAIN_FILE.read_text().replace("(domain home)", "(domain lifting)", 1))
    assert domain_of(text, right.with_name("lift_one.pddl")) == right


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path):
    (tmp_path / "domain.pddl").write_text(DOMAIN_FILE.read_text(), encoding="utf-8-sig")
    assert ground(GOOD, "p", tmp_path / "domain.pddl").operators == ground(GOOD, "p").operators


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(UserError, match="cannot read the PDDL file .*nowhere.pddl: No such file"):
        ground(GOOD, "p", tmp_path / "nowhere.pddl")
    (tmp_path / "binary.pddl").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="not text in UTF-8"):
        ground(GOOD, "p", tmp_path / "binary.pddl")


def test_a_constant_and_an_object_of_one_name_are_refused(tmp_path):
    text = DOMAIN_FILE.read_text().replace("(:predicates", "(:constants apple - goal) (:predicates", 1)
    (tmp_path / "domain.pddl").write_text(text)
    with pytest.raises(UserError, match="p, line 3: expected every object once, with one type, found apple"):
        ground(GOOD, "p", tmp_path / "domain.pddl")

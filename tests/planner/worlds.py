"""Problems in PDDL as they are observed at the beginning of each scenario, and HAB's own solutions of them."""

from __future__ import annotations


def problem(init: str, goal: str, count: int, containers: str = "fridge - fridge") -> str:
    """A problem with `count` objects and goals."""
    objects = " ".join(f"object_{k}" for k in range(count))
    goals = " ".join(f"goal_{k}" for k in range(count))
    return (f"(define (problem p) (:domain home)\n (:objects {objects} - movable {goals} - goal {containers})\n"
            f" (:init (robot_free) (hand_empty) {init})\n (:goal (and {goal})))\n")


def moves(count: int) -> str:
    return " ".join(f"(at object_{k} goal_{k})" for k in range(count))


TIDY_HOUSE = problem(
    "(closed fridge) " + " ".join(f"(in_the_open object_{k}) (in_the_open goal_{k})" for k in range(5)), moves(5), 5)
PREPARE_GROCERIES = problem(
    "(opened fridge) (in object_0 fridge) (in object_1 fridge) (in_the_open object_2) (in_the_open goal_0) "
    "(in_the_open goal_1) (in goal_2 fridge)", moves(3), 3)
_TABLE = ("(closed cabinet_0) (closed fridge) (in object_0 cabinet_0) (in object_1 fridge) "
          "(in_the_open goal_0) (in_the_open goal_1)")
SET_TABLE = problem(_TABLE, moves(2) + " (closed cabinet_0) (closed fridge)", 2, "cabinet_0 - cabinet fridge - fridge")
SET_TABLE_PAPER = problem(_TABLE, moves(2), 2, "cabinet_0 - cabinet fridge - fridge")
PROBLEMS = {"tidy_house": TIDY_HOUSE, "prepare_groceries": PREPARE_GROCERIES, "set_table": SET_TABLE,
            "set_table_paper": SET_TABLE_PAPER}


def _fetch(k: int, pick: str = "pick", place: str = "place") -> list[str]:
    """Navigate, pick, navigate, place."""
    inside = {"pick_from_fridge": " fridge", "pick_from_cabinet": " cabinet_0"}.get(pick, "")
    return [f"navigate_to_object object_{k}", f"{pick} object_{k}{inside}", f"navigate_to_goal goal_{k}",
            f"{place} object_{k} goal_{k}" + (" fridge" if place == "place_in_fridge" else "")]


# As HAB's problem files give them, in this domain's words. set_table_paper has the paper's additional navigation after
# open_cabinet; HAB's own solution is without it. set_table closes what it opened, as M3 and MS-HAB do.
SOLUTIONS = {
    "tidy_house": [step for k in range(5) for step in _fetch(k)],
    "prepare_groceries": [*_fetch(0, "pick_from_fridge"), *_fetch(1, "pick_from_fridge"),
                          *_fetch(2, place="place_in_fridge")],
    "set_table": ["navigate_to_cabinet cabinet_0", "open_cabinet cabinet_0", *_fetch(0, "pick_from_cabinet"),
                  "navigate_to_cabinet cabinet_0", "close_cabinet cabinet_0",
                  "navigate_to_fridge fridge", "open_fridge fridge", *_fetch(1, "pick_from_fridge"),
                  "navigate_to_fridge fridge", "close_fridge fridge"],
    "set_table_paper": ["navigate_to_cabinet cabinet_0", "open_cabinet cabinet_0", *_fetch(0, "pick_from_cabinet"),
                        "navigate_to_fridge fridge", "open_fridge fridge", *_fetch(1, "pick_from_fridge")],
}

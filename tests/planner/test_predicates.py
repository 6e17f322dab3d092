"""Each predicate on states that are set by hand, at both sides of its threshold."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from planner.pddl import DOMAIN_FILE
from planner.pddl_check import Checker
from planner.predicates import PREDICATES, apart_m, holds
from planner.scenario import name_things, observe, plan
from planner.scenarios import load_scenario
from planner.search import Outcome
from rearrange.env.scenario_episodes import scenario_episode
from rearrange.home.apartments.containers import inside, opened_to
from rearrange.home.simulation.mujoco.simulator import MujocoSimulator

OPEN = {"cabinet_0": 0.5, "fridge": 1.5}


@pytest.fixture(scope="module")
def world():
    sim = MujocoSimulator()
    episode = scenario_episode(load_scenario("set_table").scenario, "val", 0)
    return sim, episode


@pytest.fixture
def table(world):
    sim, episode = world
    sim.reset(episode)
    sim.place_robot(*episode.robot_start)
    return sim, name_things(episode, sim.home.layout)


def true(table, *atom) -> bool:
    return holds(*table, atom)


def test_the_domain_declares_what_can_be_measured():
    declared = Checker("domain").domain(DOMAIN_FILE.read_text())
    assert set(declared.predicates) == {*PREDICATES, "robot_free"}
    for name, (_, kinds) in PREDICATES.items():
        assert [set(allowed) for allowed in kinds] == [set(types) for types in declared.predicates[name]]


def test_names(table):
    sim, symbols = table
    assert list(symbols.objects) == ["object_0", "object_1"] and list(symbols.goals) == ["goal_0", "goal_1"]
    assert sim.episode.objects[symbols.objects["object_0"]] == "024_bowl"
    assert symbols.joints == {"cabinet_0": sim.episode.target_receptacles[0], "fridge": "fridge_door"}


def test_at_within_30_cm_of_the_goal_and_out_of_the_hand(table):
    sim, symbols = table
    bowl, goal = symbols.objects["object_0"], symbols.goals["goal_0"]
    for distance, expected in ((0.0, True), (0.29, True), (0.31, False)):
        sim._set_object(bowl, (goal[0] + distance, *goal[1:]))
        sim.place_robot(*sim.episode.robot_start)  # brings positions up to date
        assert true(table, "at", "object_0", "goal_0") is expected
    assert not true(table, "at", "object_1", "goal_0")
    sim.place_robot(goal[0] - 0.6, goal[1], 0.0)
    sim.put_in_hand(bowl)
    assert math.dist(sim.object_position(bowl), goal[:3]) > 0.0 and not true(table, "at", "object_0", "goal_0")


def test_in_and_in_the_open(table):
    sim, symbols = table
    assert true(table, "in", "object_0", "cabinet_0") and true(table, "in", "object_1", "fridge")
    assert not true(table, "in", "object_0", "fridge") and not true(table, "in", "object_1", "cabinet_0")
    assert not true(table, "in_the_open", "object_0") and true(table, "in_the_open", "goal_0")
    bowl, goal = symbols.objects["object_0"], symbols.goals["goal_0"]
    position = sim.object_position(bowl)
    joint = symbols.joints["cabinet_0"]
    assert inside(sim, position, joint)
    sim.set_joint(joint, 0.45)  # without the bowl, which stays behind in the carcass
    sim.place_robot(*sim.episode.robot_start)
    assert not inside(sim, position, joint)
    sim._set_object(bowl, goal)
    sim.place_robot(*sim.episode.robot_start)
    assert not true(table, "in", "object_0", "cabinet_0") and true(table, "in_the_open", "object_0")
    sim.put_in_hand(bowl)
    assert not true(table, "in_the_open", "object_0")


def test_a_goal_in_a_drawer_slides_with_it(table):
    """It is given where it will be once the drawer is open."""
    sim, symbols = table
    joint, bowl = symbols.joints["cabinet_0"], symbols.objects["object_0"]
    layout, shut = sim.home.layout, sim.object_position(symbols.objects["object_0"])
    body = next(body for body in layout.bodies if body.name == joint)
    (x0, y0, _), (x1, y1, _) = body.pose(), body.pose(opened_to(layout, joint))
    there = (shut[0] + x1 - x0, shut[1] + y1 - y0, *shut[2:])
    symbols = replace(symbols, goals={"goal_0": (*there, *symbols.goals["goal_0"][3:])})
    assert math.dist(there, shut) > 0.3 and holds(sim, symbols, ("at", "object_0", "goal_0"))
    assert apart_m(sim, symbols, "object_0", "goal_0") < 1e-6
    sim.set_joint(joint, opened_to(layout, joint))
    for place, expected in ((shut, False), (there, True)):
        sim._set_object(bowl, (*place, *symbols.goals["goal_0"][3:]))
        sim.place_robot(*sim.episode.robot_start)
        assert holds(sim, symbols, ("at", "object_0", "goal_0")) is expected


def test_holding_and_hand_empty(table):
    sim, symbols = table
    assert true(table, "hand_empty") and not true(table, "holding", "object_0")
    sim.put_in_hand(symbols.objects["object_0"])
    assert true(table, "holding", "object_0") and not true(table, "holding", "object_1")
    assert not true(table, "hand_empty")


@pytest.mark.parametrize("name, at_rest, ajar, wide", [("cabinet_0", 0.14, 0.34, 0.36), ("fridge", 0.14, 1.06, 1.08)])
def test_opened_and_closed(table, name, at_rest, ajar, wide):
    sim, symbols = table
    states = []
    for opening in (0.0, at_rest, 0.16, ajar, wide, OPEN[name]):
        sim.set_joint(symbols.joints[name], opening)
        states.append((true(table, "closed", name), true(table, "opened", name)))
    assert states == [(True, False), (True, False), (False, False), (False, False), (False, True), (False, True)]


def test_robot_at_within_two_metres_along_the_floor(table):
    sim, symbols = table
    goal = symbols.goals["goal_0"]
    for distance, expected in ((0.5, True), (1.99, True), (2.01, False)):
        sim.place_robot(goal[0] - distance, goal[1], 0.0)
        assert true(table, "robot_at", "goal_0") is expected
    x, y, _ = sim.handle_position(symbols.joints["fridge"])
    sim.place_robot(x + 1.0, y, 0.0)
    assert true(table, "robot_at", "fridge")


def test_the_initial_state_is_observed(table):
    sim, symbols = table
    facts = observe(sim, symbols)
    assert ("closed", "fridge") in facts and ("in", "object_1", "fridge") in facts and ("robot_free",) in facts
    assert not any(fact[0] == "robot_at" for fact in facts)
    with_robot = observe(sim, symbols, robot=True)
    assert facts <= with_robot and {fact[0] for fact in with_robot - facts} <= {"robot_at"}


def test_a_fridge_found_open_is_not_opened_again(table):
    sim, symbols = table
    before = plan(sim, "set_table_paper")
    assert before.result.outcome is Outcome.SOLVED and len(before.steps) == 12
    sim.set_joint(symbols.joints["fridge"], 1.3)
    after = plan(sim, "set_table_paper")
    assert [str(s) for s in after.steps] == [str(s) for s in before.steps if "fridge" not in s.name or "pick" in s.name]
    sim.set_joint(symbols.joints["fridge"], 0.6)  # ajar
    assert [str(s) for s in plan(sim, "set_table_paper").steps] == [str(s) for s in before.steps]

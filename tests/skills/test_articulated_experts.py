"""The experts of the articulated skills: they solve held-out episodes, by touch, and nothing goes through anything."""

from __future__ import annotations

import math

import pytest

from planner.rules import Rules
from skills import make_env
from skills.experts.door import CloseDoorExpert
from skills.experts.handle import CloseDrawerExpert, OpenExpert
from tests.rearrange.penetration import robot_depth_m

EXPERTS = {"open_cabinet": OpenExpert, "close_cabinet": CloseDrawerExpert, "open_fridge": OpenExpert,
           "close_fridge": CloseDoorExpert}


@pytest.mark.parametrize("skill", EXPERTS)
def test_the_expert_solves_held_out_episodes_without_cheating(skill):
    env = make_env(skill, split="val", depth_size=0, num_layouts=6)
    solved, deepest = 0, 0.0
    for episode in range(6):
        env.reset(options={"episode": episode})
        sim, handle = env.sim, env.skill.target_handle
        expert, done = EXPERTS[skill](sim, env.skill), False
        opening, held, touched = sim.joint_position(handle), False, False
        while not done:
            action = expert.act()
            assert env.action_space.contains(action)
            _, _, terminated, truncated, info = env.step(action)
            done = terminated or truncated
            deepest = max(deepest, robot_depth_m(sim))
            contact = sim.data.contact
            if contact.geom.size:
                robot = sim.home.geom_role[contact.geom].any(axis=1)
                touched = touched or bool(robot.any())
            if sim.is_holding and not held:
                assert sim.suction.stretch_m() < 0.02, "held from afar"
            now, held_before = sim.joint_position(handle), held
            held = sim.is_holding
            on_the_way = now < env.skill.config.target_opening - 0.2
            if skill.startswith("open") and not held and not held_before and on_the_way:
                assert now - opening < 0.01, "it opened by itself"
            if not touched:
                assert abs(now - opening) < 0.03, "it moved before it was touched"  # a push may bounce off in a step
            opening = now
        solved += info["success"]
    assert solved >= 5
    assert deepest < 0.02, "the robot went into something"


def test_the_expert_of_the_drawer_needs_no_base():
    """Szot et al.'s limited action space is enough from the start pose."""
    env = make_env("open_cabinet", split="val", depth_size=0, num_layouts=6, action_parts=("arm", "grip"))
    reached = 0
    for episode in range(4):
        env.reset(options={"episode": episode})
        expert, done = OpenExpert(env.sim, env.skill), False
        while not done:
            _, _, terminated, truncated, info = env.step(expert.act())
            done = terminated or truncated
        reached += info["metrics"]["reached"]
    assert reached >= 3


def test_the_hand_leaves_its_start_so_that_a_plan_goes_on():
    env = make_env("open_fridge", split="val", depth_size=0, num_layouts=6)
    env.reset(options={"episode": 0})
    first, farthest, expert = env.sim.ee_in_base, 0.0, OpenExpert(env.sim, env.skill)
    for _ in range(env.skill.max_steps):
        values = expert.act().tolist()
        env.sim.step(values[:7], values[7], values[8:10])
        farthest = max(farthest, math.dist(env.sim.ee_in_base, first))
    to_rest_m = math.dist(env.sim.ee_in_base, env.skill.config.rest_position_m)
    assert farthest > Rules().start_zone_m and to_rest_m < env.skill.config.rest_radius_m

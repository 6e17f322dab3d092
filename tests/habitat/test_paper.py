"""Where Habitat-Lab's public tasks differ from the paper, ours are the paper's, in Habitat too
(docs/habitat_differences.md).
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from planner.scenario import plan
from planner.scenario_env import ScenarioEnv
from planner.scenarios import load_scenario
from rearrange.env.home_env import HomeSettings
from skills import SKILLS, make_env
from tests.habitat.conftest import HOMES

pytestmark = pytest.mark.habitat


@pytest.fixture(scope="module")
def made(settings):
    """skill -> its environment, one for the module."""
    envs = {}

    def make(skill):
        if skill not in envs:
            envs[skill] = make_env(skill, depth_size=0, **{"observation_keys": ["joint", "gps", "compass"]}, **settings)
        return envs[skill]

    return make


@pytest.mark.parametrize("skill", SKILLS)
def test_every_skill_starts_close_and_has_a_base(made, skill):
    env = made(skill)
    assert "base" in dict(env.action_parts)
    env.reset(options={"episode": 2})
    assert not env.sim.robot_collides()
    if skill == "navigate":
        assert "stop" in dict(env.action_parts)
        return
    handle = env.skill.target_handle
    if handle:
        point = env.sim.handle_position(handle)
    else:
        point = env.skill.arguments.position if skill == "pick" else env.skill.arguments.goal
    assert math.dist(env.sim.base_pose[:2], point[:2]) < 1.6


def test_handles_move_with_what_they_are_on(made):
    env = made("open_cabinet")
    env.reset(options={"episode": 1})
    sim, handle = env.sim, env.skill.target_handle
    before = sim.handle_position(handle)
    body, link = sim.joints.where[handle]
    speeds = body.joint_velocities
    speeds[body.get_link_dof_offset(link)] = 1.0
    body.joint_velocities, body.awake = speeds, True
    for _ in range(5):
        sim.step()
    opening = sim.joint_position(handle)
    assert opening > 0.005
    assert math.dist(before, sim.handle_position(handle)) == pytest.approx(opening, abs=1e-4)
    node = np.array(body.get_link_scene_node(link).absolute_transformation())[:3, 3]
    for _ in range(5):
        sim.step()
    moved = np.linalg.norm(np.array(body.get_link_scene_node(link).absolute_transformation())[:3, 3] - node)
    assert moved == pytest.approx(sim.joint_position(handle) - opening, abs=5e-3)  # drawn: a substep later


def test_navigate_pays_for_contact(made):
    env = made("navigate")
    env.reset(options={"episode": 0})
    forward = np.zeros(env.action_space.shape, np.float32)
    forward[dict(env.action_parts)["base"].start] = 1.0
    paid = 0.0
    for _ in range(env.skill.max_steps):
        _, _, terminated, truncated, _ = env.step(forward)
        terms = env.skill.reward_terms(env.sim)
        paid = max(paid, terms["base_contact"], terms["force"])
        if terminated or truncated or paid > 0.2:
            break
    assert paid > 0.2 and env.skill.reward_scales["base_contact"] < 0.0


def test_navigate_stops_by_its_own_action(made):
    env = made("navigate")
    env.reset(options={"episode": 0})
    still = np.full(env.action_space.shape, 0.0, np.float32)
    stop = dict(env.action_parts)["stop"].start
    still[stop] = -1.0
    _, _, terminated, _, _ = env.step(still)
    assert not terminated  # standing still does not stop
    still[stop] = 1.0
    _, _, terminated, _, info = env.step(still)
    assert terminated == (env.skill.config.stop_within_m is None or info["success"] or env.skill.stopped(env.sim))


def test_gps_and_compass_are_relative_to_the_start(made):
    env = made("pick")
    observation, _ = env.reset(options={"episode": 0})
    assert np.allclose([*observation["gps"], *observation["compass"]], 0.0, atol=1e-5)
    back = np.zeros(env.action_space.shape, np.float32)
    back[dict(env.action_parts)["base"].start] = -1.0
    for _ in range(9):
        observation, *_ = env.step(back)
    assert observation["gps"][0] < -0.1 and abs(observation["gps"][1]) < 0.05


def test_a_step_is_a_thirtieth_of_a_second(made):
    sim = made("pick").sim
    before = sim.world.simulator.get_world_time()
    sim.step()
    assert sim.world.simulator.get_world_time() - before == pytest.approx(1 / 30, abs=1e-6)


def test_a_plan_starts_from_the_observed_state(settings):
    env = ScenarioEnv(load_scenario("set_table"), HomeSettings(depth_size=0, **settings))
    env.reset(seed=0, options={"episode": 0})
    def opens():
        made = plan(env.sim, env.config.problem)
        return made, sum(step.name.startswith("open") for step in made.steps)

    made, shut = opens()
    env.sim.set_joint(next(name for name in made.symbols.joints.values() if name.startswith("drawer")), 0.45)
    assert opens()[1] == shut - 1
    assert HOMES == env.home.num_layouts

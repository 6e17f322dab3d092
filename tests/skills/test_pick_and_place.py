"""Pick and Place: where they start, what they reward, what ends them."""

from __future__ import annotations

import math
from dataclasses import replace

import mujoco
import numpy as np
import pytest

from rearrange.home.errors import UserError
from rearrange.home.geometry import quat_multiply, wrap_angle, yaw_quat
from rearrange.home.robot.fetch import ARM
from rearrange.home.simulation.simulator_interface import STEP_S
from skills import config_class, make_env, make_skill
from skills.experts.motion import servo
from skills.experts.pick_and_place import PickExpert
from tests.skills.begun import action, aside_rad, let_go, put, run, started, tear_off

# One of each kind: shelf, TV stand, drawer, sofa, coffee table, table, sink, counter, chair, fridge.
FIXED_EPISODES = (0, 2, 3, 4, 5, 6, 7, 9, 34, 18)
BOTH = pytest.mark.parametrize("name", ["pick", "place"])


def give(env, i: int) -> None:
    """Move object i under the cup and hold it by touch."""
    sim = env.sim
    put_under_cup(sim, i)
    sim._hold_or_release(1.0)
    assert sim.held == i


def put_under_cup(sim, i: int) -> None:
    x, y, z = sim.ee_position
    put(sim, i, x, y, z - sim.object_half_extents(i)[2] + 0.001)


def to_rest(env, speed_m: float) -> np.ndarray:
    """A command of the arm that brings the hand to rest."""
    return servo(env.sim, np.array(env.sim.from_base(ARM.rest_m)), speed_m)


def from_rest_m(env) -> float:
    return math.dist(env.sim.ee_in_base, ARM.rest_m)


def set_goal(env, pose: tuple[float, ...]) -> None:
    env.skill.arguments = replace(env.skill.arguments, goal=pose)
    env.skill.reward_terms(env.sim)  # so that the jump of the goal is no progress


def move_goal_to_object(env) -> None:
    set_goal(env, env.sim.object_pose(env.skill.target))


def other_object(env) -> int:
    return next(i for i in range(len(env.episode.objects)) if i != env.skill.target)


# ------------------------------------------------------------------ start

def test_pick_starts_close_facing_the_object_and_free():
    env = make_env("pick", depth_size=0, num_layouts=12)
    for episode in range(60):
        env.reset(options={"episode": episode})
        sim, target = env.sim, env.sim.object_position(env.skill.target)
        assert not sim.robot_collides() and sim.held is None and math.dist(sim.ee_in_base, (0.64, -0.24, 0.94)) < 0.02
        assert abs(aside_rad(sim, target)) < 5 * 0.15 and math.dist(sim.base_pose[:2], target[:2]) < 1.6


def test_place_starts_close_to_the_goal_with_the_object_in_the_hand_and_free():
    env, kinds = make_env("place", depth_size=0, num_layouts=12), set()
    for episode in range(60):
        env.reset(options={"episode": episode})
        sim, goal = env.sim, env.episode.targets[env.skill.target]
        receptacle = sim.home.layout.receptacle(env.episode.goal_receptacles[0])
        kinds.add(receptacle.kind)
        assert sim.held == env.skill.target and not sim.robot_collides()
        assert abs(aside_rad(sim, goal)) < 5 * 0.15 and math.dist(sim.base_pose[:2], goal[:2]) < 1.6
        assert receptacle.link is None or sim.joint_position(receptacle.link) > 0.3
        for _ in range(5):
            env.step(action(env, 1.0))
        assert sim.held == env.skill.target and sim.hand.stretch_m() < 0.01 and sim.accumulated_arm_force_n == 0.0
    assert kinds == {receptacle.kind for receptacle in env.sim.home.layout.receptacles} and len(kinds) == 10


def any_starts(skill: str, episode: int, noise_m: float) -> list[tuple[float, float, float, float]]:
    """Base poses (x, y, yaw) and distances at which an episode starts with one seed after another."""
    env = make_env(skill, depth_size=0, any_start=True, start_yaw_noise_rad=0.0, start_position_noise_m=noise_m)
    found = []
    for seed in range(12):
        env.reset(seed=seed, options={"episode": episode})
        sim, target = env.sim, env.skill.target
        assert not sim.robot_collides() and sim.held == (target if skill == "place" else None)
        point = sim.episode.targets[target] if skill == "place" else sim.start_positions[target]
        assert aside_rad(sim, point) == pytest.approx(0.0, abs=0.01)
        found.append((*sim.base_pose, math.dist(sim.base_pose[:2], point[:2])))
    return found


@BOTH
def test_with_any_start_it_starts_on_more_sides_than_one_and_always_in_reach(name):
    turned = 0
    for episode in range(8):
        starts = any_starts(name, episode, 0.0)
        in_reach = [distance <= 0.85 for *_, distance in starts]
        assert all(in_reach) or not any(in_reach)  # none may be in reach: then HAB's start is taken
        turned += max(abs(wrap_angle(yaw - starts[0][2])) for _, _, yaw, _ in starts) > 1.0
    assert turned >= 2


@BOTH
def test_noise_moves_the_start(name):
    still, moved = (any_starts(name, 0, noise) for noise in (0.0, 0.1))
    assert len({pose[:2] for pose in still}) < len({pose[:2] for pose in moved}) == 12
    assert max(distance for *_, distance in moved) <= 0.85 + 0.2 * math.sqrt(2) + 1e-6


def test_an_object_in_the_hand_that_touches_something_is_seen():
    env = started("place")
    assert not env.sim.robot_collides()
    x, y, z = env.sim.object_position(env.sim.held)
    put(env.sim, other_object(env), x, y, z - env.sim.object_half_extents(env.sim.held)[2])
    assert env.sim.robot_collides()


# ------------------------------------------------------------------ both

@BOTH
def test_reward_scales_can_be_changed_one_by_one(name):
    config = config_class(name)
    changed = config(reward_scales={"success": 17})
    assert changed.reward_scales == config().reward_scales | {"success": 17.0}
    assert make_skill(name, reward_scales={"success": 17}).reward_scales == changed.reward_scales
    with pytest.raises(UserError, match={"pick": "picked", "place": "placed"}[name]):
        config(reward_scales={"grasp": 1.0})
    with pytest.raises(UserError, match="rest_position_m"):
        config(rest_position_m=(1.0,))


@BOTH
def test_too_much_force_ends_it(name):
    env = started(name, max_accumulated_force_n=30.0)
    env.sim.accumulated_arm_force_n = 31.0
    _, reward, terminated, _, info = env.step(action(env, 1.0 if name == "place" else -1.0))
    assert terminated and info["metrics"]["failure/force_limit"] == 1.0 and reward < -9.5


@BOTH
def test_a_torn_hold_costs_and_ends_a_pick(name):
    env = started(name)
    if name == "pick":
        give(env, env.skill.target)
        env.step(action(env, 1.0))
    x, y, z = env.sim.object_position(env.skill.target)
    env.sim._set_object(env.skill.target, (x + 2.0, y, z + 3.0, 1.0, 0.0, 0.0, 0.0))
    env.skill.reward_terms(env.sim)
    tear_off(env)
    _, _, terminated, _, info = env.step(action(env, 1.0))
    assert env._sums["hold_broken"] == -10.0 and terminated == (name == "pick")
    assert not terminated or info["metrics"]["failure/hold_broken"] == 1.0


def test_contact_terms_are_capped():
    env = started("pick")
    env.sim.arm_force_rise_n = env.sim.base_force_n = 5000.0
    terms, scales = env.skill.reward_terms(env.sim), env.skill.reward_scales
    assert terms["force"] * scales["force"] == pytest.approx(-1.0)
    assert terms["base_contact"] * scales["base_contact"] == pytest.approx(-0.05)


# ------------------------------------------------------------------ Pick

def test_the_expert_of_pick_solves_it_through_the_ordinary_actions():
    env, returns = make_env("pick", depth_size=0), []
    for episode in FIXED_EPISODES:
        env.reset(options={"episode": episode})
        info = run(env, PickExpert(env.sim, env.skill).act)
        if info["success"]:
            returns.append(sum(value for name, value in info["metrics"].items() if name.startswith("reward/")))
            assert info["metrics"]["reward/picked"] == 20.0 and info["metrics"]["reward/success"] == 100.0
            assert from_rest_m(env) < 0.15 and env.sim.held == env.skill.target
    assert len(returns) >= 9 and min(returns) > 115


def test_the_right_object_is_rewarded_once_and_kept():
    env = started("pick")
    give(env, env.skill.target)
    _, first, terminated, _, _ = env.step(action(env, 1.0))
    assert env.sim.held == env.skill.target and not terminated
    assert first == pytest.approx(20.0 - 0.01, abs=0.1)  # at the grasp the distance counts nothing
    _, second, _, _, _ = env.step(action(env, -1.0))
    assert env.sim.held == env.skill.target and abs(second) < 1.0  # as in HAB, the release is ignored


def test_success_of_a_pick_needs_the_hand_at_rest():
    env = started("pick")
    give(env, env.skill.target)
    env.step(action(env, 1.0))
    for _ in range(100):
        far = from_rest_m(env)
        _, reward, terminated, _, info = env.step(action(env, 1.0, arm=to_rest(env, 0.03)))
        if terminated:
            break
        assert from_rest_m(env) >= 0.15
        assert reward == pytest.approx(20.0 * (far - from_rest_m(env)) - 0.01, abs=0.05)
    assert info["success"] and reward > 99


def test_another_object_ends_a_pick():
    env = started("pick")
    give(env, other_object(env))
    _, reward, terminated, _, info = env.step(action(env, 1.0))
    assert terminated and not info["success"] and info["metrics"]["failure/wrong_object"] == 1.0
    assert info["metrics"]["reward/wrong_object"] == -5.0 and reward < -4.5


def test_dropping_ends_a_pick_when_release_is_allowed():
    env = started("pick", allow_release=True)
    give(env, env.skill.target)
    env.step(action(env, 1.0))
    _, reward, terminated, _, info = env.step(action(env, -1.0))
    assert terminated and info["metrics"]["failure/dropped"] == 1.0 and reward == pytest.approx(-5.01, abs=0.1)


# ------------------------------------------------------------------ Place

def test_the_way_to_the_goal_is_rewarded_per_metre():
    env = started("place")
    goal = env.skill.arguments.goal[:3]
    for _ in range(10):
        before = math.dist(env.sim.object_position(env.skill.target), goal)
        _, reward, *_ = env.step(action(env, 1.0, base=(-0.5, 0.0)))
        nearer = before - math.dist(env.sim.object_position(env.skill.target), goal)
        assert reward == pytest.approx(20.0 * nearer, abs=1e-3) and env.sim.base_force_n == 0.0


def test_letting_go_at_the_goal_is_rewarded_once():
    env = started("place")
    move_goal_to_object(env)
    _, first, terminated, _, _ = env.step(action(env, -1.0))
    assert first == pytest.approx(20.0, abs=0.1) and not terminated
    assert max(env.step(action(env, -1.0))[1] for _ in range(10)) < 10.0
    assert env.skill.measures() == {"placed": 1.0, "let_go_elsewhere": 0.0, "at_goal": 0.0}


@pytest.mark.parametrize("above_m, reward", [(0.05, 20.0), (0.12, 0.0)])
def test_setting_down_can_be_asked_for(above_m, reward):
    env = started("place", placed_radius_m=0.07)
    x, y, z, *turn = env.sim.object_pose(env.skill.target)
    set_goal(env, (x, y, z - above_m, *turn))
    env.step(action(env, -1.0))
    assert env._sums["placed"] == reward and env.skill.measures()["placed"] == 1.0


def test_holding_upright_can_be_asked_for():
    env = started("place", reward_scales={"tilt": -10.0})
    move_goal_to_object(env)
    leaning = np.array([math.cos(0.2), math.sin(0.2), 0.0, 0.0])  # 0.4 rad about a level axis
    turned = quat_multiply(yaw_quat(1.0), quat_multiply(leaning, np.array(env.skill.arguments.goal[3:])))
    set_goal(env, (*env.skill.arguments.goal[:3], *turned))
    env.step(action(env, 1.0))
    assert env._sums["tilt"] == 0.0  # while it holds on
    for _ in range(3):
        env.step(action(env, -1.0))
    assert env._sums["tilt"] == pytest.approx(-4.0, abs=0.2)  # once, and whichever way it faces


@pytest.mark.parametrize("turn", [0.0, 1.0])
def test_letting_go_in_motion_can_cost(turn):
    env = started("place", reward_scales={"tossed": -10.0})
    for _ in range(8):
        env.step(action(env, 1.0, arm=[turn, *[0.0] * 6]))
    assert env._sums["tossed"] == 0.0  # while it holds on
    before = np.array(env.sim.object_position(env.skill.target))
    env.step(action(env, -1.0, arm=[turn, *[0.0] * 6]))
    speed = np.linalg.norm(env.sim.object_position(env.skill.target) - before) / STEP_S
    assert env._sums["tossed"] == pytest.approx(-10.0 * speed) and (speed > 0.2) == (turn > 0.0)
    env.step(action(env, -1.0))
    assert env._sums["tossed"] == pytest.approx(-10.0 * speed)  # once


def test_success_of_a_place_needs_the_object_at_its_goal_the_hand_empty_and_at_rest():
    env = started("place")
    let_go(env.sim)
    env.sim._set_object(env.skill.target, env.skill.arguments.goal)
    env.step(action(env, -1.0))
    for _ in range(100):
        _, reward, terminated, _, info = env.step(action(env, 1.0, arm=to_rest(env, 0.02)))
        assert env.sim.held is None  # nothing is taken again
        assert terminated == (from_rest_m(env) < 0.15)
        if terminated:
            break
    assert info["success"] and reward == pytest.approx(10.0, abs=1.0)

    env = started("place")
    move_goal_to_object(env)
    while from_rest_m(env) > 0.1:
        env.step(action(env, 1.0, arm=to_rest(env, 0.02)))
    move_goal_to_object(env)
    assert not env.step(action(env, 1.0))[2]  # at the goal, at rest, but in the hand
    set_goal(env, (0.0,) * 7)
    assert not env.step(action(env, -1.0))[2]  # out of the hand, at rest, but elsewhere


def test_what_was_let_go_elsewhere_cannot_be_taken_again():
    env = started("place")
    sim = env.sim
    env.step(action(env, -1.0))
    assert sim.held is None
    put_under_cup(sim, env.skill.target)
    assert sim.hand.touches()

    def nothing_is_held():
        assert sim.held is None

    metrics = run(env, lambda: action(env, 1.0), nothing_is_held)["metrics"]
    assert metrics["failure/time_limit"] == metrics["let_go_elsewhere"] == 1.0 and metrics["reward/placed"] == 0.0


def test_letting_go_elsewhere_ends_it_when_that_is_chosen():
    env = started("place", end_on_drop=True, reward_scales={"dropped": -5.0})
    env.step(action(env, 1.0))
    _, reward, terminated, _, info = env.step(action(env, -1.0))
    assert terminated and info["metrics"]["failure/dropped"] == 1.0 and reward == pytest.approx(-5.0, abs=0.2)


def always_at_rest(settle: int, *pose: float):
    """A Place whose hand is empty and counts as at rest, with the object at a pose, by default its goal."""
    env = started("place", settle_steps=settle)
    let_go(env.sim)
    env.sim._set_object(env.skill.target, pose or env.skill.arguments.goal)
    env.skill.config = replace(env.skill.config, rest_radius_m=9.0)
    mujoco.mj_forward(env.sim.model, env.sim.data)
    return env


@pytest.mark.parametrize("settle, ends", [(0, True), (15, False)])
def test_an_object_that_passes_its_goal_while_it_falls_does_not_count_when_it_has_to_stay(settle, ends):
    x, y, z = started("place").sim.from_base((1.0, 0.0, 1.1))  # in mid-air
    env = always_at_rest(settle, x, y, z, 1.0, 0.0, 0.0, 0.0)
    env.skill.arguments = replace(env.skill.arguments, goal=(x, y, z - 0.05, 1.0, 0.0, 0.0, 0.0))
    assert any(env.step(action(env, -1.0))[2] for _ in range(60)) == ends


def test_an_object_that_stays_at_its_goal_counts_when_it_has_been_there_long_enough():
    env = always_at_rest(15)
    assert [env.step(action(env, -1.0))[2] for _ in range(17)].index(True) == 15

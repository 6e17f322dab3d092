"""Place: where it starts, what it rewards, what ends it."""

from __future__ import annotations

import math
from dataclasses import replace

import mujoco
import numpy as np
import pytest

from rearrange.home.errors import UserError
from rearrange.home.geometry import quat_multiply, yaw_quat
from rearrange.home.robot.fetch import REST_POSITION_M
from skills import make_env
from skills.experts.motion import servo
from skills.place import PlaceConfig


def started(episode: int = 0, **settings):
    env = make_env("place", depth_size=0, **settings)
    env.reset(options={"episode": episode})
    return env


def action(env, grip: float = 1.0, arm=None, base=None) -> np.ndarray:
    parts, out = dict(env.action_parts), np.zeros(env.action_space.shape, np.float32)
    out[parts["grip"]] = grip
    if arm is not None:
        out[parts["arm"]] = arm
    if base is not None:
        out[parts["base"]] = base
    return out


def set_goal(env, pose: tuple[float, ...]) -> None:
    env.skill.arguments = replace(env.skill.arguments, goal=pose)


def move_goal_to_object(env) -> None:
    set_goal(env, env.sim.object_pose(env.skill.target))
    env.skill.reward_terms(env.sim)  # so that the jump of the goal is no progress


def put_at_goal(env) -> None:
    """The object out of the hand and at its goal."""
    env.sim.suction.release()
    env.sim._read_hold()
    env.sim._set_object(env.skill.target, env.skill.arguments.goal)


def test_it_starts_close_to_the_goal_with_the_object_in_the_hand_and_free():
    env = make_env("place", depth_size=0, num_layouts=12)
    kinds = set()
    for episode in range(60):
        env.reset(options={"episode": episode})
        sim, goal = env.sim, env.episode.targets[env.skill.target]
        receptacle = sim.home.layout.receptacle(env.episode.goal_receptacles[0])
        kinds.add(receptacle.kind)
        assert sim.held == env.skill.target and not sim.robot_collides()
        x, y, yaw = sim.base_pose
        facing = math.atan2(goal[1] - y, goal[0] - x)
        assert abs((facing - yaw + math.pi) % (2 * math.pi) - math.pi) < 5 * 0.15
        assert math.dist((x, y), goal[:2]) < 1.6
        assert receptacle.link is None or sim.joint_position(receptacle.link) > 0.3
        for _ in range(5):
            env.step(action(env))
        assert sim.held == env.skill.target and sim.suction.stretch_m() < 0.01
        assert sim.accumulated_arm_force_n == 0.0
    assert kinds == {receptacle.kind for receptacle in env.sim.home.layout.receptacles} and len(kinds) == 10


def test_an_object_in_the_hand_that_touches_something_is_seen():
    sim = started().sim
    assert not sim.robot_collides()
    x, y, z = sim.object_position(sim.held)
    other = next(i for i in range(len(sim.start_positions)) if i != sim.held)
    sim._set_object(other, (x, y, z - sim.object_half_extents(sim.held)[2], 1.0, 0.0, 0.0, 0.0))
    sim.data.qvel[:] = 0.0
    mujoco.mj_forward(sim.model, sim.data)
    assert sim.robot_collides()


def test_the_way_to_the_goal_is_rewarded_per_metre():
    env = started()
    goal = env.skill.arguments.goal[:3]
    for _ in range(10):
        before = math.dist(env.sim.object_position(env.skill.target), goal)
        _, reward, *_ = env.step(action(env, base=(-0.5, 0.0)))
        nearer = before - math.dist(env.sim.object_position(env.skill.target), goal)
        assert reward == pytest.approx(20.0 * nearer, abs=1e-3) and env.sim.base_force_n == 0.0


def test_letting_go_at_the_goal_is_rewarded_once():
    env = started()
    move_goal_to_object(env)
    _, first, terminated, _, _ = env.step(action(env, grip=-1.0))
    assert first == pytest.approx(20.0, abs=0.1) and not terminated
    second = [env.step(action(env, grip=-1.0))[1] for _ in range(10)]
    assert max(second) < 10.0 and env.skill.measures() == {"placed": 1.0, "let_go_elsewhere": 0.0, "at_goal": 0.0}


def test_setting_down_can_be_asked_for():
    for above_m, reward in ((0.05, 20.0), (0.12, 0.0)):
        env = started(placed_radius_m=0.07)
        x, y, z, *turn = env.sim.object_pose(env.skill.target)
        set_goal(env, (x, y, z - above_m, *turn))
        env.skill.reward_terms(env.sim)
        env.step(action(env, grip=-1.0))
        assert env._sums["placed"] == reward and env.skill.measures()["placed"] == 1.0


def test_holding_upright_can_be_asked_for():
    env = started(reward_scales={"tilt": -10.0})
    move_goal_to_object(env)
    leaning = np.array([math.cos(0.2), math.sin(0.2), 0.0, 0.0])  # 0.4 rad about a level axis
    turned = quat_multiply(yaw_quat(1.0), quat_multiply(leaning, np.array(env.skill.arguments.goal[3:])))
    set_goal(env, (*env.skill.arguments.goal[:3], *turned))
    env.skill.reward_terms(env.sim)
    env.step(action(env))
    assert env._sums["tilt"] == 0.0  # while it holds on
    for _ in range(3):
        env.step(action(env, grip=-1.0))
    assert env._sums["tilt"] == pytest.approx(-4.0, abs=0.2)  # once, and whichever way it faces


def test_success_needs_the_object_at_its_goal_the_hand_empty_and_at_rest():
    env = started()
    put_at_goal(env)
    env.step(action(env, grip=-1.0))
    for _ in range(100):
        arm = servo(env.sim, np.array(env.sim.from_base(REST_POSITION_M)), 0.02)
        _, reward, terminated, _, info = env.step(action(env, grip=1.0, arm=arm))
        to_rest = math.dist(env.sim.ee_in_base, REST_POSITION_M)
        assert env.sim.held is None  # nothing is taken again
        assert terminated == (to_rest < 0.15)
        if terminated:
            break
    assert info["success"] and reward == pytest.approx(10.0, abs=1.0)

    env = started()
    move_goal_to_object(env)
    while math.dist(env.sim.ee_in_base, REST_POSITION_M) > 0.1:
        env.step(action(env, arm=servo(env.sim, np.array(env.sim.from_base(REST_POSITION_M)), 0.02)))
    move_goal_to_object(env)
    assert not env.step(action(env))[2]  # at the goal, at rest, but in the hand
    set_goal(env, (0.0,) * 7)
    assert not env.step(action(env, grip=-1.0))[2]  # out of the hand, at rest, but elsewhere


def test_what_was_let_go_elsewhere_cannot_be_taken_again():
    env = started()
    sim = env.sim
    total, done = 0.0, False
    x, y, z = sim.ee_position
    env.step(action(env, grip=-1.0))
    assert sim.held is None
    under = (x, y, z - sim.object_half_extents(env.skill.target)[2] + 0.001, 1.0, 0.0, 0.0, 0.0)
    sim._set_object(env.skill.target, under)
    sim.data.qvel[:] = 0.0
    mujoco.mj_forward(sim.model, sim.data)
    assert sim.suction.touches()
    while not done:
        _, reward, terminated, truncated, info = env.step(action(env))
        assert sim.held is None and not terminated
        total, done = total + reward, terminated or truncated
    assert info["metrics"]["failure/time_limit"] == 1.0 and info["metrics"]["let_go_elsewhere"] == 1.0
    assert info["metrics"]["reward/placed"] == 0.0


def test_letting_go_elsewhere_ends_it_when_that_is_chosen():
    env = started(end_on_drop=True, reward_scales={"dropped": -5.0})
    env.step(action(env))
    _, reward, terminated, _, info = env.step(action(env, grip=-1.0))
    assert terminated and info["metrics"]["failure/dropped"] == 1.0 and reward == pytest.approx(-5.0, abs=0.2)


def test_a_torn_hold_costs_and_the_episode_goes_on():
    env = started()
    x, y, z = env.sim.object_position(env.skill.target)
    env.sim._set_object(env.skill.target, (x + 2.0, y, z + 3.0, 1.0, 0.0, 0.0, 0.0))
    env.skill.reward_terms(env.sim)
    env.sim.suction._model.eq_solref[:, 0] = 10.0  # a hold too soft to bring it back within the step
    _, _, terminated, _, _ = env.step(action(env))
    assert not terminated and env._sums["hold_broken"] == -10.0


def test_too_much_force_ends_it():
    env = started(max_accumulated_force_n=30.0)
    env.sim.accumulated_arm_force_n = 31.0
    _, reward, terminated, _, info = env.step(action(env))
    assert terminated and info["metrics"]["failure/force_limit"] == 1.0 and reward < -9.5


def test_scales_and_rest_are_checked():
    config = PlaceConfig(reward_scales={"success": 100})
    assert config.reward_scales == PlaceConfig().reward_scales | {"success": 100.0}
    with pytest.raises(UserError, match="placed"):
        PlaceConfig(reward_scales={"put": 1.0})
    with pytest.raises(UserError, match="rest_position_m"):
        PlaceConfig(rest_position_m=(1.0,))


def test_an_object_that_passes_its_goal_while_it_falls_does_not_count_when_it_has_to_stay():
    ends = {}
    for settle in (0, 15):
        env = started(settle_steps=settle)
        sim = env.sim
        sim.suction.release()
        sim._read_hold()
        x, y, z = sim.from_base((1.0, 0.0, 1.1))
        sim._set_object(env.skill.target, (x, y, z, 1.0, 0.0, 0.0, 0.0))  # in mid-air
        set_goal(env, (x, y, z - 0.05, 1.0, 0.0, 0.0, 0.0))
        env.skill.config = type(env.skill.config)(settle_steps=settle, rest_radius_m=9.0)  # the hand is always at rest
        mujoco.mj_forward(sim.model, sim.data)
        ends[settle] = any(env.step(action(env, -1.0))[2] for _ in range(60))
    assert ends == {0: True, 15: False}


def test_an_object_that_stays_at_its_goal_counts_when_it_has_been_there_long_enough():
    env = started(settle_steps=15)
    put_at_goal(env)
    env.skill.config = type(env.skill.config)(settle_steps=15, rest_radius_m=9.0)
    mujoco.mj_forward(env.sim.model, env.sim.data)
    ended = [env.step(action(env, -1.0))[2] for _ in range(17)]
    assert ended.index(True) == 15

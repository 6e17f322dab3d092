"""What the experts plan with: kinematics, clearances, timed motions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from rearrange.home.robot import robot_named
from skills import make_env
from skills.experts.arm_model import Tool, arm_model
from skills.experts.base_search import search
from skills.experts.clearance import MARGIN_M, Clearance
from skills.experts.trajectory import Follower, along, back_from, move

ARM = arm_model(robot_named())
START_RAD, LOW_RAD, HIGH_RAD = ARM.start, ARM.robot.arm.low, ARM.robot.arm.high


@pytest.fixture(scope="module")
def env():
    env = make_env("pick", depth_size=0, split="val", num_layouts=4)
    env.reset(options={"episode": 1})
    return env


def postures(n: int, spread_rad: float = 0.8) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.clip(START_RAD + rng.uniform(-spread_rad, spread_rad, (n, 7)), LOW_RAD + 0.05, HIGH_RAD - 0.05)


def test_the_arm_alone_is_where_the_simulators_arm_is(env):
    x, y, yaw = env.sim.base_pose
    for q in postures(5):
        env.sim.place_robot(x, y, yaw, tuple(q))
        tip, matrix = ARM.hand(q)
        assert tip == pytest.approx(env.sim.ee_in_base, abs=1e-9)
        assert matrix[2] == pytest.approx(np.array(env.sim._ee_matrix).reshape(3, 3)[2], abs=1e-9)


def test_jacobians_are_derivatives():
    arm, step = ARM, 1e-6
    tool = Tool(np.array([0.05, -0.1, 0.2]), np.array([0.0, 0.0, 1.0]))
    for q in postures(3):
        arm.set(q)
        point, pointer = arm.at(tool)
        linear, angular = (part.copy() for part in arm.jacobian(point=point))
        for joint in range(7):
            moved = q.copy()
            moved[joint] += step
            arm.set(moved)
            point2, pointer2 = arm.at(tool)
            assert (point2 - point) / step == pytest.approx(linear[:, joint], abs=1e-5)
            assert (pointer2 - pointer) / step == pytest.approx(np.cross(angular[:, joint], pointer), abs=1e-5)


def test_inverse_kinematics_reaches_what_the_arm_can_reach_within_its_limits():
    arm, solved, n = ARM, 0, 60
    for q in postures(n, 0.6):
        arm.set(q)
        point, axis = arm.tip.copy(), arm.facing.copy()
        found = ARM.ik(point, axis)
        if found is None:
            continue
        solved += 1
        arm.set(found)
        assert math.dist(arm.tip, point) < 0.0051 and math.acos(min(1.0, arm.facing @ axis)) < 0.121
        assert (found >= LOW_RAD).all() and (found <= HIGH_RAD).all()
        assert np.abs(found - START_RAD).max() < np.abs(q - START_RAD).max() + 0.9
    assert solved >= 0.9 * n
    assert ARM.ik(np.array([2.0, 0.0, 1.0])) is None and ARM.ik(np.array([0.5, 0.0, 3.0])) is None


def test_turning_the_base_saves_the_arm_a_way():
    aside, down = np.array([0.3, 0.55, 0.75]), np.array([0.0, 0.0, -1.0])
    turn, posture = ARM.ik_turning(aside, down, START_RAD)
    panned = START_RAD + np.array([1.3, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    alone = ARM.ik(aside, down, panned, near=START_RAD)
    assert turn > 0.8 and np.abs(posture - START_RAD).max() < np.abs(alone - START_RAD).max() - 0.3


def test_a_tool_is_brought_where_the_cup_would_be():
    arm, tool = ARM, Tool(np.array([0.1, 0.02, -0.03]), np.array([-1.0, 0.0, 0.0]))
    posture = ARM.ik(np.array([0.65, -0.1, 0.7]), np.array([0.0, 0.0, 1.0]), tool=tool)
    arm.set(posture)
    point, pointer = arm.at(tool)
    assert math.dist(point, (0.65, -0.1, 0.7)) < 0.0051 and pointer[2] > 0.99


def test_clearance_sees_what_the_simulator_would_touch_and_writes_nothing(env):
    env.reset(options={"episode": 1})
    sim = env.sim
    before = sim.data.qpos.copy()
    clearance, poses = Clearance(sim), [back_from(sim.base_pose, -ahead) for ahead in (0.0, 0.1, 0.2, 0.4)]
    seen = [clearance.distance(pose, START_RAD) for pose in poses]
    assert (sim.data.qpos == before).all() and 0.0 < seen[0] <= MARGIN_M
    for pose, distance in zip(poses, seen):
        sim.place_robot(*pose)
        assert sim.robot_collides() == (distance < -1e-4)
    assert seen[-1] < 0.0, "it never came to the furniture before it"


def test_clearance_knows_distances_before_anything_meets(env):
    """The cup over the middle of an object, lower and lower: their boxes do not overlap until they touch."""
    env.reset(options={"episode": 1})
    sim, top = env.sim, env.skill.target
    x, y, z = sim.object_position(top)
    z += sim.object_half_extents(top)[2]
    down, at = np.array([0.0, 0.0, -1.0]), (x - 0.7, y, 0.0)
    clearance = Clearance(sim)
    for gap in (0.025, 0.015, 0.005):
        posture = ARM.ik(np.array([0.7, 0.0, z + gap]), down, tolerance_m=0.0005, tolerance_rad=0.01, iterations=200)
        seen = clearance.distance(at, posture)
        assert clearance.distance(at, posture, touching=sim.slot_of(top)) > seen, "something else is nearer"
        assert seen == pytest.approx(gap, abs=0.003)


def test_motions_keep_the_limits_and_arrive(env):
    config = env.sim.config
    start = (1.0, 2.0, 0.3), START_RAD
    goal = (1.6, 1.8, -0.5), START_RAD + (0.3, -0.1, 0.5, 0.0, -0.2, 0.1, 0.0)
    for base_last, joints in itertools.product((False, True), ("even", "early", "late")):
        motion = move(env.sim, start, goal, base_last=base_last, joints=joints)
        assert motion.base[-1] == pytest.approx(goal[0]) and motion.arm[-1] == pytest.approx(goal[1])
        arm = np.diff(np.vstack([start[1], motion.arm]), axis=0)
        base = np.diff(np.vstack([start[0], motion.base]), axis=0)
        assert np.abs(arm).max() <= ARM.robot.arm.delta[0] + 1e-9
        assert np.hypot(base[:, 0], base[:, 1]).max() <= config.base_speed_m_s / 30
        assert np.abs(base[:, 2]).max() <= config.base_turn_rad_s / 30


def test_the_arm_is_where_a_plan_expects_it_while_it_moves(env):
    env.reset(options={"episode": 1})
    sim = env.sim
    start, goal = (sim.base_pose, START_RAD), (sim.base_pose, START_RAD + (0.4, 0.2, 0.0, 0.4, 0.0, -0.4, 0.0))
    follower, off = Follower(sim, move(sim, start, goal)), []
    while not follower.done:
        arm, base = follower.command()
        sim.step(arm.tolist(), None, list(base))
        off.append(np.abs(follower.motion.real(follower.at - 1)[1] - sim.arm_positions()).max())
    assert max(off[5:-1]) < 0.015


def test_the_robot_follows_a_drive_with_corners(env):
    env.reset(options={"episode": 1})
    sim = env.sim
    back = [back_from(sim.base_pose, k * 0.1) for k in range(5)]
    poses = back + [(*back[-1][:2], back[-1][2] + k * 0.2) for k in range(1, 5)]
    follower = Follower(sim, along(sim.config, poses, START_RAD))
    while not follower.done:
        arm, base = follower.command()
        sim.step(arm.tolist(), None, list(base))
        assert not follower.stuck
    assert math.dist(sim.base_pose[:2], poses[-1][:2]) < 0.03 and abs(sim.base_pose[2] - poses[-1][2]) < 0.06


def test_a_search_does_not_step_over_what_is_thinner_than_a_move():
    def free(pose):
        return not 0.41 < pose[0] < 0.49 or 0.8 < pose[1] < 1.2

    way = search((0.0, 0.0, 0.0), free, lambda pose: math.dist(pose[:2], (0.9, 0.0)) < 0.15,
                 lambda pose: math.dist(pose[:2], (0.9, 0.0)), (1.0, 1.5), limit=30000)
    crossing = next(b for a, b in zip(way, way[1:]) if a[0] <= 0.45 < b[0])
    assert 0.7 < crossing[1] < 1.3


def test_a_part_of_a_drive_can_be_slower(env):
    poses = [(0.1 * k, 0.0, 0.0) for k in range(21)]
    fast = along(env.sim.config, poses, START_RAD)
    slow = along(env.sim.config, poses, START_RAD, [1.0] * 10 + [0.5] * 10)
    assert 1.3 * len(fast) < len(slow) < 1.7 * len(fast)
    assert slow.base[-1] == pytest.approx(poses[-1]) == fast.base[-1]

"""The contract of robots: every one that is listed keeps it, and the one of examples/own_robot.py."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import mujoco
import numpy as np
import pytest

from rearrange.home.action_layout import action_size
from rearrange.home.errors import UserError
from rearrange.home.pictures.looks import PLAIN
from rearrange.home.robot import ROBOTS, hands_of, robot_named
from rearrange.home.robot.cameras import mounting
from rearrange.home.robot.robot import BASE_BODY, BASE_JOINTS, PARTS
from rearrange.home.settings.environment import HomeSettings, SimulatorConfig
from rearrange.home.simulation.mujoco.contacts import ARM, BASE
from rearrange.home.simulation.mujoco.simulator import MujocoSimulator
from skills import make_env
from skills.experts import expert_class
from skills.experts.arm_model import arm_model
from skills.experts.reach_plan import facing_axis

sys.path.append(str(Path(__file__).resolve().parents[2] / "examples"))
SMALL = "own_robot:SMALL"
WORDS = [(word, robot.hand.kind) for word in (*ROBOTS, SMALL) for robot in hands_of(word)]


@pytest.fixture(scope="module", params=WORDS, ids=[f"{word.rpartition(':')[2]} {hand}" for word, hand in WORDS])
def config(request) -> SimulatorConfig:
    return SimulatorConfig(robot=request.param[0], hand=request.param[1])


@pytest.fixture(scope="module")
def robot(config):
    return robot_named(config.robot, config.hand)


@pytest.fixture(scope="module")
def env(config):
    made = make_env("pick", robot=config.robot, hand=config.hand, depth_size=0, split="val", num_layouts=4)
    made.reset(options={"episode": 1})
    return made


@pytest.fixture
def sim(env):
    """In the middle of the largest free place of a home."""
    env.reset(options={"episode": 1})
    sim = env.sim
    size_x, size_y = sim.home.layout.size_m
    for x, y in np.random.default_rng(0).uniform((1.0, 1.0), (size_x - 1.0, size_y - 1.0), (400, 2)).tolist():
        if all(sim.stands_free(x + dx, y + dy, 0.0) for dx, dy in ((0, 0), (0.4, 0), (-0.4, 0), (0, 0.4), (0, -0.4))):
            sim.place_robot(x, y, 0.0)
            return sim
    raise AssertionError("there is no free place")


def in_hand(sim: MujocoSimulator) -> int:
    """The first object that the hand can take."""
    return next(i for i in range(len(sim.episode.objects)) if sim.robot.hand.takes(sim.object_half_extents(i)))


def test_its_model_has_what_it_says(robot):
    arm = arm_model(robot)
    model = arm.model
    names = [model.joint(k).name for k in range(model.njnt)]
    first = names.index(robot.arm.names[0])
    assert tuple(names[:3]) == BASE_JOINTS and tuple(names[first:first + len(robot.arm.names)]) == robot.arm.names
    assert set(names) == {*BASE_JOINTS, *robot.arm.names, *robot.arm.still, *robot.arm.coupled, *robot.hand.fingers}, \
        "every joint moves, follows another, or is kept still"
    for joint in robot.arm.joints:
        limits = model.joint(joint.name)
        slides = limits.type[0] == mujoco.mjtJoint.mjJNT_SLIDE
        assert (joint.unit == "m") == slides and joint.low < joint.high and 0 < joint.delta < joint.lag
        assert not model.jnt_limited[limits.id] or limits.range == pytest.approx((joint.low, joint.high))
    for posture in (robot.arm.start, robot.arm.tucked, robot.arm.ahead):
        assert (np.array(posture) >= robot.arm.low).all() and (np.array(posture) <= robot.arm.high).all()
    shapes = {model.geom(k).name for k in range(model.ngeom)} | {model.body(k).name for k in range(model.nbody)}
    assert set(robot.parts) <= shapes and set(robot.parts.values()) <= set(PARTS)
    assert {*robot.hand.pads, *robot.hidden, *(shape.body for shape in robot.looks)} <= shapes
    assert arm.is_of_arm(model.body(robot.hand.body).id) and not arm.is_of_arm(model.body(BASE_BODY).id)


def test_its_head_camera_is_where_it_says(robot, sim):
    turn = sim.data.cam("head").xmat.reshape(3, 3).T  # right, up, back
    right, down, forward, eye = mounting(robot.head)
    x, y, _ = sim.base_pose
    assert sim.data.cam("head").xpos == pytest.approx(eye + (x, y, 0.0), abs=1e-4)
    assert turn == pytest.approx(np.array([right, -down, -forward]), abs=1e-4)


def test_its_postures_do_not_touch_itself(robot):
    """In a model in which arm and base collide. They may overlap by a centimetre: shapes are simpler than bodies."""
    bits = 'contype="1" conaffinity="1"', 'contype="2" conaffinity="1"'
    there = robot.mjcf(*bits)
    model = mujoco.MjModel.from_xml_string(
        f"<mujoco><compiler angle='radian' autolimits='true'/><asset>{there.assets}</asset><worldbody>{there.body}"
        "</worldbody></mujoco>")
    data, arm = mujoco.MjData(model), arm_model(robot)
    near = {int(model.jnt_bodyid[model.joint(name).id]) for name in robot.arm.names[:2]}
    for posture in (robot.arm.start, robot.arm.tucked, robot.arm.ahead, arm.rest):
        coupled = zip(robot.arm.coupled, robot.arm.coupling @ posture)
        for name, value in (*zip(robot.arm.names, posture), *coupled, *robot.arm.still.items()):
            data.joint(name).qpos = value
        mujoco.mj_forward(model, data)
        for contact in data.contact:
            bodies = {int(model.geom_bodyid[geom]) for geom in contact.geom}
            ours = [arm.is_of_arm(body) for body in bodies]
            assert contact.dist > -0.01 or all(ours) or not any(ours) or bodies & near, posture


def test_the_hand_reaches_its_rest_and_what_lies_before_it(robot):
    arm = arm_model(robot)
    arm.set(arm.rest)
    assert math.dist(arm.tip, robot.arm.rest_m) < 0.12
    down = facing_axis(robot.arm.bearing_rad, 1.3)
    x, y = (f(robot.arm.bearing_rad) * (robot.arm.reach_m - 0.15) for f in (math.cos, math.sin))
    found = [arm.ik_turning(np.array([x, y, height]), down, arm.start, tolerance_rad=0.5) for height in (0.5, 0.7, 0.9)]
    reached = [posture for _, posture in filter(None, found)]
    assert reached and all((p >= robot.arm.low).all() and (p <= robot.arm.high).all() for p in reached)


def test_roles_and_spaces_follow_it(robot, env):
    roles, model = env.sim.home.geom_role, env.sim.model
    of_base, of_arm = ({model.body(int(body)).name for body in model.geom_bodyid[roles == role]}
                       for role in (BASE, ARM))
    assert robot.hand.body in of_arm and BASE_BODY in of_base and not of_base & of_arm
    assert env.action_space.shape == (action_size(robot, env.skill.action_parts),)
    joint = env.observation_space["joint"]
    assert joint.shape == (len(robot.arm.joints),) and (joint.low < robot.arm.low).all()
    assert all(space.contains(np.asarray(value)) for space, value in zip(
        env.observation_space.values(), (env._observe()[key] for key in env.observation_space)))


def test_it_drives_turns_and_stops(sim):
    x, y, yaw = sim.base_pose
    for _ in range(12):
        sim.step(base=[0.8, 0.0])
    for _ in range(15):
        sim.step(base=[0.0, 0.0])
    ahead_m = sim.base_pose[0] - x
    assert 0.2 < ahead_m / sim.config.base_speed_m_s < 0.5 and abs(sim.base_pose[1] - y) < 0.02
    for _ in range(12):
        sim.step(base=[0.0, 0.8])
    for _ in range(15):
        sim.step()
    before = sim.base_pose
    assert 0.2 < before[2] - yaw < 1.0
    for _ in range(10):
        sim.step()
    assert math.dist(before, sim.base_pose) < 2e-3 and not sim.unstable


def test_its_arm_follows_at_its_speed_and_stays_within_its_limits(robot, sim):
    start, n = sim.arm_positions().copy(), len(robot.arm.joints)
    sim.step(arm=[1.0] * n)
    assert sim.arm_targets() - start == pytest.approx(robot.arm.delta)
    for _ in range(60):
        sim.step(arm=[1.0] * n)
    assert (sim.arm_targets() <= robot.arm.high).all() and not sim.unstable
    off = np.abs(sim.arm_targets() - sim.arm_positions())
    assert (off <= robot.arm.lag + robot.arm.delta).all()


def test_what_follows_its_arm_goes_along(robot, sim):
    qpos, arm = [int(sim.model.joint(name).qposadr[0]) for name in robot.arm.coupled], robot.arm
    sim.place_robot(*sim.base_pose, arm.ahead)
    for k in range(40):
        assert sim.data.qpos[qpos] == pytest.approx(arm.coupling @ sim.arm_positions(), abs=5e-3)
        sim.step(arm=[1.0 if k < 20 else -1.0] * len(arm.joints))


def test_an_episode_begins_with_its_arm_towards_what_it_is_about(robot, env):
    env.reset(options={"episode": 1})
    x, y, _ = env.sim.to_base(env.sim.object_position(env.skill.target))
    assert abs(math.remainder(math.atan2(y, x) - robot.arm.bearing_rad, math.tau)) < 0.5
    assert env.sim.config.base_speed_m_s <= robot.base.most_m_s
    assert env.max_steps == round(robot.time * env.skill.max_steps)


def test_what_is_beyond_its_reach_is_said(robot):
    low, high = robot.arm.heights_m
    assert robot.refuses("can", (0.03, 0.03, 0.05), (0.8, 0.9)) is None
    if high < math.inf:
        said = robot.refuses("can", (0.03, 0.03, 0.05), (0.8, 9.0))
        assert said.startswith("can begins or ends 9.00 m above the floor, and the arm takes things from ")


def test_a_camera_sees_its_hand_and_its_wrist_camera_what_it_holds(robot, sim):
    sim.place_robot(*sim.base_pose, robot.arm.ahead)
    things = sim.photograph("head", 96, ("segmentation",), PLAIN)["segmentation"]
    names = sim.segmentation_names()
    assert {"robot/arm", "robot/gripper"} & {names[number] for number in np.unique(things) if number in names}
    sim.put_in_hand(in_hand(sim))
    things = sim.photograph("arm", 96, ("segmentation",), PLAIN)["segmentation"]
    assert any(names.get(number, "").startswith("object") for number in np.unique(things))


def test_it_holds_an_object_carries_it_and_lets_it_go(sim):
    held = in_hand(sim)
    sim.put_in_hand(held)
    before = np.array(sim.to_ee(sim.object_position(held)))
    for k in range(60):
        sim.step(grip=1.0, base=[0.5 * math.sin(0.2 * k), 0.0])
    assert sim.held == held and not sim.hold_broken
    assert np.abs(np.array(sim.to_ee(sim.object_position(held))) - before).max() < 0.02, "it neither slips nor swings"
    sim.step(grip=-1.0)
    assert sim.released and sim.held is None
    height = sim.object_position(held)[2]
    for _ in range(20):
        sim.step(grip=-1.0)
    assert sim.object_position(held)[2] < height - 0.1


@pytest.mark.parametrize("skill", ["navigate", "pick"])
def test_its_experts_solve_an_episode(config, skill):
    solve(config, skill)


@pytest.mark.parametrize("skill", ["place", "open_cabinet", "close_cabinet", "open_fridge", "close_fridge"])
def test_an_arm_that_reaches_to_its_side_opens_closes_and_places(skill):
    solve(SimulatorConfig(robot="stretch3"), skill)


def solve(config: SimulatorConfig, skill: str) -> None:
    """Let the expert solve one of four episodes."""
    env = make_env(skill, robot=config.robot, hand=config.hand, depth_size=0, split="val", num_layouts=4)
    solved = 0
    for episode in range(4):
        env.reset(options={"episode": episode})
        expert, done = expert_class(skill)(env.sim, env.skill), False
        while not done:
            *_, terminated, truncated, info = env.step(expert.act())
            done = terminated or truncated
        solved += info["success"]
        if solved:
            return
    assert solved


def test_what_is_no_robot_is_said_in_one_sentence():
    for settings, said in (({"robot": "fetsh"}, "no robot .did you mean 'fetch'"),
                           ({"robot": "own_robot:HEAD"}, "no robot, but of type Camera"),
                           ({"robot": "fetch", "hand": "hook"}, "sim.robot=fetch; it has suction, fingers"),
                           ({"robot": "x/fetch.urdf"}, "a URDF is for sim=habitat, as sim.robot_urdf=")):
        with pytest.raises(UserError, match=said):
            HomeSettings(**settings)
    assert HomeSettings(sim="habitat", robot="x/fetch.urdf").robot_urdf == "x/fetch.urdf"  # its name in version 0.2
    assert MujocoSimulator().robot is robot_named("fetch")

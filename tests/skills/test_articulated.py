"""Opening and closing drawers and the fridge: where they start, what they reward, what ends them, and the physics."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest

from rearrange.home.errors import UserError
from rearrange.home.geometry import to_frame
from rearrange.home.robot.fetch import ARM
from skills import config_class, make_env
from skills.articulated import front_frame
from skills.experts.arm_model import arm_model
from skills.experts.trajectory import back_from
from tests.skills.begun import action, aside_rad, let_go, started, tear_off

OPENING, CLOSING = ("open_cabinet", "open_fridge"), ("close_cabinet", "close_fridge")
ALL = OPENING + CLOSING


def set_joint(env, value: float) -> None:
    """Move the drawer or door of the episode by hand."""
    sim = env.sim
    sim.set_joint(env.skill.target_handle, value)
    sim.data.qvel[:] = 0.0
    mujoco.mj_forward(sim.model, sim.data)


def stand_at_rest(env) -> None:
    """Put the robot away from the furniture with its hand at rest."""
    rest = arm_model(env.sim.robot).ik(np.array(ARM.rest_m), None, tolerance_m=0.05)
    env.sim.place_robot(*back_from(env.sim.base_pose, 1.0), tuple(rest))


def take_handle(env, handle: str) -> None:
    """Move the robot so that the tip of its cup is in the middle of a handle, and hold it."""
    sim = env.sim
    (hx, hy, hz), (ex, ey, ez) = sim.handle_position(handle), sim.ee_position
    x, y, yaw = sim.base_pose
    sim.data.qpos[sim.model.joint("torso_lift").qposadr[0]] += hz - ez
    sim.place_robot(x + hx - ex, y + hy - ey, yaw, ARM.start)
    sim._hold_or_release(1.0)
    assert sim.held_handle == handle


# ------------------------------------------------------------------ start

@pytest.mark.parametrize("skill", ALL)
def test_the_robot_starts_free_before_a_handle_that_it_faces(skill):
    env = make_env(skill, depth_size=0, num_layouts=12)
    config, off = env.skill.config, []
    for episode in range(30):
        env.reset(options={"episode": episode})
        sim, handle = env.sim, env.skill.target_handle
        assert not sim.robot_collides() and not sim.is_holding
        assert handle.startswith("drawer" if "cabinet" in skill else "fridge")
        forward, aside = to_frame(*sim.base_pose[:2], front_frame(sim, handle))
        low, high = config.start_distance_m
        assert low - 1e-6 <= forward <= high + 0.8 and abs(aside) <= config.start_aside_m + 1e-6
        off.append(aside_rad(sim, sim.handle_position(handle)))
        opening = sim.joint_position(handle)
        if skill in OPENING:
            assert abs(opening) < 1e-3 and sim.settle_distance_m < 0.03
            receptacle = sim.home.layout.receptacle(env.episode.target_receptacles[0])  # of what is to be moved
            assert receptacle.link == handle and receptacle.closed
        else:
            low, high = (0.4, 0.5) if "cabinet" in skill else (math.pi / 4, 2 * math.pi / 3)
            assert low - 0.01 <= opening <= high + 0.01
        others = [h for h in sim.home.handles if h != handle]
        assert all(abs(sim.joint_position(h)) < 1e-3 for h in others), "the others are closed"
    assert 0.05 < np.std(off) < 0.3


# ------------------------------------------------------------------ reward, success, failure

@pytest.mark.parametrize("skill", ALL)
def test_reward_of_one_step_by_hand(skill):
    """The joint moves by 0.1 towards its target while the hand stays: 10 per unit, 1 per metre from hand to handle."""
    env = started(skill)
    sim, task = env.sim, env.skill
    stand_at_rest(env)
    if skill in OPENING:
        set_joint(env, 0.0)
    task.begin(sim, task.arguments)
    start = sim.joint_position(task.target_handle)
    far = math.dist(sim.ee_position, sim.handle_position(task.target_handle))
    set_joint(env, start + (0.1 if skill in OPENING else -0.1))
    sim._read_pose()
    nearer = far - math.dist(sim.ee_position, sim.handle_position(task.target_handle))
    terms = task.reward_terms(sim)
    assert terms["opening"] == pytest.approx(0.1) and terms["handle"] == pytest.approx(nearer)
    assert terms["rest"] == terms["reached"] == terms["success"] == terms["grasped"] == 0.0
    assert task.reward_scales["opening"] == 10.0 and task.reward_scales["handle"] == 1.0


@pytest.mark.parametrize("skill", ALL)
def test_success_needs_the_joint_and_the_hand_and_is_rewarded_once(skill):
    env = started(skill)
    sim, task = env.sim, env.skill
    config = task.config
    edge = config.target_opening + (-1 if skill in OPENING else 1) * config.opening_tolerance
    inside, outside = edge + (0.01 if skill in OPENING else -0.01), edge - (0.01 if skill in OPENING else -0.01)
    stand_at_rest(env)
    set_joint(env, outside)
    task.begin(sim, task.arguments)
    assert not task.at_target(sim) and not task.success(sim)
    set_joint(env, inside)
    assert task.at_target(sim) and task.success(sim)
    terms = task.reward_terms(sim)
    assert terms["reached"] == terms["success"] == 1.0 and terms["rest"] == 0.0
    assert task.reward_terms(sim)["reached"] == 0.0
    x, y, yaw = sim.base_pose
    sim.place_robot(x, y, yaw, ARM.start)  # the hand is 0.28 m from rest there
    assert task.at_target(sim) and not task.success(sim)
    assert task.reward_terms(sim)["rest"] == pytest.approx(-math.dist(sim.ee_in_base, ARM.rest_m), abs=0.06)


@pytest.mark.parametrize("skill", OPENING)
def test_the_first_grasp_of_the_handle_is_rewarded_and_no_success_while_it_lasts(skill):
    env = started(skill)
    sim, task = env.sim, env.skill
    take_handle(env, task.target_handle)
    first, second = task.reward_terms(sim), task.reward_terms(sim)
    assert first["grasped"] == 1.0 and second["grasped"] == 0.0 and first["handle"] == 0.0
    assert task.failure(sim) is None
    set_joint(env, task.config.target_opening)
    sim.ee_in_base = ARM.rest_m
    assert task.at_target(sim) and not task.success(sim)
    let_go(sim)
    assert task.success(sim)


@pytest.mark.parametrize("skill", OPENING)
def test_letting_go_is_rewarded_while_it_lasts(skill):
    """Taking the handle again gives the reward back: a hand that lets go and takes hold by turns earns nothing."""
    env = started(skill)
    sim, task = env.sim, env.skill
    take_handle(env, task.target_handle)
    assert task.reward_terms(sim)["released"] == 0.0
    set_joint(env, task.config.target_opening)
    assert task.reward_terms(sim)["released"] == 0.0

    def after(letting_go: bool) -> tuple[float, float]:
        sim.held_handle = None if letting_go else task.target_handle
        return task.reward_terms(sim)["released"], task.measures()["released"]

    assert [after(letting_go) for letting_go in (True, True, False, False, True)] == [
        (1.0, 1.0), (0.0, 1.0), (-1.0, 0.0), (0.0, 0.0), (1.0, 1.0)]


@pytest.mark.parametrize("skill", ALL)
def test_what_leaves_its_goal_again_costs_as_much_as_its_return_gives_back(skill):
    env = started(skill)
    sim, task, config = env.sim, env.skill, env.skill.config
    stand_at_rest(env)
    sign = -1 if skill in OPENING else 1
    edge = config.target_opening + sign * config.opening_tolerance

    def kept(outside: float) -> float:
        set_joint(env, edge + sign * outside)
        return task.reward_terms(sim)["kept"]

    set_joint(env, edge + sign * 0.2)
    task.begin(sim, task.arguments)
    assert kept(0.1) == 0.0, "nothing is lost that was not reached"
    assert [kept(outside) for outside in (-0.01, -0.02, 0.05, 0.08, -0.01)] == pytest.approx([0, 0, -0.05, -0.03, 0.08])


def test_another_handle_is_a_wrong_grasp_and_ends_it():
    env = started("open_cabinet")
    other = next(h for h in env.sim.home.handles if h.startswith("drawer") and h != env.skill.target_handle)
    take_handle(env, other)
    _, reward, terminated, _, info = env.step(action(env, grip=1.0))
    assert terminated and info["metrics"]["failure/wrong_grasp"] == 1.0
    assert info["metrics"]["reward/wrong_grasp"] == -5.0 and reward < -4.0


def test_a_torn_hold_ends_it():
    env = started("open_cabinet")
    take_handle(env, env.skill.target_handle)
    tear_off(env)
    set_joint(env, 0.45)
    _, _, terminated, _, info = env.step(action(env, grip=1.0))
    assert terminated and info["metrics"]["failure/hold_broken"] == 1.0
    assert info["metrics"]["reward/hold_broken"] == -1.0


@pytest.mark.parametrize("skill", ALL)
def test_too_much_force_ends_it_where_there_is_a_limit(skill):
    env = started(skill, max_accumulated_force_n=100.0)
    env.sim.accumulated_arm_force_n = 101.0
    assert env.skill.failure(env.sim) == "force_limit"
    free = started(skill, max_accumulated_force_n=None)
    free.sim.accumulated_arm_force_n = 1e9
    assert free.skill.failure(free.sim) is None


def test_config_mistakes_are_named():
    for settings, why in (
            ({"start_distance_m": (1.0,)}, "start_distance_m"), ({"start_distance_m": (1.2, 1.0)}, "lesser"),
            ({"reward_scales": {"picked": 1.0}}, "no reward term")):
        with pytest.raises(UserError, match=why):
            config_class("open_fridge")(**settings)


@pytest.mark.parametrize("skill, parts, size", [("open_cabinet", ("arm", "grip"), 8), ("close_cabinet", ("arm",), 7),
                                                ("open_fridge", ("arm", "grip", "base"), 10),
                                                ("close_fridge", ("arm", "grip", "base"), 10)])
def test_limited_and_other_action_spaces(skill, parts, size):
    env = started(skill, action_parts=parts)
    assert env.action_space.shape == (size,)
    env.step(env.action_space.sample())


# ------------------------------------------------------------------ physics

@pytest.mark.parametrize("skill", CLOSING)
def test_what_stands_open_stays_where_it_is(skill):
    env = started(skill)
    sim = env.sim
    stand_at_rest(env)
    before = sim.joint_position(env.skill.target_handle)
    for _ in range(150):
        sim.step()
    assert sim.joint_position(env.skill.target_handle) == pytest.approx(before, abs=1e-3)


def test_the_drawer_carries_what_lies_in_it():
    env = started("open_cabinet", episode=1)
    sim, handle = env.sim, env.skill.target_handle
    stand_at_rest(env)
    before, drawer = np.array(sim.object_position(0)), np.array(sim.handle_position(handle))
    dof = sim.model.joint(handle).dofadr[0]
    while sim.joint_position(handle) < 0.42:
        sim.data.qfrc_applied[dof] = 4.0  # a steady pull
        sim.step()
    sim.data.qfrc_applied[dof] = 0.0
    for _ in range(60):
        sim.step()
    carried, moved = np.array(sim.object_position(0)) - before, np.array(sim.handle_position(handle)) - drawer
    assert np.linalg.norm(moved) > 0.4
    assert np.linalg.norm(carried - moved) < 0.12, "it slid"
    assert abs(carried[2]) < 0.03, "it fell over or out"


def test_the_robot_can_bump_the_door_shut():
    env = started("close_fridge")
    sim, handle = env.sim, env.skill.target_handle
    body = next(body for body in sim.home.layout.bodies if body.name == handle)
    sim.set_joint(handle, 0.6)
    x, y, yaw = sim.home.layout.fridge_pose
    free_edge = -body.hinge_sign * 0.25
    forward = np.array([math.cos(yaw), math.sin(yaw)])
    side = np.array([-math.sin(yaw), math.cos(yaw)])
    start = np.array([x, y]) + 1.25 * forward + free_edge * side
    sim.place_robot(*start, yaw, ARM.start)  # its back to the door, so that base and torso push
    before, deepest = sim.joint_position(handle), 0.0
    for _ in range(60):
        sim.step(base=[-0.5, 0.0])
        contact = sim.data.contact
        robot = sim.home.geom_role[contact.geom].any(axis=1) if contact.geom.size else []
        deepest = min(deepest, contact.dist[robot].min(initial=0.0)) if contact.geom.size else deepest
    assert sim.joint_position(handle) < before - 0.3
    assert deepest > -0.03


@pytest.mark.parametrize("skill", OPENING)
def test_no_body_opens_what_only_the_handle_opens(skill):
    """Leaning and pushing with the whole robot, suction off, leaves it closed."""
    env = started(skill)
    sim, rng = env.sim, np.random.default_rng(3)
    most = 0.0
    for _ in range(300):
        sim.step(rng.uniform(-1, 1, 7).tolist(), -1.0, [1.0, float(rng.uniform(-1, 1))])
        most = max(most, sim.joint_position(env.skill.target_handle))
    assert most < env.skill.config.target_opening / 2


def test_the_picture_shows_handle_and_opening():
    env = started("close_fridge", render_mode="rgb_array")
    assert env.render().shape == (512, 512, 3)
    assert np.allclose(env.skill.marks(env.sim)[0].center_m, env.sim.handle_position("fridge_door"))
    assert any("rad" in line for line in env.status_lines())

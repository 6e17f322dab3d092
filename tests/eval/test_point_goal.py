"""A policy of PointNav drives the Fetch: its actions by odometry, its camera, who is told what."""

import math

import numpy as np
import pytest

from eval.point_goal import NavigatePointNav, Pilot, level_depth, pointnav_config
from eval.scenario.skill_sources import sources
from planner.spa.controllers import Memory
from rearrange.home.errors import UserError
from rearrange.home.geometry import wrap_angle
from rearrange.home.robot.robot import RANGE_M
from rearrange.navigation import CONFIGS
from skills import make_env
from tests.eval.scenario.hab_checkpoints import untrained
from trainer.checkpoint import load_checkpoint


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return untrained(tmp_path_factory.mktemp("pointnav"), "pointnav", image_size=16)


@pytest.fixture(scope="module")
def env():
    env = make_env("navigate", depth_size=0, num_layouts=12, any_start=True, to_handle=True)
    env.reset(seed=0, options={"episode": 1})
    return env


@pytest.fixture(scope="module")
def found(file, tmp_path_factory):
    return sources("expert", {"navigate": str(file)}, ["navigate"], tmp_path_factory.mktemp("none"),
                   "tidy_house")["navigate"]


def test_steps_and_turns_are_carried_out_by_odometry(file, env, monkeypatch):
    asked, ask = [], Pilot._ask

    def noted(pilot, sim, goal):
        asked.append((sim.base_pose, pilot._ahead_m, pilot._turn_rad, sim.base_force_n))
        ask(pilot, sim, goal)

    monkeypatch.setattr(Pilot, "_ask", noted)
    env.reset(seed=0, options={"episode": 1})
    driver = NavigatePointNav(Pilot(load_checkpoint(file), str(file)), Memory(), env.sim, env.skill)
    for _ in range(150):
        _, _, terminated, _, _ = env.step(driver.act())
        assert not terminated
    seen = set()  # of actions; from 1 m/s the base coasts
    for (before, *_), (after, ahead, turn, force) in zip(asked, asked[1:]):
        if force:
            continue
        drove, turned = math.dist(before[:2], after[:2]), wrap_angle(after[2] - before[2])
        seen.add((ahead > 0, float(np.sign(turn))))
        assert abs(drove - ahead) < 0.12 and abs(turned - turn) < math.radians(5), (ahead, turn, drove, turned)
    assert {(True, 0.0), (False, 1.0), (False, -1.0)} <= seen


def test_the_same_episode_is_driven_alike_and_mean_actions_otherwise(file, env):
    def poses(actions):
        env.reset(seed=0, options={"episode": 1})
        driver = NavigatePointNav(Pilot(load_checkpoint(file), str(file)), Memory(), env.sim, env.skill, actions)
        return [env.step(driver.act()) and env.sim.base_pose for _ in range(20)]

    drawn, likeliest = poses("sampled"), poses("mean")
    assert drawn == poses("sampled") != likeliest == poses("mean_first")


def test_the_level_camera_sees_no_robot_and_floor_where_floor_is(env):
    env.reset(seed=0, options={"episode": 1})
    config = CONFIGS["pointnav"]()
    image = level_depth(env.sim, 32, config) * RANGE_M
    assert image.shape == (32, 32, 1) and image.dtype == np.float32
    slope = (31 - 15.5) * 2 / 32  # of the last row
    assert image[-1, :, 0].max() <= config.camera_height_m / slope + 1e-3
    assert image.min() > 0.3, "the arm is nearer than anything else"
    narrow = level_depth(env.sim, 16, CONFIGS["objectnav"](near_m=0.0, far_m=10.0, fov_deg=2
                                                           * math.degrees(math.atan(0.5)), camera_height_m=1.25))
    np.testing.assert_array_equal(narrow * RANGE_M, image[8:24, 8:24])


def test_a_policy_of_pointnav_is_a_source_of_navigate_alone(file, found, tmp_path):
    assert (found.kind, found.checkpoint, found.image_size) == ("pointnav", str(file), 16)
    made = found.make("navigate")
    assert made.config.any_start and made.config.to_handle
    with pytest.raises(UserError, match="is a checkpoint of nav pointnav, not of pick"):
        sources("expert", {"pick": str(file)}, ["pick"], tmp_path, "tidy_house")


@pytest.mark.parametrize("settings, words", [({"actions": "velocity"}, "a policy of discrete actions"),
                                             ({"fov_deg": 100.0}, "90 degrees")])
def test_one_that_cannot_drive_the_fetch_is_one_sentence(settings, words):
    with pytest.raises(UserError, match=f"x.pt was trained with nav.*{words}"):
        pointnav_config(settings, "x.pt")


def test_one_that_was_trained_on_the_fetch_drives_it_by_its_velocities(env, tmp_path):
    file = untrained(tmp_path, "pointnav", image_size=16, agent="fetch", action_repeat=3)
    source = sources("expert", {"navigate": str(file)}, ["navigate"], tmp_path, "tidy_house")["navigate"]
    assert source.kind == "pointnav"
    env.reset(seed=0, options={"episode": 1})
    pilot = Pilot(load_checkpoint(file), str(file))
    pilot.begin(0)
    given = []
    for action in ((0.5, -2.0), (0.05, -0.05), (-1.0, 0.2)):
        pilot._player.act = lambda seen, action=action: np.array(action, np.float32)
        given += [pilot.command(env.sim, (1.0, 1.0)) for _ in range(1 if action[0] == 0.05 else 3)]
    assert given == [(0.5, -1.0)] * 3 + [None] + [
        (-1.0, pytest.approx(0.2))] * 3, "held for three steps; nearly nothing is stop"

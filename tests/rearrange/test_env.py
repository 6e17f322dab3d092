"""The Gymnasium environment: contract, reproducibility, observations in their frames, image lag, metrics."""

from __future__ import annotations

import dataclasses
import math

import gymnasium
import numpy as np
import pytest

from rearrange.env.skill_env import asked_episode
from rearrange.home.apartments.episodes import write_episodes
from rearrange.home.episodes.generator import generate_episode
from rearrange.home.errors import UserError
from rearrange.home.geometry import from_frame
from rearrange.home.robot.fetch import ARM
from rearrange.home.simulation.mujoco.compiled_home import load_home
from rearrange.home.simulation.observations import OBSERVATIONS, OF_IMAGES
from skills import make_env


def actions(env: gymnasium.Env, count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, (count, *env.action_space.shape)).astype(np.float32)


def trajectory(env: gymnasium.Env, count: int = 40, **reset) -> list[np.ndarray]:
    observation, _ = env.reset(**reset)
    out = list(observation.values())
    for action in actions(env, count):
        observation, reward, terminated, truncated, _ = env.step(action)
        out += [*observation.values(), np.float64(reward), np.bool_(terminated)]
        if terminated or truncated:
            break
    return [np.array(x) for x in out]


def same(a: list[np.ndarray], b: list[np.ndarray]) -> bool:
    return len(a) == len(b) and all(np.array_equal(x, y) for x, y in zip(a, b))


def test_same_seed_same_trajectory_in_a_new_instance_and_after_other_episodes():
    env = make_env(depth_size=32)
    first = trajectory(env, seed=5)
    second_episode = trajectory(env)
    other = make_env(depth_size=32)
    other.reset(options={"episode": 3})
    for action in actions(other, 10, seed=9):
        other.step(action)
    assert same(first, trajectory(other, seed=5))
    assert same(second_episode, trajectory(other))
    assert not same(first, trajectory(other, seed=6))


def test_a_numbered_episode_is_the_same_whatever_came_before():
    a, b = make_env(depth_size=0), make_env(depth_size=0)
    b.reset(seed=3)
    assert same(trajectory(a, options={"episode": 7}), trajectory(b, options={"episode": 7}))
    assert not same(trajectory(a, options={"episode": 7}), trajectory(a, seed=1, options={"episode": 7}))


def test_the_image_lags_by_one_step_except_at_the_reset():
    lagged, now = make_env(depth_size=32), make_env(depth_size=32, image_lag=False)
    images, fresh = [], []
    for env, out in ((lagged, images), (now, fresh)):
        out.append(env.reset(options={"episode": 2})[0]["depth"])
        for _ in range(5):
            out.append(env.step(np.full(env.action_space.shape, 0.7, np.float32))[0]["depth"])
    assert np.array_equal(images[0], fresh[0]) and np.array_equal(images[1], fresh[0])
    for k in range(1, 6):
        assert np.array_equal(images[k], fresh[k - 1])
        assert not np.array_equal(fresh[k], fresh[k - 1])


def test_observations_are_in_their_frames():
    keys = ["depth", *OBSERVATIONS]
    skill_keys = [key for key in keys if not key.startswith("marker")]
    env = make_env(depth_size=0, observation_keys=skill_keys)
    observation, _ = env.reset(options={"episode": 4})
    sim = env.sim
    for action in actions(env, 15):
        observation, *_ = env.step(action)
    assert set(observation) == set(skill_keys) - set(OF_IMAGES) and all(v.dtype == np.float32
                                                                        for v in observation.values())
    site = sim.data.site("end_effector")
    start, goal = np.array(sim.start_positions[env.skill.target]), np.array(env.episode.targets[env.skill.target][:3])
    rotation = site.xmat.reshape(3, 3)
    assert np.allclose(observation["obj_start"], rotation.T @ (start - site.xpos), atol=1e-5)
    assert np.allclose(observation["obj_goal"], rotation.T @ (goal - site.xpos), atol=1e-5)
    x, y, yaw = sim.base_pose
    in_base = np.array([math.cos(yaw) * (site.xpos[0] - x) + math.sin(yaw) * (site.xpos[1] - y),
                        math.cos(yaw) * (site.xpos[1] - y) - math.sin(yaw) * (site.xpos[0] - x), site.xpos[2]])
    assert np.allclose(observation["ee_pos"], in_base, atol=1e-5)
    assert np.allclose(observation["relative_resting_position"], np.array([0.5, 0.0, 1.0]) - in_base, atol=1e-5)
    assert np.allclose(observation["joint"], [sim.data.joint(name).qpos[0] for name in ARM.names])
    distance, angle = observation["obj_goal_gps_compass"]
    seen_at = x + distance * math.cos(yaw - angle), y + distance * math.sin(yaw - angle)
    assert np.allclose(seen_at, goal[:2], atol=1e-4)
    x0, y0, yaw0 = env.scene.start_base_pose
    assert np.allclose(from_frame(*observation["gps"], (x0, y0, yaw0)), [x, y], atol=1e-5)
    assert observation["compass"][0] == pytest.approx(yaw - yaw0, abs=1e-5) and abs(yaw - yaw0) > 1e-3


def test_base_vel_is_the_speed_of_the_base_and_none_where_something_holds_it_up():
    env = make_env(depth_size=0, observation_keys=["base_vel"])
    assert not env.reset(seed=0)[0]["base_vel"].any()
    action, speeds, held_up = np.zeros(env.action_space.shape, np.float32), [], []
    parts = dict(env.action_parts)
    for k in range(150):
        action[parts["base"]] = (-1.0, 0.2) if k < 30 else (1.0, 0.0)
        x, y, yaw = env.sim.base_pose
        seen = env.step(action)[0]["base_vel"]
        new_x, new_y, new_yaw = env.sim.base_pose
        assert math.hypot(*seen[:2]) == pytest.approx(30 * math.dist((x, y), (new_x, new_y)), abs=1e-4)
        assert seen[2] == pytest.approx(30 * (new_yaw - yaw), abs=1e-3)
        assert seen[0] == pytest.approx(30 * ((new_x - x) * math.cos(yaw) + (new_y - y) * math.sin(yaw)), abs=1e-4)
        (held_up if env.sim.base_force_n > 0 else speeds).append(seen)
    assert min(speed[0] for speed in speeds) < -0.5 and max(speed[0] for speed in speeds) > 0.5
    assert max(speed[2] for speed in speeds) > 0.2
    assert held_up and min(abs(speed[0]) for speed in held_up) < 0.1


def test_metrics_come_once_at_the_end_and_add_up_to_the_return():
    env = make_env(depth_size=0, max_steps=30)
    env.reset(seed=0)
    total = 0.0
    for k, action in enumerate(actions(env, 30)):
        _, reward, terminated, truncated, info = env.step(action)
        total += reward
        if terminated or truncated:
            break
        assert "metrics" not in info
    metrics = info["metrics"]
    assert metrics["episode_steps"] == k + 1
    assert sum(v for name, v in metrics.items() if name.startswith("reward/")) == pytest.approx(total)
    assert metrics["success"] + sum(v for name, v in metrics.items() if name.startswith("failure/")) == 1.0
    assert truncated and metrics["failure/time_limit"] == 1.0
    assert all(isinstance(v, float) for v in metrics.values())


def test_a_known_home_is_reset_without_building_it_anew():
    env = make_env(depth_size=128, num_layouts=4)
    for k in range(8):
        env.reset(options={"episode": k})
    built = load_home.cache_info().misses
    for k in range(20):
        env.reset(options={"episode": k % 8})
    assert load_home.cache_info().misses == built


def test_episodes_from_a_file(tmp_path):
    path = tmp_path / "two.json.gz"
    write_episodes(path, [generate_episode("pick", "val", k, 4) for k in (3, 8)])
    env = make_env(depth_size=0, episodes=str(path), split="val")
    infos = [env.reset(options={"episode": k})[1]["episode_id"] for k in range(3)]
    assert infos == ["pick/val/3", "pick/val/8", "pick/val/3"]
    assert env.reset(seed=0)[1]["episode_id"] in infos and env.listed == 2


@pytest.mark.parametrize("joints, message", [({"fridge_door": -9.0}, "joint fridge_door cannot stand at -9; it moves "
                                              "from 0 to 2.4"), ({"oven": 1.0}, "has no joint 'oven")])
def test_a_door_that_cannot_stand_as_a_file_says(joints, message, tmp_path):
    episode = dataclasses.replace(generate_episode("pick", "val", 3, 4), articulated=joints)
    write_episodes(tmp_path / "one.json", [episode])
    for env, which in ((make_env(depth_size=0), episode),
                       (make_env(depth_size=0, episodes=str(tmp_path / "one.json")), 0)):
        with pytest.raises(UserError, match=message):
            env.reset(options={"episode": which})


def test_what_takes_the_place_of_a_skipped_episode_is_no_other_of_the_evaluation():
    env = make_env("close_fridge", split="val", depth_size=0)
    told = [env.reset(options={"episode": number})[1] for number in range(12)]
    assert sum(info["skipped_episodes"] > 0 for info in told) > 1 and len({info["episode_id"] for info in told}) == 12


def test_objects_in_the_air_are_no_episode(tmp_path):
    good, bad = generate_episode("pick", "val", 3, 4), generate_episode("pick", "val", 8, 4)
    x, y, z, *turned = bad.start_poses[0]
    bad = dataclasses.replace(bad, start_poses=((x, y, z + 1.0, *turned), *bad.start_poses[1:]))
    write_episodes(tmp_path / "two.json", [bad, good])
    env = make_env(depth_size=0, episodes=str(tmp_path / "two.json"))
    info = env.reset(options={"episode": 0})[1]
    assert (info["episode_id"], info["skipped_episodes"]) == (good.id, 1)
    with pytest.raises(UserError, match="cannot be started: its objects do not rest where it puts them"):
        env.reset(options={"episode": bad})


def test_a_picture_of_the_scene():
    env = make_env(depth_size=0, render_mode="rgb_array")
    env.reset(options={"episode": 0})
    picture = env.render()
    assert picture.shape == (512, 512, 3) and picture.dtype == np.uint8 and picture.std() > 20


def test_the_limited_action_space_leaves_the_base_out():
    env = make_env(depth_size=0, action_parts=("arm", "grip"))
    assert env.action_space.shape == (8,) and [name for name, _ in env.action_parts] == ["arm", "grip"]
    env.reset(seed=0)
    start = env.sim.base_pose
    for action in actions(env, 20):
        env.step(action)
    assert math.dist(start[:2], env.sim.base_pose[:2]) < 0.005


@pytest.mark.parametrize(
    "settings, named",
    [({"split": "training"}, "split=training"), ({"depth_size": -1}, "depth_size=-1"),
     ({"sim": "gazebo"}, "sim=gazebo"), ({"num_layouts": 0}, "num_layouts=0"),
     ({"render_mode": "ansi"}, "render_mode=ansi"), ({"observation_keys": ["smell"]}, "smell"),
     ({"depth_size": 1}, "depth_size=1 (policy.image_size) should be 0 (no image) or 2 to"),
     ({"observation_keys": ["joint", "marker_state"]},
      "skill pick has no observation 'marker_state'; there are depth, joint"),
     ({"skill": "open_fridge", "observation_keys": ["obj_goal"]}, "skill open_fridge has no observation 'obj_goal'; "
      "there are"), ({"action_parts": ("arm", "leg")}, "leg"), ({"max_step": 3}, "max_steps"),
     ({"reward_scales": {"pick": 1}}, "picked"), ({"episodes": "nowhere.json"}, "nowhere.json"),
     ({"skill": "pik"}, "'pick'"), *(({"max_steps": value}, "max_steps=") for value in (0, -1, "x", 5.5)),
     *(({"base_speed_m_s": value}, "base_speed_m_s=") for value in (-1, float("nan"), "x", 1e30)),
     *(({"depth_size": value}, "depth_size=") for value in (64.5, "64", None)),
     *(({"num_layouts": value}, "num_layouts=") for value in ("4", None, 2.5)),
     *(({"episodes": value}, "episodes=") for value in ([], {})),
     *(({"reward_scales": value}, "reward_scales")
       for value in (None, [], {"success": "x"}, {"success": float("inf")})),
     *(({name: -1}, f"{name}=-1") for name in ("rest_radius_m", "suction_max_angle_rad", "start_position_noise_m")),
     ({"split": ["val"]}, "split="), ({"rest_position_m": (1, 2)}, "3 numbers"),
     ({"action_parts": ("arm", "arm")}, "each once")])
def test_a_wrong_setting_is_named(settings, named):
    with pytest.raises(UserError) as error:
        make_env(**settings)
    assert named in str(error.value) and "\n" not in str(error.value)


def test_a_wrong_action_is_refused():
    env = make_env(depth_size=0)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="10 numbers"):
        env.step(np.zeros(3, np.float32))
    for value in (np.nan, np.inf, -np.inf):
        with pytest.raises(ValueError, match="not finite"):
            env.step(np.array([value, *np.zeros(9)], np.float32))


@pytest.mark.filterwarnings("error")
def test_an_absurd_action_is_a_full_one():
    """Its numbers are finite, though their sum is not."""
    joints = []
    for size in (1e308, 1.0):
        env = make_env(depth_size=0)
        env.reset(options={"episode": 0})
        env.step(np.full(10, size))
        joints.append(env.step(np.full(10, -size))[0]["joint"])
    assert np.array_equal(*joints)


def test_broken_physics_ends_the_episode_and_the_next_one_is_sound(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MuJoCo writes its warning into the working directory
    env = make_env(depth_size=0)
    env.reset(options={"episode": 1})
    nothing = np.zeros(env.action_space.shape, np.float32)
    env.step(nothing)
    env.sim.data.qvel[:] = 1e13
    observation, reward, terminated, truncated, info = env.step(nothing)
    assert truncated and not terminated and reward == 0.0 and info["metrics"]["failure/unstable"] == 1.0
    assert all(np.isfinite(value).all() for value in observation.values())
    assert same(trajectory(env, options={"episode": 7}), trajectory(make_env(depth_size=0), options={"episode": 7}))


def test_settings_may_be_what_python_has():
    env = make_env(depth_size=0, max_steps=np.int64(7), rest_position_m=np.array([0.5, 0.0, 1.0]), num_layouts=4.0)
    assert env.skill.max_steps == 7 and env.home.num_layouts == 4 and env.skill.config.rest_position_m == (0.5, 0.0,
                                                                                                           1.0)


@pytest.mark.parametrize(
    "options", [{"episode": "x"}, {"episode": 1.5}, {"episode": -1}, {"episode": True}, {"epsiode": 1}, [], 5])
def test_an_episode_that_cannot_be_asked_for_is_told(options):
    with pytest.raises(UserError, match="reset takes options="):
        asked_episode(options)


def test_an_episode_is_asked_for_by_number_or_left_to_chance():
    assert [asked_episode(options)
            for options in (None, {}, {"episode": None}, {"episode": 3})] == [None, None, None, 3]


@pytest.mark.parametrize("action", [None, 0, np.zeros((10, 1)), np.zeros(3), ["a"] * 10])
def test_an_action_of_another_shape_is_told(action):
    env = make_env("pick", split="train", num_layouts=1, depth_size=0)
    with pytest.raises(RuntimeError, match="step before reset"):
        env.step(np.zeros(10))
    env.reset(seed=0)
    with pytest.raises(ValueError, match="an action of skill pick has 10 numbers, shape"):
        env.step(action)

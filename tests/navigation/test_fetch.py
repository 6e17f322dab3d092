"""`nav.agent=fetch`: the Fetch's base, driven by velocities among walls and furniture, in the same tasks."""

import math
from itertools import pairwise

import numpy as np
import pytest

import rearrange  # noqa: F401 registers the ids
from eval.point_goal import level_depth
from rearrange.home.apartments.floor_grid import CELL_M, blocked_cells
from rearrange.home.geometry import wrap_angle
from rearrange.home.simulation.simulator_interface import STEP_S
from rearrange.navigation import make_env
from rearrange.navigation.agent import moved
from rearrange.navigation.home_cache import field_to
from rearrange.navigation.scripted_agents import SCRIPTED
from tests.navigation.player import play

HOMES = {"split": "val", "num_homes": 3, "agent": "fetch"}
AHEAD, STOP = np.array([1.0, 0.0], np.float32), np.array([0.05, -0.05], np.float32)


@pytest.fixture(scope="module")
def env():
    return make_env("pointnav", depth_size=32, **HOMES)


def test_a_film_of_it_runs_at_the_speed_of_its_actions(env):
    assert env.metadata["render_fps"] == 30
    assert make_env("pointnav", depth_size=0, action_repeat=3, **HOMES).metadata["render_fps"] == pytest.approx(10)


def test_a_slow_robot_has_more_time_for_what_it_drives(env):
    made = {"depth_size": 0, **HOMES, "agent": "stretch3"}
    assert env.max_steps == 900 and make_env("pointnav", **made).max_steps == 2700
    assert make_env("pointnav", **made, action_repeat=4).max_steps == 675
    assert make_env("pointnav", **made, actions="discrete").max_steps == 500, "each is carried out to its end"
    assert make_env("pointnav", **made, max_steps=40).max_steps == 40


def drive(env, episode, actions):
    env.reset(options={"episode": episode})
    return [env.step(action) for action in actions]


def test_the_same_number_is_the_same_episode_whatever_was_driven_before(env):
    other = make_env("pointnav", depth_size=32, **HOMES)
    actions = np.random.default_rng(0).uniform(-1, 1, (40, 2)).astype(np.float32) + (0.8, 0.0)
    drive(other, 5, actions)
    for index in (0, 7):
        a, b = (drive(e, index, actions) for e in (env, other))
        assert env.episode == other.episode and env.pose == other.pose and env.pose != env.episode.start
        assert all(np.array_equal(x[0][key], y[0][key]) and x[1:4] == y[1:4] for x, y in zip(a, b) for key in x[0])


@pytest.mark.parametrize("task, settings",
                         [("pointnav", {}), ("pointnav", {"actions": "discrete"}), ("objectnav", {"action_repeat": 3})])
def test_the_oracle_reaches_its_goals(task, settings):
    env = make_env(task, depth_size=0, **HOMES, **settings)
    agent = SCRIPTED["oracle"](env)
    for index in range(3):
        env.reset(options={"episode": index})
        assert not env.agent.sim.robot_collides(), "it starts where it touches nothing"
        metrics = play(env, agent, index)[1]["metrics"]
        assert metrics["success"] == 1 and metrics["spl"] > 0.75 and metrics["failure/unstable"] == 0
        assert metrics["driven_m"] > metrics["shortest_m"] - env.config.success_m - 0.1


@pytest.mark.parametrize("speed, turn", [(1.0, 0.0), (0.5, 0.6), (-0.6, 0.0), (0.0, -1.0)])
def test_in_free_space_the_pose_is_the_integral_of_the_velocities(env, speed, turn):
    steps = 24
    for index in range(200):
        env.reset(options={"episode": index})
        way = [env.pose]
        for _ in range(steps):
            way.append(moved(way[-1], speed * STEP_S, 0.0, 1.5 * turn * STEP_S))
        if all(env.home.is_free(*pose[:2]) for pose in way):
            break
    for _ in range(steps):
        env.step(np.array([speed, turn], np.float32))
    assert env.collisions == 0
    assert math.dist(env.pose[:2], way[-1][:2]) < 0.12 and abs(
        wrap_angle(env.pose[2] - way[-1][2])) < 0.12, "it has to speed up first"
    assert env.driven_m == pytest.approx(abs(speed) * steps * STEP_S, abs=0.12)


def test_what_stands_in_the_way_stops_it_and_counts_as_a_collision(env):
    for index in range(6):
        drive(env, index, [AHEAD] * 60)
        before = env.collisions
        for _ in range(300):
            _, reward, *_ = env.step(AHEAD)
            assert math.isfinite(reward)
        building = env.home.building
        solid = blocked_cells(building.size_m, building.parts, building.bodies, 0.23, below_m=0.3)
        assert not any(solid[int(x / CELL_M), int(y / CELL_M)] for x, y in env.path), "it never was inside of something"
        ends, after = env.path[-30:], env.collisions
        assert after - before > 200 and max(math.dist(a, b) for a, b in pairwise(ends)) < 0.02
        env.step(np.array([-1.0, 0.0], np.float32))
        for _ in range(12):
            env.step(np.array([-1.0, 0.0], np.float32))
        assert env.collisions <= after + 3, "it backs off"


def test_nearly_no_velocity_is_stop(env):
    *_, (_, _, terminated, truncated, info) = drive(env, 0, [AHEAD, STOP])
    metrics = info["metrics"]
    assert terminated and not truncated and metrics["failure/stopped_elsewhere"] == 1 and metrics["episode_steps"] == 2
    flee = make_env("flee", depth_size=0, max_steps=9, **HOMES)
    *_, (_, _, terminated, truncated, info) = drive(flee, 0, [AHEAD] * 5 + [STOP] * 4)
    assert truncated and not terminated and info["metrics"]["driven_m"] > 0, "it coasts, and the episode goes on"


def test_the_picture_is_that_of_a_level_camera_on_the_simulators_robot(env):
    """Drawn by another room: the simulator's own shapes, in its own frame."""
    for index in (0, 1, 2):
        seen = drive(env, index, [np.array([0.7, 0.5], np.float32)] * 20)[-1][0]["depth"]
        simulators = level_depth(env.agent.sim, 32, env.config)
        assert np.mean(np.abs(seen - simulators) < 1e-3) > 0.99


def test_a_pose_nearer_to_things_than_the_cells_allow_has_a_distance_too(env):
    env.reset(options={"episode": 0})
    home, field = env.home, field_to(env.home, *(int(v) for v in env.home.cells[0]))
    x, y = home.center(len(home.cells) // 2)
    while home.is_free(x, y):
        x += 0.01
    near = home.nearest(x + 0.2, y)
    assert home.is_free(*near) and field.at(x + 0.2,
                                            y) >= math.dist(near, (x + 0.2, y)) and math.isfinite(field.at(x + 0.2, y))
    assert home.nearest(*env.pose[:2]) == env.pose[:2]


def test_a_discrete_action_has_the_size_of_the_settings():
    env = make_env("pointnav", depth_size=0, actions="discrete", turn_deg=30, forward_m=0.4, **HOMES)
    env.reset(options={"episode": 0})
    yaw = env.pose[2]
    env.step(2)
    assert abs(wrap_angle(env.pose[2] - yaw - math.radians(30))) < math.radians(5)


def test_where_the_physics_breaks_down_the_episode_ends(env, monkeypatch):
    env.reset(options={"episode": 0})
    pose, sim = env.pose, env.agent.sim

    def broken(**commands):
        sim.unstable, sim.base_pose = True, (math.nan, math.nan, math.nan)

    monkeypatch.setattr(sim, "step", broken)
    observation, reward, terminated, truncated, info = env.step(AHEAD)
    assert truncated and not terminated and info["metrics"]["failure/unstable"] == 1 and env.pose == pose
    assert math.isfinite(reward) and all(np.isfinite(values).all() for values in observation.values())
    monkeypatch.undo()
    env.reset(options={"episode": 0})
    assert not env.step(AHEAD)[3], "the next episode is a new one"

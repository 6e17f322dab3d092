"""The adapter on a real habitat-sim with Bullet: what it shows, how the robot moves, what the suction holds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rearrange.home.episodes.generator import generate_episode
from rearrange.home.pictures.looks import PLAIN
from rearrange.home.robot.fetch import ARM
from skills import SKILLS, make_env
from tests.habitat.conftest import HOMES

pytestmark = pytest.mark.habitat

SEEN_M, OF_PIXELS = 0.02, 0.99


@pytest.fixture(scope="module")
def env(settings):
    return make_env("pick", depth_size=128, **settings)


@pytest.fixture
def sim(env):
    """In an episode of Pick, at its start."""
    env.reset(options={"episode": 3})
    return env.sim


def test_colours_and_numbers_of_our_homes_are_those_of_the_embedded_simulator(settings):
    env = make_env("pick", depth_size=32, camera_size=32, **settings,
                   observations=["rgb", "arm_rgb", "arm_depth", "segmentation", "instruction"])
    observation, info = env.reset(options={"episode": 1})
    assert env.observation_space.contains(observation)
    assert info["segmentation_names"] == env.sim.twin.segmentation_names()
    for camera in ("head", "arm"):
        ours, theirs = (sim.photograph(camera, 32, ("rgb", "segmentation"), PLAIN) for sim in (env.sim.twin, env.sim))
        assert all((ours[name] == theirs[name]).mean() > OF_PIXELS for name in ours)


def test_both_simulators_show_the_same_depth_image_of_the_same_state(env):
    same = []
    for index in range(6):
        env.reset(options={"episode": index})
        for _ in range(5):
            env.step(env.action_space.sample())
        ours, theirs = env.sim.twin.depth_image(128), env.sim.depth_image(128)
        same.append((np.abs(ours - theirs) * 10.0 < SEEN_M).mean())
    assert min(same) >= OF_PIXELS, same


def test_objects_rest_where_episodes_put_them(env):
    for index in range(2 * HOMES):
        env.sim.reset(generate_episode("pick", "val", index, HOMES))
        assert env.sim.settle_distance_m < 0.01


def test_kinematics_are_those_of_the_embedded_robot(sim):
    rng = np.random.default_rng(0)
    for _ in range(5):
        sim.place_robot(2.0, 1.5, rng.uniform(-3, 3), tuple(np.array(ARM.start) + rng.uniform(-0.3, 0.3, 7)))
        site = sim.twin.data.site("end_effector")
        assert np.allclose(sim.ee_position, site.xpos, atol=1e-4)
        assert np.allclose(np.reshape(sim._ee_matrix, (3, 3)), site.xmat.reshape(3, 3), atol=1e-4)


def free_spot(sim) -> tuple[float, float, float]:
    """A pose from which the robot can drive half a metre."""
    rng = np.random.default_rng(0)
    while True:
        x, y, yaw = *(rng.uniform(0.5, size - 0.5) for size in sim.home.layout.size_m), rng.uniform(-3, 3)
        ahead = [(x + d * math.cos(yaw), y + d * math.sin(yaw)) for d in (0.0, 0.2, 0.4, 0.6)]
        if all(_free(sim, *place, yaw) for place in ahead):
            return x, y, yaw


def _free(sim, x, y, yaw) -> bool:
    sim.place_robot(x, y, yaw)
    return not sim.robot_collides()


def test_the_base_drives_and_turns_as_the_embedded_one(sim):
    x, y, yaw = free_spot(sim)
    shadow = sim.shadow()
    shadow.reset(sim.episode)
    for command in ([1.0, 0.0], [0.0, 1.0], [-0.5, 0.5]):
        ends = []
        for robot in (sim, shadow):
            robot.place_robot(x, y, yaw)
            for _ in range(12):
                robot.step(base=command)
            assert robot.base_force_n == 0.0
            ends.append(robot.base_pose)
        (x0, y0, yaw0), (x1, y1, yaw1) = ends
        assert math.dist((x0, y0), (x1, y1)) < 0.03 and abs(yaw0 - yaw1) < 0.05
        assert math.dist((x0, y0), (x, y)) + abs(yaw0 - yaw) > 0.1


def test_furniture_stops_the_base_and_it_is_felt(sim):
    x, y, yaw = free_spot(sim)
    sim.place_robot(x, y, yaw)
    felt = 0.0
    for _ in range(400):
        sim.step(base=[1.0, 0.0])
        felt = max(felt, sim.base_force_n)
    width, depth = sim.home.layout.size_m
    assert 0.0 < sim.base_pose[0] < width and 0.0 < sim.base_pose[1] < depth
    assert felt > 50.0 or sim.accumulated_arm_force_n > 50.0


def test_the_arm_follows_its_targets(sim):
    sim.place_robot(*free_spot(sim))
    for _ in range(20):
        sim.step(arm=[0.5, 0.3, -0.5, 0.2, 0.5, -0.3, 1.0])
    for _ in range(10):
        sim.step(arm=[0.0] * 7)
    assert np.abs(sim.arm_positions() - sim.arm_targets()).max() < 0.02
    assert np.abs(sim.arm_targets() - ARM.start).max() > 0.2


def test_an_object_is_held_while_suction_is_on_and_let_go_on_command(sim):
    sim.place_robot(*free_spot(sim))
    sim.put_in_hand(0)
    for _ in range(30):
        sim.step(arm=[0, -0.5, 0, 0, 0, 0, 0], grip=1.0)
    assert sim.held == 0 and sim.is_holding and not sim.hold_broken
    assert math.dist(sim.object_position(0), sim.ee_position) < sim.object_half_extents(0)[2] + 0.03
    height = sim.object_position(0)[2]
    sim.step(grip=-1.0)
    assert sim.released and sim.held is None
    for _ in range(20):
        sim.step(grip=-1.0)
    assert sim.object_position(0)[2] < height - 0.2


def test_nothing_is_held_without_touch(sim):
    sim.place_robot(*free_spot(sim))
    for _ in range(10):
        sim.step(grip=1.0)
    assert not sim.is_holding and not sim.cup_touches()


def test_openings_are_set_and_read(sim):
    drawer = next(name for name in sim.home.handles if name.startswith("drawer"))
    closed = sim.handle_position(drawer)
    sim.set_joint(drawer, 0.3)
    assert sim.joint_position(drawer) == pytest.approx(0.3, abs=1e-6)
    assert math.dist(sim.handle_position(drawer), closed) == pytest.approx(0.3, abs=1e-6)
    sim.step()
    assert sim.joint_position(drawer) == pytest.approx(0.3, abs=0.01)


@pytest.mark.parametrize("skill", SKILLS)
def test_a_skill_runs_and_is_repeatable(skill, settings):
    def trajectory(env) -> tuple[str, np.ndarray]:
        rng, seen = np.random.default_rng(3), []
        observation, info = env.reset(options={"episode": 1})
        for _ in range(25):
            observation, reward, terminated, truncated, _ = env.step(rng.uniform(-1, 0.5, env.action_space.shape))
            assert env.observation_space.contains(observation) and math.isfinite(reward)
            seen.append([reward, *observation["joint"], *env.sim.base_pose])
            if terminated or truncated:
                break
        return info["episode_id"], np.array(seen)

    env = make_env(skill, depth_size=16, **settings)
    first = trajectory(env)
    again = trajectory(make_env(skill, depth_size=16, **settings))
    assert first[0] == again[0] and np.allclose(first[1], again[1], atol=1e-6)

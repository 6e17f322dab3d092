"""The map that depth images draw of the floor, held against the home that they were taken in."""

import math

import numpy as np
import pytest

from rearrange.home.apartments.floor_grid import HEAD_HEIGHT_M
from rearrange.home.mapping import floor_map
from rearrange.home.mapping.floor_map import FREE, MAP_SIZE, OCCUPIED, SHOWN_CELL_M, UNKNOWN, map_of
from rearrange.home.robot.cameras import camera_points
from rearrange.home.robot.fetch import FETCH
from rearrange.home.robot.stretch3 import STRETCH3
from skills import make_env
from skills.navigate import NavigateConfig

KEYS = (*NavigateConfig().observation_keys, "floor_map")
NOWHERE = (1e3, 0.0)


@pytest.mark.parametrize("robot", [FETCH, STRETCH3], ids=["ahead", "to the right"])
def test_a_pixel_is_where_the_head_camera_sees_it(robot):
    ends = camera_points(robot.head, np.ones(64), np.arange(64)) - robot.head.position_m
    assert floor_map._rays(8, robot.head).reshape(64, 3) == pytest.approx(ends, abs=1e-6)


def navigating(**settings):
    return make_env("navigate", **{"num_layouts": 8, "depth_size": 64, "observation_keys": KEYS} | settings)


def place_of(row, column, pose):
    """The middle of a shown cell in the world."""
    ahead, left = ((MAP_SIZE - 1) / 2 - np.array((row, column))) * SHOWN_CELL_M
    x, y, yaw = pose
    return x + math.cos(yaw) * ahead - math.sin(yaw) * left, y + math.sin(yaw) * ahead + math.cos(yaw) * left


def gap_to_solids(x, y, layout, openings):
    """Distance (m) from a point to the nearest solid thing that is lower than the robot's head; 0 inside one."""
    parts = [p for p in layout.parts if p.solid]
    parts += [p for body in layout.bodies for p in body.parts_at(openings.get(body.name, 0.0))]
    gaps = [x, y, layout.size_m[0] - x, layout.size_m[1] - y]
    for cx, cy, hx, hy, yaw in (p.rectangle for p in parts if p.bottom_m < HEAD_HEIGHT_M):
        u = abs(math.cos(yaw) * (x - cx) + math.sin(yaw) * (y - cy)) - hx
        v = abs(math.cos(yaw) * (y - cy) - math.sin(yaw) * (x - cx)) - hy
        gaps.append(math.hypot(max(u, 0.0), max(v, 0.0)))
    return max(0.0, min(gaps))


def test_what_it_shows_is_there():
    wrong, known = 0, 0
    for episode in range(6):
        env = navigating()
        env.reset(options={"episode": episode})
        sim = env.sim
        for _ in range(70):  # once around
            observation, *_ = env.step(np.array([0.0, 1.0, -1.0], np.float32))
        shown, openings = observation["floor_map"][:, :, 0], {name: sim.joint_position(name)
                                                              for name in sim.home.handles}
        assert set(np.unique(shown)) <= {UNKNOWN, FREE, OCCUPIED}
        for row, column in np.argwhere(shown != UNKNOWN):
            gap_m = gap_to_solids(*place_of(row, column, sim.base_pose), sim.home.layout, openings)
            known += 1
            wrong += gap_m > 0.25 if shown[row, column] == OCCUPIED else gap_m == 0.0
    assert known > 2000 and wrong < 0.03 * known


def test_it_grows_and_nothing_is_forgotten_while_driving():
    env = navigating()
    observation, _ = env.reset(options={"episode": 1})
    counts = [np.count_nonzero(env.scene.floor_map._cells)]
    for _ in range(60):
        observation, *_ = env.step(np.array([0.3, 1.0, -1.0], np.float32))
        counts.append(np.count_nonzero(env.scene.floor_map._cells))
    assert (np.diff(counts) >= 0).all() and counts[-1] > 1.5 * counts[0]


def test_it_begins_anew_with_every_episode_and_where_the_robot_is_put():
    env = navigating()
    first = env.reset(options={"episode": 2})[0]["floor_map"]
    for _ in range(20):
        env.step(np.array([0.2, 1.0, -1.0], np.float32))
    assert np.array_equal(env.reset(options={"episode": 2})[0]["floor_map"], first)
    for _ in range(20):
        env.step(np.array([0.2, 1.0, -1.0], np.float32))
    known = np.count_nonzero(env.scene.floor_map._cells)
    env.scene.start_here()
    assert env.scene.start_base_pose == env.sim.base_pose and np.count_nonzero(env.scene.floor_map._cells) < known


@pytest.mark.parametrize("away_m, expected", [(2.05, 2.05), (6.0, 6.0), (20.0, 6.1)])
@pytest.mark.parametrize("yaw", [0.0, 1.2, -2.5])
def test_the_target_is_where_it_is_or_on_the_edge_towards_it(yaw, away_m, expected):
    pose = (4.0, 3.0, yaw)
    target = pose[0] + away_m * math.cos(yaw), pose[1] + away_m * math.sin(yaw)  # straight ahead
    marks = np.argwhere(map_of(FETCH, pose).around(pose, target)[:, :, 1])
    assert len(marks) in (6, 9)
    row, column = marks.mean(0)
    assert abs(((MAP_SIZE - 1) / 2 - row) * SHOWN_CELL_M - expected) < 0.25 and abs(column - (MAP_SIZE - 1) / 2) <= 1.0


def test_an_object_to_the_left_is_shown_on_the_left():
    marks = np.argwhere(map_of(FETCH, (0.0, 0.0, 0.0)).around((0.0, 0.0, 0.0), (0.0, 3.0))[:, :, 1])
    assert marks[:, 1].max() < MAP_SIZE / 2 - 10


def test_a_flat_floor_is_free_as_far_as_the_image_shows_it():
    """By hand: the camera is 1.2 m high and looks 21.8 degrees down, so the lowest row of the image meets the floor
    0.5 m ahead of it."""
    size, tilt = 64, math.atan2(0.2, 0.5)
    slopes = (np.arange(size) - (size - 1) / 2) * 2 / size
    drop = math.sin(tilt) + slopes * math.cos(tilt)  # downwards, per metre of depth
    depth = np.where(drop > 0.13, 1.2 / np.maximum(drop, 0.13), 10.0)[:, None, None].repeat(size, 1) / 10
    seen = map_of(FETCH, (0.0, 0.0, 0.0))
    seen.add(depth.astype(np.float32), (0.0, 0.0, 0.0))
    shown = seen.around((0.0, 0.0, 0.0), NOWHERE)[:, :, 0]
    assert set(np.unique(shown)) == {UNKNOWN, FREE}
    ahead = shown[:, MAP_SIZE // 2]
    for away_m, state in ((0.0, FREE), (1.0, FREE), (3.0, FREE), (6.0, FREE), (-1.0, UNKNOWN)):
        assert ahead[int(MAP_SIZE / 2 - away_m / SHOWN_CELL_M - 0.5)] == state


def test_without_an_image_there_is_no_map_and_a_map_needs_no_image_beside_it():
    assert {"depth", "floor_map"}.isdisjoint(navigating(depth_size=0).observation_space.spaces)
    env = navigating(observation_keys=tuple(key for key in KEYS if key != "depth"))
    assert set(env.reset(seed=0)[0]) == set(KEYS) - {"depth"}

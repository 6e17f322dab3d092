"""The way through a map that is not complete, on maps drawn by hand and in homes."""

import math

import numpy as np
import pytest

from rearrange.home.mapping.route import Route, clearance_of
from rearrange.home.robot.fetch import FETCH
from skills import make_env
from skills.navigate import NavigateConfig

CELLS, CELL_M = 128, 0.1
FREE, LOW, TALL = 1, 2, 3
KEYS = (*NavigateConfig().observation_keys, "route")


def a_map(*things):
    """A free floor of 12.8 m with rectangles (state, x from, x to, y from, y to) on it; metres from its middle."""
    cells = np.full((CELLS, CELLS), FREE, np.uint8)
    for state, *sides in things:
        i0, i1, j0, j1 = (int(round(side / CELL_M + CELLS / 2)) for side in sides)
        cells[i0:i1, j0:j1] = state
    return cells


def route_to(target, in_fridge=False):
    return Route(target, in_fridge, CELLS, CELL_M, clearance_of(FETCH.base))


@pytest.mark.parametrize("yaw", [0.0, 0.7, -2.0])
@pytest.mark.parametrize("bearing", [0.0, 1.0, 2.5, -1.3])
def test_over_a_free_floor_it_leads_straight_there(yaw, bearing):
    pose = (-0.5, 0.3, yaw)
    target = pose[0] + 4 * math.cos(bearing), pose[1] + 4 * math.sin(bearing)
    length, near_x, near_y, far_x, far_y = route_to(target).ahead(a_map(), pose)
    assert 3.85 < length < 4.3
    for (x, y), away in (((near_x, near_y), 0.5), ((far_x, far_y), 1.5)):
        assert math.hypot(x, y) == pytest.approx(away, abs=0.25)
        off = math.atan2(y, x) - (bearing - yaw)
        assert abs(math.atan2(math.sin(off), math.cos(off))) < 0.3


WALL = ((TALL, 1.0, 1.1, -6.4, 1.5), (TALL, 1.0, 1.1, 2.5, 6.4))  # a door from 1.5 to 2.5 m to the left


def test_it_leads_through_the_door():
    length, near_x, near_y, *_ = route_to((2.0, -1.0)).ahead(a_map(*WALL), (0.0, -1.0, 0.0))
    through = math.hypot(1.0, 2.8) + math.hypot(1.0, 2.8)  # near the middle of the door
    assert through - 0.3 < length < through + 1.0
    assert math.atan2(near_y, near_x) > 0.7


def test_what_has_not_been_seen_is_free_until_it_is_seen():
    route, unseen = route_to((3.0, -1.0)), a_map()
    unseen[70:] = 0
    assert route.ahead(unseen, (0.0, -1.0, 0.0))[0] < 3.3
    assert route.ahead(a_map(*WALL), (0.0, -1.0, 0.0))[0] > 6.0


def test_a_way_that_got_blocked_is_left_at_once_and_another_one_is_found():
    route = route_to((3.0, 0.0))
    assert route.ahead(a_map(), (0.0, 0.0, 0.0))[0] < 3.3
    around = route.ahead(a_map((LOW, 1.4, 1.8, -1.0, 0.4)), (0.0, 0.0, 0.0))
    assert 3.1 < around[0] < 4.5 and around[4] > 0.15


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_it_ends_on_the_side_from_which_one_reaches_across(side):
    """An object on a counter that stands at a wall: who is behind the wall goes around it, whichever side is nearer."""
    counter = (LOW, 0.0, 0.6, -3.0, 3.0) if side > 0 else (LOW, -0.6, 0.0, -3.0, 3.0)
    wall = (TALL, -0.1, 0.0, -3.0, 3.0) if side > 0 else (TALL, 0.0, 0.1, -3.0, 3.0)
    target, behind, before = (0.2 * side, 0.0), (-1.0 * side, 0.0, 0.0), (1.5 * side, 0.0, 0.0)
    cells = a_map(counter, wall)
    assert route_to(target).ahead(cells, behind)[0] > 5.0
    assert route_to(target).ahead(cells, before)[0] < 1.6


def test_the_front_of_a_fridge_is_a_way_in_for_who_looks_for_something_in_a_fridge():
    """Tall in front and beside; nobody has looked behind the wall in which it stands, and the way there is 12 m
    long.
    """
    fridge = (TALL, 3.0, 3.1, -0.35, 0.35), (TALL, 3.1, 3.4, 0.3, 0.4), (TALL, 3.1, 3.4, -0.4, -0.3)
    cells = a_map(*fridge, (TALL, 3.3, 3.4, 0.4, 5.5), (TALL, 3.3, 3.4, -5.5, -0.4))
    front, behind = (route_to((3.4, 0.0), where).ahead(cells, (1.0, 0.0, 0.0))[0] for where in (True, False))
    assert front < 3.0 and behind > 10.0


def test_of_two_ways_of_equal_length_it_keeps_the_one_it_has_taken():
    cells, route, sides = a_map((TALL, 1.5, 1.6, -2.0, 2.0)), route_to((3.0, 0.0)), set()
    for k in range(120):
        offset = 0.12 * (-1) ** k
        sides.add(np.sign(route.ahead(cells, (0.0, offset, 0.0))[4]))
    assert len(sides) == 1


def test_a_target_or_a_robot_outside_the_map_is_no_error():
    assert np.isfinite(route_to((50.0, 0.0)).ahead(a_map(), (0.0, 0.0, 0.0))).all()
    assert np.isfinite(route_to((0.0, 0.0)).ahead(a_map(), (-50.0, 50.0, 1.0))).all()


def test_who_follows_it_comes_near_the_object_in_homes_never_seen():
    """Nothing but the route: turn to its nearer point, drive when it is ahead."""
    env = make_env("navigate", split="test", num_layouts=8, depth_size=64, observation_keys=KEYS, action_repeat=4)
    came = 0
    for episode in range(12):
        observation, _ = env.reset(options={"episode": episode})
        for _ in range(130):
            _, ahead, left, *_ = observation["route"]
            turn = math.atan2(left, ahead)
            touches = env.sim.arm_force_n > 0.0 or env.sim.base_force_n > 0.0
            base = (-0.6, 0.0) if touches else (max(0.0, 1.0 - abs(turn)), np.clip(3.0 * turn, -1.0, 1.0))
            observation, *_ = env.step(np.array([*base, -1.0], np.float32))
            if math.dist(env.sim.base_pose[:2], env.skill.nav_point[:2]) < 1.6:
                came += 1
                break
    assert came >= 10


def test_it_begins_anew_with_every_episode():
    env = make_env("navigate", num_layouts=8, depth_size=64, observation_keys=KEYS)
    first = env.reset(options={"episode": 3})[0]["route"]
    assert first.shape == (5,) and env.observation_space["route"].contains(first)
    for _ in range(20):
        env.step(np.array([1.0, 0.5, -1.0], np.float32))
    assert np.array_equal(env.reset(options={"episode": 3})[0]["route"], first)

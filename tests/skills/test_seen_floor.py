"""What an adviser may know of the floor: what was in sight, and nothing else."""

import math

import numpy as np
import pytest

from rearrange.home.apartments.floor_grid import CELL_M, blocked_cells, distance_field
from rearrange.home.apartments.parts import box
from rearrange.home.robot.fetch import FETCH
from rearrange.home.robot.stretch3 import STRETCH3
from skills.experts.seen_floor import SeenFloor

GREY = (0.5, 0.5, 0.5)
SIZE = (8.0, 6.0)
START = (2.0, 3.0, 0.0)
GOAL = (6.0, 3.0)


def room(door_y, *more, high_m=2.0):
    """A room with a wall across its middle that has a gap of 1.2 m around (4, `door_y`)."""
    wall = ((3.95, 0.0, 0.0), (4.05, door_y - 0.6, high_m)), ((3.95, door_y + 0.6, 0.0), (4.05, 6.0, high_m))
    parts = tuple(box(low, high, GREY) for low, high in (*wall, *more))
    return blocked_cells(SIZE, parts, ()), blocked_cells(SIZE, parts, (), 0.03, above_m=1.15)


def floor(door_y=3.0, *more, head=FETCH.head, **kwargs):
    blocked, opaque = room(door_y, *more, **kwargs)
    goals = np.array([[int(v / CELL_M) for v in GOAL]])
    return SeenFloor(head, blocked, opaque, goals, np.ones(blocked.shape, np.float32))


def at(field, point):
    return field.distance_m[int(point[0] / CELL_M), int(point[1] / CELL_M)]


def turn_around(seen, x, y, looks=12):
    for yaw in np.linspace(-math.pi, math.pi, looks, endpoint=False):
        seen.look((x, y, yaw))


def test_what_has_not_been_seen_is_free():
    assert at(floor(5.0).field(*START[:2]), START) == pytest.approx(4.0, abs=0.1)


def test_a_wall_that_was_seen_is_in_the_way_and_only_what_it_shows_matters():
    """With the door in the north or in the south, out of sight of both: the same way."""
    ways = []
    for door_y in (0.8, 5.2):
        seen = floor(door_y)
        seen.look((3.2, 3.0, 0.0))  # too near to see either door
        ways.append(seen.field(3.2, 3.0).distance_m)
    assert np.array_equal(*ways)
    assert at(floor(0.8).field(3.2, 3.0), (3.2, 3.0)) + 0.3 < ways[0][int(3.2 / CELL_M), int(3.0 / CELL_M)]


def test_a_camera_that_looks_to_the_right_shows_what_is_there():
    seen = floor(head=STRETCH3.head)
    seen.look((2.0, 3.0, math.pi / 2))
    east, north = ((int(x / CELL_M), int(y / CELL_M)) for x, y in ((3.5, 3.0), (2.0, 4.5)))
    assert seen.seen[east] and not seen.seen[north]


def test_after_looking_around_the_way_is_the_shortest():
    blocked, _ = room(5.0)
    seen = floor(5.0)
    for x in (1.0, 3.0, 5.0, 7.0):
        for y in (1.0, 3.0, 5.0):
            turn_around(seen, x, y)
    shortest = distance_field(blocked, np.array([[int(v / CELL_M) for v in GOAL]]), np.ones(blocked.shape, np.float32))
    assert at(seen.field(*START[:2]), START) == pytest.approx(at(shortest, START), abs=1e-4)


def test_the_way_gets_longer_only():
    seen, before = floor(5.0, ((1.0, 4.0, 0.0), (3.4, 4.2, 2.0))), 0.0
    for yaw in np.linspace(-math.pi, math.pi, 24):
        seen.look((*START[:2], yaw))
        now = at(seen.field(*START[:2]), START)
        assert now >= before - 0.02
        before = now
    assert before > 4.5


def test_nothing_is_seen_through_a_wall_or_behind_the_back():
    seen = floor(5.0)
    seen.look(START)
    for (x, y), shown in {(3.0, 3.0): True, (1.0, 3.0): False, (6.0, 3.0): False, (2.2, 5.5): False}.items():
        assert seen.seen[int(x / CELL_M), int(y / CELL_M)] == shown


def test_a_table_is_in_the_way_but_hides_nothing():
    seen = floor(3.0, ((2.9, 2.5, 0.0), (3.2, 3.5, 0.75)))
    seen.look(START)
    assert seen.seen[int(5.0 / CELL_M), int(3.0 / CELL_M)]
    assert at(seen.field(*START[:2]), START) > 4.1


def test_the_way_is_known_wherever_the_robot_is_pushed():
    seen, rng = floor(5.0), np.random.default_rng(0)
    turn_around(seen, *START[:2])
    for x, y in rng.uniform((0.1, 0.1), (7.9, 5.9), (100, 2)):
        px, py = seen.field(x, y).descend(x, y, 0.4)
        assert math.isfinite(at(seen.field(x, y), (px, py))) and math.dist((x, y), (px, py)) < 0.5


def test_distances_around_a_cell_are_those_of_the_whole_floor():
    """The search that stops early: exact where it was asked for, never less, and little more, elsewhere."""
    blocked, _ = room(5.0, ((1.0, 4.0, 0.0), (3.4, 4.2, 2.0)))
    goals = np.array([[120, 60], [100, 20]])
    weight = np.random.default_rng(0).uniform(1, 2, blocked.shape).astype(np.float32)
    whole = distance_field(blocked, goals, weight).distance_m
    for near in ((20, 30), (60, 60), (119, 61)):
        some = distance_field(blocked, goals, weight, near, 0.5).distance_m
        known = np.isfinite(some)
        assert some[near] == whole[near] and known.sum() < np.isfinite(whole).sum()
        assert (some[known] >= whole[known] - 1e-5).all() and (some[known] <= whole[known] + 0.3).all()

"""Occupancy, reachability and driving distances on small floors that can be computed by hand."""

import math

import numpy as np
import pytest

from rearrange.home.apartments.floor_grid import CELL_M, ROBOT_RADIUS_M, FloorGrid, blocked_cells, floor_grid
from rearrange.home.apartments.layouts import make_layout
from rearrange.home.apartments.parts import box

GREY = (0.5, 0.5, 0.5)


def grid_of(size, *boxes, radius=0.25):
    return FloorGrid(blocked_cells(size, tuple(box(low, high, GREY) for low, high in boxes), (), radius))


def test_distance_in_an_empty_room_is_the_straight_line():
    grid = grid_of((6.0, 5.0))
    field = grid.distances_to((3.0, 2.0))
    gx, gy = grid.nearest(3.0, 2.0)
    rng = np.random.default_rng(0)
    for x, y in rng.uniform((0.4, 0.4), (5.6, 4.6), (200, 2)):
        straight = math.hypot(x - gx, y - gy)
        assert straight - 0.05 <= field.at(x, y) <= 1.028 * straight + 0.05


def test_of_several_goals_the_nearest_counts():
    grid = grid_of((6.0, 5.0), ((2.95, 0.0, 0.0), (3.05, 3.0, 2.0)))
    goals = ((1.0, 1.0), (4.5, 1.0), (5.0, 4.0))
    together, each = grid.distances_to(*goals), [grid.distances_to(goal).distance_m for goal in goals]
    assert np.array_equal(together.distance_m, np.minimum.reduce(each))


def test_distance_leads_around_a_wall():
    """A wall from the south side at x = 3 leaves a gap in the north; the way bends around its end."""
    grid = grid_of((6.0, 5.0), ((2.95, 0.0, 0.0), (3.05, 3.0, 2.0)))
    field = grid.distances_to((4.5, 1.0))
    corner_y = 3.0 + math.sqrt(0.25**2 - 0.05**2)
    expected = 2 * math.hypot(1.5, corner_y - 1.0)
    assert expected - 0.1 < field.at(1.5, 1.0) < 1.05 * expected + 0.1


def test_closed_off_floor_is_unreachable():
    grid = grid_of((6.0, 5.0), ((3.95, 0.0, 0.0), (4.05, 5.0, 2.0)))
    assert grid.is_reachable(2.0, 2.0) and not grid.is_reachable(5.0, 2.0)
    assert math.isinf(grid.distances_to((2.0, 2.0)).at(5.0, 2.0))
    assert not grid.is_reachable(-1.0, 2.0) and not grid.is_reachable(2.0, 99.0)
    x, y = grid.nearest(5.0, 2.0)
    assert abs(y - 2.0) < CELL_M and 3.6 < x < 3.75


def test_blocked_floor_keeps_the_robots_radius_and_the_yaw_of_boxes():
    part = box((-0.5, -0.1, 0.0), (0.5, 0.1, 1.0), GREY).at((3.0, 3.0, math.pi / 4))
    blocked = blocked_cells((6.0, 6.0), (part,), (), 0.3)
    for i, j in np.ndindex(*blocked.shape):
        x, y = (i + 0.5) * CELL_M, (j + 0.5) * CELL_M
        u, v = ((x - 3) + (y - 3)) / 2**0.5, ((y - 3) - (x - 3)) / 2**0.5
        gap = math.hypot(max(abs(u) - 0.5, 0), max(abs(v) - 0.1, 0))
        border = min(x, y, 6 - x, 6 - y)
        assert blocked[i, j] == (gap < 0.3 or border < 0.3) or min(abs(gap - 0.3), abs(border - 0.3)) < 1e-6


def test_what_hangs_above_the_head_does_not_block():
    hanging, low = ((2.0, 2.0, 1.5), (4.0, 3.0, 2.0)), ((2.0, 2.0, 1.0), (4.0, 3.0, 2.0))
    assert grid_of((6.0, 5.0), hanging).is_reachable(3.0, 2.5)
    assert not grid_of((6.0, 5.0), low).is_reachable(3.0, 2.5)


def test_following_the_field_reaches_the_goal():
    layout = make_layout("val", 1)
    grid = floor_grid(layout)
    rng = np.random.default_rng(0)
    goal = grid.points_m[rng.integers(len(grid.points_m))]
    field = grid.distances_to(goal)
    for start in grid.points_m[rng.integers(len(grid.points_m), size=20)]:
        x, y = start
        for _ in range(100):
            x, y = field.descend(x, y)
            assert grid.is_reachable(x, y)
            if math.hypot(x - goal[0], y - goal[1]) < 0.06:
                break
        else:
            pytest.fail(f"no way from {start} to {goal}")


def test_reachable_points_keep_clear_of_furniture():
    layout = make_layout("train", 4)
    points = floor_grid(layout).points_m
    for part in layout.parts:
        if part.solid and part.bottom_m < 1.4 and part.yaw_rad == 0:
            gap = np.maximum(np.abs(points - part.center_m[:2]) - part.half_extent_m[:2], 0)
            assert (np.hypot(gap[:, 0], gap[:, 1]) > ROBOT_RADIUS_M - 1e-6).all()

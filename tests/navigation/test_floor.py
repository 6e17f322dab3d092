"""Distances over the floor, motion on it, and the homes: against the floor grid of the apartments and by hand."""

import math

import numpy as np
import pytest

from rearrange.home.apartments.floor_grid import CELL_M, distance_field, interpolate
from rearrange.home.apartments.layouts import make_layout
from rearrange.home.pictures.raster import draw, pixel_slopes, shape_table
from rearrange.home.simulation.mujoco.build_model import compile_home
from rearrange.navigation.cylinder import drive
from rearrange.navigation.distances import MARGIN, distances, opened, path_length, shortest_path, ways
from rearrange.navigation.home_cache import Field, load_home
from rearrange.navigation.homes import home_name, make_building
from rearrange.navigation.shapes import look

AGENT = (0.1, 1.5)


def floor(*rows: str) -> np.ndarray:
    """Free cells by a drawing, with a margin around it: row k is x = k, '#' is blocked."""
    free = np.array([[cell == "." for cell in row] for row in rows])
    return np.pad(free, MARGIN)


@pytest.fixture(scope="module")
def home():
    return load_home("val/small/3", *AGENT)


@pytest.fixture(scope="module")
def large():
    return load_home("train/large/1", *AGENT)


def test_distances_are_those_of_the_floor_grid(home):
    for cell in home.cells[[5, 4000, 9000]]:
        ours = distances(home.ways, cell[None])
        theirs = distance_field(~home.free, cell[None], np.ones(home.free.shape, np.float32)).distance_m
        assert np.array_equal(np.isfinite(ours), np.isfinite(theirs)) and np.isfinite(ours[home.free]).all()
        assert np.allclose(ours[home.free], theirs[home.free], atol=1e-3)


def test_a_straight_way_is_as_long_as_the_straight_line_and_a_corner_costs_its_detour():
    free = floor(*["." * 40] * 40)
    field = distances(ways(free), np.array([[5, 5]]))
    path = shortest_path(field, free, (5 + 20.5) * CELL_M, (5 + 13.5) * CELL_M)
    assert path_length(path) == pytest.approx(CELL_M * math.hypot(20, 13), rel=1e-6) and len(path) == 2
    free[10:12, :30] = False  # a wall with a gap at its end
    field = distances(ways(free), np.array([[5, 5]]))
    x, y = 20.5 * CELL_M, 5.5 * CELL_M
    around = CELL_M * (math.hypot(8, 25) + 3 + math.hypot(4, 25))  # over the middles of the cells at the wall's end
    assert path_length(shortest_path(field, free, x, y)) == pytest.approx(around, rel=1e-3)
    assert interpolate(field, x, y, CELL_M) >= around


def test_the_straightened_way_is_at_most_as_long_as_the_grids_and_no_shorter_than_the_straight_line(home):
    rng = np.random.default_rng(0)
    for _ in range(20):
        i, j = home.cells[rng.integers(len(home.cells), size=2)]
        field, (x, y) = Field(home, j[None]), (i + 0.5) * CELL_M
        length = path_length(shortest_path(field.distance_m, home.free, x, y))
        assert math.dist((x, y), (j + 0.5) * CELL_M) - 1e-6 <= length <= field.at(x, y) + 0.05


def test_slivers_are_no_floor():
    assert opened(floor("...", "...", "...")).sum() == 9
    assert opened(floor("...#...", "...#...", "...." + "...")).sum() == 18, "one cell between two squares"
    assert not opened(floor("....", "....")).any()


def test_the_agent_never_leaves_the_free_cells_and_goes_straight_where_it_can(home):
    rng = np.random.default_rng(1)
    for slide in (True, False):
        x, y = home.center(int(rng.integers(len(home.cells))))
        for _ in range(500):
            dx, dy = 0.25 * np.array([math.cos(a := rng.uniform(-4, 4)), math.sin(a)])
            new_x, new_y, blocked = drive(home.free, CELL_M, x, y, dx, dy, slide)
            assert home.is_free(new_x, new_y)
            assert blocked or math.dist((new_x, new_y), (x + dx, y + dy)) < 1e-9
            assert math.dist((new_x, new_y), (x, y)) <= 0.25 + 1e-9
            x, y = new_x, new_y


def test_sliding_goes_along_a_wall_and_without_it_the_agent_stops():
    free = floor(*["." * 20] * 20)
    x, y = (MARGIN + 19.5) * CELL_M, (MARGIN + 5) * CELL_M  # before the wall at high x
    slid = drive(free, CELL_M, x, y, 0.2, 0.2, True)
    stuck = drive(free, CELL_M, x, y, 0.2, 0.2, False)
    assert slid[2] and stuck[2] and slid[1] == pytest.approx(y + 0.2) and stuck[1] < y + 0.05
    corner = floor("..", ".#"), floor(".#", "#.")
    assert drive(corner[1], CELL_M, 2.9 * CELL_M, 2.9 * CELL_M, 0.03, 0.03,
                 False)[0] < 3 * CELL_M, "not between two corners"


def test_homes_are_the_same_everywhere_and_each_name_has_its_own():
    assert make_building("train/large/4") == make_building("train/large/4") or \
        make_building("train/large/4").parts == make_building("train/large/4").parts
    assert home_name("val", "mixed", 4) == "val/small/2" and home_name("val", "mixed", 5) == "val/large/2"
    assert make_building("train/small/0").parts != make_building("train/small/3").parts


def test_flats_of_a_large_home_are_joined(large):
    """From anywhere to everywhere: the free floor is one piece, and lies in every flat."""
    far = Field(large, large.cells[:1]).distance_m
    assert np.isfinite(far[large.free]).all() and far[large.free].max() > 15
    flats = large.building.inside[-sum(s[2] - s[0] > 5 for s in large.building.inside):]
    assert len(flats) >= 2
    for low_x, low_y, high_x, high_y in flats:
        a, b, c, d = (int(v / CELL_M) for v in (low_x, low_y, high_x, high_y))
        assert large.free[a:c, b:d].mean() > 0.35


def test_furniture_knows_its_parts(large):
    building = large.building
    for piece in building.furniture:
        for part in (building.parts[k] for k in piece.parts):
            assert math.dist(part.center_m[:2], piece.footprint[:2]) < 1.5, (piece.kind, part)
    kinds = [piece.kind for piece in building.furniture]
    assert kinds.count("sofa") == kinds.count("bed") == kinds.count("fridge") >= 2, "one in each flat"


def test_the_camera_sees_what_the_embedded_simulators_does():
    """The same home in MuJoCo, without robot and objects, drawn from the same places."""
    import mujoco

    layout, home = make_layout("val", 3), load_home("val/small/3", *AGENT)
    model = compile_home(layout)
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    shapes, halves = shape_table(model, hide_groups=(2, 3))
    slopes = pixel_slopes(64, 2 / 64)
    theirs, inverse, ours = np.empty((64, 64), np.float32), np.empty((64, 64),
                                                                     np.float32), np.empty((64, 64, 1), np.float32)
    rng, s = np.random.default_rng(0), home.shapes
    for cell in rng.integers(len(home.cells), size=20):
        (x, y), yaw = home.center(int(cell)), rng.uniform(-4, 4)
        look(s.shapes, s.halves, s.centers, s.rotations, x, y, 1.25, yaw, slopes, np.float32(0), np.float32(10),
             inverse, ours)
        c, sn = math.cos(yaw), math.sin(yaw)
        camera = np.array([[sn, 0.0, -c, -c, 0.0, -sn, 0.0, 1.0, 0.0]])
        draw(shapes, halves, data.geom_xpos, data.geom_xmat, np.array([[x - 0.1, y - 0.1, 1.25]]), camera, 0, slopes,
             slopes, np.float32(10), theirs)
        away = np.abs(ours[:, :, 0] - 0.1 / theirs)
        assert (away < 1e-4).mean() > 0.999, "edges may fall on the other side of a pixel"


@pytest.mark.parametrize("name", ["val/large/25", "train/large/1"])
def test_nothing_hangs_in_a_doorway(name):
    """A window, or a flat's entrance, goes with the wall that a doorway is cut into, though it begins some millimetres
    beyond it.
    """
    building = make_building(name)
    doors = [span for span in building.inside if min(span[2] - span[0], span[3] - span[1]) < 0.5]
    hanging = [part for part in building.parts if not part.solid and part.top_m > 0.1]
    assert doors and hanging
    for a, b, c, d in doors:
        for part in hanging:
            x, y, half_x, half_y, yaw = part.rectangle
            if abs(math.sin(yaw)) > 0.5:
                half_x, half_y = half_y, half_x
            apart = abs(x - (a + c) / 2) - half_x - (c - a) / 2, abs(y - (b + d) / 2) - half_y - (d - b) / 2
            assert max(apart) > 0.02, part

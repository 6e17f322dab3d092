"""What a set of homes offers is measured alike in our homes and in others, and what lies outside ours is said."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from rearrange.command_line.cli import main
from rearrange.home.apartments.kitchen import DRAWER_RANGE_M, HANDLE_RADIUS_M, HANDLE_STANDOFF_M
from rearrange.home.apartments.parts import Receptacle
from rearrange.home.simulation.measures import command
from rearrange.home.simulation.measures.floor_measures import (
    ENCLOSED,
    chords_at,
    clearance,
    ends_at,
    is_covered,
    section,
    ways_to,
)
from rearrange.home.simulation.measures.furniture_measures import front_yaw, group_of
from rearrange.home.simulation.measures.measured_set import MeasuredSet, position, said, verdict
from rearrange.home.simulation.measures.relief import BAR, CELL_M, FLAT, RECESSED, edge_above, front_of
from rearrange.home.simulation.measures.shapes import Opening, shapes_of_apartment, shapes_of_scene
from tests.rearrange.mjcf_data import make_homes
from tests.rearrange.scene_data import box


def boxes(*spans):
    """Triangles (n, 3, 3) of boxes from low to high corners."""
    shapes = (box(low, high) for low, high in spans)
    return np.concatenate([corners[triangles] for corners, triangles in shapes])


PLATE = (-0.02, -0.3, 0.0), (0.0, 0.3, 0.2)  # a front, its outer face at x = 0
FRAME = [((-0.02, -0.3, 0.0), (0.0, 0.3, 0.04)), ((-0.02, -0.3, 0.16), (0.0, 0.3, 0.2)),
         ((-0.02, -0.3, 0.04), (0.0, -0.26, 0.16)), ((-0.02, 0.26, 0.04), (0.0, 0.3, 0.16))]
PANEL = (-0.05, -0.26, 0.04), (-0.03, 0.26, 0.16)


def test_a_bar_is_told_from_its_front():
    front = front_of(boxes(PLATE, ((0.03, -0.1, 0.14), (0.05, 0.1, 0.16))))
    assert (front.kind, front.plane_m, front.low, front.high) == (BAR, 0.0, (-0.3, 0.0), (0.3, 0.2))
    assert front.stands_out_m == pytest.approx(0.05)
    assert front.handle_rises_m == pytest.approx(0.05, abs=0.004)
    assert np.allclose((front.handle_low, front.handle_high), ((-0.1, 0.14), (0.1, 0.16)), atol=CELL_M)


def test_a_knob_that_hardly_stands_out_leaves_a_front_flat():
    front = front_of(boxes(PLATE, ((0.0, -0.02, 0.1), (0.01, 0.02, 0.12))))
    assert front.kind == FLAT and front.stands_out_m == pytest.approx(0.01)
    assert front_of(boxes(PLATE)).handle_low is None


def test_a_handle_between_the_sides_of_a_frame_is_recessed():
    front = front_of(boxes(*FRAME, PANEL, ((-0.03, -0.05, 0.09), (-0.002, 0.05, 0.11))))
    assert front.kind == RECESSED, "the frame is the front: its handle stands out from the panel alone"
    assert front.plane_m == pytest.approx(0.0, abs=0.002) and front.stands_out_m == 0.0
    assert front.handle_rises_m == pytest.approx(0.028, abs=0.004)
    assert front_of(boxes(*FRAME, PANEL)).kind == FLAT, "a panel is no hollow to hold"


def test_a_hole_to_grip_is_recessed_and_a_gap_at_the_edge_is_not():
    low, high, left, right = (((-0.02, -0.3, 0.0), (0.0, 0.3, 0.14)), ((-0.02, -0.3, 0.17), (0.0, 0.3, 0.2)),
                              ((-0.02, -0.3, 0.14), (0.0, -0.06, 0.17)), ((-0.02, 0.06, 0.14), (0.0, 0.3, 0.17)))
    assert front_of(boxes(low, high, left, right)).kind == RECESSED
    low, upper = ((-0.02, -0.3, 0.0), (0.0, 0.3, 0.14)), ((-0.02, -0.3, 0.148), (0.0, 0.3, 0.2))
    assert front_of(boxes(low, upper)).kind == FLAT, "no finger gets into 8 mm"
    rail = ((-0.3, -0.308, 0.0), (-0.1, 0.308, 0.1))  # is seen as 8 mm beside the front
    assert front_of(boxes(PLATE, rail)).kind == FLAT


def test_the_edge_of_a_worktop_stands_out_and_a_chair_before_the_front_does_not():
    front = front_of(boxes(PLATE))
    top, chair = ((-0.6, -1.0, 0.21), (0.028, 1.0, 0.25)), ((0.3, -0.2, 0.0), (0.7, 0.2, 0.9))
    assert edge_above(front, boxes(top, chair)) == pytest.approx(0.028)
    assert edge_above(front, boxes(chair)) == 0.0
    assert edge_above(front, boxes(((-0.6, -1.0, 0.6), (0.028, 1.0, 0.64)))) == 0.0, "too high above it"


def opening(kind="hinge", axis=(0, 0, 1), origin=(0, 0.3, 0), opens=2.0, shape=((-0.02, -0.3, 0.3), (0.0, 0.3, 1.5))):
    return Opening("it", kind, False, np.array(axis, float), np.array(origin, float), opens, boxes(shape), boxes(shape),
                   None, 0.0, 0.0, 1.0)


@pytest.mark.parametrize("axis, origin, yaw", [((0, 0, 1), (0, 0.3, 0), 0.0), ((0, 0, -1), (0, -0.3, 0), 0.0),
                                               ((0, 0, -1), (0, 0.3, 0), math.pi)])
def test_a_door_looks_to_where_it_swings(axis, origin, yaw):
    found = front_yaw(opening(axis=axis, origin=origin))
    assert math.cos(found - yaw) == pytest.approx(1.0)


def test_groups_are_told_by_axis_and_shape():
    assert group_of(opening()) == "other door"
    assert group_of(opening(axis=(0, 1, 0))) == "flap"
    assert group_of(opening("slide", (0, 1, 0))) == "sliding door", "it slides in its own plane"
    drawer = (-0.5, -0.3, 0.3), (0.0, 0.3, 0.5)
    assert group_of(opening("slide", (1, 0, 0), opens=0.5, shape=drawer)) == "drawer"
    assert group_of(opening("slide", (1, 0, 0), opens=0.3, shape=drawer)) == "short drawer"


def test_rooms_end_at_walls():
    walls = boxes(((2.0, 0.0, 0.0), (2.1, 1.5, 2.4)), ((0.0, 3.0, 0.0), (4.0, 3.1, 2.4)))
    lines = section(walls, 2.2)
    chords = chords_at(np.array([(1.0, 0.5), (1.0, 2.5)]), lines, (5.0, 4.0))
    assert np.allclose(chords, [(2.0, 3.0), (5.0, 3.0)]), "the second looks past the end of the wall"
    assert len(section(walls, 2.5)) == 0


def test_a_home_is_enclosed_by_a_ceiling_and_by_walls():
    slab = boxes(((0.0, 0.0, 2.4), (3.0, 2.0, 2.5)), ((0.0, 0.0, 0.7), (9.0, 9.0, 0.8)))
    points = np.array([(1.0, 1.0), (2.9, 1.9), (3.1, 1.0)])
    assert is_covered(points, slab).tolist() == [True, True, False], "a table is no ceiling"
    ends = ends_at(points[:1], section(boxes(((2.0, 0.0, 0.0), (2.1, 1.5, 2.4))), 1.1))
    assert ends[0].tolist() == [[-np.inf, 2.0], [-np.inf, np.inf]]
    said = {kind: [values_of(shapes_of_apartment(f"wide/val/{index}"))["floor", what][0] for what in ENCLOSED]
            for index, kind in enumerate(("closed", "open above", "no walls"))}
    assert said == {"closed": ["yes", "yes"], "open above": ["no", "yes"], "no walls": ["no", "no"]}


def test_rooms_end_at_low_walls_too():
    home = next(shapes for index in range(60) if (shapes := shapes_of_apartment(f"wide/val/{index}")).walls_at_m < 1.9)
    shorter = values_of(home)["floor", "between walls, shorter way (m)"]
    assert min(shorter) < 0.75 * min(home.layout.size_m)


def test_the_way_to_a_surface_is_as_wide_as_its_narrowest_place():
    obstacles = np.zeros((80, 40), bool)
    obstacles[40, :] = True
    obstacles[40, 10:26] = False  # a doorway of 0.8 m
    near, far = (Receptacle(name, "table", (x, 1.0, 0.7), (0.2, 0.2), sides=((side, 0.0),))
                 for name, x, side in (("near", 0.3, 1.0), ("far", 3.7, -1.0)))
    turned = replace(near, name="turned", center_m=(1.8, 1.0, 0.7))
    obstacles[55:, :] = True
    widths = ways_to(obstacles, (near, far, turned))
    assert widths["near"] > 1.2 and "far" not in widths, "nothing gets to what is behind a wall"
    assert widths["turned"] < 0.9, "it is reached from the other side of the wall"
    obstacles[55:, :] = False
    obstacles[70:, ::39] = True
    assert ways_to(obstacles, (near, far))["far"] == pytest.approx(0.8, abs=0.1)
    free = clearance(np.zeros((3, 5), bool))
    assert free[1, 2] == pytest.approx(0.075) and free[0, 0] == pytest.approx(0.025), "beyond its end there is no floor"


def values_of(shapes):
    measured = MeasuredSet("it")
    measured.add(shapes)
    return measured.values


def test_our_homes_measure_what_they_were_made_with():
    home = shapes_of_apartment("train/0")
    values = values_of(home)
    assert set(values["drawer", "front as seen"]) == set(values["drawer", "front as touched"])
    assert set(values["drawer", "travel (m)"]) == {DRAWER_RANGE_M[1]}
    if set(values["drawer", "front as seen"]) == {BAR}:
        assert np.allclose(values["drawer", "handle stands out of the front, as seen (m)"],
                           HANDLE_STANDOFF_M + HANDLE_RADIUS_M, atol=1e-3)
    counters = [place for place in home.layout.receptacles if place.kind == "counter"]
    assert values["counter", "height (m)"] == [place.center_m[2] for place in counters]
    assert values["drawer", "friction as run (N)"] == values["drawer", "friction in its file (N)"]
    rooms = [min(room.high_x - room.low_x, room.high_y - room.low_y) for room in home.layout.rooms]
    assert min(values["floor", "between walls, shorter way (m)"]) <= max(rooms) + 0.2


def test_a_home_of_others_is_measured_by_the_same_rules(tmp_path):
    home = shapes_of_scene(make_homes(tmp_path / "homes"), "kitchen")
    values = values_of(home)
    drawer = {what: value for (group, what), (value, *_) in values.items() if group == "drawer"}
    assert drawer["front as seen"] == FLAT and drawer["travel (m)"] == 0.5
    assert drawer["width (m)"] == pytest.approx(0.7) and drawer["height (m)"] == pytest.approx(0.24)
    assert drawer["bottom (m)"] == pytest.approx(0.6) and drawer["handle height (m)"] == pytest.approx(0.75)
    assert (drawer["friction as run (N)"], drawer["friction in its file (N)"]) == (2.0, 0.0)
    door = {what: value for (group, what), (value, *_) in values.items() if group == "fridge door"}
    assert door["range (rad)"] == 2.2 and door["width (m)"] == pytest.approx(0.74)
    assert door["hinge"] == "right", "as one faces it"
    assert values["fridge board", "height (m)"][0] == pytest.approx(0.71, abs=0.02)
    assert values["counter", "height (m)"] == pytest.approx([0.9])
    assert values["drawer", "free floor before it (m)"] == [3.0], "its own front is no obstacle"
    assert (values["table", "depth (m)"], values["table", "width (m)"]) == ([0.6], [1.0])
    assert max(values["floor", "between walls, longer way (m)"]) == pytest.approx(6.0, abs=0.1)
    table = next(place for place in home.layout.receptacles if place.kind == "table")
    assert home.obstacles[tuple(int(v / 0.05) for v in table.center_m[:2])]


def test_what_no_arm_reaches_is_left_out(tmp_path):
    homes = make_homes(tmp_path / "homes")
    text = (homes / "kitchen.xml").read_text()
    for old, new in (('"0 0 0.6" material', '"0 0 1.6" material'), ("0 0 0.72", "0 0 1.72")):
        assert old in text
        text = text.replace(old, new)
    (homes / "kitchen.xml").write_text(text)
    values = values_of(shapes_of_scene(homes, "kitchen"))
    assert ("table", "height (m)") not in values and ("counter", "height (m)") in values


def test_values_lie_inside_only_with_a_margin():
    assert [position([v], [1.0, 2.0]) for v in (1.5, 1.06, 1.02, 2.0, 2.2)] == [
        "inside", "inside", "at the edge", "at the edge", "outside"]
    assert position([0.0, 0.5], [0.0, 1.0]) == "inside", "no handle stands out by less than nothing"
    assert position([3.0], [1.0, 3.0], most=3.0) == "inside" and position([3.0], [1.0, 3.0]) == "at the edge"
    assert position([0.5], [0.5, 0.5]) == "inside", "what is the same everywhere has no margin"
    assert position(["bar"], ["bar"] + 30 * ["flat"]) == "at the edge"
    assert position(["bar"], ["bar", "flat"]) == "inside" and position(["bar", "hole"], ["bar"]) == "outside"
    assert said([0.25, 0.75, 1.5]) == "0.250 .. 1.50 (0.750)" and said(["bar", "flat", "bar", "bar"]) == (
        "bar 75 %, flat 25 %")


def test_the_verdict_names_each_property_outside():
    ours = MeasuredSet("ours", 1, {("drawer", "width (m)"): [0.4, 0.6], ("drawer", "front"): ["bar"]})
    other = MeasuredSet("theirs", 1, {("drawer", "width (m)"): [0.5, 0.9], ("drawer", "front"): ["bar"],
                                      ("flap", "range (rad)"): [1.0, 1.0]})
    assert verdict(other, ours) == [
        "  not in ours: flap (2)",
        "  outside: drawer, width (m): 0.500 .. 0.900; ours 0.400 .. 0.600 (1 of 2)",
        "theirs: 1 of 2 properties lie inside ours with a margin of 5% of its range, 0 at its edge, 1 outside."]
    assert verdict(ours, ours)[-1].endswith("1 at its edge, 0 outside.")
    far = MeasuredSet("far", 1, {("drawer", "free floor before it (m)"): [1.0, 3.0]})
    assert "1 at its edge" in verdict(far, far)[-1], "its low end alone: 3 m is the most that is measured"
    nearer = MeasuredSet("nearer", 1, {("drawer", "free floor before it (m)"): [2.0, 3.0]})
    assert len(verdict(nearer, far)) == 1
    inner = MeasuredSet("inner", 1, {("drawer", "width (m)"): [0.5], ("drawer", "front"): ["bar"]})
    assert verdict(inner, ours) == ["inner: all 2 properties lie inside ours with a margin of 5% of its range."]


def test_the_command_shows_sets_side_by_side(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(command, "HOMES_OF_FAMILY", 1)
    homes, picture = make_homes(tmp_path / "homes"), tmp_path / "it.png"
    assert main(["scenes", "measure", f"dataset={homes}", "scenes=kitchen", f"out={picture}"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [word for word in ("ours, train (3)", "ours, val (1)", "ours, test (1)", "homes (1)") if word in lines[0]][
        3:] == ["homes (1)"]
    assert any(line.startswith("  outside: drawer, width (m): 0.700; ours") for line in lines)
    assert lines[-1].startswith("homes: ") and lines[-1].endswith(" outside.")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert main(["scenes", "measure", f"out={picture}"]) == 0
    assert "outside" not in capsys.readouterr().out, "our homes alone need no verdict"
    assert main(["scenes", "measure", "furniture=wide", f"out={picture}"]) == 0
    assert "ours, wide/train (3)" in capsys.readouterr().out.splitlines()[0]


def test_what_stands_before_a_front_ends_its_free_floor(tmp_path):
    homes = make_homes(tmp_path / "homes")
    text = (homes / "kitchen.xml").read_text()
    (homes / "kitchen.xml").write_text(text.replace("<body name=\"apple\"", (
        '<geom type="box" size="0.2 0.2 0.4" pos="-0.99 1 0.4"/><body name="apple"')))
    values = values_of(shapes_of_scene(homes, "kitchen"))
    assert values["drawer", "free floor before it (m)"] == pytest.approx([1.2], abs=0.06)


BAD = {  # what is asked, and what is said
    "no picture": ("out=it.txt", "out=it.txt should be a file *.png"),
    "scenes of nothing": ("scenes=a_*", "scenes=a_* chooses among the scenes of a data set: name one with dataset="),
    "too many": ("dataset='a.xml,b.xml,c.xml,d.xml,e.xml,f.xml'", "dataset= names 6 data sets; 5 at most"),
    "no such file": ("dataset=nowhere.xml", "nowhere.xml does not exist"),
    "out of the way": ("out=nowhere/it.png", "out=nowhere/it.png cannot be written"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_question_is_a_sentence(name, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "HOMES_OF_FAMILY", 1)
    asked, words = BAD[name]
    assert main(["scenes", "measure", asked]) == 2
    assert words in capsys.readouterr().err


def test_a_scene_that_cannot_be_used_is_named_and_the_others_are_measured(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(command, "HOMES_OF_FAMILY", 1)
    homes = make_homes(tmp_path / "homes")
    (homes / "broken.xml").write_text("<mujoco><worldbody>")
    assert main(["scenes", "measure", f"dataset={homes}", "scenes='kitchen,broken'", f"out={tmp_path / 'it.png'}"]) == 2
    told = capsys.readouterr()
    assert "homes (1)" in told.out and "1 scene cannot be used" in told.err

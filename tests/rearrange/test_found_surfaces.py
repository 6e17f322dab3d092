"""What nobody declares is found from shape: surfaces, insides of drawers, bars, and the door of a compartment."""

from __future__ import annotations

import json
import math
from pathlib import Path

import mujoco
import numpy as np
import pytest

from rearrange.command_line.cli import main
from rearrange.home.simulation.mujoco.build_model import handle_part
from rearrange.home.simulation.scenes.contact_sheet import from_above
from rearrange.home.simulation.scenes.found_surfaces import largest_rectangle
from rearrange.home.simulation.scenes.mjcf import MjcfHomes
from rearrange.home.simulation.scenes.mjcf_compile import compiled
from rearrange.home.simulation.scenes.scene import compiled_scene, data_set, load_scene
from rearrange.home.simulation.scenes.scene_layout import SceneHome
from rearrange.home.simulation.scenes.scene_parts import MOST_DAMPING
from rearrange.home.simulation.scenes.scene_selection import refused, usable
from tests.rearrange.scene_data import make_furnished_room
from tests.rearrange.unnamed_flat import CHEST, CUPBOARD, SHELF, TABLE, drawer, write_flat


def home(folder: Path, *furniture: str, floor: str = '<geom type="plane" size="3 3 0.1"/>') -> SceneHome:
    """A flat of some pieces of furniture, read anew."""
    for kept in (compiled, load_scene):
        kept.cache_clear()
    return load_scene(write_flat(folder / "flat.xml", *furniture, floor=floor), "flat").home


def middles(found: SceneHome) -> list[list[float]]:
    """Of all receptacles that stand still, in the file's frame."""
    return [np.round(np.add(place.center_m, found.origin_m), 2).tolist() for place in found.layout.receptacles
            if place.parent is None]


@pytest.mark.parametrize("seed", range(8))
def test_the_largest_rectangle_is_that_of_all_rectangles(seed):
    free, least = np.random.default_rng(seed).random((9, 12)) < 0.85, 2
    areas = [(b - a) * (d - c) for a in range(9) for b in range(a + least, 10) for c in range(12)
             for d in range(c + least, 13) if free[a:b, c:d].all()]
    span = largest_rectangle(free, least)
    assert free[span].all() and free[span].size == max(areas) and min(free[span].shape) >= least
    assert largest_rectangle(np.zeros((9, 12), bool), least) is None


def test_a_table_top_is_found_as_it_is_turned(tmp_path):
    (top,) = home(tmp_path, TABLE).layout.receptacles
    assert top.center_m == pytest.approx((3.0, 3.0, 0.6), abs=0.01) and math.isinf(top.clearance_m)
    assert top.half_extents_m == pytest.approx((0.5, 0.3), abs=0.011)
    assert math.degrees(top.yaw_rad) == pytest.approx(30.0, abs=0.1) and len(top.sides) == 4


def test_boards_with_room_above_them_within_reach_are_found(tmp_path):
    """Not the one at 0.05 m, nor that with 6 cm over it, nor the highest."""
    found = home(tmp_path, SHELF)
    assert middles(found) == [[-2.6, -1.0, 0.51], [-2.6, -1.0, 0.99]]
    assert [place.clearance_m for place in found.layout.receptacles] == pytest.approx([0.38, 0.6])
    assert [place.sides for place in found.layout.receptacles] == [((1.0, 0.0),)] * 2


def test_what_stands_on_a_surface_takes_its_place(tmp_path):
    top = next(place for place in home(tmp_path, CHEST).layout.receptacles if place.kind != "drawer")
    assert top.half_extents_m == pytest.approx((0.225, 0.35), abs=0.02) and top.center_m[2] == pytest.approx(0.74)


@pytest.mark.parametrize("old, new, count", [
    ("", "", 2),
    ('range="0 0.449999988"', 'range="0 0.3"', 0),
    ('<body pos="-2.6 1.5 0">', '<body pos="-2.6 1.5 0"><geom type="box" size=".01 .35 .35" pos=".4 0 .35"/>', 0),
    ("</body></body>", '</body><geom type="box" size="0.29 0.3 0.01" pos="0 0 0.29"/></body>', 1)],
    ids=["as they are", "they open too little", "behind a door", "no room in the lower one"])
def test_the_insides_of_drawers_that_come_out_are_found(old, new, count, tmp_path):
    places = home(tmp_path, CHEST.replace(old, new) if old else CHEST).layout.receptacles
    inside = [place for place in places if place.kind == "drawer"]
    assert len(inside) == count and all(place.parent == place.link for place in inside)
    assert all(place.half_extents_m == pytest.approx((0.25, 0.26), abs=0.02) for place in inside)


def test_a_bar_is_the_handle_and_a_flat_front_has_it_in_its_middle(tmp_path):
    for bar, handle in ((True, (0.035, 0.1, 0.09)), (False, (0.0, 0.0, 0.09))):
        chest = CHEST.replace(drawer(0.5), drawer(0.5, bar=bar))
        body = home(tmp_path, chest).layout.bodies[0]
        assert handle_part(body).center_m == pytest.approx(handle, abs=1e-6)
        assert body.position_m[0] == pytest.approx(3.0 - 2.6 + 0.28 + 0.01)  # its front, not that of the bar


def test_a_cupboard_without_a_name_serves_as_a_fridge(tmp_path):
    found = home(tmp_path, TABLE, CUPBOARD)
    (board,) = (place for place in found.layout.receptacles if place.kind == "fridge")
    (door,) = found.layout.bodies
    assert board.link == door.name == "fridge_door" and middles(found)[1] == [2.6, 0.0, 0.91]
    assert refused(found).keys() == {"open_cabinet", "close_cabinet"}
    handle = handle_part(door).at(door.pose(), door.position_m[2])
    assert np.add(handle.center_m, found.origin_m) == pytest.approx((2.24, 0.27, 1.0), abs=0.011)


def test_the_door_of_a_room_is_no_fridge(tmp_path):
    door = CUPBOARD[CUPBOARD.index('<body pos="0.3'):].removesuffix("</body>")
    found = home(tmp_path, TABLE, f'<body pos="0.45 0 0">{door}</body>')
    assert found.layout.bodies == () and [place.kind for place in found.layout.receptacles] == ["table"]


def test_what_is_declared_wins_and_what_is_found_fills_in(tmp_path):
    site = '<site name="receptacle_here" type="box" size=".1 .1 .1" pos="0 0 0.7"/>'
    declared = home(tmp_path, TABLE.replace("</body>", f"{site}</body>"), CHEST)
    assert declared.layout.receptacles[0].half_extents_m == (0.1, 0.1)
    assert declared.found == {place.name for place in declared.layout.receptacles[1:]} and len(declared.found) == 3
    chest = CHEST.replace('<joint type="slide"', f'{site}<joint type="slide"', 1)  # in a drawer of it
    assert home(tmp_path, TABLE, chest).found == {"body_1_top"}


def test_in_a_habitat_data_set_surfaces_are_found_in_scenes_that_declare_none(tmp_path):
    config = make_furnished_room(tmp_path)
    declared = load_scene(config, "bare_table").home
    assert not declared.found and not load_scene(config, "furnished").home.found
    file = tmp_path / "configs" / "objects" / "table.object_config.json"
    file.write_text(json.dumps({key: value for key, value in json.loads(file.read_text()).items()
                                if key != "user_defined"}))
    for kept in (data_set, load_scene):
        kept.cache_clear()
    found = load_scene(config, "bare_table").home
    (top,), (same,) = found.layout.receptacles, declared.layout.receptacles
    assert found.found == {top.name} and top.center_m == pytest.approx(same.center_m, abs=0.011)
    assert top.half_extents_m == pytest.approx(same.half_extents_m, abs=0.011) and set(top.sides) == set(same.sides)


def test_a_plane_without_an_end_is_the_floor_around_what_stands_on_it(tmp_path):
    endless = home(tmp_path, TABLE, floor='<geom type="plane" size="0 0 1" pos="0 0 0.02"/>')
    assert endless.layout.size_m == pytest.approx((6.2 + 3.0, 6.2 + 3.0), abs=0.06)  # of the walls, and 1.5 m around
    assert endless.origin_m == pytest.approx((-4.6, -4.6, 0.02))


def test_a_hand_overcomes_the_damping_of_a_joint(tmp_path):
    file = write_flat(tmp_path / "flat.xml", CHEST)
    model = compiled_scene.__wrapped__(file, "flat", ()).model
    slides = model.jnt_type == mujoco.mjtJoint.mjJNT_SLIDE
    ours = [joint for joint in np.flatnonzero(slides) if model.joint(joint).name.startswith("drawer_")]
    assert [model.dof_damping[model.jnt_dofadr[joint]] for joint in ours] == [MOST_DAMPING["slide"]] * 2
    assert "damping of a joint above what a hand overcomes" in MjcfHomes(file).unused("flat")


def test_the_sheet_shows_what_was_found(tmp_path, capsys):
    file = write_flat(tmp_path / "flat.xml")
    pixels = from_above(compiled_scene.__wrapped__(file, "flat", ())).astype(int)
    red, green, blue = np.moveaxis(pixels, 2, 0)
    for marked in ((green > red + 60) & (green > blue + 60), (blue > red + 40) & (blue > green + 40), red > blue + 60):
        assert marked.sum() > 20
    assert main(["scenes", "view", f"dataset={file}", f"out={tmp_path / 'sheet.png'}"]) == 0
    head, row = (line.split() for line in capsys.readouterr().out.splitlines()[:2])
    assert dict(zip(head[-5:], row[-5:])) == {"receptacles": "7", "found": "7", "reached": "7", "drawers": "2",
                                              "fridge": "yes"}


def test_every_skill_can_be_run_in_a_flat_without_names(tmp_path):
    found = home(tmp_path)
    assert refused(found) == {} and len(usable(found).receptacles) == 7


@pytest.mark.parametrize("skill", ["pick", "open_cabinet", "open_fridge"])
def test_an_expert_solves_a_skill_there(skill, tmp_path):
    file = write_flat(tmp_path / "flat.xml")
    assert main(["eval", f"skill={skill}", "agent=expert", "episodes=1", f"sim.scene_dataset={file}",
                 f"output={tmp_path / 'out'}"]) == 0
    assert json.loads(next(tmp_path.rglob("metrics.json")).read_text())["success"] == 1.0

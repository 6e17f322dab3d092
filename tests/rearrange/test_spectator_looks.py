"""What only a spectator sees: the Fetch's own shapes, and materials. Depth, cameras and physics know nothing of
them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import mujoco
import numpy as np
import pytest

from rearrange.home.apartments.objects import OBJECTS
from rearrange.home.apartments.palettes import PALETTES
from rearrange.home.pictures.picture import Painter
from rearrange.home.pictures.textures import FABRIC, LABEL, PLAIN, TILES, WINDOW, WOOD
from rearrange.home.pictures.visual_only_shapes import attach, dressed
from rearrange.home.robot.fetch import FETCH
from rearrange.home.robot.robot import Shape
from rearrange.home.simulation.mujoco.compiled_home import load_home
from rearrange.home.simulation.mujoco.materials import materials_of
from skills import make_env

EYE_M, TARGET_M = np.array((0.0, -2.0, 0.8)), np.array((0.0, 0.0, 0.5))
BOX = ('<body name="b" pos="0 0 .5"><joint type="hinge" axis="0 0 1"/><geom name="box" type="box" size=".5 .1 .4" '
       'rgba=".6 .6 .6 1"/></body><body name="arm" pos="0 0 .5"><joint type="slide" axis="1 0 0"/><geom name="bit" '
       'type="sphere" size=".05" rgba="0 1 0 1"/></body>')


def scene(xml=BOX):
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{xml}</worldbody></mujoco>")
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return model, data


def paint(model, data, **options):
    return Painter(model, 120, 120, cut_above_m=9, **options).render(data, EYE_M, TARGET_M).astype(int)


@cache
def home():
    return load_home("val/0")


def test_attached_shapes_follow_their_body_in_place_of_a_geom():
    model, data = scene()
    red = attach(model, (Shape("arm", "sphere", (0.12,), (0.0, -0.3, 0.0), (1.0, 0.0, 0.0)),), ("bit",))
    columns = []
    for x in (-0.3, 0.0, 0.3):
        data.qpos[1] = x
        mujoco.mj_forward(model, data)
        seen = paint(model, data, attached=red)
        columns.append(np.argwhere((seen[..., 0] > 2 * seen[..., 1]) & (seen[..., 0] > 60))[:, 1].mean())
        assert not ((seen[..., 1] > 1.5 * seen[..., 0]) & (seen[..., 1] > 60)).any()  # nothing of the green ball
    assert np.diff(columns) == pytest.approx(np.mean(np.diff(columns)), abs=1.5) and columns[1] - columns[0] > 15


def test_a_shape_lies_along_the_axis_that_it_names():
    model, data = scene()
    for axis, far in (("x", (0.4, 0, 0)), ("y", (0, 0.4, 0)), ("z", (0, 0, 0.4))):
        made = attach(model, (Shape("b", "cylinder", (0.01, 0.4), (0.0, 0.0, 0.0), (1.0, 0.0, 0.0), axis),), ())
        turn = made.poses(data)[1]
        assert np.abs(turn.reshape(3, 3) @ (0.0, 0.0, 0.4)) == pytest.approx(
            far) and np.linalg.det(turn.reshape(3, 3)) == pytest.approx(1.0)


def test_a_robot_is_dressed_where_it_has_looks():
    assert dressed(home().model, replace(FETCH, looks=())) is None
    made = dressed(home().model, FETCH)
    assert len(made.kinds) == len(FETCH.looks) and len(made.instead_of) == len(FETCH.hidden)
    places, turns = made.poses(home().parked)
    base = home().parked.body("base").xpos
    assert np.abs(places[:, :2] - base[:2]).max() < 1.1 and places[:, 2].min() > 0.0 and places[:, 2].max() < 1.4
    low = places[:, 2] - np.einsum("nj,nj->n", np.abs(turns.reshape(-1, 3, 3)[:, 2]), made.halves[:, :3])
    assert -0.001 < low.min() < 0.001  # the wheels stand on the floor


def test_what_a_spectator_sees_changes_neither_depth_nor_colours_of_the_robots_cameras_nor_the_state():
    env = make_env("pick", depth_size=32, observations=["rgb", "arm_rgb"], camera_size=32, num_layouts=2,
                   render_mode="rgb_array")
    first, _ = env.reset(seed=3)
    before = env.sim.data.qpos.copy(), env.sim.data.qvel.copy(), env.sim.data.qacc_warmstart.copy()
    env.render()
    env.scene.frame([], 32)()
    assert all(np.array_equal(a, b)
               for a, b in zip(before, (env.sim.data.qpos, env.sim.data.qvel, env.sim.data.qacc_warmstart)))
    for name, image in env.scene.take_images().items():
        assert np.array_equal(image, first[name]), name
    names = {env.sim.model.geom(g).name for g in range(env.sim.model.ngeom)}
    assert set(FETCH.hidden) <= names and env.sim.model.nbody == home().model.nbody  # the model is as it was


def test_materials_are_by_colour_and_by_name():
    made, model = materials_of(home().model, home().objects), home().model
    of = {model.geom(g).name: made[g] for g in range(model.ngeom)}
    assert of["dining_table"] == of["chair_0"] == WOOD and of["sofa"] == FABRIC and of["counter_left"] == TILES
    assert {of[name] for name in of if name.startswith("window_")} == {WINDOW}
    assert {of[name] for name in of if name.startswith("wall_")} == {PLAIN}
    printed = {OBJECTS[home().objects[int(name.split("_")[1])]].name for name in of if name.startswith("object_")
               and of[name] == LABEL}
    assert printed == {name for name in OBJECTS if name.endswith(("can", "box"))}
    assert {made[g] for g in range(model.ngeom) if model.geom(g).name.startswith(("base_", "arm_"))} == {PLAIN}


def test_no_two_palettes_use_a_colour_for_different_materials():
    kinds = {}
    for palette in PALETTES:
        for name in ("wood", "wood_dark", "fabric", "fabric_light", "worktop", "wall", "white", "cabinet", "metal",
                     "accent", "screen"):
            group = {"wood_dark": "wood", "fabric_light": "fabric"}.get(name, name)
            assert kinds.setdefault(getattr(palette, name), group) == group


@pytest.mark.parametrize("material", [WOOD, FABRIC, TILES, LABEL, WINDOW])
def test_a_material_is_seen_and_stays_on_its_shape(material):
    model, data = scene()
    of_geoms = np.array([material, PLAIN], np.int32)
    plain, painted = paint(model, data), paint(model, data, materials=of_geoms)
    on_box = np.abs(plain - paint(*scene(BOX.replace(".6 .6 .6 1", "1 .1 .1 1")))).sum(axis=2) > 30
    changed = np.abs(painted - plain).sum(axis=2) > 2
    assert changed[on_box].mean() > 0.1 and not changed[:20].any()
    assert np.array_equal(painted, paint(model, data, materials=of_geoms))  # the same each time
    if material in (WOOD, FABRIC, TILES):  # of about the same colour
        assert np.abs(painted[on_box].mean(axis=0) - plain[on_box].mean(axis=0)).max() < 20


def test_the_sky_is_above_the_hills_and_shines_in_the_dark():
    model, data = scene('<body name="b" pos="0 0 .5" euler="0 0 90"><geom name="box" type="box" size=".01 .5 .4" '
                        'rgba=".6 .6 .6 1"/></body>')
    seen = paint(model, data, materials=np.array([WINDOW], np.int32))
    column = seen[:, 50]
    pane = np.flatnonzero(np.abs(column - paint(model, data)[:, 50]).sum(axis=1) > 20)
    top, bottom = column[pane[2]], column[pane[-2]]
    assert top[2] > top[0] + 20 and top[2] > 150  # blue
    assert bottom[1] > bottom[0] and bottom[1] > bottom[2]  # green

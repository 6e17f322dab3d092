"""Habitat's configurations: each key that is used has the value that its documentation gives it, computed by hand here;
all others are said. Sizes are of the world, z up (m): of what is seen and of what is solid.
"""

from __future__ import annotations

import json
import math
import os

import numpy as np
import pytest

from rearrange.command_line.cli import main
from rearrange.home.errors import UserError
from rearrange.home.scene_files.data_set import DataSet, read_object
from rearrange.home.simulation.scenes.objects import own_object
from rearrange.home.simulation.scenes.scene_parts import collect
from tests.rearrange.scene_data import CONFIG, box, make_data_set, write_box_room, write_glb

CUBE = {"render_asset": "../../objects/cube.glb", "COM": [0, 0, 0]}


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def change(path, **values):
    write(path, json.loads(path.read_text()) | values)


def about(axis, degrees):
    """The quaternion (w, x, y, z) of a turn about an axis."""
    half = math.radians(degrees) / 2
    return [math.cos(half), *(math.sin(half) * (axis == each) for each in "xyz")]


@pytest.fixture
def folder(tmp_path):
    make_data_set(tmp_path)
    write_glb(tmp_path / "objects" / "cube.glb", [box((-0.5, -0.5, -0.5), (0.5, 0.5, 0.5))])
    write_glb(tmp_path / "objects" / "bar.glb", [box((0, 0, 0), (0.1, 0.2, 0.4))])
    return tmp_path


def section(folder, kind, **values):
    """Change a section of the data set's own file."""
    content = json.loads((folder / CONFIG).read_text())
    change(folder / CONFIG, **{kind: content[kind] | values})


def one_scene(folder, **content):
    """The pieces of a scene, the room and this."""
    write(folder / "configs" / "scenes" / "one.scene_instance.json",
          {"stage_instance": {"template_name": "room"}} | content)
    read, problems = DataSet(folder / CONFIG).read("one")
    if problems:
        raise UserError(problems[0])
    return collect(read)


def placed(folder, config=None, default=None, scene=None, name="cube", **entry):
    """An object in the room: its corners as it is seen, and those of each part that is solid."""
    if config is not None:
        write(folder / "configs" / "objects" / f"{name}.object_config.json", config)
    if default is not None:
        section(folder, "objects", default_attributes=default)
    found = one_scene(folder, object_instances=[{"template_name": name} | entry], **(scene or {}))
    return [mesh.vertices for mesh in found.meshes if mesh.owner == 1], [solid.corners() for solid in found.solids]


def span(parts):
    """Low and high corner of points, rounded to a tenth of a millimetre."""
    points = np.concatenate(parts)
    return np.round(points.min(axis=0), 4).tolist(), np.round(points.max(axis=0), 4).tolist()


def size(parts):
    low, high = span(parts)
    return np.round(np.subtract(high, low), 4).tolist()


# ---------------------------------------------------------------------- objects


@pytest.mark.parametrize("scale, entry, wanted", [  # in the file: x, y up, z; in the world: x, z, y up
    ([.2, .4, .6], {}, [.2, .6, .4]),
    ([.2, .4, .6], {"uniform_scale": 2.0}, [.4, 1.2, .8]),
    ([.2, .4, .6], {"uniform_scale": 2.0, "non_uniform_scale": [1, .5, 3]}, [.4, 3.6, .4]),
    ([.2, .4, .6], {"rotation": [math.sqrt(.5), 0, 0, math.sqrt(.5)]}, [.4, .6, .2]),
    ([-1, 1, .5], {}, [1, .5, 1]),
    (None, {"uniform_scale": 0.5}, [.5, .5, .5])])
@pytest.mark.parametrize("more", [{}, {"use_bounding_box_for_collision": True}, {"join_collision_meshes": True},
                                  {"join_collision_meshes": False}, {"collision_asset": "../../objects/cube.glb"}])
def test_scales_of_a_configuration_and_of_a_scene_multiply(folder, more, scale, entry, wanted):
    seen, solid = placed(folder, CUBE | more | ({} if scale is None else {"scale": scale}), **entry)
    assert size(seen) == pytest.approx(wanted) and size(solid) == pytest.approx(wanted)


def test_a_mirrored_object_is_seen_from_outside(folder):
    write(folder / "configs" / "objects" / "cube.object_config.json", CUBE | {"scale": [-1, 1, 1]})
    (piece,) = read_object(folder / "configs" / "objects" / "cube.object_config.json").seen
    a, b, c = np.moveaxis(piece.vertices[piece.triangles], 1, 0)
    assert (np.einsum("ij,ij->i", np.cross(b - a, c - a), a + b + c) > 0.0).all()


@pytest.mark.parametrize("up, front, wanted", [  # of a bar of 0.1 x 0.2 x 0.4
    (None, None, [.1, .4, .2]), ([0, 1, 0], [0, 0, -1], [.1, .4, .2]), ([0, 0, 1], [0, 1, 0], [.1, .2, .4]),
    ([1, 0, 0], [0, 1, 0], [.4, .2, .1]),
    ([0, 0, 1], None, [.1, .4, .2])])  # not square to the front that is -z: as if neither were given
def test_up_and_front_turn_an_object(folder, up, front, wanted):
    bar = {"render_asset": "../../objects/bar.glb", "up": up, "front": front}  # null says nothing
    seen, solid = placed(folder, bar, name="bar")
    assert size(seen) == size(solid) == pytest.approx(wanted)


@pytest.mark.parametrize("in_scene, in_entry, com, low_x", [
    ("asset_local", None, None, 3.0), ("asset_local", None, [0.1, 0, 0], 3.0), ("COM", None, None, 2.9),
    ("COM", None, [0.1, 0, 0], 2.8), (None, None, None, 2.9), (None, None, [0.1, 0, 0], 2.8),
    (None, "asset_local", None, 3.0), ("asset_local", "com", None, 2.9), ("unknown", None, None, 2.9)])
def test_an_object_stands_by_its_centre_of_mass_or_by_its_file(folder, in_scene, in_entry, com, low_x):
    """The bar reaches from 0 to 0.1 m in its file, twice that in the scene."""
    scene = {} if in_scene is None else {"translation_origin": in_scene}
    entry = {} if in_entry is None else {"translation_origin": in_entry}
    bar = {"render_asset": "../../objects/bar.glb", "scale": [2, 1, 1]} | ({} if com is None else {"COM": com})
    seen, solid = placed(folder, bar, None, scene, "bar", translation=[3, 0, 0], **entry)
    assert span(seen)[0][0] == pytest.approx(low_x) and span(solid)[0][0] == pytest.approx(low_x)


def test_each_mesh_of_what_collides_is_a_hull_unless_they_are_joined(folder):
    parts = [box((0, 0, 0), (1, 1, 1)), box((2, 0, 0), (3, 1, 1))]
    write_glb(folder / "objects" / "two.glb", parts)
    two = "../../objects/two.glb"
    for joined, count in ((None, 2), (False, 2), (True, 1)):
        for asked in ({"render_asset": two}, CUBE | {"collision_asset": two}):
            assert len(placed(folder, asked | {"join_collision_meshes": joined})[1]) == count
    assert len(placed(folder, {"render_asset": two, "use_bounding_box_for_collision": True})[1]) == 1


@pytest.mark.parametrize("shape, extent", [
    ("cubeSolid", [2, 2, 2]), ("uvSphereSolid_rings_8_segments_16_useTexCoords_false_useTangents_false", [2, 2, 2]),
    ("icosphereSolid_subdivs_1", [2, 2, 2]),
    ("cylinderSolid_rings_1_segments_12_halfLen_1_useTexCoords_false_useTangents_false_capEnds_true", [2, 2, 2]),
    ("cylinderWireframe_rings_1_segments_32_halfLen_0.5", [2, 1, 2]),
    ("coneSolid_segments_12_halfLen_1.25_rings_1_useTexCoords_false", [2, 2.5, 2]),
    ("capsule3DSolid_hemiRings_4_cylRings_1_segments_12_halfLen_0.75_useTexCoords_false", [2, 3.5, 2])])
def test_shapes_of_habitats_own_have_their_size_as_what_is_solid_and_as_what_is_seen(folder, shape, extent):
    x, y, z = extent
    asked = {"render_asset": "../../objects/cube.glb", "collision_asset": shape, "collision_asset_size": [.1, .2, .3],
             "scale": [2, 1, 1]}
    seen, solid = placed(folder, asked)
    assert size(solid) == pytest.approx([.2 * x, .3 * z, .2 * y], abs=2e-3) and size(seen) == [2, 1, 1]
    seen, _ = placed(folder, {"render_asset": shape, "scale": [.1, .2, .3]})
    assert size(seen) == pytest.approx([.1 * x, .3 * z, .2 * y], abs=2e-3)


def test_the_size_of_a_collision_asset_stretches_joined_meshes_only(folder):
    """As Habitat-Sim does: BulletRigidObject::constructCollisionShape."""
    for joined, wanted in ((True, [.5, 1, 2]), (False, [1, 1, 1])):
        asked = CUBE | {"collision_asset": "../../objects/cube.glb", "collision_asset_size": [.5, 2, 1],
                        "join_collision_meshes": joined}
        assert size(placed(folder, asked)[1]) == pytest.approx(wanted)


def test_what_is_not_collidable_is_seen_only_and_what_is_not_visible_is_solid_only(folder):
    seen, solid = placed(folder, CUBE | {"is_collidable": False})
    assert size(seen) == [1, 1, 1] and solid == []
    seen, solid = placed(folder, CUBE, is_instance_visible=False)
    assert seen == [] and size(solid) == [1, 1, 1]


def test_receptacles_of_an_object_stretch_with_it(folder):
    write(folder / "configs" / "objects" / "cube.object_config.json", CUBE | {
        "scale": [2, 3, 4],
        "user_defined": {"receptacle_aabb_top": {"position": [.1, .5, .2], "scale": [.5, .1, .25]}}})
    placed(folder, None, None, {"translation_origin": "asset_local"}, uniform_scale=.5)
    (top,) = collect(DataSet(folder / CONFIG).read("one")[0]).receptacles
    assert top.middle_m == pytest.approx((.1, -.4, .75)) and sorted(top.half_m) == pytest.approx([.15, .5, .5])


@pytest.mark.parametrize("up, rotation, stands", [
    (None, about("y", 77), True), (None, about("x", 20), True), (None, about("x", 30), False),
    (None, about("z", 70), False), (None, about("x", 180), False), ([0, 1, 0], about("x", -90), False),
    ([0, 0, 1], about("x", -90), True), ([0, 0, 2], about("x", -90), True), ([0, 0, 1], about("y", 77), False)])
def test_nothing_stands_on_a_receptacle_that_is_tilted(folder, up, rotation, stands):
    """By the angle of Habitat-Lab's ObjectSampler, 26 degrees. A table on its edge is no table."""
    top = {"position": [0, .5, 0], "scale": [.5, .05, .3]} | ({} if up is None else {"up": up})
    placed(folder, CUBE | {"user_defined": {"receptacle_aabb_top": top}}, rotation=rotation)
    data = DataSet(folder / CONFIG)
    assert len(collect(data.read("one")[0]).receptacles) == stands
    assert ("receptacles of objects that are tilted where these stand" in data.unused("one")) != stands


@pytest.mark.parametrize("turned, stands", [(about("y", 40), True), (about("x", 90), False)])
def test_nor_on_one_of_a_link_or_a_stage(folder, turned, stands):
    place = {"position": [0, 1, 0], "scale": [.5, .1, .2]}
    change(folder / "urdf" / "counter" / "counter.ao_config.json",
           user_defined={"receptacle_aabb_in": place | {"parent_link": "drawer1"}})
    change(folder / "configs" / "stages" / "room.stage_config.json",
           user_defined={"receptacle_aabb_sill": place | {"rotation": turned}})
    found = one_scene(folder, articulated_object_instances=[
        {"template_name": "counter", "translation": [0, 0, 0], "rotation": turned}])
    assert sorted(place.name for place in found.receptacles) == (["in", "sill"] if stands else [])
    said = {f"receptacles of {what}s that are tilted where these stand" for what in ("stage", "articulated object")}
    assert said & set(DataSet(folder / CONFIG).unused("one")) == (set() if stands else said)


def test_an_object_of_an_episode_has_its_scale_its_size_and_its_mass(folder):
    path = folder / "configs" / "objects" / "bar.object_config.json"
    write(path, {"render_asset": "../../objects/bar.glb", "scale": [1, 2, .5], "mass": 0.7})
    thing = own_object(path)
    assert thing.high - thing.low == pytest.approx([.1, .2, .4]) and thing.mass_kg == 0.7
    assert thing.high + thing.low == pytest.approx([0, 0, 0])
    (mesh,) = thing.meshes
    assert np.ptp(mesh.vertices, axis=0) == pytest.approx([.1, .2, .4])


# ---------------------------------------------------------------------- stages


def stage(folder, config=None, default=None, bare=False, **entry):
    """Size of a room of 8 x 2.5 x 8 m and walls of 0.1 m, y up in its file: as it is seen, and of its walls."""
    if bare:
        (folder / "configs" / "stages" / "room.stage_config.json").unlink()
    else:
        write(folder / "configs" / "stages" / "room.stage_config.json",
              {"render_asset": "../../stages/room.glb"} | (config or {}))
    section(folder, "stages", paths={".json": ["configs/stages"], ".glb": ["stages"]},
            **({} if default is None else {"default_attributes": default}))
    found = one_scene(folder, stage_instance={"template_name": "room"} | entry)
    return size([mesh.vertices for mesh in found.meshes]), size([solid.corners() for solid in found.walls])


UPRIGHT, LYING = [8.2, 8.2, 2.6], [8.2, 2.6, 8.2]


@pytest.mark.parametrize("config, default, bare, entry, wanted", [
    ({"up": [0, 1, 0]}, None, False, {}, UPRIGHT), ({}, None, False, {}, UPRIGHT),
    ({"up": [0, 0, 1], "front": [0, 1, 0]}, None, False, {}, LYING),
    ({}, {"up": [0, 1, 0]}, False, {}, UPRIGHT), ({}, {"up": [0, 0, 1], "front": [0, 1, 0]}, False, {}, LYING),
    ({"up": [0, 1, 0], "front": [0, 0, -1]}, {"up": [0, 0, 1], "front": [0, 1, 0]}, False, {}, UPRIGHT),
    (None, None, True, {}, LYING), (None, {"up": [0, 1, 0], "front": [0, 0, -1]}, True, {}, UPRIGHT),
    (None, {"up": [0, 1, 0]}, True, {}, UPRIGHT),
    ({"scale": [2, 1, .5]}, None, False, {}, [16.4, 4.1, 2.6]),
    ({}, {"scale": [2, 1, .5]}, False, {}, [16.4, 4.1, 2.6]),
    ({"scale": [2, 1, 1]}, {"scale": [9, 9, 9]}, False, {"uniform_scale": .5}, [8.2, 4.1, 1.3]),
    ({}, None, False, {"non_uniform_scale": [1, 2, 1]}, [8.2, 8.2, 5.2]),
    ({"scale": [1, 2, 1], "up": [0, 0, 1], "front": [0, 1, 0]}, None, False, {}, [8.2, 2.6, 16.4])])
def test_a_stage_is_turned_and_stretched_as_it_and_the_defaults_say(folder, config, default, bare, entry, wanted):
    seen, solid = stage(folder, config, default, bare, **entry)
    assert seen == pytest.approx(wanted) and solid == pytest.approx(wanted, abs=0.01)


def test_a_stage_that_is_stretched_takes_its_receptacles_along(folder):
    place = {"receptacle_aabb_sill": {"position": [1, 1, 2], "scale": [.5, .1, .2]}}
    stage(folder, {"scale": [2, .5, 1], "user_defined": place})
    (sill,) = collect(DataSet(folder / CONFIG).read("one")[0]).receptacles
    assert sill.middle_m == pytest.approx((2, -2, .5)) and sorted(sill.half_m) == pytest.approx([.05, .2, 1])


# ---------------------------------------------------------------------- defaults


def test_defaults_of_a_data_set_lie_under_each_configuration(folder):
    assert size(placed(folder, CUBE, {"scale": [.5, 1, 1]})[0]) == [.5, 1, 1]
    assert size(placed(folder, CUBE | {"scale": [1, 1, .5]}, {"scale": [.5, 1, 1]})[0]) == [1, .5, 1]
    assert placed(folder, CUBE, {"is_collidable": False})[1] == []
    assert len(placed(folder, CUBE | {"is_collidable": True}, {"is_collidable": False})[1]) == 1
    named = {"render_asset": "../../objects/%%CONFIG_NAME_AS_ASSET_FILENAME%%.glb",
             "collision_asset": "%%CONFIG_NAME_AS_ASSET_FILENAME%%.glb"}
    seen, solid = placed(folder, {}, named, name="bar")  # there is no bar.glb beside it, so that what is seen collides
    assert size(seen) == size(solid) == [.1, .4, .2]
    assert size(placed(folder, CUBE | {"scale": None}, {"scale": [.5, 1, 1]})[0]) == [.5, 1, 1]


def test_defaults_hold_for_objects_of_episodes_and_for_what_users_define(folder):
    top, low = ({"position": [0, y, 0], "scale": [.1, .1, .1]} for y in (1, 0))
    placed(folder, CUBE | {"user_defined": {"receptacle_aabb_low": low}},
           {"mass": 4, "scale": [.1, .1, .1], "user_defined": {"receptacle_aabb_top": top}})
    path = folder / "configs" / "objects" / "cube.object_config.json"
    thing = own_object(path, folder / CONFIG)
    assert thing.mass_kg == 4.0 and thing.high == pytest.approx([.05, .05, .05])
    assert len(collect(DataSet(folder / CONFIG).read("one")[0]).receptacles) == 2


def test_defaults_of_scenes_lie_under_each_scene(folder):
    rug = {"template_name": "rug", "translation": [2, 0, 2]}
    section(folder, "scene_instances", default_attributes={
        "translation_origin": "asset_local", "stage_instance": {"template_name": "room"}, "object_instances": [rug]})
    write(folder / "configs" / "scenes" / "one.scene_instance.json",
          {"object_instances": [{"template_name": "table", "translation": [-2, 0, 0]}]})
    scene, problems = DataSet(folder / CONFIG).read("one")
    assert problems == [] and scene.stage is not None
    assert [one.template.name for one in scene.objects] == ["rug", "table"]
    assert scene.objects[1].frame[:3, 3].tolist() == [-2, 0, 0]


# ---------------------------------------------------------------------- articulated objects


def counter(folder, config, default=None, **entry):
    """Masses of the drawer, what it opens, and where it is."""
    write(folder / "urdf" / "counter" / "counter.ao_config.json", {"urdf_filepath": "counter.urdf"} | config)
    section(folder, "articulated_objects", default_attributes=default or {})
    (part,) = one_scene(folder, articulated_object_instances=[{"template_name": "counter"} | entry]).parts
    return part.mass_kg, part.range[1], float(part.frame[2, 3])


@pytest.mark.parametrize("config, default, entry, wanted", [  # 5 kg, 0.5 m, at 0.2 m
    ({}, None, {}, (5, .5, .2)), ({"uniform_scale": 2}, None, {}, (10, 1, .4)),
    ({"uniform_scale": 2}, None, {"uniform_scale": 1.5}, (15, 1.5, .6)),
    ({}, {"uniform_scale": 2}, {"apply_scale_to_mass": False}, (5, 1, .4)),
    ({"mass_scale": 3}, None, {"mass_scale": 2}, (30, .5, .2)),
    ({"uniform_scale": 3}, {"uniform_scale": 2, "mass_scale": 2}, {}, (30, 1.5, .6))])
def test_scales_of_an_articulated_object_multiply(folder, config, default, entry, wanted):
    """That of lengths is one of masses, unless the scene says no: PhysicsManager::addArticulatedObjectInstance."""
    assert counter(folder, config, default, **entry) == pytest.approx(wanted)


# ---------------------------------------------------------------------- what is said


UNUSED = {  # kind -> keys that are said, and those with values that change nothing
    "objects": (
        {"friction_coefficient": .3, "restitution_coefficient": .1, "rolling_friction_coefficient": .1,
         "spinning_friction_coefficient": .1, "inertia": [1, 1, 1], "margin": .04, "units_to_meters": .01,
         "semantic_id": 3, "shader_type": "flat", "linear_damping": .5, "angular_damping": .5,
         "force_flat_shading": True, "marker_sets": {"a": {}}, "rotation": [0, 0, 0, 1]},
        {"margin": 0, "units_to_meters": 1}),
    "stages": (
        {"gravity": [0, -1, 0], "origin": [1, 0, 0], "semantic_asset": "a.ply", "nav_asset": "a.navmesh",
         "semantic_up": [0, 0, 1], "collision_asset_size": [2, 2, 2], "margin": .1},
        {"origin": [0, 0, 0], "units_to_meters": 1.0}),
    "articulated objects": (
        {"base_type": "free", "inertia_source": "urdf", "link_order": "urdf_order", "render_mode": "skin",
         "render_asset": "a.glb", "semantic_id": 1, "shader_type": "pbr"},
        {"base_type": "fixed", "render_mode": "default"}),
    "scenes": ({"default_lighting": "bright", "navmesh_instance": "a", "semantic_scene_instance": "b"}, {}),
    "objects in scenes": ({"shader_type": "flat"}, {"mass_scale": 2, "motion_type": "STATIC"}),
    "articulated objects in scenes": (
        {"fixed_base": False, "initial_joint_pose": {"slide": .2}, "non_uniform_scale": [1, 2, 1],
         "is_instance_visible": False},
        {"fixed_base": True, "initial_joint_pose": [0.0], "auto_clamp_joint_limits": True,
         "is_instance_visible": True})}
_FILES = {
    "objects": "configs/objects/table.object_config.json", "stages": "configs/stages/room.stage_config.json",
    "articulated objects": "urdf/counter/counter.ao_config.json", "scenes": "configs/scenes/flat.scene_instance.json"}


@pytest.mark.parametrize("kind", UNUSED)
def test_every_key_that_is_not_used_is_said(folder, kind, capsys):
    keys, same = UNUSED[kind]
    path = folder / _FILES.get(kind, _FILES["scenes"])
    before = set(DataSet(folder / CONFIG).unused("flat"))

    def put(values):
        content = json.loads(path.read_text())
        if kind in _FILES:
            write(path, content | values)
        else:
            entries = "articulated_object_instances" if kind.startswith("art") else "object_instances"
            write(path, content | {entries: [entry | values for entry in content[entries]]})

    put(same)
    assert set(DataSet(folder / CONFIG).unused("flat")) == before
    put(keys)
    assert set(DataSet(folder / CONFIG).unused("flat")) - before == {f"{key} of {kind}" for key in keys}
    assert main(["scenes", "check", f"dataset={folder / CONFIG}"]) == 0
    (shown,) = (line for line in capsys.readouterr().out.splitlines() if "not used" in line)
    assert {f"{key} of {kind} (1)" for key in keys} <= set(shown.partition(": ")[2].split(", "))


def test_configurations_inside_a_data_sets_file_are_said(folder):
    section(folder, "objects", configs=[{"original_file": "table", "attributes": {"scale": [2, 2, 2]}}])
    assert "configs of objects" in DataSet(folder / CONFIG).unused("flat")


def test_sections_and_keys_of_a_data_set_that_nobody_reads_are_said(folder):
    before = set(DataSet(folder / CONFIG).unused("flat"))
    section(folder, "objects", path=["more"])
    section(folder, "scene_instances", default_attributes={"default_lighting": "bright"})
    change(folder / CONFIG, object={"paths": {}}, light_setups={"paths": {}})
    assert set(DataSet(folder / CONFIG).unused("flat")) - before == {
        "path of objects", "object of the data set", "default_lighting of scenes"}


@pytest.mark.parametrize("file, key, values, said", [
    ("objects/table.object_config", "receptacle_mesh_top", {"mesh_filepath": "top.glb"},
     "of objects that are no boxes (receptacle_aabb_...)"),
    ("objects/table.object_config", "receptacle_aabb_low", {"position": None, "scale": [1, 1, 1]},
     "of objects without position or scale"),
    ("objects/table.object_config", "receptacle_aabb_low", {"position": [0, 0, 0]},
     "of objects without position or scale"),
    ("stages/room.stage_config", "receptacle_aabb_sill", {"scale": [1, 1, 1]}, "of stages without position or scale"),
    ("stages/room.stage_config", "receptacle_aabb_sill",
     {"position": [0, 0, 0], "scale": [1, 1, 1], "rotation": [1, 0, 0, 0]}, None),
    ("objects/table.object_config", "receptacle_aabb_low",
     {"position": [0, 0, 0], "scale": [1, 1, 1], "rotation": [0, 1, 0, 0]}, "rotation of receptacles of objects"),
    ("counter", "receptacle_aabb_in", {"position": [0, 0, 0], "scale": [1, 1, 1]}, "whose parent_link is no link"),
    ("counter", "receptacle_aabb_in", {"position": [0, 0, 0], "scale": [1, 1, 1], "parent_link": "drawer9"},
     "whose parent_link is no link"),
    ("counter", "receptacle_aabb_in", {"position": [0, 0, 0], "scale": [1, 1, 1], "parent_link": "drawer1"}, None)])
def test_receptacles_that_are_not_used_are_said(folder, file, key, values, said):
    path = folder / ("urdf/counter/counter.ao_config.json" if file == "counter" else f"configs/{file}.json")
    content = json.loads(path.read_text())
    write(path, content | {"user_defined": {}})
    before = set(DataSet(folder / CONFIG).unused("flat"))
    write(path, content | {"user_defined": {key: values}})
    found = set(DataSet(folder / CONFIG).unused("flat")) - before
    assert not found if said is None else len(found) == 1 and said in found.pop()
    declared = collect(DataSet(folder / CONFIG).read("flat")[0]).receptacles
    assert any(f"receptacle_aabb_{place.name}" == key for place in declared) == (said is None or "rotation" in said)


# ---------------------------------------------------------------------- bad ones


BAD = {  # of an object: its configuration, its entry in the scene, and what is said
    "a scale of 0": ({"scale": [1, 0, 1]}, {}, "scale should not be 0"),
    "a scale of one number": ({"scale": 2}, {}, "scale should be 3 finite numbers"),
    "a huge scale": ({"scale": [1, 1e9, 1]}, {}, "at most 1e+06"),
    "400 digits": ({"scale": [10**400, 1, 1]}, {}, "scale should be"),
    "300 digits": ({"scale": [10**299, 1, 1]}, {}, "scale should be"),
    "nan": ({"COM": [math.nan, 0, 0]}, {}, "COM should be"),
    "true for a number": ({"mass": True}, {}, "mass should be"),
    "a word for true": ({"is_collidable": "false"}, {}, "true or false"),
    "up without length": ({"up": [0, 0, 0]}, {}, "should be directions"),
    "an unknown shape": ({"collision_asset": "cubeSquare"}, {}, "as cubeSolid"),
    "a number for a file": ({"render_asset": 3}, {}, "name of a file"),
    "another format": ({"render_asset": "a.obj"}, {}, "a.obj"),
    "a translation of 400 digits": ({}, {"translation": [10**400, 0, 0]}, "translation should be"),
    "a far translation": ({}, {"translation": [1e300, 0, 0]}, "translation should be"),
    "a turn of nothing": ({}, {"rotation": [0, 0, 0, 0]}, "rotation should not be"),
    "no uniform scale": ({}, {"uniform_scale": 0}, "uniform_scale should not be 0"),
    "a list for a scale": ({}, {"uniform_scale": [1]}, "uniform_scale should be"),
    "a flat scale": ({}, {"non_uniform_scale": [1, 0, 1]}, "non_uniform_scale should not be"),
    "another origin": ({}, {"translation_origin": "corner"}, "COM or asset_local"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_value_is_a_sentence(name, folder):
    config, entry, words = BAD[name]
    with pytest.raises(UserError) as refused:
        placed(folder, CUBE | config, **entry)
    said = str(refused.value)
    assert words in said and "\n" not in said and len(said) < 400
    assert ".object_config.json" in said or ".scene_instance.json" in said


def test_a_file_of_a_scene_that_is_no_regular_file_is_a_sentence(folder, capsys):
    for name in ("objects/rug.glb", "configs/objects/table.object_config.json", "urdf/counter/counter.urdf",
                 "urdf/counter/front.glb"):
        (folder / name).unlink()
        os.mkfifo(folder / name)
    assert main(["scenes", "check", f"dataset={folder / CONFIG}"]) == 2
    shown = capsys.readouterr().out
    assert shown.count("no regular file") == 3  # the document's meshes are not asked for
    scene = folder / "configs" / "scenes" / "flat.scene_instance.json"
    for raw in (b"\xff\xfe{}", b"[" * 200_000, b"[]"):
        scene.write_bytes(raw)
        assert main(["scenes", "check", f"dataset={folder / CONFIG}"]) == 2
        assert str(scene) in capsys.readouterr().out


@pytest.mark.parametrize("name, old, new, key", [
    ("configs/objects/table.object_config.json", '"join_collision_meshes"',
     '"scale": [2, 2, 2], "scale": [3, 3, 3], "join_collision_meshes"', "scale"),
    ("configs/scenes/flat.scene_instance.json", '"template_name": "rug"', 
     '"template_name": "rug", "template_name": "table"', "template_name"),
    (CONFIG, '"objects": {', '"objects": {}, "objects": {', "objects")])
def test_a_key_that_stands_twice_is_refused(folder, name, old, new, key):
    """Habitat-Sim takes the first value of the two, other readers the last."""
    path = folder / name
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(UserError, match=f"{path.name}.*an object names '{key}' twice"):
        found, problems = DataSet(folder / CONFIG).read("flat")
        raise UserError(problems[0])


def test_a_data_set_whose_defaults_are_no_object_is_a_sentence(folder):
    with pytest.raises(UserError, match="default_attributes of objects"):
        placed(folder, CUBE, [1])
    write_box_room(folder / "stages" / "room.glb")
    with pytest.raises(UserError, match="scale should be 3 finite numbers"):
        placed(folder, CUBE, {"scale": "large"})

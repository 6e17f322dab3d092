"""Readers of scene data sets, on one of ReplicaCAD's form that is made here: what they give is what was written, and
each way in which a file can be bad is one sentence that names it.
"""

from __future__ import annotations

import json
import math
import shutil

import numpy as np
import pytest

from planner.scenarios import scenarios
from rearrange.command_line.cli import main
from rearrange.home.episodes.generator import KINDS
from rearrange.home.errors import UserError
from rearrange.home.scene_files.data_set import DataSet
from rearrange.home.scene_files.glb import read_glb
from rearrange.home.scene_files.urdf import read_urdf, tree_order
from rearrange.home.scene_files.urdf_elements import HINGE, SLIDE
from rearrange.home.simulation.scenes.scene import load_scene
from rearrange.home.simulation.scenes.scene_selection import generated_episode, refused
from tests.rearrange.scene_data import (
    CONFIG,
    COUNTER,
    box,
    declare_in_cupboard,
    make_data_set,
    make_furnished_room,
    write_glb,
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    make_data_set(folder)
    return folder


@pytest.fixture
def folder(whole, tmp_path):
    """A copy to be damaged."""
    return shutil.copytree(whole, tmp_path / "data")


def test_a_scene_is_read(whole):
    data = DataSet(whole / CONFIG)
    assert data.scenes == ["flat"]
    scene, problems = data.read("flat")
    assert problems == []
    assert [(placed.template.name, placed.moves) for placed in scene.objects] == [("rug", False), ("table", True)]
    rug, table = (placed.template for placed in scene.objects)
    assert rug.solid == () and len(table.solid) == 2 and list(table.receptacles) == ["receptacle_aabb_top"]
    assert sum(len(piece.triangles) for piece in scene.stage.template.seen) == 5 * 12
    assert [body.handle for body in scene.articulated] == ["counter_:0000", "fridge_:0000"]
    assert [list(body.receptacles) for body in scene.articulated] == [["receptacle_aabb_drawer"], []]
    counter, fridge = (body.urdf for body in scene.articulated)
    assert [joint.kind for joint in counter.joints] == ["fixed", SLIDE]
    assert [joint.kind for joint in fridge.joints] == [HINGE, HINGE]


def test_templates_of_one_name_are_told_apart_by_their_folders(folder):
    file = folder / "configs" / "scenes" / "flat.scene_instance.json"
    content = json.loads(file.read_text())
    other = folder / "urdf" / "other"
    shutil.copytree(folder / "urdf" / "counter", other)
    (other / "counter.urdf").write_text(COUNTER.replace('upper="0.5"', 'upper="0.4"'))
    for name, reach_m in (("urdf/counter/counter", 0.5), ("other/counter", 0.4), ("urdf/other/counter", 0.4)):
        content["articulated_object_instances"][0]["template_name"] = name
        file.write_text(json.dumps(content))
        scene, problems = DataSet(folder / CONFIG).read("flat")
        assert problems == [] and scene.articulated[0].urdf.joints[1].range == (0.0, reach_m)


def test_links_are_numbered_depth_first_by_the_names_of_their_joints():
    """As Habitat does, and so do HAB's episodes."""
    joints = [("root", "fix", "body"), ("body", "b", "door"), ("body", "a", "drawer"), ("door", "z", "bin"),
              ("drawer", "y", "box")]
    assert tree_order("root", joints) == ["root", "body", "drawer", "box", "door", "bin"]


def test_a_chain_of_thousands_of_links_is_read(tmp_path):
    links = "".join(f"<link name='l{i}'/>" for i in range(3001))
    joints = "".join(f"<joint name='j{i}' type='fixed'><parent link='l{i}'/><child link='l{i + 1}'/></joint>"
                     for i in range(3000))
    (tmp_path / "chain.urdf").write_text(f"<robot name='chain'>{links}{joints}</robot>")
    assert read_urdf(tmp_path / "chain.urdf").numbers()["l3000"] == 2999


def test_a_urdf_is_what_it_says(whole):
    robot = read_urdf(whole / "urdf" / "counter" / "counter.urdf")
    drawer, slide = robot.links["drawer1"], robot.joints[1]
    assert (robot.root, slide.parent, slide.child, slide.range) == ("root", "body", "drawer1", (0.0, 0.5))
    assert (slide.damping, slide.friction, drawer.mass_kg) == (0.5, 0.1, 5.0)
    assert slide.frame[:3, 3].tolist() == [0.0, 0.2, 0.0] and drawer.visuals[0].frame[:3, 3].tolist() == [0.3, 0.0, 0.0]
    assert robot.links["body"].collisions[0].size == (0.6, 0.8, 1.0)
    top = read_urdf(whole / "urdf" / "fridge" / "fridge.urdf").joints[1]
    assert np.linalg.norm(top.axis) == pytest.approx(1.0)


def test_angles_of_a_urdf_turn_about_fixed_axes_x_first(tmp_path):
    path = tmp_path / "turned.urdf"
    path.write_text(COUNTER.replace('rpy="0 0 0"', f'rpy="{math.pi / 2} 0 {math.pi / 2}"'))
    write_glb(tmp_path / "front.glb", [box((0, 0, 0), (1, 1, 1))])
    turn = read_urdf(path).joints[1].frame[:3, :3]
    assert np.allclose(turn @ (0, 1, 0), (0, 0, 1)) and np.allclose(turn @ (1, 0, 0), (0, 1, 0))


def test_a_mesh_is_where_its_nodes_put_it_and_faces_outwards(tmp_path):
    nodes = [{"translation": [1, 0, 0], "children": [1]},
             {"mesh": 0, "rotation": [0, math.sqrt(0.5), 0, math.sqrt(0.5)], "scale": [2, 1, -1]}]
    write_glb(tmp_path / "box.glb", [box((0, 0, 0), (1, 2, 3))], nodes, {"scenes": [{"nodes": [0]}]})
    (piece,) = read_glb(tmp_path / "box.glb", tmp_path / "it")
    # Scaled to x 0..2, z -3..0; a quarter turn about y takes x to -z and z to x.
    assert np.allclose(piece.vertices.min(axis=0), (-2, 0, -2)) and np.allclose(piece.vertices.max(axis=0), (1, 2, 0))
    a, b, c = (piece.vertices[piece.triangles[:, k]] for k in range(3))
    assert np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6 == pytest.approx(2 * 2 * 3)


def test_check_prints_figures_and_list_the_names(whole, capsys):
    assert main(["scenes", "list", f"dataset={whole / CONFIG}"]) == 0
    assert capsys.readouterr().out == "flat\n"
    assert main(["scenes", "check", f"dataset={whole / CONFIG}"]) == 0
    head, row, said, *skills = capsys.readouterr().out.splitlines()
    assert dict(zip(head.split(), row.split())) == {
        "scene": "flat", "objects": "2", "movable": "1", "articulated": "2", "slides": "1", "hinges": "2",
        "receptacles": "2", "triangles": "96", "collision": "2"}
    assert said == "1 of 1 scenes have all their files"
    assert skills[0] == "" and skills[1].split() == ["scene", *KINDS, *scenarios()] and skills[2].split()[0] == "flat"


def test_check_says_for_each_skill_what_a_scene_lacks_in_the_words_of_the_refusal(tmp_path, capsys):
    room = make_furnished_room(tmp_path)
    assert main(["scenes", "check", f"dataset={room}"]) == 0
    lines = capsys.readouterr().out.splitlines()
    first = next(k for k, line in enumerate(lines) if "open_cabinet" in line)
    said = {row.split()[0]: dict(zip(lines[first].split()[1:], row.split()[1:])) for row in lines[first + 1:first + 5]}
    for scene, answers in said.items():
        for skill, answer in answers.items():
            if skill not in KINDS:  # a scenario
                continue
            try:
                generated_episode(room, skill, "val", scene, 1, 0)
                assert answer == "yes", (scene, skill)
            except UserError as error:
                why = str(error).removeprefix(f"scene small/{scene} ").partition(": choose")[0]
                (line,) = (line for line in lines
                           if why in line and scene in line and (skill in line or "skill at all" in line))
                assert answer == "no" and line.startswith("  no "), (scene, skill)
    assert {said["bare_table"]["pick"], said["bare_table"]["open_cabinet"], said["nothing"]["pick"]} == {"yes", "no"}
    shared = [line for line in lines if line.startswith("  no open_fridge, close_fridge:")]
    assert len(shared) == 1 and all(scene in shared[0] for scene in ("bare_table", "flat", "furnished"))


def test_a_drawer_with_a_receptacle_is_one_for_the_cabinet_skills(tmp_path):
    room = make_furnished_room(tmp_path)
    declare_in_cupboard(tmp_path)
    assert set(refused(load_scene(room, "furnished").home)) == {"open_fridge", "close_fridge"}
    urdf = tmp_path / "urdf" / "cupboard" / "cupboard.urdf"
    urdf.write_text(urdf.read_text().replace('upper="0.5"', 'upper="0.3"'))
    load_scene.cache_clear(), read_urdf.cache_clear()
    why = refused(load_scene(room, "furnished").home)["open_cabinet"]
    assert "has 1 drawer, which opens 0.3 m, below the 0.45 m that skills need" in why


def test_a_scene_in_which_nothing_can_stand_is_a_problem(tmp_path, capsys):
    room = make_furnished_room(tmp_path)
    write_glb(tmp_path / "stages" / "room.glb", [box((-300, -0.1, -300), (300, 0, 300))])
    assert main(["scenes", "check", f"dataset={room}"]) == 2
    shown = capsys.readouterr()
    assert "4 of 4 scenes have all their files" in shown.out
    assert "the floor of scene furnished is 600 by 600 m" in shown.out


def test_all_that_is_missing_is_named_at_once(folder, capsys):
    for name in ("objects/convex/table.glb", "stages/room.glb", "urdf/counter/front.glb"):
        (folder / name).unlink()
    assert main(["scenes", "check", f"dataset={folder / CONFIG}"]) == 2
    shown = capsys.readouterr()
    for name in ("convex/table.glb", "room.glb", "front.glb"):
        assert len([line for line in shown.out.splitlines() if name in line and "No such file" in line]) == 1
    assert "0 of 1 scenes" in shown.out and "3 problems" in shown.err


@pytest.mark.parametrize("raw, words", [(None, "damaged"), (b"solid", "damaged GLB")])
def test_a_bad_mesh_is_a_sentence(raw, words, folder):
    """It is cut off, or of another format; tests/rearrange/test_glb.py has those that are whole."""
    path = folder / "objects" / "table.glb"
    path.write_bytes(path.read_bytes()[:-50] if raw is None else raw)
    _, problems = DataSet(folder / CONFIG).read("flat")
    assert len(problems) == 1 and words in problems[0] and "objects/table.glb" in problems[0]


URDFS = {  # what is replaced, by what, and what is said
    "a circle": ('parent link="root"', 'parent link="drawer1"', "a circle through link 'body'"),
    "no link": ('<link name="root"/>', "", "has the parent 'root', which is no link"),
    "two parents": ('child link="body"', 'child link="drawer1"', "child of two joints"),
    "two roots": ('<link name="root"/>', '<link name="root"/><link name="other"/>',
                  "'root' and 'other' both hang on no joint"),
    "not a number": ('upper="0.5"', 'upper="nan"', "finite number"),
    "empty range": ('upper="0.5"', 'upper="-0.5"', "which is less"),
    "no axis": ('axis xyz="1 0 0"', 'axis xyz="0 0 0"', "without length"),
    "no XML": ("</robot>", "", "not a URDF document"),
    "a mesh that no file can be called": ("front.glb", "x" * 300 + ".glb", "which no file can be called"),
    "a mesh of such a package": ("front.glb", "package://" + "x" * 300 + "/front.glb", "which no file can be called"),
    "a mesh of a folder that is none": ("front.glb", "package://counter.urdf/front.glb", "cannot be read"),
}


@pytest.mark.parametrize("name", URDFS)
def test_a_bad_urdf_is_a_sentence(name, folder):
    old, new, words = URDFS[name]
    assert old in COUNTER
    (folder / "urdf" / "counter" / "counter.urdf").write_text(COUNTER.replace(old, new, 1))
    _, problems = DataSet(folder / CONFIG).read("flat")
    assert len(problems) == 1 and words in problems[0] and "counter.urdf" in problems[0]


def test_a_bad_scene_is_a_sentence(folder, capsys):
    path = folder / "configs" / "scenes" / "flat.scene_instance.json"
    content = json.loads(path.read_text())
    for change, words in (({"template_name": "lamp"}, "needs the object 'lamp'"),
                          ({"translation": [0, math.nan, 0]}, "3 finite numbers"),
                          ({"template_name": None}, "no template_name")):
        path.write_text(json.dumps(content | {"object_instances": [content["object_instances"][0] | change]}))
        _, problems = DataSet(folder / CONFIG).read("flat")
        assert len(problems) == 1 and words in problems[0]
    path.write_text(json.dumps(content | {"object_instances": [], "articulated_object_instances": []}))
    assert main(["scenes", "check", f"dataset={folder / CONFIG}"]) == 0
    said = "no skill at all: the scene declares no receptacle, and none is found from its shape (flat)"
    assert said in capsys.readouterr().out
    path.write_text("{")
    assert main(["scenes", "check", f"dataset={folder / CONFIG}"]) == 2
    assert "flat.scene_instance.json is damaged" in capsys.readouterr().out


@pytest.mark.parametrize("pattern, said", [
    ("/".join(["**"] * 30) + "/*.object_config.json", None),  # once for each folder, not for each way to it
    ("/".join(["*"] * 30), "its paths lead through more than 500,000 files and folders"),
    ("a/b/c/a/configs/../configs/[op]*", None), ("**/b/configs/obj?cts", None), ("nowhere/*", None)])
def test_paths_of_a_data_set_are_gone_through_once(folder, pattern, said):
    (folder / "/".join("x" * 14)).mkdir(parents=True)
    for name in "abc":
        (folder / name).symlink_to(".")
    content = json.loads((folder / CONFIG).read_text())
    content["objects"]["paths"][".more"] = [pattern]
    (folder / CONFIG).write_text(json.dumps(content))
    if said is None:
        assert DataSet(folder / CONFIG).read("flat")[1] == []
        return
    with pytest.raises(UserError, match=said) as refused:
        DataSet(folder / CONFIG)
    assert "among the paths of objects" in str(refused.value)


def test_a_scene_of_more_entries_than_a_home_has_is_a_sentence(folder):
    path = folder / "configs" / "scenes" / "flat.scene_instance.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"object_instances": content["object_instances"] * 10_001}))
    assert main(["scenes", "check", f"dataset={folder / CONFIG}"]) == 2
    with pytest.raises(UserError, match="object_instances has 20,002 entries, more than 20,000"):
        DataSet(folder / CONFIG).read("flat")


def test_a_bad_data_set_is_a_sentence(folder):
    with pytest.raises(UserError, match="should be a file"):
        DataSet(folder / "other.json")
    (folder / CONFIG).write_text("[]")
    with pytest.raises(UserError, match="should hold a JSON object"):
        DataSet(folder / CONFIG)
    (folder / CONFIG).write_text("{}")
    assert main(["scenes", "list", f"dataset={folder / CONFIG}"]) == 2
    assert main(["scenes", "check"]) == 2

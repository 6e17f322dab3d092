"""`rearrange scenes export`: what it writes fits together, is the same every time, and is complete or absent."""

import gzip
import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest

from planner.scenarios import load_scenario
from rearrange.command_line.cli import main
from rearrange.env.scenario_episodes import target_label
from rearrange.habitat.export import data_set as export
from rearrange.habitat.export.episode_files import HANDLE
from rearrange.habitat.export.home_files import BODIES, root_pose, scene_name
from rearrange.habitat.export.links import Shape
from rearrange.habitat.export.meshes import sides, triangles
from rearrange.home.apartments.episodes import read_episodes
from rearrange.home.apartments.kept_layouts import scene_layout
from rearrange.home.apartments.objects import OBJECTS
from rearrange.home.axis_conventions import AXES, pose_to_matrix, to_y_up
from rearrange.home.episodes.generator import generate_episode
from rearrange.home.errors import UserError
from rearrange.home.geometry import from_frame
from rearrange.home.pictures.raster import DepthCamera
from rearrange.home.robot.fetch import ARM, TORSO_START_M
from rearrange.home.simulation.mujoco.build_model import compile_home
from rearrange.home.simulation.mujoco.simulator import MujocoSimulator
from tests.rearrange.export.exported_world import depth, world
from tests.rearrange.export.urdf_reader import Urdf

trimesh = pytest.importorskip("trimesh", reason="exporting scenes needs trimesh")

WORDS = ["scenes", "export", "format=habitat", "split=val", "count=1", "episodes=2",
         "episodes_of=[pick,close_cabinet,set_table]"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The command, as it is typed."""
    out = tmp_path_factory.mktemp("scenes") / "homes"
    assert main([*WORDS, f"out={out}"]) == 0
    return out


@pytest.fixture(scope="module")
def layout():
    return scene_layout("val/0")


def load(path):
    return json.loads(path.read_text())


def entries(folder, kind):
    return json.loads(gzip.decompress((folder / "episodes" / "val" / f"{kind}.json.gz").read_bytes()))["episodes"]


def test_the_same_arguments_give_the_same_bytes(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert main([*WORDS, "out=homes"]) == 0
    again = {path.relative_to("homes"): path.read_bytes() for path in Path("homes").rglob("*") if path.is_file()}
    same = [name for name in first if name.parts[0] not in ("episodes", "navmeshes")]  # episodes name the folder
    assert set(first) == set(again) and all(first[name] == again[name] for name in same)
    assert [path.name for path in tmp_path.iterdir()] == ["homes"], "nothing is left beside it"


def test_everything_that_is_named_is_there(folder):
    data_set = load(folder / export.DATA_SET)
    for group in ("stages", "objects", "scene_instances"):
        assert (folder / data_set[group]["paths"][".json"][0]).is_dir()
    scene = load(folder / "scenes" / "val_0000.scene_instance.json")
    assert (folder / f"{scene['stage_instance']['template_name']}.stage_config.json").exists()
    assert len(scene["articulated_object_instances"]) == len(BODIES)
    for instance in scene["articulated_object_instances"]:
        assert (folder / f"{instance['template_name']}.ao_config.json").exists()
    for path in (path for what in ("ao", "object", "stage") for path in folder.rglob(f"*.{what}_config.json")):
        config = load(path)
        for key in ("urdf_filepath", "render_asset", "collision_asset"):
            primitive = "Solid" in config.get(key, "")
            assert key not in config or primitive or (path.parent / config[key]).exists(), (path, key)
        if "margin" in config:
            assert config["margin"] == 0.001
        if "up" in config:
            assert config["up"] == [0, 1, 0] and config["front"] == [0, 0, -1]
    for path in folder.rglob("*.urdf"):
        assert all((path.parent / mesh.get("filename")).exists() for mesh in Urdf(path).robot.iter("mesh"))


def test_the_stage_spans_the_home(folder, layout):
    seen = trimesh.load(folder / "stages" / "val_0000.glb", force="mesh").bounds
    x, y = layout.size_m
    assert seen[0] == pytest.approx([-0.1, 0, -y - 0.1], abs=1e-3)
    assert seen[1][0::2] == pytest.approx([x + 0.1, 0.1], abs=1e-3)
    solid = trimesh.load(folder / "stages" / "val_0000.collision.glb", force="mesh").bounds
    assert solid[0][1] == pytest.approx(-0.1) and solid[1][1] == pytest.approx(max(part.top_m for part in layout.parts))


def test_objects_are_as_large_and_heavy_as_ours(folder):
    for name, model in OBJECTS.items():
        config = load(folder / "objects" / f"{name}.object_config.json")
        bounds = trimesh.load(folder / "objects" / f"{name}.glb", force="mesh").bounds
        assert config["mass"] == model.mass_kg and config["COM"] == [0, 0, 0]
        assert bounds[1] == pytest.approx(-bounds[0]) and bounds[1][1] == pytest.approx(model.half_height_m, rel=1e-3)
        assert config["friction_coefficient"] == 0.7 and min(config["inertia"]) > 0
        assert bounds[1] == pytest.approx(config["collision_asset_size"], rel=0.005)


def test_receptacles_are_on_the_surfaces(folder, layout):
    found = load(folder / "stages" / "val_0000.stage_config.json")["user_defined"]
    found |= {key: value | {"in": "drawer"} for key, value in
              load(folder / "articulated" / "val_0000" / "kitchen_counter.ao_config.json")["user_defined"].items()}
    assert set(found) == {f"receptacle_aabb_{r.name}" for r in layout.receptacles}
    counter = Urdf(folder / "articulated" / "val_0000" / "kitchen_counter.urdf")
    for receptacle in layout.receptacles:
        entry = found[f"receptacle_aabb_{receptacle.name}"]
        surface = entry["position"][1] - entry["scale"][1]
        if receptacle.parent is not None:  # Habitat counts from the centre of mass
            surface += counter.center_of_mass(receptacle.parent)[1]
        assert surface == pytest.approx(receptacle.center_m[2]), receptacle.name
        assert entry["scale"][0::2] == pytest.approx(receptacle.half_extents_m)
        assert ("parent_link" in entry) == ("in" in entry) == (receptacle.parent is not None)
        if receptacle.parent is None:  # the corner of the box, turned, is the corner of the surface
            w, _, turn, _ = entry["rotation"]
            rotation = np.array(pose_to_matrix((0, 0, 0, w, 0, 0, turn)))[:3, :3]
            corner = rotation @ to_y_up((*receptacle.half_extents_m, 0))
            x, y = from_frame(*receptacle.half_extents_m, (*receptacle.center_m[:2], receptacle.yaw_rad))
            assert (corner + entry["position"])[0::2] == pytest.approx([x, -y], abs=1e-6)


@pytest.mark.parametrize("kind", ["pick", "close_cabinet", "set_table"])
def test_episodes_come_back_as_they_were(folder, kind):
    read = read_episodes(folder / "episodes" / "val" / f"{kind}.json.gz")
    assert len(read) == 2
    for index, episode in enumerate(read):
        if kind != "set_table":
            ours = generate_episode(kind, "val", index, 1)
            assert np.allclose(episode.start_poses, ours.start_poses)
            assert {**vars(episode), "start_poses": 0, "targets": 0} == {**vars(ours), "start_poses": 0, "targets": 0}
        assert episode.scene == "val/0" and episode.robot_start is None or kind == "set_table"


def test_episodes_are_what_habitat_lab_reads(folder, layout):
    for kind in ("pick", "close_cabinet", "set_table"):
        for entry in entries(folder, kind):
            assert entry["scene_id"] == f"{scene_name('val/0')}.scene_instance.json"
            assert entry["scene_dataset_config"] == str(folder / export.DATA_SET)
            assert all((folder / "objects" / name).exists() for name, _ in entry["rigid_objs"])
            assert set(entry["targets"]) <= set(entry["info"]["object_labels"])
            names = [marker["name"] for marker in entry["markers"]]
            assert {"fridge_push_point", "cab_push_point_5", "fridge_door", "drawer_0"} <= set(names)
            assert len(names) == len(set(names))
            for handle, states in entry["ao_states"].items():
                assert handle in HANDLE.values()
                assert all(link.isdigit() for link in states), "habitat-lab takes int() of them"
            for receptacle, link in entry["target_receptacles"] + entry["goal_receptacles"]:
                assert isinstance(link, int) == (receptacle in HANDLE.values())


def test_markers_are_at_the_handles(folder, layout):
    """With the drawer where the episode says; Habitat's frame of a link is at its centre of mass."""
    model = compile_home(layout, ())
    for entry in entries(folder, "close_cabinet"):
        joint, opening = next(iter(entry["info"]["rearrange"]["ao_states"]["kitchen_counter_:0000"].items()))
        data = mujoco.MjData(model)
        data.joint(joint).qpos[0] = opening
        mujoco.mj_forward(model, data)
        x, y, yaw = root_pose(layout, "drawer")
        root = np.array(pose_to_matrix((x, y, 0.0, np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2))))
        urdf = Urdf(folder / "articulated" / "val_0000" / "kitchen_counter.urdf")
        assert entry["ao_states"] == {"kitchen_counter_:0000": {str(urdf.numbers()[joint]): opening}}
        marker = next(m["params"] for m in entry["markers"] if m["name"] == "cab_push_point_5")
        assert marker["link"] == joint, "the drawer that the episode is about"
        point = urdf.center_of_mass(joint) + marker["offset"]
        there = (root @ urdf.place({joint: opening})[joint] @ [*point, 1.0])[:3]
        assert there == pytest.approx(AXES @ data.site(f"{joint}_handle").xpos, abs=1e-5)


@pytest.mark.parametrize("kind, size, volume", [
    ("box", (0.1, 0.2, 0.3), 8 * 0.006), ("cylinder", (0.1, 0.2), np.pi * 0.01 * 0.4),
    ("sphere", (0.04,), 4 / 3 * np.pi * 6.4e-5),
    ("capsule", (0.05, 0.1), np.pi * 0.0025 * 0.2 + 4 / 3 * np.pi * 1.25e-4)])
def test_meshes_are_closed_and_as_large_as_their_shapes(kind, size, volume):
    turn = AXES  # any rotation
    shape = Shape("", kind, size, np.array((1.0, 2.0, 3.0)), turn, (1, 0, 0), True, True)
    made = triangles(shape)
    mesh = trimesh.Trimesh(made["points"], made["faces"])
    assert mesh.is_watertight and mesh.volume == pytest.approx(volume, rel=0.01)
    assert mesh.bounds.mean(axis=0) == pytest.approx((1, 2, 3), abs=1e-6)
    corners = made["points"][made["faces"]]
    faces = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    assert (np.einsum("fi,fi->f", faces, made["normals"][made["faces"][:, 0]]) > 0).all(), "normals point out"
    assert sides(0.3) == 64 and sides(0.012) % 4 == 0


def test_the_expert_and_the_embedded_home_run_an_exported_file(folder, tmp_path, monkeypatch):
    from skills import make_env

    env = make_env("pick", split="val", episodes=str(folder / "episodes" / "val" / "pick.json.gz"), depth_size=0)
    env.reset(seed=0)
    assert env.unwrapped.sim.episode.scene == "val/0"


@pytest.mark.parametrize("kind, index", [("pick", 0), ("close_cabinet", 1), ("set_table", 0)])
def test_the_files_put_together_look_like_our_home(folder, kind, index):
    """The depth image, robot in it, within 2 cm on 99 % of the pixels; where Habitat is, that is compared with
    Habitat.
    """
    episode, entry = read_episodes(folder / "episodes" / "val" / f"{kind}.json.gz")[index], entries(folder, kind)[index]
    sim, size, far_m = MujocoSimulator(), 32, 10.0
    sim.reset(episode)
    camera, image, off = DepthCamera(sim.model, size, far_m=far_m), np.empty((size, size), np.float32), []
    joints = dict(zip((f"{name}_joint" for name in ARM.names), ARM.start)) | {"torso_lift_joint": TORSO_START_M}
    x, y, yaw = sim.home.layout.counter_pose
    for ahead, turn in ((1.4, np.pi), (1.8, 2.4)):  # before the counter, where drawers and fridge are seen
        pose = (*from_frame(ahead, 0.0, (x, y, yaw)), yaw + turn)
        sim.place_robot(*pose)
        seen = depth(world(folder, entry, pose, joints), pose, size, far_m)
        off.append(np.abs(seen - camera.render(sim.data, image) * far_m))
    assert np.median(off) < 1e-3 and (np.array(off) < 0.02).mean() > 0.99


MISTAKES = {
    "scenes export": "where to?",
    "scenes exprt out=x": "Did you mean export?",
    "scenes export out=x format=gazebo": "habitat",
    "scenes export out=x count=0": "from 1 to 9999",
    "scenes export out=x split=vall": "Did you mean val?",
    "scenes export out=x episodes_of=[pik]": "there are episodes of pick",
    "scenes export out=full": "not an empty folder",
    "scenes export out=full/..": "not an empty folder",
    "scenes export out=file": "not an empty folder",
    "scenes export out=file/below count=1 episodes_of=[]": "cannot write there",
}


@pytest.mark.parametrize("line", MISTAKES)
def test_mistakes_are_one_sentence_and_write_nothing(line, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    (tmp_path / "file").write_text("mine")
    before = sorted(path.name for path in tmp_path.rglob("*"))
    assert main(line.split()) == 2
    error = capsys.readouterr().err
    assert MISTAKES[line] in error and len(error.strip().splitlines()) == 1
    assert sorted(path.name for path in tmp_path.rglob("*")) == before


def test_without_trimesh_one_sentence_says_how_to_get_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "trimesh", None)
    assert main(["scenes", "export", f"out={tmp_path / 'homes'}"]) == 2
    assert "pip install" in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_a_failure_on_the_way_leaves_nothing(tmp_path, monkeypatch):
    def fail(*_):
        raise UserError("no")

    monkeypatch.setattr(export, "write_objects", fail)
    config = {"action": "export", "format": "habitat", "split": "val", "furniture": "standard", "count": 1,
              "out": str(tmp_path / "homes"), "episodes_of": [], "episodes": None}
    with pytest.raises(UserError):
        export.export(config, export.FromAbove("0", None))
    assert not list(tmp_path.iterdir())


def test_an_empty_folder_is_filled_but_not_the_one_we_are_in(tmp_path, monkeypatch, capsys):
    (tmp_path / "homes").mkdir()
    monkeypatch.chdir(tmp_path / "homes")
    assert main(["scenes", "export", "out=.", "count=1", "episodes_of=[]"]) == 2
    assert "the folder you are in" in capsys.readouterr().err
    assert main(["scenes", "export", "out=../homes/", "count=1", "episodes_of=[]"]) == 2
    monkeypatch.chdir(tmp_path)
    assert main(["scenes", "export", "out=homes", "count=1", "episodes_of=[]"]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["homes"] and (tmp_path / "homes" / export.DATA_SET).exists()


def test_a_habitat_that_cannot_compute_navmeshes_does_not_stop_the_export(tmp_path, monkeypatch, capsys):
    """Such as one whose library does not load: its last words are told, and no part of a navmesh is left."""
    (tmp_path / "habitat_sim.py").write_text("raise ImportError('libEGL.so.1: cannot open')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    monkeypatch.setattr(export, "find_spec", lambda name: True)
    assert main(["scenes", "export", f"out={tmp_path / 'homes'}", "count=1", "episodes_of=[]"]) == 0
    assert "could not compute them (ImportError: libEGL.so.1: cannot open)" in capsys.readouterr().out
    assert not (tmp_path / "homes" / "navmeshes").exists()


def test_the_process_of_the_navmeshes_takes_no_module_from_where_the_user_stands(tmp_path, monkeypatch):
    """And finds ours where they are not installed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "queue.py").write_text("raise SystemExit('of the user')")
    habitat = tmp_path / "path"
    habitat.mkdir()
    (habitat / "habitat_sim.py").write_text("import queue, rearrange; raise SystemExit('it began in ' + "
                                            "rearrange.__path__[0])")
    monkeypatch.setenv("PYTHONPATH", str(habitat))
    monkeypatch.setattr(export, "find_spec", lambda name: True)
    assert f"it began in {Path(export.__file__).resolve().parents[2]}" in export._write_navmeshes(tmp_path, [])


@pytest.mark.parametrize(("name", "labels"),
                         [("set_table", ["bowl_target|0", "fruit_target|1"]),
                          ("prepare_groceries", ["obj0_target|0", "obj1_target|1", "obj2_target|2"]),
                          ("tidy_house", [f"any_targets|{i}" for i in range(5)])])
def test_what_a_scenario_moves_is_called_as_habitat_lab_calls_it(name, labels):
    scenario = load_scenario(name).scenario
    assert [target_label(scenario, i) for i in range(len(scenario.objects))] == labels
    other = replace(scenario, objects=("any",), starts=("table",), goals=("table",))
    assert target_label(other, 0) == "any_targets|0"

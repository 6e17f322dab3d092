"""Missing and damaged files are one sentence before Habitat opens them, which would end the process."""

from __future__ import annotations

import json
import os
import shutil
import struct
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from rearrange.env.make_simulator import make_simulator
from rearrange.habitat import installed as need
from rearrange.habitat.homes import Homes
from rearrange.habitat.temporary_folder import own_folder
from rearrange.home.apartments.episodes import Episode
from rearrange.home.errors import UserError
from rearrange.home.scene_files.reading import need_json
from rearrange.home.scene_files.scene_data import SceneData, files_called, need_template, scenes_of, templates_of
from rearrange.home.scene_files.urdf import need_urdf
from rearrange.home.simulation.simulator_interface import SimulatorConfig

URDF = '<robot name="r"><link name="a"><visual><geometry><mesh filename="a.glb"/></geometry></visual></link></robot>'


def glb(path: Path, said: int = 12) -> Path:
    path.write_bytes(b"glTF" + struct.pack("<II", 2, said))
    return path


@pytest.mark.parametrize("content", ["", "{", "[]", "\udcff"])
def test_a_damaged_json_file_is_named(tmp_path, content):
    path = tmp_path / "x.scene_dataset_config.json"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(UserError, match="x.scene_dataset_config.json"):
        SceneData(str(path)).check()
    with pytest.raises(UserError, match="cannot be read"):
        need_json(tmp_path / "absent.json")


def test_a_stage_needs_its_meshes_and_they_need_their_length(tmp_path):
    stage = tmp_path / "s.stage_config.json"
    stage.write_text(json.dumps({"render_asset": "s.glb", "collision_asset": "cubeSolid"}))
    with pytest.raises(UserError, match="s.glb, which .* names, cannot be read"):
        need_template(stage)
    glb(tmp_path / "s.glb", said=4000)
    with pytest.raises(UserError, match="damaged GLB"):
        need_template(stage)
    glb(tmp_path / "s.glb")
    need_template(stage)
    stage.write_text(json.dumps({"render_asset": "%%CONFIG_NAME_AS_ASSET_FILENAME%%.glb"}))
    need_template(stage)


def test_an_articulated_object_needs_its_urdf_and_its_meshes(tmp_path):
    config, urdf = tmp_path / "f.ao_config.json", tmp_path / "f.urdf"
    config.write_text(json.dumps({"urdf_filepath": "f.urdf"}))
    for content, said in ((None, "cannot be read"), (URDF[:40], "not a URDF"), ("<a/>", "not a URDF"), (URDF, "a.glb")):
        if content is not None:
            urdf.write_text(content)
        with pytest.raises(UserError, match=said):
            need_template(config)
    glb(tmp_path / "a.glb")
    need_template(config)
    with pytest.raises(UserError, match="not a URDF document"):
        need_urdf(tmp_path / "a.glb")
    (tmp_path / "b.glb").write_bytes(b"glTF\xff\xfe")
    with pytest.raises(UserError, match="sim.robot=b.glb: .* not a URDF document"):
        need_urdf(tmp_path / "b.glb", "sim.robot=b.glb:")


def test_what_a_scene_needs_and_where_it_is_looked_for(tmp_path):
    scene = {"stage_instance": {"template_name": "stages/a"},
             "articulated_object_instances": [{"template_name": "fridge"}]}
    assert list(templates_of(scene)) == [("stage", "stages/a"), ("ao", "fridge")]
    assert not list(templates_of({"stage_instance": {"template_name": "NONE"}, "articulated_object_instances": None}))
    (tmp_path / "stages").mkdir()
    for name in ("a", "b"):
        (tmp_path / "stages" / f"{name}.stage_config.json").touch()
    assert [path.name for path in files_called(tmp_path, "stages/a", ".stage_config.json")] == ["a.stage_config.json"]


def test_a_gpu_that_is_not_there_is_refused():
    with pytest.raises(UserError, match="sim.gpu_device=0: there is no NVIDIA device here; write sim.gpu_device=-1"):
        need.device(0, nvidia=False)


@pytest.mark.parametrize(("code", "said"), [
    ("raise RuntimeError('built for\\n another numpy')", "RuntimeError: built for another numpy"),
    ("", "installed only in part"), ("Simulator = 1", "without Bullet")])
def test_a_broken_habitat_sim_is_one_sentence(tmp_path, monkeypatch, code, said):
    (tmp_path / "habitat_sim.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "habitat_sim", None)  # so that it is put back
    del sys.modules["habitat_sim"]
    with pytest.raises(UserError, match=said):
        need.need_habitat()


def with_scenes(*names: str) -> Homes:
    return Homes(SimpleNamespace(scene_names=lambda: set(names), knows=lambda name: name in names), {})


def test_scenes_that_the_data_set_lacks_are_named_before_an_episode_needs_them():
    with_scenes("val_0000", "val_0001").need(scenes_of("val", 2))
    with pytest.raises(UserError, match="no scene val_0002, .* split=val .* sim.num_layouts=2"):
        with_scenes("val_0000", "val_0001").need(scenes_of("val", 96))
    with pytest.raises(UserError, match="no scene train_0000, .* split=train count=..., or .* sim.episodes"):
        with_scenes("val_0000").need(scenes_of("train", 96))
    listed = [Episode("0", scene, (), (), {}, (), ()) for scene in ("data/x/v3_sc0.scene_instance.json", "v3_sc1")]
    with_scenes("v3_sc0", "v3_sc1").need(scenes_of("val", 96, listed))
    with pytest.raises(UserError, match="no scene v3_sc1, .* sim.episodes"):
        with_scenes("v3_sc0").need(scenes_of("val", 96, listed))


def test_folders_of_killed_processes_are_removed_and_those_in_use_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    used = own_folder()
    left, young = tmp_path / "rearrange-habitat-left", tmp_path / "rearrange-habitat-young"
    left.mkdir()
    young.mkdir()
    (left / "fetch.urdf").touch()
    for path in (left, used.name):
        os.utime(path, (time.time() - 1000.0,) * 2)  # timed: an age
    own_folder().cleanup()
    assert not left.exists() and young.exists() and Path(used.name).exists()
    used.cleanup()


# ---------------------------------------------------------------------- in Habitat


@pytest.fixture
def copy(homes: Path, tmp_path) -> Path:
    """A data set that may be damaged."""
    shutil.copytree(homes.parent, tmp_path / "homes")
    return tmp_path / "homes"


def simulator(folder: Path, **data):
    config = folder / "rearrange.scene_dataset_config.json"
    return make_simulator("habitat", SimulatorConfig(), SceneData(str(config), **data))


DAMAGE = {
    "stages/val_0000.glb": None, "stages/val_0000.stage_config.json": "{", "scenes/val_0000.scene_instance.json": "{",
    "articulated/val_0000/kitchen_counter.urdf": "<robot", "articulated/val_0000/fridge.ao_config.json": None}


@pytest.mark.habitat
@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_home_is_refused(copy, name):
    path = copy / name
    path.unlink()
    if DAMAGE[name] is not None:
        path.write_text(DAMAGE[name])
    made = simulator(copy)
    with pytest.raises(UserError, match="export or download|URDF document"):
        made.world.knows("val_0000") and made.world.load("val_0000")


@pytest.mark.habitat
def test_too_few_homes_and_what_is_no_fetch_are_refused(copy):
    with pytest.raises(UserError, match="no scene val_0002"):
        simulator(copy, scenes=scenes_of("val", 96))
    with pytest.raises(UserError, match="cannot be read"):
        (copy / "robots" / "fetch_base_link.glb").unlink()
        simulator(copy)


@pytest.mark.habitat
def test_a_fetch_urdf_where_the_user_stands_is_not_taken(copy, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fetch.urdf").write_text('<robot name="r"><link name="a"/></robot>')
    made = simulator(copy)
    made.world.load("val_0000")
    assert len(made.world.robot.get_link_ids()) > 20

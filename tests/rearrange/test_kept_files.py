"""Layouts and homes that are read from files are those that are made, and files that cannot be read or written change
nothing.
"""

import dataclasses
from pathlib import Path

import mujoco
import numpy as np
import pytest

from rearrange.home.apartments import kept_layouts
from rearrange.home.apartments.layouts import make_layout
from rearrange.home.apartments.objects import STANDARD_SET
from rearrange.home.kept_files import KeptFiles
from rearrange.home.simulation.mujoco import compiled_home


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(kept_layouts.KEPT, "folder", tmp_path / "layouts-new")
    return tmp_path


def test_a_layout_from_its_file_is_the_one_that_is_drawn(folder):
    drawn = make_layout("val", 2)
    (folder / "layouts-old").mkdir()
    (folder / "others").mkdir()
    assert kept_layouts.kept_layout("val", 2) == drawn  # and writes the file
    assert [file.name for file in (folder / "layouts-new").iterdir()] == ["val-2.pickle"]
    read = kept_layouts.kept_layout("val", 2)
    assert read == drawn and repr(read) == repr(drawn) and read is not drawn
    assert not (folder / "layouts-old").exists() and (folder / "others").exists()


def test_a_damaged_file_is_written_anew(folder):
    kept_layouts.kept_layout("val", 0)
    file = folder / "layouts-new" / "val-0.pickle"
    whole = file.read_bytes()
    file.write_bytes(whole[:100])
    assert kept_layouts.kept_layout("val", 0) == make_layout("val", 0)
    assert file.read_bytes() == whole


def test_without_a_place_for_files_layouts_are_drawn(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    for nowhere in (None, tmp_path / "file" / "layouts"):
        monkeypatch.setattr(kept_layouts.KEPT, "folder", nowhere)
        assert kept_layouts.kept_layout("val", 1) == make_layout("val", 1)


def test_other_code_and_other_versions_have_another_folder(tmp_path):
    code = tmp_path / "changed.py"
    code.write_text("x = 1")
    before = KeptFiles("things", lambda: [code], "1.0").folder
    assert before == KeptFiles("things", lambda: [code], "1.0").folder != KeptFiles("things", lambda: [code]).folder
    code.write_text("x = 2")
    assert before != KeptFiles("things", lambda: [code], "1.0").folder


def test_all_code_that_makes_a_home_counts():
    there = {source.relative_to(Path(compiled_home.__file__).parents[2]).as_posix()
             for source in compiled_home.KEPT._sources()}
    assert {"apartments/furniture.py", "geometry.py", "robot/fetch.py", "simulation/mujoco/build_model.py",
            "simulation/mujoco/collision_filter.py"} <= there


def test_a_home_from_its_file_is_the_one_that_is_compiled(tmp_path, monkeypatch):
    monkeypatch.setattr(compiled_home.KEPT, "folder", tmp_path / "homes")
    load, compiled = compiled_home.load_home.__wrapped__, []
    compile_home = compiled_home.compile_home
    monkeypatch.setattr(compiled_home, "compile_home", lambda *of: compiled.append(of) or compile_home(*of))
    made, read = load("val/4"), load("val/4")
    kept = [file.name for file in (tmp_path / "homes").iterdir()]
    assert len(compiled) == 1 and kept == ["val-4-fetch-suction.pickle"]
    for one, other in ((made.model, read.model), (made.parked, read.parked)):
        names = [name for name in dir(one) if isinstance(getattr(one, name), np.ndarray)]
        assert len(names) > 100 and all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)
    for field in dataclasses.fields(made.nearness):
        one, other = getattr(made.nearness, field.name), getattr(read.nearness, field.name)
        assert np.array_equal(one, other) and one.dtype == other.dtype and one.flags.c_contiguous == \
            other.flags.c_contiguous
    for home in (made, read):
        mujoco.mj_step(home.model, home.parked, nstep=20)
    assert np.array_equal(made.parked.qpos, read.parked.qpos)


def test_homes_with_other_objects_and_those_after_the_first_are_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(compiled_home.KEPT, "folder", tmp_path / "homes")
    assert compiled_home.load_home.__wrapped__("val/4", STANDARD_SET[:1]).objects == STANDARD_SET[:1]
    assert compiled_home.load_home.__wrapped__(f"val/{compiled_home.CACHED_HOMES}").objects == STANDARD_SET
    assert not (tmp_path / "homes").exists()

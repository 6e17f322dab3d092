"""Layouts that are read from files are those that are drawn, and files that cannot be read or written change
nothing.
"""

import pytest

from rearrange.home.apartments import kept_layouts
from rearrange.home.apartments.layouts import make_layout


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(kept_layouts, "_folder", lambda: tmp_path / "layouts-new")
    return tmp_path


def test_a_layout_from_its_file_is_the_one_that_is_drawn(folder):
    drawn = make_layout("val", 2)
    (folder / "layouts-old").mkdir()
    assert kept_layouts.kept_layout("val", 2) == drawn  # and writes the file
    assert [file.name for file in (folder / "layouts-new").iterdir()] == ["val-2.pickle"]
    read = kept_layouts.kept_layout("val", 2)
    assert read == drawn and repr(read) == repr(drawn) and read is not drawn
    assert not (folder / "layouts-old").exists()


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
        monkeypatch.setattr(kept_layouts, "_folder", lambda: nowhere)
        assert kept_layouts.kept_layout("val", 1) == make_layout("val", 1)


def test_other_code_has_another_folder(monkeypatch, tmp_path):
    kept_layouts._folder.cache_clear()
    before = kept_layouts._folder()
    (tmp_path / "apartments").mkdir()
    (tmp_path / "apartments" / "changed.py").write_text("x = 1")
    monkeypatch.setattr(kept_layouts, "HERE", tmp_path / "apartments")
    kept_layouts._folder.cache_clear()
    assert kept_layouts._folder() != before
    kept_layouts._folder.cache_clear()

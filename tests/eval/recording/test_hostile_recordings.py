"""Recordings that are damaged, or made to mislead: one sentence that names the file, and nothing is learned from
them."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq
from PIL import Image

from eval.recording.demonstrations import Recording
from eval.recording.folder import STATE, read_state, sha256_of, starts_file
from eval.recording.replay import replay
from rearrange.home.errors import UserError
from tests.eval.recording.test_demonstrations import env, write

TIDY = {"name": "tidy_house", "problem": "tidy_house", "objects": ["any"], "starts": ["open"], "goals": ["open"]}
DATA, INFO, STARTS = Path("data/chunk-000/file-000.parquet"), Path("meta/info.json"), Path(starts_file(0))


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    return write(tmp_path_factory.mktemp("recording") / "pick", episodes=3, failed=())


@pytest.fixture
def folder(made, tmp_path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "pick"))


def refused(folder: Path, depth: int = 8) -> str:
    """The sentence; who changed the files has changed their checksums, too."""
    try:
        state = read_state(folder)
        state["sha256"] = {name: sha256_of(folder / name) for name in state["sha256"]}
        (folder / STATE).write_text(json.dumps(state))
    except (OSError, UserError):
        pass
    return refused_as_it_is(folder, depth)


def refused_as_it_is(folder: Path, depth: int = 8) -> str:
    with pytest.raises(UserError) as said:
        Recording(folder, "pick", env(depth_size=depth))
    assert str(folder) in str(said.value) and str(said.value).isprintable() and len(str(said.value)) < 900
    return str(said.value)


# ---------------------------------------------------------------------- damage

def test_every_flipped_bit_and_every_cut_of_a_file_is_told(folder):
    rng = np.random.default_rng(0)
    files = [folder / name for name in read_state(folder)["sha256"]]
    assert {file.suffix for file in files} == {".parquet", ".gz"} and len(files) == 3
    for file in files:
        content = file.read_bytes()
        for place in rng.integers(0, len(content), 20).tolist():
            changed = bytearray(content)
            changed[place] ^= 1 << int(rng.integers(8))
            file.write_bytes(changed)
            assert str(file) in refused_as_it_is(folder)
            file.write_bytes(content[:place])
            assert str(file) in refused_as_it_is(folder)
        file.unlink()
        assert "No such file" in refused_as_it_is(folder)
        file.write_bytes(content)
    assert Recording(folder, "pick", env(depth_size=8)).lengths == [12, 13, 14]


def test_a_recording_of_a_version_without_checksums_is_learned_from(folder):
    state = json.loads((folder / STATE).read_text())
    del state["sha256"]
    (folder / STATE).write_text(json.dumps(state))
    assert Recording(folder, "pick", env()).lengths == [12, 13, 14]


@pytest.mark.parametrize("file", [DATA, INFO, STARTS, STATE])
@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "loop", "pickle"])
def test_what_is_no_regular_file_is_told_and_waits_for_nobody(file, kind, folder):
    path = folder / file
    path.unlink()
    {"pipe": lambda: os.mkfifo(path), "folder": lambda: path.mkdir(), "device": lambda: path.symlink_to("/dev/zero"),
     "loop": lambda: path.symlink_to(path),
     "pickle": lambda: path.write_bytes(b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x04true\x85R.")}[kind]()
    assert str(path) in refused(folder)


# ---------------------------------------------------------------------- what the files of all episodes say

@pytest.mark.parametrize("values", [
    {"files": -1}, {"files": 1.0}, {"files": "1"}, {"frames": 10**30}, {"frames": 1}, {"frames": True},
    {"attempts": "abc"}, {"attempts": [[1, True]]},
    {"attempts": [[0, "yes", True, None, 1, 1.0, ""]]}, {"attempts": [[-1, True, True, None, 1, 1.0, ""]]},
    {"tasks": 3}, {"tasks": [1]},
    {"command": []}, {"command": {}}, {"command": {"format": ["lerobot"]}}, {"command": {"format": "pickle"}},
    {"about": []}, {"about": {"skill": "pick"}},
    {"about": {"skill": ["pick"], "env": {}}}, {"sha256": []}, {"sha256": {"../../etc/passwd": "0"}},
    {"sha256": {"/etc/passwd": "0"}},
    {"sha256": {"data": "0"}}, {"files": 2}, {"frames": float("nan")},
])
def test_recording_json_that_lies_is_told(values, folder):
    state = json.loads((folder / STATE).read_text())
    (folder / STATE).write_text(json.dumps(state | values))
    with pytest.raises(UserError) as said:
        Recording(folder, "pick", env())
    assert str(said.value).isprintable() and str(said.value).count("Traceback") == 0


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"nonsense", b"[" * 100_000, b'{"features": {"action": {"shape": [1e99], "names": null}}}',
                b"\xff\xfe", b'{"features": {"action": {"shape": [-1], "names": 3}}}', b'{"features": []}', b"null"])
@pytest.mark.parametrize("file", [INFO, STATE, STARTS])
def test_json_that_is_none_is_told(file, content, folder):
    (folder / file).write_bytes(gzip.compress(content) if file == STARTS else content)
    assert str(folder / file) in refused(folder)


@pytest.mark.parametrize("change, said", [
    (lambda row: row | {"steps": row["steps"] + 1}, "says"), (lambda row: row | {"steps": "12"}, "does not say how"),
    (lambda row: row | {"steps": 0}, "does not"),
    (lambda row: row | {"episode_index": "../../x"}, "does not say how"),
    (lambda row: row | {"episode_index": 7}, "does not"), (lambda row: [], "does not"),
    (lambda row: row | {"steps": 10**18}, "says"),
    (lambda row: row | {"steps": 26 - row["steps"]}, "episode_index is not that of"),
])
def test_lying_lengths_of_episodes_are_told(change, said, folder):
    rows = json.loads(gzip.decompress((folder / STARTS).read_bytes()))
    (folder / STARTS).write_bytes(gzip.compress(json.dumps([change(row) for row in rows]).encode()))
    assert said in refused(folder)


def test_a_file_of_starts_that_swells_is_told(folder):
    (folder / STARTS).write_bytes(gzip.compress(b" " * (300 << 20), 9))
    assert "holds more than" in refused(folder)


# ---------------------------------------------------------------------- what the frames hold

def table_of(folder: Path):
    return pq.read_table(folder / DATA)


def changed(name: str, to: Callable[[list], list], type_=None) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        values = to(table[name].to_pylist())
        return table.set_column(table.column_names.index(name), name, pa.array(values, type_ or table[name].type))
    return change


def with_number(name: str, value: float) -> Callable[[pa.Table], pa.Table]:
    return changed(name, lambda rows: [[value, *rows[0][1:]] if isinstance(rows[0], list) else value, *rows[1:]])


def image(array: np.ndarray, form: str = "TIFF") -> dict:
    file = io.BytesIO()
    Image.fromarray(array).save(file, form)
    return {"bytes": file.getvalue(), "path": None}


def images(*first: dict | None) -> Callable[[pa.Table], pa.Table]:
    return changed("observation.images.depth", lambda rows: [*first, *rows[len(first):]])


FLAT = np.zeros((8, 8), np.float32)


@pytest.mark.parametrize("change, said", [
    (with_number("observation.state", float("nan")), "is not finite"),
    (with_number("observation.state", 3e38), "outside of its bounds"),
    (with_number("action", float("inf")), "the action is not finite"),
    (with_number("action", 7.0), "the action is 7, outside"),
    (with_number("action", -3e38), "outside of its bounds"),
    (with_number("next.reward", float("nan")), "the reward is not finite"),
    (with_number("next.reward", 3e38), r"the reward is 3e\+38, outside"),
    (with_number("episode_index", 1), "episode_index is not that"),
    (with_number("frame_index", 2), "frame_index is not that"),
    (with_number("timestamp", 7.0), "not those of 30 a second"),
    (changed("timestamp", lambda rows: [row * 2 for row in rows]), "not those of 30 a second"),
    (changed("episode_index", lambda rows: rows[::-1]), "episode_index is not that"),
    (lambda table: table.slice(0, 20), "it has 20 frames instead of 39"),
    (lambda table: pa.concat_tables([table, table]), "it has 78 frames instead of 39"),
    (lambda table: table.drop_columns(["action"]), "column action|action"),
    (changed("action", lambda rows: [str(row) for row in rows], pa.string()), "is no number"),
    (changed("action", lambda rows: [row[:9] for row in rows], pa.list_(pa.float32(), 9)),
     r"has the shape \(9,\) instead of \(10,\)"),
    (changed("action", lambda rows: [row + row[:1] if i % 2 else row[:9] for i, row in enumerate(rows)],
             pa.list_(pa.float32())), "unequal lengths"),
    (changed("action", lambda rows: [None, *rows[1:]]), "missing"),
    (changed("action", lambda rows: [[None, *rows[0][1:]], *rows[1:]]), "missing"),
    (changed("action", lambda rows: [[[value] for value in row] for row in rows], pa.list_(pa.list_(pa.float32()))),
     "has the shape"),
    (changed("next.reward", lambda rows: [str(row) for row in rows], pa.string()), "is no number"),
    (changed("next.reward", lambda rows: [b"\x80\x04."] * len(rows), pa.binary()), "is no number"),
    (changed("next.success", lambda rows: [None] * len(rows)), "missing"),
    (changed("next.success", lambda rows: [False] * len(rows)), "no episode that succeeded"),
    (changed("action", lambda rows: [row[0] for row in rows], pa.float32()), "has the shape"),
    (images(None), "lacks images"), (images({"bytes": None, "path": "/etc/passwd"}), "lacks images"),
    (images({"bytes": b"", "path": None}), "episode 0"),
    (images({"bytes": b"\x89PNG\r\n\x1a\n" + b"\x00" * 99, "path": None}), "episode 0"),
    (images(image(FLAT[:4])), "8 x 4 pixels"),
    (images(image(FLAT + np.nan)), "depth is not finite"), (images(image(FLAT - 5)), "depth is -5, outside"),
    (images(image(FLAT + 10)), "depth is 10, outside"),
    (images(image(np.zeros((8, 8), np.uint8))), "of kind L instead of float32"),
    (images(image(np.zeros((8, 8, 3), np.uint8), "PNG")), "of kind RGB"),
    (images(image(np.zeros((9999, 9999), bool), "PNG")), "exceeds limit"),
    (images(image(np.zeros((8, 8, 3), np.uint8), "GIF")), "episode 0"),
    (images(image(np.zeros((900, 900), np.uint8), "PNG")), "900 x 900 pixels"),
    (images(image(np.zeros((14000, 14000), bool), "PNG")), "episode 0"),
    (images({"bytes": image(FLAT)["bytes"][:-20], "path": None}), "episode 0"),
    (changed("observation.images.depth", lambda rows: [1.0] * len(rows), pa.float32()), "depth has the shape"),
])
def test_frames_that_cannot_be_learned_from_are_told(change, said, folder):
    import re

    pq.write_table(change(table_of(folder)), folder / DATA)
    assert re.search(said, sentence := refused(folder)), sentence


def test_a_file_that_declares_more_than_it_holds_is_told(folder):
    """A gigabyte of zeros takes some kilobytes."""
    table = table_of(folder)
    zeros = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(39 * 4_000_000 // 4, np.float32)), 1_000_000)
    pq.write_table(table.set_column(table.column_names.index("action"), "action", zeros), folder / DATA,
                   use_dictionary=True)
    assert "shape" in refused(folder)


def test_names_that_lead_elsewhere_and_numbers_of_frames_that_differ_are_told(folder):
    info = json.loads((folder / INFO).read_text())
    for fps in (15, 0, -30, float("nan"), "30", None, True, 1e300):
        (folder / INFO).write_text(json.dumps(info | {"fps": fps}))
        assert "a second, as info.json says" in refused(folder)
    # which nobody follows
    (folder / INFO).write_text(json.dumps(info | {"data_path": "/etc/passwd", "video_path": "../../x"}))
    assert Recording(folder, "pick", env()).lengths == [12, 13, 14]


def test_who_recorded_another_robot_is_told(folder):
    info = json.loads((folder / INFO).read_text())
    names = info["features"]["action"]["names"]
    for features in ({"action": {"shape": [10], "names": [f"wheel.{i}" for i in range(10)]}},
                     {"action": {"shape": [10], "names": names[::-1]}},
                     {"observation.state": {"shape": [3], "names": ["a", "b", "c"]}}):
        (folder / INFO).write_text(json.dumps(info | {"features": info["features"] | features}))
        assert "shows actions of" in (said := refused(folder)) or "does not show" in said


# ---------------------------------------------------------------------- Minari

@pytest.fixture
def minari_folder(tmp_path) -> Path:
    pytest.importorskip("minari")
    from eval.recording.minari import MinariFiles

    return write(tmp_path / "pick", episodes=2, of=MinariFiles, failed=())


@pytest.mark.parametrize("values", [
    {"env_spec": '{"id": "evil_module:Evil-v0", "entry_point": "evil_module:Evil"}'}, {"observation_space": None},
    {"data_format": "hdf5"}, {"data_format": "arrow"}, {"jpeg_encoding": True}, {"observation_space": "{}"},
    {"observation_space": '{"type": "Box"}'}, {"action_names": 3}, {"action_space": []}, {"data_format": []}])
def test_metadata_of_minari_that_would_import_something_or_are_no_spaces_are_told(
    values, minari_folder, tmp_path, monkeypatch):
    (tmp_path / "evil_module.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    file = minari_folder / "data/metadata.json"
    about = json.loads(file.read_text()) | values
    file.write_text(json.dumps({key: value for key, value in about.items() if value is not None}))
    assert "metadata.json is damaged or missing" in refused(minari_folder)


def test_an_episode_of_minari_that_is_another_is_told(minari_folder):
    first, second = (next((minari_folder / f"data/{i}").glob("*.parquet")) for i in (0, 1))
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    assert "data/0 is damaged" in refused(minari_folder) and "checksum" not in refused(minari_folder)
    first.unlink()
    os.mkfifo(first)
    assert "data/0" in refused(minari_folder)
    first.unlink()
    first.write_bytes(content[:-9])
    assert "data/0" in refused(minari_folder)
    first.write_bytes(content)
    os.mkfifo(first.parent / "another.parquet")
    assert "data/0 is damaged" in refused(minari_folder)


# ---------------------------------------------------------------------- videos, and replay

def test_a_video_that_names_other_files_is_not_followed(tmp_path):
    from eval.recording.video import Stream, read_mp4, write_mp4

    secret = tmp_path / "secret.mp4"
    stream = Stream((16, 24, 3), 30)
    for _ in range(4):
        stream.add(np.zeros((16, 24, 3), np.uint8))
    write_mp4(secret, [stream.content()], 30)
    assert read_mp4(secret, (16, 24, 3), 4).shape == (4, 16, 24, 3)
    lure = tmp_path / "-y.mp4"
    for content in (f"ffconcat version 1.0\nfile '{secret}'\n",
                    f"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile://{secret}\n#EXT-X-ENDLIST\n"):
        lure.write_text(content)
        with pytest.raises(OSError, match="is damaged"):
            read_mp4(lure, (16, 24, 3), 4)
    for count, shape, said in ((3, (16, 24, 3), "more than 3 frames"), (5, (16, 24, 3), "4 frames of"),
                               (4, (8, 24, 3), "is damaged")):
        with pytest.raises(OSError, match=said):
            read_mp4(secret, shape, count)
    lure.unlink()
    os.mkfifo(lure)
    with pytest.raises(OSError, match="no regular file"):
        read_mp4(lure, (16, 24, 3), 4)


@pytest.mark.parametrize("about", [{}, {"skill": "nothing", "env": {}}, {"skill": "pick", "env": {"evil": 1}},
                                   {"skill": ["pick"], "env": {}}, {"skill": "pick"},
                                   {"scenario": "../../etc/passwd", "env": {}},
                                   {"scenario": {"name": "mine"}, "env": {}},
                                   {"scenario": TIDY, "env": {"evil": 1}}, {"scenario": TIDY, "env": {"split": "moon"}},
                                   {"scenario": TIDY, "skill": "pick", "env": {}},
                                   {"skill": "pick", "env": {"sim": "evil_module:Sim"}},
                                   {"skill": "pick", "env": {"split": "val", "depth_size": -8}}])
def test_a_recording_of_no_environment_is_not_replayed(about, folder):
    state = json.loads((folder / STATE).read_text())
    (folder / STATE).write_text(json.dumps(state | {"about": about}))
    with pytest.raises(UserError):
        replay(folder, 1, 1)


def test_an_episode_that_cannot_begin_is_one_sentence(folder):
    state = json.loads((folder / STATE).read_text())
    (folder / STATE).write_text(json.dumps(state | {
        "about": {"skill": "pick", "env": {"split": "val", "num_layouts": 2, "depth_size": 8}}}))
    rows = json.loads(gzip.decompress((folder / STARTS).read_bytes()))
    for episode in ({}, {"objects": 3}, [], "x"):
        (folder / STARTS).write_bytes(gzip.compress(json.dumps([row | {"episode": episode} for row in rows]).encode()))
        with pytest.raises(UserError, match="does not say how its episode 0 begins"):
            replay(folder, 1, 1)



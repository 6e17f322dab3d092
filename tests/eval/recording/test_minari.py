"""A recording as a Minari data set: read by Minari itself, gone on with, and read again as the columns of a
recording."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

minari = pytest.importorskip("minari", reason="minari is not installed: pip install 'rearrange[record]'")
pytest.importorskip("pyarrow")

from eval.recording.folder import Folder
from eval.recording.lerobot import LeRobotFiles
from eval.recording.minari import MinariFiles
from rearrange.home.errors import UserError
from tests.eval.recording.fake import FEATURES, FPS, recorded, seen

LENGTHS = {0: 5, 1: 7, 2: 4}
EXACT = [name for name, feature in FEATURES.items() if feature.kind not in ("video", "depth")]


def write(path, numbers, files=MinariFiles) -> None:
    made = Folder(path, files(path, FEATURES, FPS), {"format": "minari"}, {}, 1e9)
    for number in numbers:
        made.add(recorded(number, LENGTHS[number], success=number != 2, raw=files.raw), keep=True)
    made.write()
    made.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three episodes, the last of another command that went on, after one that was killed."""
    path = tmp_path_factory.mktemp("recording") / "fake-v0"
    write(path, [0, 1])
    # of which recording.json does not know
    MinariFiles(path, FEATURES, FPS).add(1, [recorded(0, 5, raw=True)], 2, 12, {})
    write(path, [2])
    return path


def test_minari_loads_it_and_iterates_what_was_seen(folder):
    data = minari.MinariDataset(folder / "data")
    assert (data.total_episodes, data.total_steps, data.id) == (3, 16, "fake-v0")
    for episode, (number, length) in zip(data.iterate_episodes(), LENGTHS.items(), strict=True):
        assert len(episode.rewards) == length and episode.rewards.tolist() == list(range(length))
        assert episode.actions == pytest.approx(np.array([[frame / 10, -1] for frame in range(length)]))
        assert set(episode.observations) == set(seen(0, 0)) - {"instruction"}
        for key, values in episode.observations.items():
            # one more than actions
            assert np.array_equal(values, np.stack([seen(number, frame)[key] for frame in range(length + 1)])), key
        assert episode.terminations.tolist() == [False] * (length - 1) + [True] and not episode.truncations.any()
    about = list(data.storage.get_episode_metadata([0, 2]))
    assert [(each["success"], each["task"], each["seed"]) for each in about] == [
        (True, "task 0", 0), (False, "task 0", 2)]
    assert data.observation_space.contains({key: value for key, value in seen(1, 1).items() if key != "instruction"})


def test_minari_finds_it_by_its_name(folder, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(folder.parent))
    assert minari.load_dataset("fake-v0").total_steps == 16


def test_its_columns_are_those_of_a_lerobot_data_set(folder, tmp_path):
    write(tmp_path / "other", LENGTHS, LeRobotFiles)
    ours = [episode for number in (0, 1) for episode in MinariFiles.read(folder, number)]
    theirs = list(LeRobotFiles.read(tmp_path / "other", 0))
    assert len(ours) == len(theirs) == 3
    for mine, other in zip(ours, theirs, strict=True):
        assert all(np.array_equal(mine[name], other[name]) for name in EXACT
                   if FEATURES[name].kind in ("vector", "array"))
    assert MinariFiles.described(folder).items() <= LeRobotFiles.described(tmp_path / "other").items()
    assert set(next(MinariFiles.read(folder, 0, ["action"]))) == {"action"}


def test_a_damaged_one_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(Path("a"), [0])
    assert len(list(MinariFiles.read(Path("a"), 0))) == 1
    next((tmp_path / "a/data/0").glob("*.parquet")).write_bytes(b"PAR1")
    with pytest.raises(UserError, match="data/0 is damaged"):
        list(MinariFiles.read(tmp_path / "a", 0))
    (tmp_path / "a/data/metadata.json").write_text("{")
    with pytest.raises(UserError, match="metadata.json is damaged or missing"):
        MinariFiles.described(tmp_path / "a")

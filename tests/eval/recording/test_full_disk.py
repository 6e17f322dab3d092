"""A recording whose disk fails at any moment: as many episodes as are told are there, and the same command goes on."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pq = pytest.importorskip("pyarrow.parquet")
import pyarrow.dataset

from eval.recording.features import features_of
from eval.recording.folder import STATE, Folder, read_starts, read_state, starts, starts_file
from eval.recording.lerobot import LeRobotFiles
from eval.recording.record import Prepared, _record
from rearrange.command_line.composition.options import RecordOptions
from rearrange.home.errors import UserError
from tests.eval.recording.fake import FPS, SPACE, recorded
from tests.small_disk import fill, free

FEATURES = features_of(type(SPACE)({key: SPACE[key] for key in ("joint", "depth")}), ("left", "right"))
PLAIN = {"episodes": 40, "successes_only": True, "agent": "fake", "format": "lerobot", "workers": 1, "max_gb": 1.0}


def work(job: SimpleNamespace, attempts: list[int]):
    """Every episode succeeds; `job.at` is told each before it is there."""
    for attempt in attempts:
        job.at(attempt)
        yield recorded(attempt, frames=3, features=FEATURES, raw=job.raw)


def run(path: Path, format_: str = "lerobot", at: Callable[[int], None] = lambda attempt: None, **plain) -> int:
    """Record as the command does, in this process."""
    files = format_of(format_)
    job = SimpleNamespace(at=at, raw=files.raw)
    made = Prepared(name="fake", job=job, work=work, features=FEATURES, fps=FPS, about={}, lines=[], listed=0,
                    policy=None)
    folder = Folder(path, files(path, FEATURES, FPS), {"format": format_}, {}, 1e9)
    try:
        return _record(folder, made, RecordOptions(**PLAIN | plain))
    finally:
        folder.close()


def format_of(name: str):
    if name == "lerobot":
        return LeRobotFiles
    pytest.importorskip("minari")
    from eval.recording.minari import MinariFiles

    return MinariFiles


def there(path: Path, format_: str = "lerobot") -> int:
    """Episodes of a data set, each of which is read, and of which the files of all episodes know."""
    if not (path / STATE).exists():
        return 0
    state, files, count = read_state(path), format_of(format_), 0
    for number in range(state["files"]):
        rows = list(files.read(path, number))
        begun = read_starts(path / starts_file(number))
        assert [len(row["action"]) for row in rows] == [3] * len(begun)
        for start, row in zip(begun, rows, strict=True):
            assert np.asarray(row["observation.state"])[0].tolist() == [0.0, start["attempt"]]
        count += len(rows)
    kept = [attempt[0] for attempt in state["attempts"] if attempt[1]]
    assert [start["attempt"] for start in starts(path)] == kept and len(kept) == count
    if count and format_ == "lerobot":
        info = json.loads((path / "meta/info.json").read_text())
        assert (info["total_episodes"], info["total_frames"]) == (count, 3 * count) == (count, state["frames"])
        for files in ("data/*/*.parquet", "meta/episodes/*/*.parquet"):
            assert len(list(path.glob(files))) == state["files"]
    elif count:
        import minari

        data = minari.MinariDataset(path / "data")
        assert data.total_episodes == count and len(list(data.iterate_episodes())) == count
    return count


def told(captured) -> tuple[int, int]:
    """How many episodes were told to be kept, and how often something was said to be wrong."""
    (kept,) = re.findall(r"([\d,]+) of 40 episodes   ", captured.out)
    return int(kept), captured.err.count("rearrange record: ")


class Disk:
    """Writing fails from the n-th write on, for `long` writes."""

    def __init__(self, monkeypatch, number: int, long: int, error: int) -> None:
        self.count = 0

        def failing(write):
            def instead(*arguments, **named):
                self.count += 1
                if number <= self.count < number + long:
                    raise OSError(error, os.strerror(error))
                return write(*arguments, **named)
            return instead

        for owner, name in ((Path, "write_bytes"), (Path, "write_text"), (pq, "write_table"),
                            (pyarrow.dataset, "write_dataset")):
            monkeypatch.setattr(owner, name, failing(getattr(owner, name)))


@pytest.mark.parametrize("format_", ["lerobot", "minari"])
@pytest.mark.parametrize("error, long, every",
                         [pytest.param(errno.ENOSPC, 10_000, 1, marks=pytest.mark.slow), (errno.ENOSPC, 10_000, 11),
                          (errno.EDQUOT, 10_000, 13), (errno.EROFS, 10_000, 17), (errno.EIO, 1, 7)])
def test_whichever_write_fails_as_many_episodes_are_told_as_are_there(
    error, long, every, format_, tmp_path, monkeypatch, capsys):
    run(tmp_path / "whole", format_)
    capsys.readouterr()
    with monkeypatch.context() as patched:
        disk = Disk(patched, 10**9, 0, error)
        run(tmp_path / "counted", format_)
    capsys.readouterr()
    first = 1 + [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO].index(error)  # other places for other errors
    for number in range(first, disk.count + 1, every if format_ == "lerobot" else 7 * every):
        path = tmp_path / f"{number}"
        with monkeypatch.context() as patched:
            Disk(patched, number, long, error)
            try:
                status = run(path, format_)
            except UserError as refused:  # nothing had begun
                assert "cannot be written" in str(refused) and there(path, format_) == 0
                continue
        kept, complaints = told(capsys.readouterr())
        assert (status, complaints) == (1, 1) and kept == there(path, format_) < 41
        assert not list(path.glob("**/*.part"))
        assert run(path, format_) == 0 and there(path, format_) == 40  # the same command goes on
        capsys.readouterr()
        shutil.rmtree(path)


@pytest.mark.parametrize("at, what", [(20, "all"), (39, "all"), (3, "all"), (20, "moved"), (20, "data"), (20, "state")])
def test_a_folder_that_is_taken_away_is_told_and_is_not_begun_anew(at, what, tmp_path, capsys):
    path = tmp_path / "out"

    def take_away(attempt: int) -> None:
        if attempt == at:
            {"all": lambda: shutil.rmtree(path), "moved": lambda: path.rename(tmp_path / "moved"),
             "data": lambda: shutil.rmtree(path / "data"), "state": lambda: (path / STATE).unlink()}[what]()

    assert run(path, at=take_away) == 1
    kept, complaints = told(capsys.readouterr())
    assert complaints == 1 and (what in ("data", "state") or not path.exists())
    if what == "moved":
        assert there(tmp_path / "moved") == kept == 16
        assert run(tmp_path / "moved") == 0 and there(tmp_path / "moved") == 40


@pytest.mark.parametrize("at, leave, format_",
                         [(20, 4096, "lerobot"), (20, 0, "minari"), (17, 40_960, "lerobot"),
                          *(pytest.param(*case, marks=pytest.mark.slow) for case in (
                              (0, 0, "lerobot"), (39, 0, "lerobot"), (17, 8192, "lerobot"), (17, 73_728, "lerobot"),
                              (17, 40_000, "minari")))])
def test_on_a_disk_that_is_full_as_many_episodes_are_told_as_are_there(at, leave, format_, small_disk, capsys):
    path = small_disk / "out"
    status = run(path, format_, lambda attempt: attempt == at and fill(small_disk, leave))
    kept, complaints = told(capsys.readouterr())
    assert kept == there(path, format_) and complaints == status
    free(small_disk)
    assert run(path, format_) == 0 and there(path, format_) == 40


def test_a_disk_that_is_full_at_the_start_is_one_sentence(small_disk):
    for leave in range(0, 20_000, 4096):
        fill(small_disk, leave)
        try:
            run(small_disk / "out", at=lambda attempt: fill(small_disk, 0), episodes=1)
        except UserError as error:
            assert "cannot be written: No space left on device. Make room" in str(error)
        assert there(small_disk / "out") == 0

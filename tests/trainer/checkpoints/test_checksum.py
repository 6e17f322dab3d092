"""A checkpoint of which a bit has changed is refused; files of versions without a checksum are read as before."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from skills import pretrained
from tests.trainer.toys import Pointer, small
from trainer import PolicyConfig, TrainConfig, load_checkpoint, train
from trainer.checkpoint import CheckpointError, list_checkpoints


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """A training run with two small checkpoints."""
    policy = PolicyConfig(encoder=None, lstm_layers=1, hidden_size=4, body_size=4, body_layers=1)
    config = small(policy=policy, checkpoint_every_s=1e-9)
    return train(Pointer, config, tmp_path_factory.mktemp("run"), progress=False).checkpoint.parents[1]


@pytest.fixture
def file(run, tmp_path) -> Path:
    return Path(shutil.copy(list_checkpoints(run / "checkpoints")[-1], tmp_path))


def flipped(file: Path, positions: Iterator[int] | np.ndarray, seed: int = 0) -> Iterator[int]:
    """Flip one bit in each of these bytes, one after another; each is put back before the next one."""
    whole, rng = file.read_bytes(), np.random.default_rng(seed)
    with open(file, "r+b", buffering=0) as opened:
        for position in positions:
            opened.seek(position)
            opened.write(bytes([whole[position] ^ 1 << int(rng.integers(8))]))
            yield position
            opened.seek(position)
            opened.write(whole[position : position + 1])


def outside_records(file: Path) -> list[int]:
    """Positions of all bytes that are headers, names, padding and the directory of a zip archive."""
    inside = np.zeros(file.stat().st_size, bool)
    with zipfile.ZipFile(file) as archive, open(file, "rb") as opened:
        for record in archive.infolist():
            opened.seek(record.header_offset + 26)
            lengths = [int.from_bytes(opened.read(2), "little") for _ in range(2)]
            begin = record.header_offset + 30 + sum(lengths)
            inside[begin : begin + record.file_size] = True
    return np.flatnonzero(~inside).tolist()


def is_same(a: Any, b: Any) -> bool:
    """Whether two contents of checkpoints are equal, tensors bit by bit."""
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(is_same(v, b[k]) for k, v in a.items())
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(is_same, a, b))
    return torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b


def is_refused(file: Path) -> bool:
    """Whether it is, in one sentence that names it."""
    try:
        load_checkpoint(file)
    except CheckpointError as error:
        assert "\n" not in str(error) and str(file) in str(error)
        return True
    return False


def test_a_flipped_bit_in_any_byte_is_refused(file):
    """In each byte of headers and directory, and in one of seven inside the records."""
    assert not is_refused(file)
    beside = outside_records(file)
    tried = np.union1d(beside, np.arange(0, file.stat().st_size, 7))
    assert [position for position in flipped(file, tried) if not is_refused(file)] == [] and not is_refused(file)


def test_every_bit_of_the_end_of_a_checkpoint_counts(file):
    whole = file.read_bytes()
    for position in range(len(whole) - 80, len(whole)):
        for bit in range(8):
            file.write_bytes(whole[:position] + bytes([whole[position] ^ 1 << bit]) + whole[position + 1 :])
            assert is_refused(file), (position - len(whole), bit)


@pytest.mark.parametrize("change", [
    lambda whole: whole[:-1], lambda whole: whole[:-39], lambda whole: whole[: len(whole) // 2], lambda whole: b"",
    lambda whole: whole + whole, lambda whole: whole + b"\0", lambda whole: b"\0" + whole,
    lambda whole: bytes(len(whole)),
    lambda whole: whole[:-4096] + bytes(4096), lambda whole: bytes(512) + whole[512:],
    lambda whole: whole[512:] + whole[:512],
], ids=["a byte short", "without its checksum", "half", "empty", "twice", "a byte long", "a byte before", "zeros",
        "zeros at the end",
        "zeros at the beginning", "turned round"])
def test_a_file_of_another_length_or_with_a_hole_is_refused(file, change):
    file.write_bytes(change(file.read_bytes()))
    assert is_refused(file)


def test_a_damaged_checkpoint_is_not_continued_and_the_one_before_is_named(run, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    before, newest = list_checkpoints(tmp_path / "run/checkpoints")[-2:]
    for _ in flipped(newest, [newest.stat().st_size // 2]):
        with pytest.raises(CheckpointError, match=f"damaged.* The one before it is {before}"):
            train(Pointer, TrainConfig(steps=96), tmp_path / "run", resume_from=tmp_path / "run")


@pytest.mark.parametrize("which", ["of the engine", "shipped"])
def test_a_file_without_a_checksum_loads_what_was_saved_or_is_refused(file, which, tmp_path):
    """As of version 0.2 and before: bytes beside the records, among them all of the directory's first entries, and
    bytes in them."""
    if which == "shipped":
        file = Path(shutil.copy(pretrained.path("navigate"), tmp_path))
    else:
        torch.save(torch.load(file, weights_only=True), file)
    good, beside, rng = load_checkpoint(file), outside_records(file), np.random.default_rng(0)
    with zipfile.ZipFile(file) as archive:
        first = np.arange(archive.start_dir, archive.start_dir + 130)
    for position in flipped(file, np.concatenate([first, first, rng.choice(beside, 100)])):
        assert is_refused(file) or is_same(load_checkpoint(file), good), position
    inside = np.setdiff1d(np.arange(file.stat().st_size), beside)
    assert all(is_refused(file) for _ in flipped(file, rng.choice(inside, 100)))


def test_a_record_marked_as_a_directory_is_refused(file):
    """Bit 4 of its external attributes, for which torch gives back memory that nobody has written."""
    torch.save(torch.load(file, weights_only=True), file)
    with zipfile.ZipFile(file) as archive:
        attributes = archive.start_dir + 38
    whole = file.read_bytes()
    file.write_bytes(whole[:attributes] + b"" + whole[attributes + 1 :])
    assert is_refused(file)


def test_every_shipped_policy_loads():
    for name in pretrained.names():
        load_checkpoint(pretrained.path(name))

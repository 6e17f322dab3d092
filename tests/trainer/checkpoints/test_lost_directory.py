"""A training whose directory somebody takes away: what is saved is true of the disk, and what is not is told."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.trainer.faults.fault_tools import config
from tests.trainer.toys import Pointer
from trainer import load_checkpoint, train


class AtThird:
    """Does something after the third update."""

    def __init__(self, act):
        self.act, self.updates = act, 0

    def after_update(self, state):
        self.updates += 1
        if self.updates == 3:
            self.act()


def blocked(run: Path) -> None:
    """In the place of the folder above it lies a file."""
    shutil.rmtree(run.parent)
    run.parent.write_text("a file")


@pytest.mark.parametrize("mode", ["ver", "ver+overlap", "deterministic"])
def test_a_removed_directory_is_told_once_and_holds_all_steps_at_the_end(mode, tmp_path, caplog):
    run = tmp_path / "a/run"
    result = train(Pointer, config(mode, 128 * 6), run, progress=False,
                   callbacks=[AtThird(lambda: shutil.rmtree(run.parent))])
    assert result.unsaved_steps == 0 and load_checkpoint(run)["step"] == result.steps == 128 * 6
    assert caplog.text.count("removed or renamed by somebody") == 1 and "a new checkpoint is written" in caplog.text


def test_steps_of_a_directory_that_cannot_be_made_anew_are_not_called_saved(tmp_path, caplog):
    run = tmp_path / "a/run"
    result = train(Pointer, config("ver", 128 * 6), run, progress=False, callbacks=[AtThird(lambda: blocked(run))])
    assert result.checkpoint is None and result.unsaved_steps == result.steps == 128 * 6
    assert caplog.text.count("nothing can be written there now (Not a directory)") == 1
    assert "is intact" not in caplog.text


def test_checkpoints_that_are_removed_are_written_again(tmp_path, caplog):
    result = train(Pointer, config("ver", 128 * 6), tmp_path, progress=False,
                   callbacks=[AtThird(lambda: [file.unlink() for file in (tmp_path / "checkpoints").iterdir()])])
    assert load_checkpoint(tmp_path)["step"] == result.steps and "the newest checkpoint" in caplog.text

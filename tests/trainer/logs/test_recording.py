"""Training from Python leaves the metrics that the command leaves, and shows its progress."""

from __future__ import annotations

import csv

from tests.trainer.toys import Pointer, small
from trainer import train
from trainer.logs.logger import MetricsLogger, read_jsonl
from trainer.logs.run_files import recording


def config(steps: int):
    return small(steps, log_every_s=1e-9)


def logged(run_dir) -> list[int]:
    return [row["step"] for row in read_jsonl(run_dir / "metrics.jsonl")]


def test_a_run_with_a_directory_is_shown_and_recorded(tmp_path, capsys):
    result = train(Pointer, config(128), tmp_path)
    out = capsys.readouterr().out
    assert out.startswith("train  ") and "/128 " in out and f"return {result.history[-1]['episode/return']:.1f}" in out
    steps = [int(row["step"]) for row in result.history]
    assert len(steps) == 4 and logged(tmp_path) == steps
    with open(tmp_path / "metrics.csv", newline="") as file:
        assert [int(row["step"]) for row in csv.DictReader(file)] == steps
    assert list((tmp_path / "tb").glob("events*"))


def test_progress_is_turned_off_and_metrics_are_not(tmp_path, capsys):
    train(Pointer, config(64), tmp_path, progress=False)
    assert capsys.readouterr().out == "" and len(logged(tmp_path)) == 2


def test_a_run_without_a_directory_writes_and_shows_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    train(Pointer, config(32))
    assert capsys.readouterr().out == "" and not list(tmp_path.iterdir())


def test_a_resumed_run_goes_on_in_the_same_files(tmp_path):
    train(Pointer, config(64), tmp_path, progress=False)
    with MetricsLogger(tmp_path) as logger:
        logger(999, {"episode/return": 0.0})  # of an attempt that was not saved
    train(Pointer, config(128), tmp_path, resume_from=tmp_path, progress=False)
    assert logged(tmp_path) == [32, 64, 96, 128]


def test_a_logger_of_ones_own_takes_the_place_of_the_runs(tmp_path, capsys):
    with recording(tmp_path / "mine", config(64), title="mine") as observers:
        train(Pointer, config(64), tmp_path / "run", observers=observers)
    assert logged(tmp_path / "mine") == [32, 64] and not (tmp_path / "run" / "metrics.jsonl").exists()
    assert all(line.startswith("mine ") for line in capsys.readouterr().out.splitlines())

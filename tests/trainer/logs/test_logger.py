"""Metrics survive new columns, resumes, torn lines and full disks; W&B needs neither account nor network."""

from __future__ import annotations

import builtins
import csv
import json
import logging
import socket

import numpy as np
import pytest

from trainer.film import Film
from trainer.logs.logger import Csv, JsonLines, MetricsLogger, read_jsonl


def table(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def scalars(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder))
    events.Reload()
    return {tag: [(e.step, round(e.value, 3)) for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def test_three_files_hold_the_same_figures(tmp_path):
    with MetricsLogger(tmp_path) as logger:
        logger.log(10, {"episode/success": 0.25})
        logger(20, {"episode/success": 0.5, "learn/kl": float("nan")})
    assert read_jsonl(tmp_path / "metrics.jsonl") == [
        {"step": 10, "episode/success": 0.25},
        {"step": 20, "episode/success": 0.5, "learn/kl": None},
    ]
    assert table(tmp_path / "metrics.csv") == [
        {"step": "10", "episode/success": "0.25", "learn/kl": ""},
        {"step": "20", "episode/success": "0.5", "learn/kl": "nan"},
    ]
    assert scalars(tmp_path / "tb")["episode/success"] == [(10, 0.25), (20, 0.5)]


def test_every_line_is_strict_json(tmp_path):
    with MetricsLogger(tmp_path) as logger:
        logger.log(1, {"a": float("inf"), "b": 1})

    def refuse(constant):
        raise AssertionError(constant)

    assert json.loads((tmp_path / "metrics.jsonl").read_text(), parse_constant=refuse) == {
        "step": 1,
        "a": None,
        "b": 1.0,
    }


def test_a_resumed_run_doubles_no_row_and_loses_none(tmp_path):
    with MetricsLogger(tmp_path) as logger:
        for step in (1, 2, 3, 4):
            logger.log(step, {"a": step})
    with MetricsLogger(tmp_path, resume_step=2) as logger:
        for step in (3, 4, 5):
            logger.log(step, {"a": 10 * step, "new": 1})
    expected = [(1, 1), (2, 2), (3, 30), (4, 40), (5, 50)]
    assert [(row["step"], row["a"]) for row in read_jsonl(tmp_path / "metrics.jsonl")] == expected
    assert [(int(row["step"]), float(row["a"])) for row in table(tmp_path / "metrics.csv")] == expected
    assert scalars(tmp_path / "tb")["a"] == expected


def test_what_is_no_row_costs_itself_alone(tmp_path):
    path = tmp_path / "m.jsonl"
    path.write_bytes(b'{"step": 1, "a": 1}\n\xff\xfe\x00\n[]\n{"step": "x"}\n{"step": 2, "a": 2}\n')
    assert [row["step"] for row in read_jsonl(path)] == [1, 2]


def test_a_line_torn_by_a_crash_costs_one_row(tmp_path):
    path = tmp_path / "m.jsonl"
    path.write_text('{"step": 1, "a": 1}\n{"step": 2, "a"')
    JsonLines(path, resume_step=5).write(6, {"a": 6.0})
    assert [row["step"] for row in read_jsonl(path)] == [1, 6]
    table_path = tmp_path / "m.csv"
    table_path.write_text("step,a,b\n1,1,1\n2,")
    Csv(table_path, resume_step=5).write(6, {"a": 6.0, "b": 0.0})
    assert [row["step"] for row in table(table_path)] == ["1", "6"]


@pytest.fixture
def full_disk(monkeypatch):
    """Writing can be made to fail half way through, as on a full disk."""
    state = {"full": False}
    real = builtins.open

    class Full:
        def __init__(self, file):
            self.file = file

        def __getattr__(self, name):
            return getattr(self.file, name)

        def __enter__(self):
            self.file.__enter__()
            return self

        def __exit__(self, *error):
            return self.file.__exit__(*error)

        def write(self, text):
            self.file.write(text[: len(text) // 2])
            self.file.flush()
            raise OSError(28, "No space left on device")

    def opened(path, mode="r", *args, **kwargs):
        file = real(path, mode, *args, **kwargs)
        return Full(file) if state["full"] and mode in ("a", "w") and "metrics" in str(path) else file

    monkeypatch.setattr(builtins, "open", opened)
    return state


def test_a_full_disk_is_one_warning_and_logging_recovers(tmp_path, full_disk, caplog):
    with MetricsLogger(tmp_path) as logger, caplog.at_level(logging.WARNING):
        logger.log(1, {"a": 1})
        full_disk["full"] = True
        for step in range(2, 6):
            logger.log(step, {"a": step, "new": step})
        full_disk["full"] = False
        logger.log(6, {"a": 6, "new": 7})
    warnings = [record.message for record in caplog.records]
    assert len(warnings) == 2 and all(
        "No space left" in text and "training goes on" in text for text in warnings
    )  # one per file
    assert [row["step"] for row in read_jsonl(tmp_path / "metrics.jsonl")] == [1, 6]
    assert [list(row.values()) for row in table(tmp_path / "metrics.csv")] == [["1", "1.0", ""], ["6", "6.0", "7.0"]]


def test_wandb_offline_opens_no_connection(tmp_path, monkeypatch, caplog):
    pytest.importorskip("wandb")
    for name in ("WANDB_API_KEY", "WANDB_MODE"):
        monkeypatch.delenv(name, raising=False)
    asked = []
    real = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *a, **k: (asked.append(host), real(host, *a, **k))[1])
    with (
        MetricsLogger(tmp_path, wandb={"mode": "offline", "project": "p"}, config={"seed": 1}) as logger,
        caplog.at_level(logging.WARNING),
    ):
        logger.log(1, {"a": 1})
        film = Film()
        film.add(np.zeros((8, 8, 3), np.uint8))
        logger.log_film(1, "eval/episode", film.gif())
    assert list(tmp_path.glob("wandb/offline-run-*/*.wandb"))
    assert [file.read_bytes() for file in tmp_path.glob("wandb/offline-run-*/files/media/videos/eval/*.gif")] == [film.gif()]
    assert any("wandb sync" in record.message for record in caplog.records)
    assert not [host for host in asked if host not in ("localhost", "127.0.0.1", "::1", None)]
    first = (tmp_path / "wandb_id.txt").read_text()
    with MetricsLogger(tmp_path, wandb={"mode": "offline"}, resume_step=1):
        pass
    assert (tmp_path / "wandb_id.txt").read_text() == first


def test_a_failing_wandb_is_a_warning(tmp_path, monkeypatch, caplog):
    wandb = pytest.importorskip("wandb")

    def fail(**settings):
        raise RuntimeError("no service")

    monkeypatch.setattr(wandb, "init", fail)
    with caplog.at_level(logging.WARNING), MetricsLogger(tmp_path, wandb={"mode": "online"}) as logger:
        logger.log(1, {"a": 1})
    assert read_jsonl(tmp_path / "metrics.jsonl") == [{"step": 1, "a": 1.0}]
    assert sum("no service" in record.message for record in caplog.records) == 2  # told offline, then told off


def test_wandb_is_off_unless_asked_for(tmp_path):
    with MetricsLogger(tmp_path, wandb=None) as logger:
        logger.log(1, {"a": 1})
    assert not (tmp_path / "wandb").exists()

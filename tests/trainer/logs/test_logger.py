"""Metrics survive new columns, resumes, torn lines and full disks; W&B needs neither account nor network."""

from __future__ import annotations

import csv
import json
import logging
import resource
import shutil
import socket
from pathlib import Path

import numpy as np
import pytest

from tests.small_disk import fill, free, mount, unmount
from trainer.film import Film
from trainer.logs.logger import MetricsLogger, read_jsonl
from trainer.logs.metric_files import Csv, JsonLines


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


@pytest.mark.parametrize("gone", ["metrics.csv", "metrics.jsonl"])
def test_a_file_that_is_gone_is_made_from_the_other_when_the_run_goes_on(tmp_path, gone):
    with MetricsLogger(tmp_path) as logger:
        for step in (1, 2, 3):
            logger.log(step, {"a": step})
    (tmp_path / gone).unlink()
    with MetricsLogger(tmp_path, resume_step=2) as logger:
        logger.log(3, {"a": 30})
    expected = [(1, 1), (2, 2), (3, 30)]
    assert [(row["step"], row["a"]) for row in read_jsonl(tmp_path / "metrics.jsonl")] == expected
    assert [(int(row["step"]), float(row["a"])) for row in table(tmp_path / "metrics.csv")] == expected


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


def test_whole_lines_are_left_whole_where_nothing_is_resumed(tmp_path):
    for step in (1, 2):
        JsonLines(tmp_path / "m.jsonl").write(step, {"a": float(step)})
        Csv(tmp_path / "m.csv").write(step, {"a": float(step)})
    assert read_jsonl(tmp_path / "m.jsonl") == [{"step": 1, "a": 1.0}, {"step": 2, "a": 2.0}]
    assert [(row["step"], row["a"]) for row in table(tmp_path / "m.csv")] == [("1", "1.0"), ("2", "2.0")]


def test_tensorboard_is_told_the_size_of_a_film(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    film = Film()
    film.add(np.zeros((8, 12, 3), np.uint8))
    with MetricsLogger(tmp_path) as logger:
        logger.log_film(1, "eval/episode", film.gif())
    events = EventAccumulator(str(tmp_path / "tb"))
    events.Reload()
    (shown,) = events.Images("eval/episode")
    assert (shown.width, shown.height, shown.encoded_image_string) == (12, 8, film.gif())


class Limit:
    """No file of this process grows beyond the shortest of the metrics."""

    def __init__(self, folder):
        self.folder, self.before = folder, resource.getrlimit(resource.RLIMIT_FSIZE)

    def begin(self):
        sizes = [path.stat().st_size for path in self.folder.rglob("*") if path.is_file()]
        resource.setrlimit(resource.RLIMIT_FSIZE, (min(sizes, default=0) + 10, self.before[1]))

    def end(self):
        resource.setrlimit(resource.RLIMIT_FSIZE, self.before)


class FullDisk:
    """A file system of 1 MB, which something else fills."""

    def __init__(self, folder):
        self.folder = folder
        mount(folder, "size=1m")

    def begin(self):
        fill(self.folder)

    def end(self):
        free(self.folder)

    def close(self):
        unmount(self.folder)


class ReadOnly(FullDisk):
    """A file system that is mounted again, without writing, as the kernel does after an error of the device."""

    def begin(self):
        mount(self.folder, "remount,ro,size=1m")

    def end(self):
        mount(self.folder, "remount,rw,size=1m")


@pytest.fixture(params=[Limit, FullDisk, ReadOnly])
def disk(request, tmp_path):
    """A folder in which nothing can be written between `begin` and `end`."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = request.param(folder)
    yield made
    made.end()
    getattr(made, "close", lambda: None)()


def row(step, **more):
    """Longer than what a file system sets aside for a file at once."""
    return {f"metric/{number}": step + 1 / 3 for number in range(300)} | more


def steps_of(folder):
    """The steps in the three files."""
    return [[line["step"] for line in read_jsonl(folder / "metrics.jsonl")],
            [int(line["step"]) for line in table(folder / "metrics.csv")],
            [step for step, _ in scalars(folder / "tb")["metric/0"]]]


PLACES = ("metrics.jsonl", "metrics.csv", "TensorBoard")


@pytest.mark.parametrize("more", [{}, {"new": 1.0}])
def test_a_disk_that_is_full_for_a_while_costs_no_row(disk, caplog, more):
    """Also where a row has a new column, for which metrics.csv is written anew."""
    with MetricsLogger(disk.folder) as logger, caplog.at_level(logging.WARNING):
        for outage in (0, 10):
            logger.log(outage + 1, row(outage + 1))
            disk.begin()
            for step in range(outage + 2, outage + 6):
                logger.log(step, row(step, **more))
            disk.end()
            logger.log(outage + 6, row(outage + 6))
    assert steps_of(disk.folder) == [[1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16]] * 3
    for place in PLACES:  # which may be full at one row, and at the next
        told = [record.message.partition(": ")[2] for record in caplog.records if place in record.message]
        assert [text.startswith("metrics are not written (") for text in told] == [True, False, True, False], told
        assert all(text.startswith("metrics are written again, ") for text in told[1::2])


def test_what_could_never_be_written_is_counted(disk, caplog, monkeypatch):
    with MetricsLogger(disk.folder) as logger, caplog.at_level(logging.WARNING):
        logger.log(1, row(1))
        disk.begin()
        logger.log(2, row(2))  # of which the end of a block may still take some
        for step in (3, 4, 5):
            logger.log(step, row(step))
    disk.end()
    lost = [5 - max(steps) for steps in steps_of(disk.folder)]
    told = caplog.records[-1].message, caplog.records[-2].message
    for place, rows in zip(PLACES, lost, strict=True):
        assert rows >= 3 and any(place in text and f": {rows} rows could not be written (" in text
                                 for text in told), told
    caplog.clear()
    monkeypatch.setattr("trainer.logs.logger.WAITING_BYTES", 25_000)  # two rows
    with MetricsLogger(disk.folder, resume_step=1) as logger, caplog.at_level(logging.WARNING):
        disk.begin()
        for step in range(2, 8):
            logger.log(step, row(step))
        disk.end()
        logger.log(8, row(8))
    assert all(steps[0] == 1 and steps[-2:] == [7, 8] and len(steps) < 8 for steps in steps_of(disk.folder))
    for place, steps in zip(PLACES, steps_of(disk.folder), strict=True):
        assert sum(place in record.message and f": {8 - len(steps)} rows could not be written" in record.message
                   for record in caplog.records) == 1


def test_a_run_that_goes_on_while_the_disk_is_full_drops_what_it_writes_again(disk, caplog):
    with MetricsLogger(disk.folder) as logger:
        for step in range(1, 5):
            logger.log(step, row(step))
    disk.begin()
    with MetricsLogger(disk.folder, resume_step=2) as logger:
        logger.log(3, row(3))
        disk.end()
        logger.log(4, row(4))
    assert steps_of(disk.folder) == [[1, 2, 3, 4]] * 3


def test_a_directory_that_is_removed_and_made_again_holds_whole_files(tmp_path, caplog):
    run = tmp_path / "run"
    run.mkdir()
    with MetricsLogger(run) as logger, caplog.at_level(logging.WARNING):
        logger.log(1, row(1))
        shutil.rmtree(run)
        logger.log(2, row(2))
        run.mkdir()
        logger.log(3, row(3))
    assert steps_of(run) == [[2, 3]] * 3 and "No such file or directory" in caplog.records[0].message


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
    assert [file.read_bytes()
            for file in tmp_path.glob("wandb/offline-run-*/files/media/videos/eval/*.gif")] == [film.gif()]
    assert any("wandb sync" in record.message for record in caplog.records)
    assert not [host for host in asked if host not in ("localhost", "127.0.0.1", "::1", None)]
    first = (tmp_path / "wandb_id.txt").read_text()
    with MetricsLogger(tmp_path, wandb={"mode": "offline"}, resume_step=1):
        pass
    assert (tmp_path / "wandb_id.txt").read_text() == first


def test_a_row_that_a_kill_left_in_one_of_two_files_is_in_both_when_the_run_goes_on(tmp_path):
    with MetricsLogger(tmp_path) as logger:
        for step in range(1, 5):
            logger.log(step, {"a": step / 3, **({"bad": float("inf")} if step == 4 else {})})
    for name, gone in (("metrics.csv", 4), ("metrics.jsonl", 2)):
        lines = (tmp_path / name).read_text().splitlines(keepends=True)
        (tmp_path / name).write_text("".join(line for line in lines
                                             if not line.startswith((f"{gone},", f'{{"step": {gone},'))))
    with open(tmp_path / "metrics.csv", "a") as file:
        file.write("9,x,y,z\n")
    with MetricsLogger(tmp_path, resume_step=4) as logger:
        logger.log(5, {"a": 5.0})
    rows = read_jsonl(tmp_path / "metrics.jsonl")
    assert [row["step"] for row in rows] == [1, 2, 3, 4, 5]
    assert [row["a"] for row in rows] == [1 / 3, 2 / 3, 1.0, 4 / 3, 5.0]
    assert rows[3]["bad"] is None
    assert [(line["step"], line["a"], line["bad"]) for line in table(tmp_path / "metrics.csv")] == [
        ("1", repr(1 / 3), ""), ("2", repr(2 / 3), ""), ("3", "1.0", ""), ("4", repr(4 / 3), "nan"), ("5", "5.0", "")]


def test_all_parts_of_a_run_are_named_for_upload_and_are_whole(tmp_path, caplog):
    """A part that a kill has cut off in the middle of a record; one that holds nothing; one that is uploaded
    already."""
    wandb = pytest.importorskip("wandb")

    def attempt(step):
        caplog.clear()
        with MetricsLogger(tmp_path, wandb={"mode": "offline"},
                           resume_step=step) as logger, caplog.at_level(logging.WARNING):
            logger.log(step + 1, {"a": 1.0})
        wandb.teardown()  # W&B's own process has ended, and writes no more
        [said] = [record.message for record in caplog.records if "wandb sync " in record.message]
        return said.partition("wandb sync ")[2].split()

    [first] = attempt(0)
    [file] = Path(first).glob("*.wandb")
    whole = file.read_bytes()
    file.write_bytes(whole + b"\x01\x02\x03\x04\xff\x00\x01half a record")
    empty = tmp_path / "wandb/offline-run-20000101_000000-x"
    empty.mkdir()
    (empty / "run-x.wandb").write_bytes(whole[:7])
    parts = attempt(1)
    assert parts[0] == first and len(parts) == 2 and file.read_bytes() == whole
    file.with_name(f"{file.name}.synced").touch()
    assert attempt(2)[0] == parts[1]


@pytest.mark.parametrize("rows", [[1, 3_000], [40_000, 5], [70_000]])
def test_a_part_of_whole_records_is_not_cut(tmp_path, rows):
    """Records that go over blocks of 32 KiB; cut anywhere, only whole ones are left."""
    wandb_parts = pytest.importorskip("trainer.logs.weights_and_biases")
    file, ends, content = tmp_path / "run.wandb", [7], wandb_parts.HEAD
    for size in rows:
        left, kind = size, None
        while left or kind is None:
            room = wandb_parts.BLOCK - len(content) % wandb_parts.BLOCK
            if room < 7:
                content += bytes(room)
                continue
            piece = min(left, room - 7)
            kind = (1 if piece == left else 2) if kind is None else (4 if piece == left else 3)
            content += bytes(4) + piece.to_bytes(2, "little") + bytes([kind]) + b"x" * piece
            left -= piece
        ends.append(len(content))
    for length in [7, 8, *ends[1:], *range(20, len(content), 1_009)]:
        file.write_bytes(content[:length])
        wandb_parts._cut_to_whole_records(file)
        assert file.stat().st_size == max(end for end in ends if end <= length)
    file.write_bytes(b"another format" * 10)
    wandb_parts._cut_to_whole_records(file)
    assert file.stat().st_size == 140


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


def test_tensorboard_has_the_hyper_parameters(tmp_path):
    """As the tab HParams reads them, whatever type they have; after a resume, too."""
    from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams import metadata

    config = {"seed": 3, "ppo": {"learning_rate": 2.5e-4, "schedule": "linear"}, "deterministic": True, "name": None,
              "parts": ["arm", "grip"]}
    for resume_step in (None, 1):
        with MetricsLogger(tmp_path, resume_step=resume_step, config=config) as logger:
            logger.log(1 if resume_step is None else 2, {"loss": 0.5})
        events = EventAccumulator(str(tmp_path / "tb")).Reload()
        told = events.SummaryMetadata("_hparams_/session_start_info").plugin_data
        found = metadata.parse_session_start_info_plugin_data(told.content).hparams
        assert told.plugin_name == "hparams" and set(found) == {
            "seed", "ppo.learning_rate", "ppo.schedule", "deterministic", "parts"}
        assert found["ppo.learning_rate"].number_value == 2.5e-4 and found["ppo.schedule"].string_value == "linear"
        assert found["deterministic"].bool_value is True

"""The directory of a run that is removed or renamed while the command works: that is said, and the run can be continued
all the same.
"""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.e2e.front_door import TINY, checkpoint_steps, finish, start, status, steps_logged, succeed, wait_until
from trainer import load_checkpoint
from trainer.checkpoint import list_checkpoints

RUN = "outputs/train/pick/gone"
TRAIN = ("train", *TINY, "checkpoint_every_s=1", "steps=1000000", "name=gone")


def remove(*paths: str):
    def act(place: Path) -> None:
        for path in paths:
            subprocess.run(["rm", "-rf", place / path], check=False)  # which may leave what is written meanwhile

    return act


WAYS = {
    "outputs": remove("outputs"),
    "the run": remove(RUN),
    "the run, renamed": lambda place: (place / RUN).rename(place / "outputs/train/pick/other"),
    "outputs, renamed": lambda place: (place / "outputs").rename(place / "kept"),
    "settings": remove(f"{RUN}/config.yaml", f"{RUN}/overrides.yaml"),
    "the lock": remove(f"{RUN}/lock"),
    "status and table": remove(f"{RUN}/status.json", f"{RUN}/metrics.csv"),
    "checkpoints": remove(f"{RUN}/checkpoints"),
    "all metrics": remove(f"{RUN}/metrics.csv", f"{RUN}/metrics.jsonl", f"{RUN}/tb"),
}
SILENT = ("all metrics",)  # nothing that a run goes on with


@pytest.mark.parametrize("way, moment", [
    # each in one of both moments
    pytest.param(way, moment, marks=() if (number + (moment == "later")) % 2 else pytest.mark.slow)
    for number, way in enumerate(WAYS) for moment in ("at once", "later")])
def test_a_training_says_so_and_is_continued(way, moment, tmp_path):
    """Stopped in the moment after, or once it has logged again."""
    run = tmp_path / RUN
    process = start(tmp_path, *TRAIN)
    wait_until(lambda: len(steps_logged(run)) > 2 and bool(list_checkpoints(run / "checkpoints")), process)
    WAYS[way](tmp_path)
    if moment == "later":
        wait_until(lambda: run.is_dir() and len(steps_logged(run)) > 2 and (run / "config.yaml").exists(), process)
    process.send_signal(signal.SIGINT)
    done = finish(process)
    said = done.stdout + done.stderr
    assert done.returncode == 130 and "Traceback" not in said, said
    assert way in SILENT or "removed" in said, said
    assert f"name={run.name} resume=true" in done.stdout and status(run) == "stopped"
    step = checkpoint_steps(run)[-1]
    assert load_checkpoint(run)["step"] == step > 0
    kept = steps_logged(run)  # none where it stopped before it logged again
    assert not (run / "lock").exists() or json.loads((run / "lock").read_text())["pid"] == process.pid
    out = succeed(tmp_path, "train", "skill=pick", "name=gone", f"steps={step + 64}", "resume=force")
    assert "done:" in out and status(run) == "finished"
    assert checkpoint_steps(run)[-1] > step
    with open(run / "metrics.csv", newline="") as file:
        header, *rows = csv.reader(file)
    assert header[0] == "step" and [int(row[0]) for row in rows] == steps_logged(run)
    assert {at for at in kept if at <= step} <= set(steps_logged(run))


def test_a_directory_is_this_process_own_again_after_it_was_removed(tmp_path):
    process = start(tmp_path, *TRAIN)
    wait_until(lambda: len(steps_logged(tmp_path / RUN)) > 1, process)
    remove("outputs")(tmp_path)
    wait_until(lambda: (tmp_path / RUN / "config.yaml").exists(), process)
    other = finish(start(tmp_path, "train", "skill=pick", "name=gone", "resume=true"))
    assert other.returncode == 2 and f"is in use by process {process.pid}" in other.stderr
    process.send_signal(signal.SIGINT)
    assert finish(process).returncode == 130


def test_a_run_whose_place_another_has_taken_ends_and_saves_beside_it(tmp_path):
    run = tmp_path / RUN
    process = start(tmp_path, *TRAIN)
    wait_until(lambda: len(steps_logged(run)) > 1, process)
    os.kill(process.pid, signal.SIGSTOP)
    run.rename(run.with_name("before"))
    other = start(tmp_path, *TRAIN)
    wait_until(lambda: len(steps_logged(run)) > 1, other)
    os.kill(process.pid, signal.SIGCONT)
    done = finish(process)
    beside = run.with_name(f"gone-{process.pid}")
    assert done.returncode == 130 and "Traceback" not in done.stderr
    assert f"is in use by process {other.pid}" in done.stderr
    assert f"checkpoint={Path('outputs/train/pick') / beside.name}" in done.stdout
    assert load_checkpoint(beside)["step"] > 0
    other.send_signal(signal.SIGINT)
    assert finish(other).returncode == 130 and status(run) == "stopped"


@pytest.mark.parametrize("what", ["outputs", "outputs/eval/pick/gone"])
def test_an_evaluation_keeps_what_it_has_measured(what, tmp_path):
    run = tmp_path / "outputs/eval/pick/gone"
    process = start(tmp_path, "eval", "skill=pick", "agent=random", "episodes=60", "video=0", "workers=1", "name=gone")
    wait_until(lambda: (run / "status.json").exists(), process)
    remove(what)(tmp_path)
    done = finish(process)
    assert done.returncode == 0 and "had been removed" in done.stdout, done.stdout + done.stderr
    assert json.loads((run / "metrics.json").read_text())["episodes"] == 60 and status(run) == "finished"

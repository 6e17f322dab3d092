"""rearrange train: start, stop, resume, finish; and what it leaves."""

from __future__ import annotations

import csv
import fcntl
import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from tests.e2e.conftest import STEPS
from tests.e2e.front_door import (
    TINY,
    WITH_IMAGE,
    checkpoint_steps,
    environment,
    finish,
    rearrange,
    session_members,
    start,
    status,
    steps_logged,
    succeed,
    wait_until,
)


@pytest.mark.parametrize("number, name", [(0, "SIGTERM"), (1, "SIGINT")])
def test_a_signal_saves_and_says_how_to_go_on(trained, number, name):
    done, step, ended = trained.stops[number]
    assert done.returncode == 130 and ended == "stopped", done.stderr
    assert "Traceback" not in done.stderr
    assert f"stopped by {name}" in done.stdout
    assert "rearrange train skill=pick name=tiny resume=true" in done.stdout
    assert 0 < step < STEPS, "the signal came too late to test anything"


def test_a_terminal_that_is_closed_saves_like_a_signal(tmp_path):
    run = tmp_path / "outputs/train/pick/gone"
    ours, theirs = pty.openpty()
    words = [sys.executable, "-P", "-m", "rearrange", "train", *TINY, f"steps={STEPS}", "name=gone"]
    process = subprocess.Popen(words, cwd=tmp_path, env=environment(tmp_path) | {"TERM": "dumb"}, stdin=theirs,
                               stdout=theirs, stderr=theirs, start_new_session=True,
                               preexec_fn=_own_terminal)
    os.close(theirs)
    wait_until(lambda: _read(ours) or len(steps_logged(run)) > 0, process)
    os.close(ours)
    assert process.wait(60) == 130 and status(run) == "stopped"
    assert 0 < checkpoint_steps(run)[-1] < STEPS and "stopped by SIGHUP" in (run / "log.txt").read_text()
    assert not session_members(process.pid)


def _own_terminal() -> None:
    """In the child: its terminal is the one it reads from, and hanging up ends it even where the tests run under
    nohup.
    """
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def _read(terminal: int) -> None:
    """What has been written to a terminal, so that it does not fill up."""
    while select.select([terminal], [], [], 0.0)[0]:
        os.read(terminal, 4096)


def test_a_resumed_run_goes_on_where_it_stopped_and_finishes(trained):
    assert trained.final.returncode == 0, trained.final.stderr
    (_, first, _), (_, second, _) = trained.stops
    assert first < second < STEPS
    steps = steps_logged(trained.run)
    assert steps == sorted(set(steps)), "a step was logged twice"
    assert steps[-1] == STEPS and status(trained.run) == "finished"
    assert checkpoint_steps(trained.run)[-1] == STEPS
    assert f"done: {STEPS:,} steps" in trained.final.stdout and "rearrange eval skill=pick" in trained.final.stdout


def test_the_run_directory_tells_the_whole_story(trained):
    run = trained.run
    assert {path.name for path in run.iterdir()} >= {
        "config.yaml", "overrides.yaml", "log.txt", "metrics.csv", "metrics.jsonl", "tb", "checkpoints", "status.json"}
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    with open(run / "metrics.csv", newline="") as file:
        table = list(csv.DictReader(file))
    assert [int(row["step"]) for row in table] == [row["step"] for row in rows]
    last = rows[-1]
    assert {"steps_per_s", "episodes", "episode/return", "episode/success", "failure/time_limit", "reward/distance",
            "learn/kl", "time/learn_share"} <= set(last)
    assert 0 <= last["episode/success"] <= 1 and last["episodes"] > 0
    assert float(table[-1]["episode/return"]) == last["episode/return"]
    log = (run / "log.txt").read_text()
    assert log.count("$ rearrange train") == 3
    assert f"success {last['episode/success']:.0%}" in trained.final.stdout
    assert any(file.name.startswith("events.out") for file in (run / "tb").iterdir())


def test_list_shows_the_run(trained):
    out = succeed(trained.home, "list")
    line = next(row for row in out.splitlines() if "train/pick/tiny" in row)
    assert "finished" in line and f"step_{STEPS:012d}.pt" in line


def test_a_run_begins_with_the_policy_of_another(trained):
    out = succeed(trained.home, "train", *WITH_IMAGE, "steps=100", "name=goes_on", "checkpoint=outputs/train/pick/tiny")
    assert "train pick  64/128 50%" in out and "train pick  128/128 100%" in out  # whole rollouts
    assert "done: 128 steps" in out
    from trainer.checkpoint import load_checkpoint

    content = load_checkpoint(trained.home / "outputs/train/pick/goes_on")
    assert content["meta"]["started_from"] == "outputs/train/pick/tiny" and content["step"] == 128


def test_its_network_is_that_of_the_other(tmp_path):
    """Also where a later version's would be another; and where the run is resumed by the same words, or by its name."""
    from rearrange.command_line.runs.run_directory import saved_config
    from trainer.checkpoint import load_checkpoint

    other = ("policy.hidden_size=24", "policy.normalize_observations=false", "policy.normalize_returns=false",
             "policy.separate_value=false")
    succeed(tmp_path, "train", *WITH_IMAGE, "steps=64", "name=first", *other)
    words = ("train", *WITH_IMAGE, "name=second", "checkpoint=outputs/train/pick/first")
    succeed(tmp_path, *words, "steps=64")
    again = succeed(tmp_path, *words, "steps=128", "resume=force"), succeed(tmp_path, "train", "skill=pick",
                                                                            "name=second", "steps=192", "resume=force")
    assert "done: 128 steps" in again[0] and "done: 192 steps" in again[1]
    run = tmp_path / "outputs/train/pick/second"
    network = load_checkpoint(run)["policy_config"]
    assert network["hidden_size"] == saved_config(run)["policy"]["hidden_size"] == 24
    assert not any(network[key] for key in ("normalize_observations", "normalize_returns", "separate_value"))
    done = rearrange(tmp_path, *words[:-2], "name=third", words[-1], "policy.hidden_size=32")
    assert done.returncode == 2 and "is a checkpoint of another network" in done.stderr


def test_wandb_needs_no_account_and_no_network(tmp_path):
    out = succeed(tmp_path, "train", "skill=pick", "experiment=debug", "logger=wandb", "name=offline")
    run = tmp_path / "outputs/train/pick/offline"
    assert list(run.glob("wandb/offline-run-*/*.wandb")), sorted(run.rglob("*"))
    assert "done: 128 steps" in out and status(run) == "finished"


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_a_killed_worker_ends_the_run_with_its_name(tmp_path):
    """kill -9 of a worker, as the kernel does when memory runs out."""
    run = tmp_path / "outputs/train/pick/killed"
    shared_before = set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()
    process = start(tmp_path, "train", *TINY, "steps=1000000", "name=killed")
    wait_until(lambda: bool(steps_logged(run)), process)
    (worker,) = (pid for pid in session_members(process.pid) if "trainer.workers.worker" in _command(pid))
    os.kill(worker, signal.SIGKILL)
    done = finish(process, 30.0)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr and done.stderr.count("environment worker") == 1
    assert f"environment worker 0 (environments 0-1, pid {worker}) was killed by signal SIGKILL" in done.stderr
    assert "name=killed resume=true" in done.stderr
    assert status(run) == "failed"
    assert not session_members(process.pid), "an orphan process is left"
    if os.path.isdir("/dev/shm"):
        assert set(os.listdir("/dev/shm")) <= shared_before, "shared memory is left"
    from trainer.checkpoint import load_checkpoint, load_policy

    content = load_checkpoint(run)
    load_policy(content)
    assert content["step"] == checkpoint_steps(run)[-1] >= steps_logged(run)[-1]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""

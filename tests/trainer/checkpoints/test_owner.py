"""One process owns a directory, as long as it lives and no longer."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.front_door import HOME
from trainer import TrainConfig, train
from trainer.checkpoints import owner
from trainer.checkpoints.owner import InUse

OTHER = """
import os, signal, subprocess, sys, time
from trainer.checkpoints import owner
own = owner.hold(sys.argv[1])
start = lambda: subprocess.Popen(["sleep", "600"], close_fds=False).pid  # it gets what is not closed by itself
child = {"started": start, "forked": os.fork, "none": lambda: -1}[sys.argv[2]]()
if child == 0:
    time.sleep(600)  # timed: until the test ends it
    os._exit(0)
print(child, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def other(tmp_path):
    """`other(child)`: another process that owns tmp_path and has a child; the process, and the id of the child."""
    begun = []

    def begin(child: str = "none") -> tuple[subprocess.Popen, int]:
        process = subprocess.Popen([sys.executable, "-c", OTHER, str(tmp_path), child], cwd=HOME, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        begun.append((process, int(process.stdout.readline())))
        return begun[-1]

    yield begin
    for process, child in begun:
        process.kill()
        if child > 0:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        process.communicate()  # until nobody holds its pipe


def test_a_second_process_is_refused_by_name_and_may_look(tmp_path, other):
    process, _ = other()
    with pytest.raises(InUse, match=rf"in use by process {process.pid} on .*, since 2\d"):
        owner.hold(tmp_path)
    with pytest.raises(InUse, match=f"process {process.pid}"):
        owner.refuse_if_held(tmp_path)
    assert owner.is_held(tmp_path) is True
    process.communicate("")
    assert owner.is_held(tmp_path) is False and (tmp_path / owner.FILE).exists(), "the file alone says nothing"
    with owner.hold(tmp_path):
        assert owner.is_held(tmp_path) and json.loads((tmp_path / owner.FILE).read_text())["pid"] == os.getpid()
    assert not owner.is_held(tmp_path)


@pytest.mark.parametrize("child", ["started", "forked"])
def test_a_child_that_outlives_a_killed_owner_does_not_own(tmp_path, other, child):
    process, _ = other(child)
    assert owner.is_held(tmp_path)
    process.kill()
    process.wait()
    owner.hold(tmp_path).release()


def test_the_end_of_a_forked_child_takes_nothing_away(tmp_path, other):
    process, child = other("forked")
    os.kill(child, signal.SIGKILL)
    assert owner.is_held(tmp_path)


def test_a_process_may_ask_again_for_what_it_holds(tmp_path):
    first, second = owner.hold(tmp_path), owner.hold(tmp_path / ".")
    owner.refuse_if_held(tmp_path)
    first.release()
    first.release()
    assert owner.is_held(tmp_path)
    second.release()
    assert not owner.is_held(tmp_path)


def test_looking_takes_nothing_and_writes_nothing(tmp_path):
    assert owner.is_held(tmp_path) is False and not list(tmp_path.iterdir())
    owner.refuse_if_held(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_short_look_of_another_is_no_owner(tmp_path, monkeypatch):
    """`is_held` of another process has the lock for a moment."""
    real, tries = fcntl.flock, []

    def flock(descriptor, kind):
        tries.append(kind)
        if len(tries) < 3:
            raise BlockingIOError(errno.EAGAIN, "busy")
        real(descriptor, kind)

    monkeypatch.setattr(owner.fcntl, "flock", flock)
    owner.hold(tmp_path).release()
    assert len(tries) == 3


@pytest.mark.parametrize("number", owner.NO_LOCKS)
def test_a_file_system_without_locks_is_a_warning(tmp_path, monkeypatch, caplog, number):
    def flock(descriptor, kind):
        raise OSError(number, "no locks here")

    monkeypatch.setattr(owner.fcntl, "flock", flock)
    with owner.hold(tmp_path):
        assert owner.is_held(tmp_path) is None and "has no locks" in caplog.text


def test_training_from_python_owns_its_directory(tmp_path, other):
    process, _ = other()
    with pytest.raises(ValueError, match=f"in use by process {process.pid}"):
        train(lambda: None, TrainConfig(steps=64), tmp_path)
    assert not list(Path(tmp_path).rglob("*.pt"))

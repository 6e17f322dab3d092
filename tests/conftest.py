"""What `make test` does before and how it goes through the tests: it gives whole files to several processes, so what
all of them need is compiled once before, and the files that take longest come first.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile

import pytest

from tests import small_disk as disks
from tests.e2e import warm

# Torch's OpenMP threads wait by spinning: where several processes share the cores, a training then takes three times
# its processor time.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

LONG = (  # half a minute of processor time or more each: they begin first, so that none is left for the end
    "tests/trainer/faults/test_evaluation_process.py", "tests/e2e/test_removed_directory.py",
    "tests/trainer/test_evaluation.py",
    "tests/trainer/workers/test_batched.py", "tests/eval/recording/test_full_disk.py", "tests/e2e/test_attacked.py",
    "tests/e2e/test_ranks.py", "tests/trainer/ranks/test_ranks.py", "tests/eval/test_reproduce.py",
    "tests/trainer/faults/test_faults.py", "tests/docs/test_extend.py", "tests/trainer/test_every_step.py",
    "tests/trainer/test_loop.py",
    "tests/docs/test_pages.py", "tests/trainer/test_experience.py", "tests/trainer/test_deterministic.py",
)
FORKED = ("trainer", "eval", "planner")  # whose tests start processes of ours, most of them trainings
COMPILES = (  # commands that between them use most compiled functions, some twenty seconds of compiling the first time
    ("skill=pick", "agent=random", "skill.max_steps=3", "episodes=1", "video=1"),
    ("nav=objectnav", "agent=oracle", "nav.max_steps=3", "episodes=1", "video=0"),
)


def pytest_configure(config):
    """In a fresh clone each process would compile for itself, several at the same time."""
    gc.disable()  # until all tests are collected: a search for cycles through what stays takes a third of that time
    if not getattr(config.option, "numprocesses", None) or any((config.rootpath / "rearrange").rglob("*.nbi")):
        return
    print("compiling once for all processes, half a minute", flush=True)
    with tempfile.TemporaryDirectory() as place:
        commands = [subprocess.Popen([sys.executable, "-P", "-m", "rearrange", "eval", *words, f"output={place}"],
                                     cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    for words in COMPILES]
        for command in commands:
            command.wait()  # what it finds wrong the tests find, too


def pytest_collection_modifyitems(items):
    place = {file: number for number, file in enumerate(LONG)}
    items.sort(key=lambda item: place.get(item.nodeid.partition("::")[0], len(LONG)))


def pytest_collection_finish():
    """What is there now stays: a search for cycles through all of it would take half a second each time."""
    gc.freeze()
    gc.enable()


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 6 MB; `tests.small_disk.fill` fills it."""
    with disks.small_disk(tmp_path / "disk", 6) as disk:
        yield disk


@pytest.fixture(autouse=True)
def forked_processes(request, monkeypatch):
    """What a training or an evaluation in the tests' own process starts is forked by a server that has imported
    everything."""
    top = request.path.relative_to(request.config.rootpath / "tests").parts[0]
    if top == "trainer":
        warm.start_server()  # before what a test counts
    if top in FORKED:
        monkeypatch.setattr(subprocess, "Popen", warm.Begins)

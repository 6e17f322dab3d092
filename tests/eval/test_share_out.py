"""Work shared out among processes: every answer, every error, and no process left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from eval.processes import ProcessDied, share_out
from rearrange.home.errors import UserError
from tests.e2e.front_door import HOME, session_members


def square(job, chunk):
    yield job["offset"] + chunk**2


def refuse(job, chunk):
    if chunk == 3:
        raise UserError("no threes.")
    yield chunk


class Awkward(Exception):
    """Does not survive pickling: its constructor wants two words."""

    def __init__(self, one, two):
        super().__init__(f"{one} {two}")


def awkward(job, chunk):
    yield chunk
    raise Awkward("quite", "awkward")


class Lacking(UserError):
    """As that one, but told in plain words."""

    def __init__(self, scene, why):
        super().__init__(f"scene {scene} {why}.")


def lacking(job, chunk):
    yield chunk
    raise Lacking("home", "has no fridge")


def die(job, chunk):
    if chunk == 1:
        yield "before"
        os.kill(os.getpid(), signal.SIGKILL)
    yield chunk


def nap(job, chunk):
    time.sleep(job)  # timed: how long a job takes
    yield None


def run(work, chunks, workers):
    answers = []
    share_out(work, {"offset": 1}, chunks, workers, answers.append)
    return answers


def count(job, chunk):
    yield from range(chunk)


def children() -> list[str]:
    """The processes of this one, but for that which tests fork from (tests/e2e/warm.py), whenever it is started."""
    found = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    return [pid for pid in found if b"warm.py" not in Path(f"/proc/{pid}/cmdline").read_bytes()]


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_every_chunk_is_answered_once(workers):
    before = children()
    assert sorted(run(square, list(range(7)), workers)) == [1 + n**2 for n in range(7)]
    assert children() == before


@pytest.mark.parametrize("workers", [1, 2])
def test_a_chunk_may_give_many_answers_or_none(workers):
    assert sorted(run(count, [3, 0, 2], workers)) == [0, 0, 1, 1, 2]


@pytest.mark.parametrize("work, error, words", [(refuse, UserError, "no threes."),
                                                (awkward, RuntimeError, "Awkward: quite awkward"),
                                                (lacking, UserError, "^scene home has no fridge.\n")])
def test_what_is_raised_there_is_raised_here_and_says_where(work, error, words):
    before = children()
    with pytest.raises(error, match=words) as caught:
        run(work, list(range(6)), 2)
    assert "in " + work.__name__ in "".join(caught.value.__notes__)
    assert children() == before


def test_a_killed_process_is_told_and_what_it_gave_before_is_kept():
    before, answers = children(), []
    with pytest.raises(ProcessDied, match="killed by SIGKILL; .* fewer workers="):
        share_out(die, None, list(range(1, 7)), 2, answers.append)
    assert "before" in answers
    assert children() == before


SCRIPT = """
import sys
from eval.processes import share_out
from tests.eval.test_share_out import nap
try:
    print("ready", flush=True)
    share_out(nap, 0.001, range(100_000), 3, lambda answer: None)
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.parametrize("after_ms", [0, 1, 3, 10, 30, 60, 100, 200])
def test_ctrl_c_at_any_moment_ends_all_at_once(after_ms, tmp_path):
    """While processes start, too."""
    process = subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, start_new_session=True, cwd=HOME)
    assert process.stdout.readline() == "ready\n"
    time.sleep(after_ms / 1e3)  # timed: at any moment
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and not err, err
    assert not session_members(process.pid)

"""A process that is forked is what a started one is: a child of who asked for it, with its own place, words, screen."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e import warm
from tests.e2e.front_door import environment, session_members
from tests.waiting import is_alive, until

TELLS = """\
import json, os, signal, subprocess, sys
from pathlib import Path

if "torch" not in sys.modules and os.environ.get("FORKED"):
    sys.exit("this process was started")
told = {"parent": os.getppid(), "leads": [os.getsid(0) == os.getpid(), os.getpgrp() == os.getpid()], "cwd": os.getcwd(),
        "words": sys.argv[1:], "environment": os.environ["MINE"], "first": sys.path[0], "file": __file__,
        "shown": Path("/proc/self/cmdline").read_bytes().rstrip(b"\\0").decode().split("\\0"), "name": __name__,
        "held": [int(s) for s in signal.pthread_sigmask(signal.SIG_BLOCK, [])],
        "threads": len(os.listdir("/proc/self/task")), "interrupt": repr(signal.getsignal(signal.SIGINT)),
        "files": sorted(map(int, os.listdir("/proc/self/fd")))[:4],
        "given": os.read(int(sys.argv[1]), 9).decode() if len(sys.argv) > 1 and sys.argv[1].isdigit() else ""}
print(json.dumps(told), flush=True)
print("to standard error", file=sys.stderr)
if "child" in sys.argv:
    subprocess.run([sys.executable, "-P", "-m", "tells", "grandchild"])
if "wait" in sys.argv:
    sys.stdin.read() or signal.pause()
sys.exit({"three": 3, "text": "a sentence"}.get(sys.argv[-1]))
"""


@pytest.fixture
def how(tmp_path) -> dict:
    """Where and how the module `tells` is run."""
    (tmp_path / "tells.py").write_text(TELLS)
    (tmp_path / "there").mkdir()
    variables = environment(tmp_path)
    return {"cwd": tmp_path / "there", "text": True, "stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "env": variables | {"MINE": "yes", "PYTHONPATH": f"{tmp_path}:{variables['PYTHONPATH']}"}}


@pytest.fixture(autouse=True)
def interrupts_are_heard():
    """Where the tests run in the background of a shell, SIGINT is ignored, also by what they start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def popen(kind: type[subprocess.Popen], how: dict, *words: str, **more) -> subprocess.Popen:
    forked = {"FORKED": "1"} if kind is warm.Popen else {}
    warm.start_server()
    return kind([sys.executable, "-P", "-m", "tells", *words], **how | more | {"env": how["env"] | forked})


@pytest.mark.parametrize("words, more", [
    (("a", "b c"), {}), (("three",), {"start_new_session": True}), (("text",), {"process_group": 0})])
def test_it_is_what_a_started_process_is(how, words, more):
    told = []
    for kind in (subprocess.Popen, warm.Popen):
        process = popen(kind, how, *words, **more)
        out, err = process.communicate()
        told.append((json.loads(out), err, process.returncode))
    assert told[0] == told[1] and told[0][0]["parent"] == os.getpid()


def test_it_is_given_files_and_a_held_signal(how):
    told = []
    for kind in (subprocess.Popen, warm.Popen):
        read, write = os.pipe()
        os.write(write, b"handed on")
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
        try:
            process = popen(kind, how, str(read), pass_fds=[read])
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        told.append(json.loads(process.communicate()[0]))
        os.close(read), os.close(write)
    assert told[0] == told[1] and told[0]["given"] == "handed on" and told[0]["held"] == [signal.SIGUSR1]


def test_what_it_starts_is_forked_and_its_own_child(how):
    process = popen(warm.Popen, how, "child")
    told = [json.loads(line) for line in process.communicate()[0].splitlines()]
    assert [each["parent"] for each in told] == [os.getpid(), process.pid] and process.returncode == 0


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_it_and_nothing_is_left(how, signum):
    process = popen(warm.Popen, how, "wait", start_new_session=True)
    process.stdout.readline()
    server = [int(child) for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
    until(lambda: session_members(process.pid) == [process.pid], "the name by which its server is known")
    process.send_signal(signum)
    assert process.wait() == -signum
    until(lambda: not any(map(is_alive, server)), "the end of its server")
    assert not session_members(process.pid)


def test_a_place_that_there_is_not_is_told_as_ever(how):
    with pytest.raises(FileNotFoundError):
        popen(warm.Popen, how, cwd=how["cwd"] / "nowhere")

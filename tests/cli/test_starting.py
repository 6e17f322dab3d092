"""A signal while a command starts, whatever it imports just then: one sentence, the right exit status, and SLURM's
warning is a requeue.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.front_door import TINY, environment, finish

# A process that sends itself a signal when it begins to import a module, and waits there; of a child that rearrange has
# started, where the module is called child:<name>.
SIGNALLED = """\
import os, signal, sys, time


class Finder:
    def find_spec(self, name, path=None, target=None):
        wanted, child = os.environ["AT"].removeprefix("child:"), os.environ["AT"].startswith("child:")
        if name == wanted and (not child or CHILD):
            sys.meta_path.remove(self)
            os.kill(os.getpid(), getattr(signal, os.environ["SIGNAL"]))


CHILD = "REARRANGE_LIFELINE" in os.environ
number = getattr(signal, os.environ["SIGNAL"])
if signal.getsignal(number) == signal.SIG_IGN:  # as a test run under nohup, or behind an ampersand, inherits it
    signal.signal(number, signal.SIG_DFL)
sys.meta_path.insert(0, Finder())
"""


@pytest.fixture
def place(tmp_path):
    """A folder with that, and with a scontrol that notes its words."""
    (tmp_path / "sitecustomize.py").write_text(SIGNALLED)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/scontrol").write_text(f"#!/bin/sh\necho \"$@\" >> {tmp_path}/noted\n")
    (tmp_path / "bin/scontrol").chmod(0o755)
    return tmp_path


def run(place: Path, at: str, signal: str, *words: str,
        program: tuple[str, ...] = ("-P", "-m", "rearrange")) -> tuple[int, str, str, str]:
    """Exit status, standard output and error, and what scontrol was asked."""
    base = environment(place)
    variables = {"AT": at, "SIGNAL": signal, "SLURM_JOB_ID": "42", "PATH": f"{place / 'bin'}:{os.environ['PATH']}",
                 "PYTHONPATH": f"{place}:{base['PYTHONPATH']}"}
    process = subprocess.Popen([sys.executable, *program, *words], cwd=place, env=base | variables, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    done = finish(process)
    noted = place / "noted"
    return done.returncode, done.stdout, done.stderr, noted.read_text().strip() if noted.exists() else ""


@pytest.mark.parametrize(
    "at, signal, status",
    [("omegaconf", "SIGUSR2", 75), ("rearrange.command_line.composition.auto_resume", "SIGXCPU", 75),
     ("trainer.workers.worker", "SIGUSR1", 75), ("torch", "SIGINT", 130), ("trainer.loop", "SIGTERM", 130),
     *(pytest.param(*case, marks=pytest.mark.slow) for case in (
         ("trainer.logs.screen", "SIGUSR1", 75), ("torch", "SIGUSR1", 75), ("mujoco", "SIGUSR1", 75),
         ("trainer.loop", "SIGUSR1", 75), ("omegaconf", "SIGTERM", 130), ("torch", "SIGHUP", 130),
         ("torch", "SIGQUIT", 130)))])
def test_a_signal_during_an_import_is_an_orderly_end(place, at, signal, status):
    code, out, err, asked = run(place, at, signal, "train", *TINY, "steps=1000000", "name=a", "requeue=true")
    assert code == status and "Traceback" not in err and err.count(
        "rearrange train: stopped.") == (status == 130 or "stopped by" not in out)
    assert asked == ("requeue 42" if status == 75
                     else "") and out.count("asked SLURM to start job 42 again") == (status == 75)


@pytest.mark.skipif(not Path(sys.executable).with_name("rearrange").exists(), reason="the console script is not "
                    "installed")
def test_the_console_script_does_the_same(place):
    program = (str(Path(sys.executable).with_name("rearrange")),)
    assert run(place, "torch", "SIGUSR1", "train", *TINY, "name=a", "requeue=true",
               program=program)[::3] == (75, "requeue 42")


def test_who_does_not_want_a_requeue_gets_none(place):
    assert run(place, "torch", "SIGUSR1", "train", *TINY, "name=a")[::3] == (75, "")


def test_a_sweep_ends_as_its_job_does_even_when_that_has_no_handlers_yet(place):
    code, out, err, _ = run(place, "child:rearrange.home.errors", "SIGUSR1", "train", "-m", *TINY, "seed=0,1",
                            "name=two", "steps=64")
    assert code == 75 and "Traceback" not in err and "stopped" in out, (out, err)


def test_an_interrupt_within_executed_text_keeps_the_exit_status(place):
    """Where CPython's -m would end by SIGINT, whatever status is asked for."""
    text = "import os, threading; os.kill(os.getpid(), 10); os.kill(os.getpid(), 10); threading.Event().wait(60)"
    (place / "mine.py").write_text(f"exec({text!r})\n")
    code, _, err, asked = run(place, "nothing", "SIGUSR1", "train", *TINY, "name=a", "requeue=true",
                              "policy=mine:Network")
    assert (code, asked) == (75, "requeue 42") and "Traceback" not in err


@pytest.mark.parametrize("signal", ["SIGINT", pytest.param("SIGTERM", marks=pytest.mark.slow),
                                    pytest.param("SIGUSR1", marks=pytest.mark.slow)])
def test_a_signal_while_python_ends_changes_nothing(place, signal):
    """The command is done and has its status; an interrupt would be a traceback of whatever ends just then."""
    code = (f"import atexit, os, signal, sys, threading\n"
            f"atexit.register(lambda: (os.kill(os.getpid(), signal.{signal}), threading.Event().wait()))\n"
            f"from rearrange.command_line.cli import main\nsys.exit(main())\n")
    code, out, err, asked = run(place, "nothing", signal, "list", program=("-P", "-c", code))
    assert (code, err, asked) == (0, "", "") and out

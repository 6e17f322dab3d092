"""A signal that ends a command is not lost, wherever the program is just then."""

import ctypes
import importlib
import os
import signal
import subprocess
import sys
import threading

import mujoco
import numpy as np
import pytest

from trainer.faults import signals
from trainer.faults.stopping import stop_on_signal


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_is_raised_in_a_callback_from_c_is_raised_again():
    before = signal.signal(signal.SIGUSR1, signals.interrupt)
    try:
        compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p,
                                   ctypes.c_void_p)(lambda a, b: os.kill(os.getpid(), signal.SIGUSR1) or 0)
        # where the exception is lost
        ctypes.CDLL(None).qsort((ctypes.c_int * 2)(2, 1), 2, ctypes.sizeof(ctypes.c_int), compare)
        with pytest.raises(KeyboardInterrupt, match="SIGUSR1"):
            signals.raise_again()
    finally:
        signal.signal(signal.SIGUSR1, before)
        signals.came.clear()


def test_what_is_raised_while_mujoco_converts_an_argument_is_raised_again():
    """Where it becomes a TypeError about types that are right."""
    model = mujoco.MjModel.from_xml_string("<mujoco><worldbody><geom size='1'/></worldbody></mujoco>")
    data = mujoco.MjData(model)

    class Start:
        def __array__(self, dtype=None, copy=None):
            os.kill(os.getpid(), signal.SIGUSR1)
            return np.array([0.0, 0.0, 5.0])

    def ray(start) -> None:
        mujoco.mj_ray(model, data, start, np.array([0.0, 0.0, -1.0]), None, 1, -1, np.zeros(1, np.int32))

    before = signal.signal(signal.SIGUSR1, signals.interrupt)
    try:
        with pytest.raises(TypeError, match="incompatible function arguments"), signals.not_lost():
            ray("types that are wrong")
        with pytest.raises(KeyboardInterrupt, match="SIGUSR1"), signals.not_lost():
            ray(Start())
    finally:
        signal.signal(signal.SIGUSR1, before)
        signals.came.clear()


@pytest.mark.parametrize("signum", [signal.SIGUSR1, signal.SIGTERM])
def test_what_is_raised_while_an_object_is_deleted_comes_again_without_a_word(signum, capfd):
    class Deleted:
        def __del__(self):
            os.kill(os.getpid(), signum)
            for _ in range(100_000):
                pass

    before = signal.signal(signum, signals.interrupt)
    try:
        with pytest.raises(KeyboardInterrupt, match=signum.name):
            Deleted()
            threading.Event().wait(60.0)
        assert signals.came == [signum.name] and capfd.readouterr().err == ""
    finally:
        signal.signal(signum, before)
        signals.came.clear()


@pytest.mark.parametrize("signum", [signal.SIGUSR1, signal.SIGTERM])
def test_an_interrupt_waits_for_the_end_of_an_import(tmp_path, monkeypatch, signum):
    """In which an exception may be lost, or leave half a module."""
    monkeypatch.syspath_prepend(tmp_path)
    text = f"import os\nos.kill(os.getpid(), {int(signum)})\nfor _ in range(100_000):\n    pass\nwhole = True\n"
    (tmp_path / f"signalled_{int(signum)}.py").write_text(text)
    before = signal.signal(signum, signals.interrupt)
    try:
        with pytest.raises(KeyboardInterrupt, match=signum.name):
            assert importlib.import_module(f"signalled_{int(signum)}").whole
            threading.Event().wait(60.0)
        assert sys.modules[f"signalled_{int(signum)}"].whole and signals.came == [signum.name]
    finally:
        signal.signal(signum, before)
        signals.came.clear()


def test_a_second_signal_ends_an_import(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "signalled_twice.py").write_text(
        "import os, threading\nfor _ in range(2):\n    os.kill(os.getpid(), 10)\nthreading.Event().wait(60.0)\n")
    before = signal.signal(signal.SIGUSR1, signals.interrupt)
    try:
        with pytest.raises(KeyboardInterrupt, match="SIGUSR1"):
            importlib.import_module("signalled_twice")
        threading.Event().wait(0.2)  # timed: the first one comes again, and nothing happens
    finally:
        signal.signal(signal.SIGUSR1, before)
        signals.came.clear()


def test_signals_that_somebody_else_has_taken_are_left_to_him():
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    try:
        assert signal.SIGALRM not in signals.heard() and signal.SIGTERM in signals.heard()
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        assert signal.SIGALRM in signals.heard()
    finally:
        signal.signal(signal.SIGALRM, before)


def test_two_signals_close_together_are_a_stop_and_nothing_else():
    """The second one may come within the handler of the first. It is the same request, or stops at once."""
    handled = {signum: signal.signal(signum, signals.interrupt) for signum in (signal.SIGTERM, signal.SIGUSR1)}
    try:
        for _ in range(50):
            try:
                with stop_on_signal(lambda: None, 60.0) as stop:
                    subprocess.run(["sh", "-c", f"kill -TERM {os.getpid()}; kill -USR1 {os.getpid()}"], check=True)
                assert stop.asked in ("SIGTERM", "SIGUSR1")
            except KeyboardInterrupt as at_once:
                assert signals.name_of(at_once) in ("SIGTERM", "SIGUSR1")
    finally:
        for signum, handler in handled.items():
            signal.signal(signum, handler)
        signals.came.clear()


def test_a_run_leaves_no_thread_behind():
    before = threading.active_count()
    for _ in range(500):
        with stop_on_signal(lambda: None, 60.0):
            pass
        assert threading.active_count() == before

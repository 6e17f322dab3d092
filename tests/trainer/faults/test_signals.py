"""A signal that ends a command is not lost, wherever the program is just then."""

import ctypes
import os
import signal

import pytest

from trainer.faults import signals


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_is_raised_in_a_callback_from_c_is_raised_again():
    before = signal.signal(signal.SIGUSR1, signals.interrupt)
    try:
        compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(lambda a, b: os.kill(os.getpid(), signal.SIGUSR1) or 0)
        ctypes.CDLL(None).qsort((ctypes.c_int * 2)(2, 1), 2, ctypes.sizeof(ctypes.c_int), compare)  # where the exception is lost
        with pytest.raises(KeyboardInterrupt, match="SIGUSR1"):
            signals.raise_again()
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

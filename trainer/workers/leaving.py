"""Environments in the learning process (collect.num_workers=0) that leave the interpreter: an error, not the run's end.

`sys.exit`, a faked interrupt or `os._exit` would end a run as if all were well. A signal still ends it.
"""

from __future__ import annotations

import dis
import os
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from trainer.faults import signals

_inside = threading.local()  # .process: the process whose environment this thread is in
_end_process = os._exit


class Left(Exception):
    """An environment left the interpreter; the message is its traceback."""


@contextmanager
def in_this_process() -> Iterator[None]:
    """Around a call of an environment: Left for what it raises that is no Exception, and for `os._exit`."""
    os._exit = _exit
    _inside.process = os.getpid()
    try:
        yield
    except Exception:
        raise
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and _is_of_a_signal(error):
            raise
        raise Left(traceback.format_exc().rstrip()) from error
    finally:
        _inside.process = None


def _exit(status: int) -> NoReturn:
    """`os._exit`, but for an environment in this process and thread."""
    if getattr(_inside, "process", None) == os.getpid():
        raise SystemExit(f"os._exit({status})")
    _end_process(status)


def _is_of_a_signal(error: KeyboardInterrupt) -> bool:
    """Whether a handler raised it in the middle of an environment's code, and no `raise` of that code."""
    place = error.__traceback__
    while place.tb_next:
        place = place.tb_next
    code = place.tb_frame.f_code
    return code is signals.interrupt.__code__ or dis.opname[code.co_code[place.tb_lasti]] != "RAISE_VARARGS"

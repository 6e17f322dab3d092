"""A command that is refused ends, whatever is still alive in its process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

HOME = Path(__file__).parents[2]
ALIVE = {
    "a thread": "import threading; threading.Thread(target=threading.Event().wait).start()",
    "a pool": "import concurrent.futures, threading; "
              "concurrent.futures.ThreadPoolExecutor().submit(threading.Event().wait)",
    "a handler of the end": "import atexit, threading; atexit.register(threading.Event().wait)",
    "a process": "import multiprocessing, threading; "
                 "multiprocessing.get_context('fork').Process(target=threading.Event().wait, daemon=False).start()",
}
WORDS = ["eval skill=pick checkpoint=run", "train skill=pick seed=-1", "nonsense"]
ENTRY = "import sys; from rearrange.command_line.cli import main; sys.exit(main())"


@pytest.mark.parametrize("alive, words", [  # each of both
    pytest.param(alive, words, marks=() if (number - other) % 3 == 0 else pytest.mark.slow)
    for number, alive in enumerate(ALIVE) for other, words in enumerate(WORDS)])
def test_a_refused_command_ends(alive, words, tmp_path):
    """Also one of a run whose newest checkpoint is empty."""
    (tmp_path / "run/checkpoints").mkdir(parents=True)
    (tmp_path / "run/checkpoints/step_000000000064.pt").touch()
    with open(tmp_path / "said", "wb") as said:
        process = subprocess.Popen([sys.executable, "-c", f"{ALIVE[alive]}; {ENTRY}", *words.split()], cwd=tmp_path,
                                   stderr=said, env={"PYTHONPATH": str(HOME), "PATH": "/usr/bin:/bin"}, process_group=0)
        try:
            assert process.wait(60) == 2
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    text = (tmp_path / "said").read_text()
    assert text.startswith("rearrange") and "Traceback" not in text and len(text.splitlines()) == 1

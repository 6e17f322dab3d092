"""Standard streams that cannot be written any more."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.e2e.front_door import HOME

WORK = """
import os, subprocess, sys
from trainer.logs import screen
with screen.guarded():
    told = []
    screen.is_expendable(told.append)
    for i in range(2000):  # more than a pipe holds
        print("a line", i, "." * 100, flush=i % 3 == 0)
    os.write(1, b"and what C writes")
    assert subprocess.run(["echo", "and a child"]).returncode == 0
    print("told", len(told), file=sys.stderr)
    sys.stdout.flush()
with open("kept", "w") as file:
    file.write(f"{file.fileno() > 2} {len(told)}")
"""


@pytest.mark.parametrize("shell, told", [
    ("{python} -c '{work}' | head -1", 1),
    ("{python} -c '{work}' > /dev/full", 1),
    ("{python} -c '{work}' >&-", 0),
    ("{python} -c '{work}' >&- 2>&- <&-", 0),
    ("{python} -c '{work}' > /dev/full 2> /dev/full", 2),
    ("{python} -c '{work}' 2>&1 | head -1", 2),
    ("{python} -c '{work}' > out", 0),
])
def test_the_work_goes_on_and_the_loss_is_told_once(tmp_path, shell, told):
    script = tmp_path / "work.py"
    script.write_text(WORK)
    command = shell.replace("-c '{work}'", str(script)).format(python=sys.executable)
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], cwd=tmp_path, capture_output=True, text=True,
                          env={"PYTHONPATH": str(HOME), "PATH": "/usr/bin:/bin"})
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "kept").read_text() == f"True {told}"
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr
    if "2>" not in shell:
        assert done.stderr.count("warning: standard output cannot be written") == told and f"told {told}" in done.stderr


def test_a_wrong_character_is_the_writers_mistake():
    import io

    from trainer.logs.screen import Screen

    with pytest.raises(UnicodeError):
        Screen(io.TextIOWrapper(io.BytesIO(), encoding="ascii")).write("\u00e9")

"""A measured run of one trainer as a process of its own, which is told its job and tells its result as JSON."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from rearrange.home.errors import UserError

_STOPPED = (130, -2, -15)  # by Ctrl-C or SIGTERM


def run_job(command: Sequence[str], job: dict[str, Any], log: Path | None = None) -> dict[str, Any]:
    """The last line that `command` with the job as its last word prints. What it complains of goes to the screen, or to
    the end of `log`. KeyboardInterrupt where it was stopped, UserError where it failed."""
    with open(log, "a", encoding="utf-8") if log else nullcontext() as errors:
        made = subprocess.run([*command, json.dumps(job)], stdout=subprocess.PIPE, stderr=errors, text=True)
    if made.returncode:
        raise KeyboardInterrupt if made.returncode in _STOPPED else UserError(
            f"the run of {job['trainer']} on {job['task']} failed; what it "
            f"says {f'is the end of {log}' if log else 'stands above'}.")
    return json.loads(made.stdout.splitlines()[-1])

"""`requeue=true`: a training that SLURM has warned of its end asks to be started again."""

from __future__ import annotations

import os
import signal
import subprocess
import threading

from rearrange.errors import UserError
from rearrange.runs.run_directory import Run
from trainer.faults import signals

JOB = "SLURM_JOB_ID"
TIMEOUT_S = 30.0


def check() -> None:
    """UserError where there is no job that could be started again."""
    if not os.environ.get(JOB, "").isdigit():
        raise UserError(f"requeue=true asks SLURM to start this job again, and there is no {JOB} here: start it with sbatch, or leave "
                        "requeue= out.")


def after(stopped_by: str | None, run: Run) -> None:
    """Once a run is over that was stopped by this signal: ask for a new start, if that was SLURM's warning and the run wants one."""
    if not run.settings.config.get("requeue") or not signals.is_warning(stopped_by):
        return
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: None)  # which SLURM sends to all ranks next; they are at their end
    if not run.silent:  # of several ranks, the first asks
        run.say(requeue())


def requeue() -> str:
    """Ask SLURM to start this job again; what came of it, as a line. SLURM then ends what is left of it."""
    command = ["scontrol", "requeue", os.environ[JOB]]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"warning: '{' '.join(command)}' did not work ({error}); start the job again yourself."
    if done.returncode:
        why = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[0]
        return f"warning: '{' '.join(command)}' did not work ({why}); start the job again yourself."
    return f"asked SLURM to start job {os.environ[JOB]} again"

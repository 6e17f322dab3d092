"""`requeue=true`: a training that SLURM has warned of its end asks to be started again."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

from rearrange.home.errors import UserError
from trainer.faults import signals

if TYPE_CHECKING:
    from rearrange.command_line.runs.run_directory import Run

JOB = "SLURM_JOB_ID"
TIMEOUT_S = 30.0


def check() -> None:
    """UserError where there is no job that could be started again."""
    if not os.environ.get(JOB, "").isdigit():
        raise UserError(f"requeue=true asks SLURM to start this job again, and there is no {JOB} here: start it "
                        "with sbatch, or leave requeue= out.")


def job(environment: Mapping[str, str] = os.environ) -> str:
    """What SLURM calls this job, this task of an array, or the heterogeneous job that this one is a component of.

    The number of an array's last task is that of the array too, which means all tasks. The variables of arrays and
    components alone prove nothing: a job that was submitted from within another one inherits them.
    """
    own, task = environment.get(JOB, ""), environment.get("SLURM_ARRAY_TASK_ID", "")
    if own == environment.get("SLURM_ARRAY_JOB_ID") and task.isdigit():
        return f"{own}_{task}"
    components = {key: value for key, value in environment.items() if key.startswith(f"{JOB}_HET_GROUP_")}
    return components.get(f"{JOB}_HET_GROUP_0", own) if own in components.values() else own


def after(stopped_by: str | None, run: Run) -> None:
    """Once a run is over that was stopped by this signal: ask for a new start, if that was SLURM's warning and the run
    wants one.
    """
    if not run.settings.value("requeue") or not signals.is_warning(stopped_by):
        return
    if threading.current_thread() is threading.main_thread():
        # which SLURM sends to all ranks next, and to scontrol; they are at their end
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if not run.silent:  # of several ranks, the first asks
        run.say(requeue())


def requeue() -> str:
    """Ask SLURM to start this job again; what came of it, as a line. SLURM then ends what is left of it."""
    command = ["scontrol", "requeue", job()]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"warning: '{' '.join(command)}' did not work ({error}); start the job again yourself."
    if done.returncode:
        why = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[0]
        return f"warning: '{' '.join(command)}' did not work ({why}); start the job again yourself."
    return f"asked SLURM to start job {job()} again"

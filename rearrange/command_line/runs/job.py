"""One job, in the process in which a launcher of Hydra runs it: here, in one of joblib's, or on a node of a cluster.

The command is a process of its own (rearrange/command_line/runs/processes.py): a run that fails, or that takes memory,
harms no other.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

from rearrange.command_line.runs.processes import launch_process
from rearrange.command_line.runs.run_directory import read_status
from trainer.checkpoints import owner
from trainer.faults import signals
from trainer.ranks.launch import this_rank

# come to every process of it; the one that started all sees to the others
FROM_A_TERMINAL = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
REQUEUED_BY = "USR2"  # of submitit, unless SUBMITIT_PREEMPT_SIGNAL names another


def work(config: Any) -> int | None:
    """Run a job's command; its exit status, or None if the job was not begun, because whoever started it was
    stopped.
    """
    path, words, folder = Path(config.path), list(config.words), config.follow
    if folder and not owner.is_held(folder):
        return None
    # blocked by who started this one
    signal.pthread_sigmask(signal.SIG_UNBLOCK, set(signal.valid_signals()) - set(FROM_A_TERMINAL))
    submitits = os.environ.get("SUBMITIT_EXECUTOR")
    if words[0] == "train" and submitits and not any(word.startswith("resume=") for word in words):
        words.append("resume=auto")  # which submitit may start a second time
    if words[0] == "eval" and submitits and this_rank().rank == 0:
        if read_status(path)["status"] == "finished":
            return 0
        begin_again(path)
    quietly = Path(config.output) / f"{path.parent.name}_{path.name}.txt" if config.output else None
    command = shlex.join(["rearrange", *words])
    if quietly:
        print(f"begins: {command}", flush=True)
    code = launch_process(words, quietly, (lambda: bool(owner.is_held(folder))) if folder else None)
    if quietly:
        print(f"{signals.outcome(code)}: {command}", flush=True)
    if code == signals.WARNED and submitits:
        _let_submitit_requeue()
    return code


def begin_again(path: Path) -> None:
    """Remove an evaluation that was interrupted: its episodes cannot be taken up in the middle."""
    if (path / "config.yaml").exists() and not owner.is_held(path):
        shutil.rmtree(path)


def _let_submitit_requeue() -> None:
    """The command has heard the warning, and is saved; now submitit hears it, and asks for a new start. It does not
    come back from that, unless this process is not the first of the job's, or the job has had all its starts."""
    sys.stdout.flush()
    try:
        os.kill(os.getpid(), signal.Signals[f"SIG{os.environ.get('SUBMITIT_PREEMPT_SIGNAL', REQUEUED_BY)}"])
    except RuntimeError as error:  # submitit's, of the last start
        print(error)

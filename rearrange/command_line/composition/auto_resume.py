"""The same command again is a continuation, where `resume=auto` or a scheduler that starts a job again says so."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rearrange.command_line.composition import plan_run
from rearrange.command_line.composition.options import Settings
from rearrange.command_line.composition.parse_overrides import require
from rearrange.command_line.runs.names import checked_name
from rearrange.command_line.runs.run_directory import Run, folder_of, has_checkpoints, read_status
from rearrange.home.errors import UserError
from trainer.checkpoints import owner

AUTO = "auto"
# how often SLURM or torchrun has started this process again
COUNTS = ("SLURM_RESTART_COUNT", "TORCHELASTIC_RESTART_COUNT")
LOCK_WAIT_S = 120.0  # for a forerunner that still saves, or for the lock of a node that is gone
# made in this order
BEFORE_STATUS = {"lock", "checkpoints", "videos", "config.yaml", "overrides.yaml", "git.txt", "git.diff"}


def restarted(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether a scheduler has started this process again, after an earlier one of the same job."""
    counts = [environment.get(name, "") for name in COUNTS]
    return any(count.isdigit() and int(count) > 0 for count in counts)


def resume_as(words: Sequence[str], value: Any, name: str | None = None,
              environment: Mapping[str, str] = os.environ) -> Any:
    """What `resume=` means for these words, which make it `value`: auto by default where the process is a restart, or
    a run with a name may be one: of torchrun's nodes only the one that failed counts a restart."""
    if any(word.split("=")[0] == "resume" for word in words):
        return value
    counts = [environment.get(key, "") for key in ("TORCHELASTIC_MAX_RESTARTS", "GROUP_WORLD_SIZE")]
    elastic = all(count.isdigit() for count in counts) and int(counts[0]) > 0 and int(counts[1]) > 1
    return AUTO if restarted(environment) or elastic and name is not None else value


def plan_training(words: list[str], settings: Settings, first: bool) -> Run | None:
    """The run of `rearrange train` with these words: a new one, or the one that it goes on with; `first`: of several
    ranks, the one that writes. None, and a sentence, if that run is finished."""
    resume = resume_as(words, settings.value("resume"), settings.value("name"))
    if resume == AUTO:
        require(settings)
        path = _named(settings)
        if first:
            _wait_for_forerunner(path)
        if not _begun(path):
            settings.values["resume"] = False
            if first and path.is_dir():
                return Run(path, settings, resumed=True)  # from its beginning
        else:
            settings = plan_run.settings_to_resume("train",
                                                   [*(w for w in words if w.split("=")[0] != "resume"), "resume=true"])
            if read_status(path)["status"] == "finished" and has_checkpoints(
                path) and not plan_run.changes(path, settings):
                if first:
                    print(f"{path} is finished: nothing is left to do. To train further, raise steps= and write "
                          "resume=force.")
                return None
    elif resume:
        if not first and not Path(settings.value("output")).is_dir():
            print(f"rearrange train: {socket.gethostname()} does not see output={settings.value('output')}: to go on "
                  "with a run, all nodes need a file system that they share.", file=sys.stderr)
        settings = plan_run.settings_to_resume("train", words)
        if first and restarted():
            _wait_for_forerunner(folder_of(settings.config, "train") / settings.value("name"))
    require(settings)
    return plan_run.plan(settings) if first else plan_run.silent(settings)


def _named(settings: Settings) -> Path:
    """The directory of the run. One sentence if it has no name, by which a restart could find it."""
    if settings.value("name") is None:
        raise UserError("which run shall go on? One that may be started again needs a name=, for example "
                        "name=$SLURM_JOB_ID; with resume=false every start begins a new run.")
    return folder_of(settings.config, "train") / checked_name(settings.value("name"))


def _begun(path: Path) -> bool:
    """Whether a run is there. A directory in whose making a process was killed is none yet; anything else of that
    name is refused."""
    if (path / "status.json").exists() or has_checkpoints(path):
        return True
    if os.path.lexists(path) and not (
            path.is_dir() and all(entry.name in BEFORE_STATUS or entry.suffix == ".part" for entry in path.iterdir())):
        raise UserError(f"{path} exists already and is not a run. Choose another name=.")
    return False


def _wait_for_forerunner(path: Path) -> None:
    """Wait until nobody works in a run directory any more, at most for LOCK_WAIT_S; who asks next is told whose it
    is."""
    if not owner.is_held(path):
        return
    print(f"{owner.in_use(path)}; waiting for its end, at most {LOCK_WAIT_S:.0f} s", flush=True)
    deadline = time.monotonic() + LOCK_WAIT_S
    while owner.is_held(path) and time.monotonic() < deadline:
        time.sleep(0.2)

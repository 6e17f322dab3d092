"""Which rank this process is, from the environment variables of whoever started it. Imports nothing heavy.

    torchrun --nproc-per-node=4 -m rearrange train ...        RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT
    srun --ntasks=8 python -m rearrange train ...             SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_LOCALID ...
    submitit                                                  uses srun; its local executor: SUBMITIT_LOCAL_GLOBALID ...

A process that neither started is alone.

At the start the first rank warns of machines that see other files, or differ in time.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainer.ranks.ranks import Ranks

@dataclass(frozen=True)
class RankInfo:
    """Which of the ranks of one run this process is."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0  # among those on this machine
    local_size: int = 1
    address: str | None = None  # of rank 0's machine; None: started alone
    port: int = 0  # where ranks meet (trainer/ranks/store.py); 0: at one that they find themselves
    job: str = ""  # what the launcher calls it: the same for all ranks, and for those of no other job

    @property
    def launched(self) -> bool:
        """Whether a launcher started this process, be it as the only one."""
        return self.address is not None


def this_rank(environment: Mapping[str, str] = os.environ) -> RankInfo:
    """What torchrun, SLURM or submitit say of this process. Raises ValueError if what they say makes no sense."""
    get = environment.get

    def number(name: str, default: int) -> int:
        value = get(name) or str(default)
        if not value.isdigit():
            raise ValueError(f"the environment variable {name}={value} is not a whole number; "
                             "torchrun and srun set it, else unset it.")
        return int(value)

    if {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} <= set(environment):
        rank, size, run = number("RANK", 0), number("WORLD_SIZE", 1), get("TORCHELASTIC_RUN_ID")
        found = RankInfo(rank, size, number("LOCAL_RANK", rank), number("LOCAL_WORLD_SIZE", size),
                         get("MASTER_ADDR"), number("MASTER_PORT", 0), f"torchrun's job {run}" if run else "")
    elif number("SLURM_STEP_NUM_TASKS", 1) > 1:  # set within srun only: a bare command in an allocation is alone
        names = {"cluster": "SLURM_CLUSTER_NAME", "job": "SLURM_JOB_ID", "step": "SLURM_STEP_ID",
                 "restart": "SLURM_RESTART_COUNT"}
        job = " ".join(["SLURM's", *(f"{word} {get(name)}" for word, name in names.items() if get(name))])
        local_size = int(re.match(r"\d+", get("SLURM_STEP_TASKS_PER_NODE", "1"))[0])
        found = RankInfo(
            number("SLURM_PROCID", 0), number("SLURM_STEP_NUM_TASKS", 1), number("SLURM_LOCALID", 0), local_size,
            get("MASTER_ADDR") or first_host(get("SLURM_STEP_NODELIST") or get("SLURM_JOB_NODELIST") or "localhost"),
            number("MASTER_PORT", 0), job)
    elif number("SUBMITIT_LOCAL_NTASKS", 1) > 1:
        local_rank, size = number("SUBMITIT_LOCAL_LOCALID", 0), number("SUBMITIT_LOCAL_NTASKS", 1)
        found = RankInfo(number("SUBMITIT_LOCAL_GLOBALID", 0), size, local_rank, size, "127.0.0.1",
                         number("MASTER_PORT", 0), f"submitit's job {get('SUBMITIT_LOCAL_JOB_ID', '')}")
    else:
        return RankInfo()
    if found.port > 65535:
        raise ValueError(f"the environment variable MASTER_PORT={found.port} is no port: those are 1 to 65535.")
    if not 0 <= found.rank < found.size:
        raise ValueError(f"this process is rank {found.rank} of {found.size} by its environment variables; ranks count "
                         "from 0.")
    return found


def first_host(nodelist: str) -> str:
    """The first host of a SLURM list: `gpu[003-007,9],cpu1` -> `gpu003`."""
    match = re.match(r"([^\[,]+)(?:\[([^\]]+)\]([^,]*))?", nodelist)
    if not match:
        raise ValueError(f"'{nodelist}' is not a list of SLURM nodes.")
    name, numbers, rest = match.groups()
    return name + (re.match(r"\d+", numbers)[0] + rest if numbers else "")


CLOCKS_WITHIN_S = 10.0

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Node:
    """What one rank's machine says of itself."""

    host: str
    clock_s: float
    sees: bool  # the run directory, which the first rank has made


def compare_nodes(ranks: Ranks, run_dir: Path | None) -> None:
    """The first rank warns of machines that differ from its own; each of them once."""
    if ranks.size == 1:
        return
    ranks.gather(None)  # from here on all read their clocks within the time that a message takes
    nodes = ranks.gather(Node(socket.gethostname(), time.time(), run_dir is None or _is_there(run_dir)))
    if ranks.rank == 0:
        for sentence in differences(nodes, run_dir):
            log.warning(sentence)


def differences(nodes: Sequence[Node], run_dir: Path | None) -> list[str]:
    """A sentence for each machine that does not see the run directory, or whose clock differs."""
    first, told = nodes[0], []
    for node in nodes:
        if not node.sees:
            told.append(f"{node.host} does not see {run_dir}: were it the first node of a later start, it would begin "
                        "a new run; put output= on a file system that all nodes share.")
        if abs(ahead_s := node.clock_s - first.clock_s) > CLOCKS_WITHIN_S:
            told.append(f"the clock of {node.host} is {abs(ahead_s):,.0f} s {'ahead of' if ahead_s > 0 else 'behind'} "
                        f"that of {first.host}: training does not mind, but which run is the newest goes by the clock; "
                        "set both by NTP.")
    return list(dict.fromkeys(told))


def _is_there(directory: Path) -> bool:
    """Asked of the directory above, which a network file system reads anew."""
    try:
        return directory.name in os.listdir(directory.parent)
    except OSError:
        return False

"""Warnings at the start where the machines of several ranks see other files, or differ in time."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainer.ranks.ranks import Ranks

CLOCKS_WITHIN_S = 10.0

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Node:
    """What one rank's machine says of itself."""

    host: str
    clock_s: float
    sees: bool  # the run directory, which the first rank has made


def compare(ranks: Ranks, run_dir: Path | None) -> None:
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

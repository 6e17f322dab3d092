"""A name for one meeting of ranks, in a store that may hold what earlier ones have left there.

torchrun keeps its store when it starts ranks again, and what it counts as restarts (TORCHELASTIC_RESTART_COUNT) is another number on
each node. So rank 0 calls a new name until all have answered it; a rank knows by its own answer, given back, that the name is of today.
"""

from __future__ import annotations

import json
import secrets
import time
from typing import Any

from trainer.errors import RankError

POLL_EVERY_S = 0.02


def meet(store: Any, rank: int, size: int, timeout_s: float) -> str:
    """A name that no earlier meeting had, the same on all `size` ranks. RankError if they are not all here in time."""
    deadline = time.monotonic() + timeout_s
    mine = secrets.token_hex(8)
    if rank == 0:
        store.set("meeting", mine)
        answers = {}
        for other in range(1, size):
            _wait(store, f"{mine}/{other}", deadline, f"rank {other} of {size}")
            answers[other] = store.get(f"{mine}/{other}").decode()
        store.set(f"{mine}/all", json.dumps(answers))
        return mine
    while True:
        _wait(store, "meeting", deadline, "rank 0")
        name = store.get("meeting").decode()
        store.set(f"{name}/{rank}", mine)
        while store.get("meeting").decode() == name:
            if store.check([f"{name}/all"]):
                if json.loads(store.get(f"{name}/all")).get(str(rank)) == mine:
                    return name
            _pause(deadline, "all ranks")  # else it is a name of before


def _wait(store: Any, key: str, deadline: float, whom: str) -> None:
    while not store.check([key]):
        _pause(deadline, whom)


def _pause(deadline: float, whom: str) -> None:
    if time.monotonic() > deadline:
        raise RankError(f"waited in vain for {whom}: is it started, and does it reach rank 0's machine?", False)
    time.sleep(POLL_EVERY_S)

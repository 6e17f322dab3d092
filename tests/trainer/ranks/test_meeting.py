"""Ranks find the name of their meeting in a store that holds those of before."""

from __future__ import annotations

import threading
import time

import pytest
import torch.distributed as dist

from tests.waiting import LIMIT_S
from trainer.ranks.meeting import meet


def together(store, size: int, late: int | None = None) -> list[str]:
    """The names that `size` ranks come to; `late` begins when the others wait."""
    names = [""] * size

    def run(rank):
        time.sleep(0.3 * (rank == late))  # timed: how late it comes
        names[rank] = meet(store, rank, size, LIMIT_S)

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return names


@pytest.mark.parametrize("sizes", [(2, 2, 2), (1, 2, 1), (4, 2, 4)])
@pytest.mark.parametrize("late", [None, 0, 1])
def test_all_come_to_one_name_that_is_new_in_every_meeting(sizes, late):
    store, seen = dist.HashStore(), []
    for size in sizes:
        names = together(store, size, late)
        assert len(set(names)) == 1 and names[0] and names[0] not in seen
        seen.append(names[0])


def test_who_was_killed_in_the_middle_of_a_meeting_spoils_none_that_follows():
    store = dist.HashStore()
    with pytest.raises(RuntimeError, match="rank 1 of 2"):
        meet(store, 0, 2, 0.1)  # calls a name, and is gone
    with pytest.raises(RuntimeError, match="all ranks"):
        meet(store, 1, 2, 0.1)  # answers it, and is gone
    assert len(set(together(store, 2, late=0))) == 1


def test_without_rank_0_there_is_no_meeting():
    with pytest.raises(RuntimeError, match="rank 0"):
        meet(dist.HashStore(), 1, 2, 0.1)

"""Ranks of several jobs on one machine at once: each meets those of its own job, or is refused in one sentence."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest
import torch.distributed as dist

from tests.e2e.warm import forked
from tests.trainer.ranks.test_ranks import ROOT, finish
from tests.waiting import LIMIT_S
from trainer.errors import RankError
from trainer.ranks import store
from trainer.ranks.launch import RankInfo


def task(out: Path, whose: str, rank: int, **variables: str) -> subprocess.Popen:
    """One of two ranks, as srun starts them; in which order they come is theirs."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "MASTER"))}
    slurm = {"SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_TASKS_PER_NODE": "2", "SLURM_STEP_NODELIST": "localhost",
             "SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank), "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return forked(["met", str(out), whose], ROOT, inherited | slurm | variables, "tests.trainer.ranks.rank_jobs")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


NUMBERS = {"a": ("10", "1"), "b": ("11", "0"), "c": ("20010", "1"), "d": ("20011", "0")}  # job, step


@pytest.mark.parametrize("port", [False, True])
def test_jobs_at_once_never_meet_whatever_their_numbers_and_ports_are(tmp_path, port):
    """Also where all of them are given the same MASTER_PORT: one after another."""
    shared = {"MASTER_PORT": str(free_port())} if port else {}
    order = [(whose, rank) for rank in (1, 0) for whose in NUMBERS]  # all second ranks come first
    ended = finish([task(tmp_path, whose, rank, SLURM_JOB_ID=NUMBERS[whose][0], SLURM_STEP_ID=NUMBERS[whose][1],
                         **shared)
                    for whose, rank in order])
    assert all(code == 0 for code, _ in ended), ended
    for whose, rank in order:
        assert json.loads((tmp_path / f"{whose}_{rank}.json").read_text()) == [[whose, 0], [whose, 1]]


def here(rank: int, port: int, job: str, size: int = 2) -> RankInfo:
    return RankInfo(rank, size, rank, size, "127.0.0.1", port, job)


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(store, "PATIENCE_S", 0.1)


def test_a_stranger_is_told_whose_port_it_is_and_joins_nobody(impatient):
    port = free_port()
    with store.shared_store(here(0, port, "SLURM's job 10 step 1"), 60.0):
        with pytest.raises(RankError, match="taken by SLURM's job 10 step 1 .* and this is SLURM's job 11 "
                                            ".*MASTER_PORT"):
            with store.shared_store(here(1, port, "SLURM's job 11 step 0"), 60.0):
                pass
        with pytest.raises(RankError, match=f"port {port} is not free on "):
            with store.shared_store(here(0, port, "SLURM's job 11 step 0"), 60.0):
                pass
        with store.shared_store(here(1, port, "SLURM's job 10 step 1"), 60.0):
            pass
        with pytest.raises(RankError, match="has this rank already"):
            with store.shared_store(here(1, port, "SLURM's job 10 step 1"), 60.0):
                pass


def test_without_a_launchers_name_the_command_line_tells_jobs_apart(monkeypatch):
    names = []
    for seed in (0, 0, 1):
        monkeypatch.setattr("sys.argv", ["rearrange", "train", f"seed={seed}"])
        names.append(store.job_of(here(0, 29500, "")))
    assert names[0] == names[1] != names[2]


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"[]\n", b"\xff" * 100_000])
def test_something_else_at_the_port_is_no_rank(impatient, answer):
    with socket.create_server(("127.0.0.1", 0)) as other:
        def serve() -> None:
            try:
                while True:
                    with other.accept()[0] as asks:
                        asks.sendall(answer)
            except OSError:
                return

        threading.Thread(target=serve, daemon=True).start()
        with pytest.raises(RankError, match="something else than ranks|nobody answers"):
            with store.shared_store(here(1, other.getsockname()[1], "x"), 1.0):
                pass


def test_where_the_first_ports_are_taken_ranks_meet_at_the_next(monkeypatch):
    monkeypatch.setattr(store, "ANSWER_S", 1.0)  # timed: who holds these ports never answers
    job = "SLURM's job 12 step 0"
    first, second, *_ = store.ports_of(here(0, 0, job))
    with socket.create_server(("", first)), socket.create_server(("", second)):
        met: list[bytes] = []

        def ask() -> None:
            with store.shared_store(here(1, 0, job), 60.0) as shared:
                met.append(shared.get("word"))

        with store.shared_store(here(0, 0, job), 60.0) as shared:
            other = threading.Thread(target=ask)
            other.start()
            shared.set("word", "hello")
            other.join()
    assert met == [b"hello"]


def test_a_host_that_is_not_known_is_named(impatient):
    with pytest.raises(RankError, match="nowhere.invalid is not known here .*: set MASTER_ADDR"):
        with store.shared_store(RankInfo(1, 2, 1, 2, "nowhere.invalid", 29500, "x"), 2.0):
            pass


def together(shared, size: int, late: int | None = None) -> list[str]:
    """The names that `size` ranks come to; `late` begins when the others wait."""
    names = [""] * size

    def run(rank):
        time.sleep(0.3 * (rank == late))  # timed: how late it comes
        names[rank] = store.meet(shared, rank, size, LIMIT_S)

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return names


@pytest.mark.parametrize("sizes", [(2, 2, 2), (1, 2, 1), (4, 2, 4)])
@pytest.mark.parametrize("late", [None, 0, 1])
def test_all_come_to_one_name_that_is_new_in_every_meeting(sizes, late):
    shared, seen = dist.HashStore(), []
    for size in sizes:
        names = together(shared, size, late)
        assert len(set(names)) == 1 and names[0] and names[0] not in seen
        seen.append(names[0])


def test_who_was_killed_in_the_middle_of_a_meeting_spoils_none_that_follows():
    shared = dist.HashStore()
    with pytest.raises(RuntimeError, match="rank 1 of 2"):
        store.meet(shared, 0, 2, 0.1)  # calls a name, and is gone
    with pytest.raises(RuntimeError, match="all ranks"):
        store.meet(shared, 1, 2, 0.1)  # answers it, and is gone
    assert len(set(together(shared, 2, late=0))) == 1


def test_without_rank_0_there_is_no_meeting():
    with pytest.raises(RuntimeError, match="rank 0"):
        store.meet(dist.HashStore(), 1, 2, 0.1)

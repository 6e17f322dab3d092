"""The store that the ranks of one job share, and how they find it.

Under torchrun it is torchrun's. Else rank 0 opens one at a port that is free, and tells it to the ranks of its own job
alone: it answers at MASTER_PORT or, where that is not set, at the first free one of a few ports that follow from the
job's name. Others ask there, by name, and go on to the next port where somebody else answers. So jobs on one machine
cannot meet, whatever their numbers.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import secrets
import shlex
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from trainer.errors import RankError
from trainer.logs.printable import first_line
from trainer.ranks.launch import RankInfo

PORTS = range(20000, 32768)  # below those that systems give to connections
TRIED = 8  # ports for one job
PATIENCE_S = 30.0  # for a port that is taken, by another job whose ranks are just about to meet or by anything else
ANSWER_S = 5.0
MOST_BYTES = 1 << 16
POLL_EVERY_S = 0.02


def job_of(here: RankInfo) -> str:
    """What all ranks of a job call it, and no other job: as the launcher does; without one, by the command line."""
    command = shlex.join(sys.argv[1:])
    named = here.job or " ".join(filter(None, [f"SLURM job {job}," if (job := os.environ.get("SLURM_JOB_ID")) else "",
                                               f"command '{command}'"]))
    return f"{named} of user {os.getuid()}"


def ports_of(here: RankInfo) -> list[int]:
    """Where rank 0 of a job may answer, in the order in which it tries."""
    return [here.port] if here.port else random.Random(job_of(here)).sample(PORTS, TRIED)


@contextmanager
def shared_store(here: RankInfo, timeout_s: float) -> Iterator[Any]:
    """This job's own part of the store; rank 0 answers as long as the `with` lasts. RankError, in one sentence, where
    it cannot be had."""
    job, timeout = job_of(here), timedelta(seconds=timeout_s)
    part = f"rearrange/{hashlib.sha256(job.encode()).hexdigest()[:16]}"
    try:
        if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
            yield dist.PrefixStore(part, dist.TCPStore(here.address, here.port, None, False, timeout))
        elif here.rank == 0:
            store = dist.TCPStore("127.0.0.1", 0, None, True, timeout, wait_for_workers=False)
            with _answering(here, job, store.port) if here.size > 1 else nullcontext():
                yield dist.PrefixStore(part, store)
        else:
            port = _asked(here, job, timeout_s)
            store = dist.TCPStore(here.address, port, None, False, timeout, wait_for_workers=False)
            yield dist.PrefixStore(part, store)
    except dist.DistError as error:
        raise RankError(f"rank {here.rank} does not reach the store at {here.address}, port {here.port}: "
                        f"{first_line(error)}.",
                        False) from error


@contextmanager
def _answering(here: RankInfo, job: str, port: int) -> Iterator[None]:
    """Meanwhile the ranks of this job, each once, are told the store's port, and anybody else is told whose it is."""
    told: set[int] = set()

    class Answer(socketserver.StreamRequestHandler):
        timeout = ANSWER_S

        def handle(self) -> None:
            asked = _message(self.rfile.readline(MOST_BYTES))
            if not asked:
                return
            rank = asked.get("rank")
            if asked.get("job") != job or rank in told:
                answer = {"whose": job}
            else:
                told.add(rank)
                answer = {"port": port}
            self.wfile.write(json.dumps(answer).encode() + b"\n")

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address, daemon_threads, request_queue_size = True, True, max(128, here.size)

        def handle_error(self, *_: object) -> None:
            """Whoever asks and goes away again is no matter."""

    server = _first_free(here, lambda number: Server(("", number), Answer))
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, name="answering", daemon=True).start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


def _first_free(here: RankInfo, serve: Any) -> Any:
    """What `serve` gives for the first of this job's ports that is free."""
    ports, deadline = ports_of(here), time.monotonic() + PATIENCE_S
    while True:
        for port in ports:
            try:
                return serve(port)
            except OSError as error:
                why = error.strerror
        if time.monotonic() > deadline:
            numbers = f"port {ports[0]} is" if len(ports) == 1 else f"ports {', '.join(map(str, ports))} are"
            raise RankError(f"{numbers} not free on {socket.gethostname()} ({why}), where the ranks of this job are to "
                            "meet: set MASTER_PORT to another one, the same for all ranks.", False)
        time.sleep(0.2)


def _asked(here: RankInfo, job: str, timeout_s: float) -> int:
    """The port of the store, which rank 0 tells as soon as it is there."""
    question = json.dumps({"job": job, "rank": here.rank}).encode() + b"\n"
    began, refused_at, why = time.monotonic(), None, ""
    for turn in range(1_000_000):
        ports = ports_of(here)
        for port in ports if turn % 5 == 4 else ports[:1]:  # nearly always the first
            try:
                with socket.create_connection((here.address, port), ANSWER_S) as rank_0, \
                        rank_0.makefile("rwb") as stream:
                    stream.write(question)
                    stream.flush()
                    answer = _message(stream.readline(MOST_BYTES))
            except socket.gaierror as error:
                refused_at = refused_at or time.monotonic()
                why = (f"{here.address} is not known here ({error.strerror}): set MASTER_ADDR to an address of the "
                       "first rank's machine")
                continue
            except OSError:  # not there yet
                continue
            if isinstance(answer.get("port"), int):
                return answer["port"]
            refused_at = refused_at or time.monotonic()
            whose = answer.get("whose", "something else than ranks of this program")
            whose = "this job, which has this rank already" if whose == job else str(whose)[:200]
            why = (f"port {port} of {here.address} is taken by {whose}, and this is {job[:200]}: set MASTER_PORT to "
                   "another one, the same for all ranks; ranks of one job whose command lines differ need the same "
                   "TORCHELASTIC_RUN_ID")
        now = time.monotonic()
        if refused_at and len(ports) == 1 and now > refused_at + PATIENCE_S or now > began + timeout_s:
            break
        time.sleep(0.2)
    ports = ", ".join(map(str, ports_of(here)))
    why = why or f"nobody answers at {here.address}, port {ports}: see whether rank 0 is started, and reached from here"
    raise RankError(f"rank {here.rank} of {here.size} waited in vain for rank 0: {why}.", False)


def _message(line: bytes) -> dict[str, Any]:
    """A line of what ranks tell each other; empty for anything else."""
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def meet(store: Any, rank: int, size: int, timeout_s: float) -> str:
    """A name that no earlier meeting had, the same on all `size` ranks. RankError if they are not all here in time.

    torchrun keeps its store when it starts ranks again, and its count of restarts (TORCHELASTIC_RESTART_COUNT) differs
    between nodes. So rank 0 calls a new name until all have answered it. A rank knows by its own answer, given back,
    that the name is of today.
    """
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

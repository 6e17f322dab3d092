"""A training, as the command, that is killed, stopped, signalled, and whose disk is full: it goes on each time where it
was.

Laws: a checkpoint that was complete stays and loads; no step is logged twice, and none goes back behind a checkpoint;
the two metrics files hold the same rows; no process outlives the command; no traceback.
"""

# all timed: a soak does harm at random moments

from __future__ import annotations

import csv
import os
import random
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tests.e2e.front_door import TINY, environment, session_members, status, steps_logged
from tests.e2e.warm import forked
from tests.small_disk import fill, free, small_disk
from tests.trainer.faults.fault_tools import workers
from tests.waiting import is_alive, until
from trainer.checkpoint import list_checkpoints, load_checkpoint

WORDS = ("train", *TINY, "trainer.num_workers=2", "steps=1000000000", "checkpoint_every_s=0.3",
         "name=soak",
         "resume=auto")
FATAL = {"kill -9": signal.SIGKILL, "SIGTERM": signal.SIGTERM, "SIGINT": signal.SIGINT, "SIGUSR1": signal.SIGUSR1,
         "SIGHUP": signal.SIGHUP,
         "SIGXCPU": signal.SIGXCPU, "SIGUSR2": signal.SIGUSR2, "SIGQUIT": signal.SIGQUIT, "SIGALRM": signal.SIGALRM}
PASSING = ("pause", "pause a worker", "full disk", "screen closed")
EXITS = {signal.SIGKILL: {-9}, **dict.fromkeys((signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU), {75})}


class Run:
    """The command, whose output is read all the time."""

    def __init__(self, place: Path, disk: Path) -> None:
        self.run = disk / "train/pick/soak"
        self.process = forked([*WORDS, f"output={disk}"], place, environment(place))
        self.said = {"stdout": "", "stderr": ""}
        self.threads = [threading.Thread(target=self._read, args=(name,), daemon=True) for name in self.said]
        for thread in self.threads:
            thread.start()

    def _read(self, name: str) -> None:
        try:
            for line in getattr(self.process, name):
                self.said[name] += line
        except ValueError:  # closed by the siege
            pass

    def checkpoints(self) -> list[Path]:
        return list_checkpoints(self.run / "checkpoints")

    def reached(self) -> int:
        """The step of the newest complete checkpoint."""
        return int(found[-1].stem.removeprefix("step_")) if (found := self.checkpoints()) else 0


def rows(run: Path) -> list[int]:
    """The steps of metrics.csv."""
    with open(run / "metrics.csv", newline="") as file:
        return [int(float(row["step"])) for row in csv.DictReader(file) if row["step"]]


def besiege(place: Path, rng: random.Random) -> Iterator[str]:
    """Lives of one training, each with passing faults and an end."""
    with small_disk(place / "disk", 64) as disk:
        while True:
            yield from _life(place, disk, rng)


def _life(place: Path, disk: Path, rng: random.Random) -> Iterator[str]:
    live = Run(place, disk)
    process, known = live.process, live.reached()
    try:
        until(lambda: live.reached() > known, f"a checkpoint after step {known}", 120.0, process)
        for _ in range(rng.randint(0, 4)):
            yield from _pass(live, disk, rng)
        members = session_members(process.pid) or [process.pid]
        pids = {process.pid, *members, *workers(process.pid)}
        saved = live.reached()
        kind = rng.choice([*FATAL, "kill -9 of a worker", "kill -9", "SIGTERM", "SIGINT"])
        if kind == "kill -9 of a worker":
            os.kill(rng.choice(workers(process.pid)), signal.SIGKILL)
        else:
            time.sleep(rng.uniform(0.0, 0.3))
            process.send_signal(FATAL[kind])
        try:
            code = process.wait(60.0)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{kind}: no end within a minute\n{live.said}\n{_where(pids)}") from None
        for thread in live.threads:
            thread.join(60.0)
        until(lambda: not any(map(is_alive, pids)), "its processes to end")
        _hold(live, kind, code, saved)
        yield kind
    finally:
        process.kill()
        process.wait()


def _where(pids: set[int]) -> str:
    """What processes do, as far as that can be told (py-spy, where it is installed)."""
    told = []
    for pid in sorted(pids):
        if is_alive(pid):
            stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            spy = shutil.which("py-spy")
            stack = subprocess.run([spy, "dump", "--pid", str(pid)], capture_output=True,
                                   text=True).stdout if spy else ""
            told.append(f"{pid} {stat}\n{stack}")
    return "\n".join(told)


def _pass(live: Run, disk: Path, rng: random.Random) -> Iterator[str]:
    """A fault that passes."""
    kind, before, process = rng.choice(PASSING), live.reached(), live.process
    if kind == "screen closed" and rng.random() < 0.8:
        kind = "pause"
    if kind == "full disk":
        fill(disk)
        time.sleep(rng.uniform(0.1, 0.8))
        free(disk)
    elif kind == "screen closed":
        process.stdout.close()
    else:
        pid = process.pid if kind == "pause" else rng.choice(workers(process.pid))
        os.kill(pid, signal.SIGSTOP)
        time.sleep(rng.uniform(0.01, 0.3))
        os.kill(pid, signal.SIGCONT)
    assert process.poll() is None, f"ended by: {kind}\n{live.said}"
    if rng.random() < 0.3:
        until(lambda: live.reached() > before, f"a checkpoint after: {kind}", 120.0, process)
    yield kind


def _hold(live: Run, kind: str, code: int, saved: int) -> None:
    """The laws."""
    run, err = live.run, live.said["stderr"]
    signum = FATAL.get(kind)
    assert code in (EXITS.get(signum, {130}) if signum else {1}), (kind, code, live.said)
    assert "Traceback" not in err, (kind, err[-3000:])
    expected = {"kill -9": "running", "kill -9 of a worker": "failed"}.get(kind, "stopped")
    assert status(run) == expected, (kind, status(run))
    assert live.reached() >= saved, (kind, live.reached(), saved)
    newest = live.checkpoints()[-1]
    assert load_checkpoint(newest)["step"] == live.reached()
    logged, table = steps_logged(run), rows(run)
    assert all(a < b for a, b in zip(logged, logged[1:])), (kind, "a step is logged twice", logged[-20:])
    if signum != signal.SIGKILL:
        assert logged == table, (kind, set(logged) ^ set(table))
        assert not list(run.rglob("*.partial")), kind
    if kind not in ("kill -9", "kill -9 of a worker") and " are lost" not in live.said["stdout"] + err:
        assert live.reached() >= logged[-1], (kind, live.reached(), logged[-1], live.said)

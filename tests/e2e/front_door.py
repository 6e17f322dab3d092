"""The program as a person runs it: real commands in real processes, and what is left of them afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

from tests.e2e import warm
from tests.e2e.warm import HOME, forked
from tests.waiting import until

TIMEOUT_S = 120.0
DEAD_PROXY = "http://127.0.0.1:9"  # nobody listens there: whoever wants the network fails at once

# A run small enough for a test: 2 environments in 1 process, rollouts of 64 steps, without the image.
TINY = ("skill=pick", "experiment=debug", "trainer.num_workers=1", "torch_threads=1", "sim.num_layouts=4",
        "log_every_s=0.01")
WITH_IMAGE = (*TINY, "policy=light")  # its steps cost six times as much


def environment(home: Path) -> dict[str, str]:
    """Environment variables of a child: one thread, no account, no network."""
    dropped = ("WANDB", "SLURM", "NO_PROXY")
    inherited = {k: v for k, v in os.environ.items() if not k.upper().startswith(dropped)}
    proxies = {f"{k}_proxy": DEAD_PROXY for k in ("http", "https", "all")}
    paths = [str(HOME), *filter(None, [os.environ.get("PYTHONPATH")])]
    return inherited | proxies | {k.upper(): v for k, v in proxies.items()} | {
        "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths), "HOME": str(home), "NETRC": str(home / "netrc"),
    }


def start(directory: Path, *words: str) -> subprocess.Popen:
    """Start `rearrange <words>` in a directory, as the leader of its own session, like `python -P -m rearrange`: as the
    console script, it does not see what lies in the directory."""
    return forked([*words], directory, environment(directory))


def finish(process: subprocess.Popen, timeout_s: float = TIMEOUT_S) -> subprocess.CompletedProcess:
    """Wait for the end of a started command; one that hangs is killed and fails the test."""
    try:
        out, err = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        text = f"{process.args} did not end within {timeout_s:.0f} s:\n{out[-2000:]}\n{err[-2000:]}"
        raise AssertionError(text) from None
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def rearrange(directory: Path, *words: str) -> subprocess.CompletedProcess:
    """Run one command to its end."""
    return finish(start(directory, *words))


def succeed(directory: Path, *words: str) -> str:
    """Run one command that must succeed; its standard output."""
    done = rearrange(directory, *words)
    assert done.returncode == 0, f"{words}: {done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def wait_until(condition: Callable[[], bool], process: subprocess.Popen, timeout_s: float = 60.0) -> None:
    """Wait until something is the case while a process runs."""
    try:
        until(condition, "what the test waits for", timeout_s, process)
    except AssertionError as error:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"{error}; status {process.returncode}:\n{out[-2000:]}\n{err[-2000:]}") from None


def steps_logged(run: Path) -> list[int]:
    """The steps of the rows of a run's metrics.jsonl."""
    file = run / "metrics.jsonl"
    lines = file.read_text().splitlines(keepends=True) if file.exists() else []
    return [json.loads(line)["step"] for line in lines if line.endswith("\n")]


def status(run: Path) -> str:
    """How a run says that it ended."""
    return json.loads((run / "status.json").read_text())["status"]


def checkpoint_steps(run: Path) -> list[int]:
    """The steps of a run's checkpoints, oldest first; no other file lies beside them."""
    names = sorted(path.name for path in (run / "checkpoints").iterdir())
    assert all(name.startswith("step_") and name.endswith(".pt") for name in names), names
    return [int(name.removeprefix("step_").removesuffix(".pt")) for name in names]


def session_members(session: int) -> list[int]:
    """Processes of a session that are alive (Linux)."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, about = stat.read_text().rpartition(")")
        except OSError:
            continue
        state, _, _, sid = about.split()[:4]
        if int(sid) == session and state != "Z" and warm.NAME not in name:
            found.append(int(stat.parent.name))
    return found


def listing(directory: Path) -> list[tuple[str, int, int]]:
    """Everything below a directory: path, size, time of the last change."""
    entries = []
    for path in sorted(directory.rglob("*")):
        about = path.lstat()
        entries.append((str(path.relative_to(directory)), about.st_size if path.is_file() else 0, about.st_mtime_ns))
    return entries


@contextmanager
def somebody_works_in(directory: Path):
    """Another process that owns a directory; gives its id."""
    code = ("import sys; from trainer.checkpoints import owner; own = owner.hold(sys.argv[1]); "
            "print('mine', flush=True); sys.stdin.read()")
    process = subprocess.Popen([sys.executable, "-c", code, str(directory.resolve())], cwd=HOME, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "mine\n"
    try:
        yield process.pid
    finally:
        process.communicate()

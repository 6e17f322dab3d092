"""A soak: five sieges at once do harm for a given time, and what a law forbids is told.

    python -m tests.soak seconds=3600 seed=0 out=soak.json

`training` kills, stops and signals a training and its workers and fills its disk; `recording` does so to a recording;
`files` damages every kind of file that is read; `sockets` breaks off conversations with policy servers; `viewer` says
anything to a viewer. Nothing that was reported as saved may be lost, nothing may hang, and a mistake is one sentence.
The exit status is 1 if a law was broken.
"""

# all timed: a soak does harm at random moments and ends after a given time

from __future__ import annotations

import importlib
import json
import logging
import multiprocessing
import random
import shutil
import signal
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

SIEGES = ("training", "recording", "files", "sockets", "viewer")
SILENT_S = 180.0  # without a fault a siege counts as hanging


def run(name: str, place: Path, seed: int, seconds: float, news: Any) -> None:
    """One siege in its own process; sends (siege, kind of fault, what broke a law or "") for each fault."""
    # which `nohup` and shells ignore in the background, and their children, too
    for signum in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(signum, signal.default_int_handler if signum == signal.SIGINT else signal.SIG_DFL)
    logging.getLogger("websockets").setLevel(logging.CRITICAL)  # of clients and servers that do harm, not of ours
    rng, ends = random.Random(f"{seed} {name}"), time.monotonic() + seconds
    besiege = importlib.import_module(f"tests.soak.{name}").besiege
    for attempt in range(1, 1000):
        (folder := place / f"{name}_{attempt}").mkdir()
        try:
            for kind in besiege(folder, rng):
                news.put((name, kind, ""))
                if time.monotonic() > ends:
                    return
        except Exception:  # noqa: BLE001  whatever it is, it is told, and the siege begins anew
            news.put((name, "a law was broken", traceback.format_exc()[-6000:]))
        if time.monotonic() > ends:
            return


def table(counts: Counter[tuple[str, str]], seconds: float) -> str:
    """Faults by siege and kind."""
    rows = [f"| {siege} | {kind} | {count:,} |" for (siege, kind), count in sorted(counts.items())]
    return "\n".join(["| siege | fault | times |", "|---|---|---|", *rows,
                      f"| all | in {seconds / 60:.0f} minutes | {counts.total():,} |"])


def main(seconds: float, seed: int, out: Path, sieges: tuple[str, ...] = SIEGES) -> int:
    """Run the sieges; the exit status."""
    spawn, counts, broken = multiprocessing.get_context("spawn"), Counter(), []
    place, news, began = Path(tempfile.mkdtemp(prefix="soak_")), spawn.Queue(), time.monotonic()
    processes = {name: spawn.Process(target=run, args=(name, place, seed, seconds, news), name=name) for name in sieges}
    heard, gone = dict.fromkeys(processes, began), set()
    for process in processes.values():
        process.start()
    while any(process.is_alive() for process in processes.values()) or not news.empty():
        try:
            siege, kind, law = news.get(timeout=1.0)
        except Exception:  # noqa: BLE001  queue.Empty of another process
            siege = None
        if siege is not None:
            heard[siege] = time.monotonic()
            if law:
                broken.append({"siege": siege, "minute": (time.monotonic() - began) / 60, "law": law})
                print(f"{siege}: {law}", flush=True)
            else:
                counts[siege, kind] += 1
                if counts.total() % 500 == 0:
                    print(f"{(time.monotonic() - began) / 60:5.1f} min  {counts.total():,} faults", flush=True)
        for name, process in processes.items():
            if process.exitcode and process.exitcode != -9 and name not in gone:
                gone.add(name)
                broken.append({"siege": name, "minute": (time.monotonic() - began) / 60,
                               "law": f"ended with {process.exitcode}"})
            if process.is_alive() and time.monotonic() - heard[name] > SILENT_S:
                broken.append({"siege": name, "minute": (time.monotonic() - began) / 60,
                               "law": f"hangs: no fault for {SILENT_S:.0f} s"})
                print(f"{name} hangs", flush=True)
                process.kill()
    took = time.monotonic() - began
    print(table(counts, took))
    print(f"{len(broken)} laws broken")
    rows = [{"siege": siege, "fault": kind, "times": count} for (siege, kind), count in sorted(counts.items())]
    out.write_text(json.dumps({"seconds": took, "seed": seed, "faults": counts.total(), "rows": rows, "broken": broken},
                              indent=1))
    if not broken:
        shutil.rmtree(place, ignore_errors=True)
    return bool(broken)

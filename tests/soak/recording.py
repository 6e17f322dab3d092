"""A recording that is killed, signalled, and whose disk is full: what it says that it holds is there, and its end is
that of one without faults."""

# all timed: a soak does harm at random moments

from __future__ import annotations

import json
import random
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from eval.recording.folder import read_state, starts
from tests.e2e.front_door import finish, rearrange, session_members, start
from tests.small_disk import fill, free, small_disk
from tests.waiting import until

WORDS = ("record", "skill=pick", "agent=random", "episodes=40", "successes_only=false", "workers=2",
         "skill.max_steps=12", "format=lerobot",
         "sim.num_layouts=4")


def frames(folder: Path) -> list[tuple]:
    """Every frame of a recording."""
    import pyarrow.parquet as pq

    found = []
    for file in sorted(folder.glob("data/**/*.parquet")):
        table = pq.read_table(file)
        found += list(zip(*(table[name].to_pylist() for name in ("episode_index", "frame_index"))))
    return found


def besiege(place: Path, rng: random.Random) -> Iterator[str]:
    """Record again and again, with faults, until all episodes are there; the data set is then that of an undisturbed
    recording."""
    with small_disk(place / "disk", 64) as disk:
        done = rearrange(place, *WORDS, f"out={place / 'reference'}")
        assert done.returncode == 0, done.stderr
        reference = frames(place / "reference"), [json.dumps(each, sort_keys=True)
                                                  for each in starts(place / "reference")]
        while True:
            yield from _recording(place, disk, rng, reference)
            shutil.rmtree(disk / "set")


def _recording(place: Path, disk: Path, rng: random.Random, reference: tuple) -> Iterator[str]:
    folder, kept = disk / "set", 0
    while True:
        process = start(place, *WORDS, f"out={folder}")
        kind = rng.choice(["kill -9", "SIGTERM", "SIGINT", "SIGHUP", "full disk"])
        try:
            process.wait(rng.uniform(0.2, 3.0))
        except subprocess.TimeoutExpired:
            if kind == "full disk":
                fill(disk)
                time.sleep(rng.uniform(0.0, 1.0))
            else:
                process.send_signal(getattr(signal, kind.replace("kill -9", "SIGKILL")))
        else:
            kind = ""
        done = finish(process)
        free(disk)
        until(lambda: not session_members(process.pid), "its processes to end")
        if kind != "kill -9":  # which leaves behind the child that glfw asks for its version when it is imported
            assert "Traceback" not in done.stderr, (kind, done.stderr[-3000:])
        if kind == "full disk" and done.returncode == 0:
            kind = ""
        if not folder.exists() or not any(folder.iterdir()):
            assert kept == 0, kind
        else:
            try:
                said = read_state(folder)["episodes"] if "episodes" in read_state(folder) else None
            except ValueError:
                said = 0
                assert kept == 0, (kind, "its state cannot be read any more")
            there = len({episode for episode, _ in frames(folder)})
            assert there >= kept, (kind, there, kept)
            kept = there
            if told := re.search(r"([\d,]+) of 40 episodes", done.stdout + done.stderr):
                assert int(told[1].replace(",", "")) <= there, (kind, told[0], there, said)
        if not kind:
            assert done.returncode == 0, done.stderr
            assert (frames(folder), [json.dumps(each, sort_keys=True) for each in starts(folder)]) == reference
            return
        yield kind

"""Environments that fail in odd ways, someone who does harm to workers, and what must not leak: for the fault tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.trainer.toys import Pointer
from trainer import CollectConfig, PolicyConfig, TrainConfig
from trainer.checkpoint import list_checkpoints

MODES = ("ver", "nover", "ddppo", "hts", "ver+overlap", "deterministic")


def config(mode: str = "ver", steps: int = 10**8, **collect) -> TrainConfig:
    """A small run in one of MODES."""
    settings = dict(mode="ver" if mode == "deterministic" else mode.split("+")[0], overlap=mode in ("hts", "ver+overlap"), num_envs=8,
                    num_workers=2, rollout_steps=16)
    return TrainConfig(steps=steps, torch_threads=1, checkpoint_every_s=1e-6, deterministic=mode == "deterministic",
                       policy=PolicyConfig(encoder=None, hidden_size=8, body_size=16), collect=CollectConfig(**settings | collect))


class Odd(Pointer):
    """The third environment of each worker goes wrong at its 30th step; the others are in order."""

    made = 0

    def __init__(self, fault: str):
        super().__init__()
        Odd.made += 1
        self.fault, self.bad, self.count = fault, Odd.made == 3, 0

    def reset(self, *, seed=None, options=None):
        obs, info = super().reset(seed=seed)
        if self.bad and self.count >= 30 and self.fault == "reset hangs":
            time.sleep(600)
        if self.bad and self.count >= 30 and self.fault == "reset is NaN":
            obs = {"goal": np.array([np.nan, 0], np.float32)}
        if self.bad and self.fault == "first reset raises":
            raise OSError("the front door is locked")
        return obs, info

    def step(self, action):
        self.count += 1
        obs, reward, terminated, truncated, info = super().step(action)
        if not self.bad or self.count < 30:
            return obs, reward, terminated, truncated, info
        if self.fault == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.fault == "leaves":
            sys.exit("goodbye")
        if self.fault == "os exit":
            os._exit(7)
        if self.fault == "hangs":
            time.sleep(600)
        if self.fault == "key missing":
            obs = {"target": obs["goal"]}
        if self.fault == "text":
            obs = {"goal": ["left", "right"]}
        if self.fault == "four values":
            return obs, reward, terminated, info
        if self.fault == "array reward":
            reward = np.zeros(2)
        if self.fault == "infinite reward":
            reward = float("inf")
        if self.fault == "odd metrics":
            truncated, info = True, {"metrics": {"success": "yes"}}
        if self.fault == "final NaN":
            truncated, obs = True, {"goal": np.full(2, np.nan, np.float32)}
        if self.fault == "final shape":
            truncated, obs = True, {"goal": np.zeros(3, np.float32)}
        return obs, reward, terminated, truncated, info


def workers() -> list[int]:
    """Process ids of this process's environment workers, zombies included."""
    out = subprocess.run(["pgrep", "-P", str(os.getpid()), "-f", "trainer.workers"], capture_output=True, text=True).stdout
    return [int(pid) for pid in out.split()]


class Held:
    """What a process holds of the system, to compare before and after."""

    def __init__(self):
        self.files = len(os.listdir("/proc/self/fd"))
        self.threads = threading.active_count()
        self.workers = len(workers())
        self.shared = Path("/proc/self/maps").read_text().count("(deleted)")  # files without a name, such as ours
        self.memory_mib = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

    def none_more(self, before: Held, memory_mib: float = np.inf) -> None:
        assert self.workers == before.workers == 0
        assert self.files <= before.files and self.threads <= before.threads, (vars(self), vars(before))
        assert self.shared <= before.shared
        assert self.memory_mib - before.memory_mib < memory_mib, (vars(self), vars(before))


def when_saved(directory: Path, act: Callable[[], None], updates: int = 2) -> threading.Thread:
    """Do something, from a thread, once a run in `directory` has saved so many new checkpoints."""
    before = {p.name for p in list_checkpoints(directory / "checkpoints")}

    def wait() -> None:
        deadline = time.monotonic() + 60
        while len({p.name for p in list_checkpoints(directory / "checkpoints")} - before) < updates and time.monotonic() < deadline:
            time.sleep(0.01)
        act()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread

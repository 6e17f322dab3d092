"""Environments that fail in odd ways, someone who does harm to workers, and what must not leak: for the fault tests."""

from __future__ import annotations

import os
import random
import subprocess
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import gymnasium as gym
import numpy as np

from tests.trainer.toys import QUICK, Faulty
from tests.waiting import until
from trainer import CollectConfig, PolicyConfig, TrainConfig
from trainer.checkpoint import list_checkpoints

MODES = ("ver", "nover", "ddppo", "hts", "appo", "ver+overlap", "ver+two", "deterministic")  # two: inference workers


def config(mode: str = "ver", steps: int = 10**8, **collect) -> TrainConfig:
    """A small run in one of MODES."""
    settings = dict(mode="ver" if mode == "deterministic" else mode.split("+")[0],
                    overlap=mode in ("hts", "ver+overlap"),
                    num_envs=8, num_workers=2, rollout_steps=16, inference_workers=2 if mode == "ver+two" else 1)
    return TrainConfig(steps=steps, torch_threads=1, checkpoint_every_s=1e-6, deterministic=mode == "deterministic",
                       policy=PolicyConfig(encoder=None, lstm_layers=1, hidden_size=8, body_size=16), ppo=QUICK,
                       collect=CollectConfig(**settings | collect))


class Odd(Faulty):
    """The third environment of each worker goes wrong at its 30th step; the others are in order."""

    made = 0

    def __init__(self, fault: str):
        super().__init__(fault, at=30)
        Odd.made += 1
        self.bad = Odd.made == 3


class Stalling(gym.Wrapper):
    """Now and then a step or a reset takes up to `longest_s`: observations that stall, and come after all."""

    def __init__(self, env: gym.Env, longest_s: float, chance: float = 0.002):
        super().__init__(env)
        self.longest_s, self.chance, self.rng = longest_s, chance, random.Random()

    def stall(self) -> None:
        if self.rng.random() < self.chance:
            time.sleep(self.rng.uniform(0.1, self.longest_s))  # timed: an environment that stalls

    def reset(self, **words):
        self.stall()
        return self.env.reset(**words)

    def step(self, action):
        self.stall()
        return self.env.step(action)


class Counted(gym.Wrapper):
    """Keeps the number of steps that it has finished in a file of its own, whoever kills its process."""

    def __init__(self, env: gym.Env, directory: Path):
        super().__init__(env)
        self.file, self.steps = open(directory / uuid.uuid4().hex, "wb", buffering=0), 0

    def step(self, action):
        answer = self.env.step(action)
        self.steps += 1
        os.pwrite(self.file.fileno(), self.steps.to_bytes(8, "little"), 0)
        return answer


def steps_counted(directory: Path) -> int:
    """Of all Counted environments since the last call."""
    total = 0
    for file in directory.iterdir():
        total += int.from_bytes(file.read_bytes(), "little")
        file.unlink()
    return total


def workers(of: int | None = None) -> list[int]:
    """Process ids of a process's environment workers, by default this one's; zombies included."""
    out = subprocess.run(["pgrep", "-P", str(of or os.getpid()), "-f", "trainer.workers.worker"], capture_output=True,
                         text=True).stdout
    return [int(pid) for pid in out.split()]


def resident_mib(pid: int | str = "self") -> float:
    """Memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


class Held:
    """What a process holds of the system, to compare before and after."""

    def __init__(self):
        self.files = len(os.listdir("/proc/self/fd"))
        self.threads = threading.active_count()
        self.workers = len(workers())
        self.shared = Path("/proc/self/maps").read_text().count("(deleted)")  # files without a name, such as ours
        self.memory_mib = resident_mib()

    def none_more(self, before: Held, memory_mib: float = np.inf) -> None:
        assert self.workers == before.workers == 0
        assert self.files <= before.files and self.threads <= before.threads, (vars(self), vars(before))
        assert self.shared <= before.shared
        assert self.memory_mib - before.memory_mib < memory_mib, (vars(self), vars(before))


def when_saved(directory: Path, act: Callable[[], None], updates: int = 2) -> threading.Thread:
    """Do something, from a thread, once a run in `directory` has saved so many new checkpoints."""
    before = {p.name for p in list_checkpoints(directory / "checkpoints")}

    def wait() -> None:
        until(lambda: len({p.name for p in list_checkpoints(directory / "checkpoints")} - before) >= updates,
              f"{updates} checkpoints")
        act()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread

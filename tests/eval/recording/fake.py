"""A small environment with every kind of observation, and recordings of it."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace

import gymnasium
import numpy as np

from eval.recording.features import features_of
from eval.recording.lerobot import LeRobotFiles
from eval.recording.record import Prepared
from eval.recording.tape import Recorded, Tape

FPS = 30
SPACE = gymnasium.spaces.Dict({
    "depth": gymnasium.spaces.Box(0.0, 1.0, (16, 24, 1), np.float32),
    "rgb": gymnasium.spaces.Box(0, 255, (16, 24, 3), np.uint8),
    "segmentation": gymnasium.spaces.Box(0, 1000, (16, 24, 1), np.uint16),
    "joint": gymnasium.spaces.Box(-3.0, 3.0, (2,), np.float32),
    "is_holding": gymnasium.spaces.Box(0.0, 1.0, (1,), np.float32),
    "floor_map": gymnasium.spaces.Box(0.0, 1.0, (4, 4, 2), np.float32),
    "instruction": gymnasium.spaces.Text(100),
})
FEATURES = features_of(SPACE, ("left", "right"))


def seen(episode: int, frame: int) -> dict:
    """What is seen in a frame: colours that say which it is."""
    rng = np.random.default_rng([episode, frame])
    shade = np.full((16, 24, 3), (40 * (episode % 5) + 20, 8 * (frame % 25) + 20, 100), np.uint8)
    return {"depth": rng.random((16, 24, 1), np.float32), "rgb": shade,
            "segmentation": rng.integers(0, 1000, (16, 24, 1), np.uint16),
            "joint": np.array([math.sin(frame), episode], np.float32), "is_holding": np.float32([frame % 2]),
            "floor_map": rng.random((4, 4, 2), np.float32), "instruction": "x"}


def recorded(number: int, frames: int = 5, success: bool = True, features=FEATURES, raw: bool = False) -> Recorded:
    """An episode."""
    tape = Tape(features, FPS, raw)
    for frame in range(frames):
        last = frame == frames - 1
        tape.frame(seen(number, frame), np.array([frame / 10, -1], np.float32), float(frame), last, False,
                   last and success)
    return tape.recorded(number, {"seed": number, "episode": {"id": f"e{number}"}}, f"task {number % 2}", success,
                         None if success else "fell", seen(number, frames))


def work(job: SimpleNamespace, attempts: list[int]):
    """Stands for `record_skill`: every third attempt fails; at an attempt `job.stop_at` Ctrl-C is pressed."""
    for attempt in attempts:
        if attempt == job.stop_at:
            raise KeyboardInterrupt
        yield recorded(attempt, frames=3, success=attempt % 3 != 2, features=job.features)


VECTORS = {name: feature for name, feature in FEATURES.items() if feature.kind == "vector"}


def prepared(stop_at: int | None = None, listed: int = 0) -> Prepared:
    """Episodes without images."""
    job = SimpleNamespace(stop_at=stop_at, features=VECTORS)
    return Prepared(name="fake", job=job, work=work, features=VECTORS, fps=FPS, about={"fake": 1}, lines=[],
                    listed=listed, policy=None)


def files(path: Path, features=FEATURES) -> LeRobotFiles:
    """What writes a recording of these."""
    return LeRobotFiles(path, features, FPS)

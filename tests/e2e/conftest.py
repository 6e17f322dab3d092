"""One small training run, interrupted twice and finished, that all end-to-end tests share."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.front_door import (
    WITH_IMAGE,
    checkpoint_steps,
    finish,
    rearrange,
    start,
    status,
    steps_logged,
    wait_until,
)

STEPS = 2048


@dataclass(frozen=True)
class Trained:
    """The run, and what was seen on the way."""

    home: Path  # the directory the commands were run in
    run: Path
    stops: tuple  # (CompletedProcess, step of the newest checkpoint, status) after each interruption
    final: object  # CompletedProcess of the command that finished it


@pytest.fixture(scope="session")
def trained(tmp_path_factory) -> Trained:
    """Train; SIGTERM; resume; Ctrl-C; resume; finished."""
    home = tmp_path_factory.mktemp("e2e")
    run = home / "outputs/train/pick/tiny"
    stops = []
    again = ("train", "skill=pick", "name=tiny", "resume=true")
    commands = (("train", *WITH_IMAGE, f"steps={STEPS}", "name=tiny", "seed=3"), again)
    for words, signum in zip(commands, (signal.SIGTERM, signal.SIGINT)):
        before = len(steps_logged(run))
        process = start(home, *words)
        wait_until(lambda: len(steps_logged(run)) > before, process)
        if signum == signal.SIGINT:
            os.killpg(process.pid, signum)  # a terminal sends Ctrl-C to the workers too
        else:
            process.send_signal(signum)
        done = finish(process)
        stops.append((done, max(checkpoint_steps(run), default=None), status(run)))
    return Trained(home, run, tuple(stops), rearrange(home, *again))

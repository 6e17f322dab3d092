"""A rank that is stopped: for a while it costs time, for longer than the limit it ends all, by name."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import pytest
import torch

from tests.trainer.ranks.test_ranks import finish, start
from tests.waiting import until
from trainer.checkpoint import list_checkpoints, load_checkpoint


def step(directory: Path) -> int:
    found = list_checkpoints(directory / "checkpoints")
    return int(found[-1].stem.split("_")[1]) if found else 0


@pytest.mark.parametrize("victim", [0, 1])
def test_a_rank_that_goes_on_after_a_pause_is_waited_for_and_one_that_stays_stopped_ends_the_others(tmp_path, victim):
    """Ranks count as dead after 6 s of silence here."""
    processes = start(2, "watched", tmp_path)
    try:
        until(lambda: step(tmp_path) > 0, "the first checkpoint", process=processes[0])
        processes[victim].send_signal(signal.SIGSTOP)
        time.sleep(1.0)  # timed: how long it is stopped, of the 6 s after which it counts as dead
        stood = step(tmp_path)
        processes[victim].send_signal(signal.SIGCONT)
        until(lambda: step(tmp_path) > stood, "a checkpoint after the pause", process=processes[0])
        processes[victim].send_signal(signal.SIGSTOP)
        other = processes[1 - victim]
        until(lambda: other.poll() is not None, "the other rank to end")
        assert other.returncode == 1
        message = other.communicate()[1]
        assert len(re.findall(rf"rank {victim} \(\S+, pid {processes[victim].pid}\) has been silent for 6 s",
                              message)) == 1, message
        assert all(torch.isfinite(v).all() for v in load_checkpoint(tmp_path)["policy"].values())
        processes[victim].send_signal(signal.SIGCONT)  # it finds the others gone, and goes too
        ended = finish([processes[victim]], 60.0)
        assert ended[0][0] == 1
    finally:
        for p in processes:
            if p.poll() is None:
                os.kill(p.pid, signal.SIGKILL)

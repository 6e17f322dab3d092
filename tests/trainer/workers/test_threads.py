"""The number of learning threads is the one that measured faster."""

import os
import subprocess
import sys

import pytest
import torch

from trainer.machine import PROBE_EVERY, LearnThreads


@pytest.mark.parametrize("fastest", [1, 2])
def test_the_faster_choice_wins_and_the_other_is_looked_at_again(monkeypatch, fastest):
    clock = [0.0]
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])
    used = []
    with LearnThreads(None) as threads:
        for _ in range(PROBE_EVERY + 2):
            with threads.learning():
                used.append(torch.get_num_threads())
                clock[0] += 0.1 if used[-1] == fastest else 0.3
            assert torch.get_num_threads() == 1
    assert set(used[:3]) == {1, 2} and set(used[3:PROBE_EVERY]) == {fastest}
    assert used[PROBE_EVERY] == 3 - fastest and used[PROBE_EVERY + 1] == fastest


def test_a_fixed_number_is_used_and_restored():
    before = torch.get_num_threads()
    with LearnThreads(3) as threads, threads.learning():
        assert torch.get_num_threads() == 3
    assert torch.get_num_threads() == before


def test_omp_num_threads_is_a_limit(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert LearnThreads(None).choices == [1]
    monkeypatch.setenv("OMP_NUM_THREADS", "4,2")
    assert LearnThreads(None).choices == [1, 4]


@pytest.mark.parametrize("users, used", [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_threads_that_wait_sleep_unless_the_user_says_otherwise(users, used):
    """OpenMP tells what it has read when it is loaded."""
    others = {k: v for k, v in os.environ.items() if k != "OMP_WAIT_POLICY"} | {"OMP_DISPLAY_ENV": "TRUE"}
    child = subprocess.run([sys.executable, "-c", "import trainer.machine"], capture_output=True, text=True, check=True,
                           env=others | ({"OMP_WAIT_POLICY": users} if users else {}))
    assert f"OMP_WAIT_POLICY = '{used}'" in child.stderr

"""The benchmark of a training's cost: what it counts, and the command on a few steps."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from eval.bench.processor_time import spent_s
from eval.bench.train import Cost, summary, table
from eval.bench.train_split import Clock
from rearrange.command_line.cli import main

BURN = ("import subprocess, sys, time\n{}\nwhile time.process_time() < {}: pass\nprint('done', flush=True)\n"
        "time.sleep(600)")  # timed: the test ends it


def test_processor_time_of_a_process_and_of_its_workers():
    child = BURN.format("", 0.8)
    start = f"subprocess.Popen([sys.executable, '-c', {child!r}, 'a' + chr(46) + 'worker'])"
    with subprocess.Popen([sys.executable, "-c", BURN.format(start, 0.2)], stdout=subprocess.PIPE, text=True,
                          start_new_session=True) as process:
        try:
            assert [process.stdout.readline() for _ in range(2)] == ["done\n"] * 2
            spent = spent_s(process.pid)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    assert 0.19 <= spent["learner"] < spent["workers"]  # whatever starting Python takes is in both


def test_the_ratio_is_taken_within_each_repeat():
    costs = {"this": [Cost(9, 20.0, 30.0, 1.0), Cost(9, 40.0, 60.0, 1.0)],
             "against": [Cost(9, 40.0, 60.0, 1.0), Cost(9, 80.0, 120.0, 1.0)]}
    result = summary(costs)
    assert result["ratio"] == {"median": 0.5, "least": 0.5, "greatest": 0.5, "repeats": 2}
    assert result["versions"]["this"]["all_us"] == 75.0
    assert "0.500 of the other version's" in "\n".join(table(result | {"split": None}))


def test_a_clock_counts_what_is_inside_once():
    clock = Clock()

    def burn(seconds: float) -> None:
        until = time.thread_time() + seconds  # timed: processor time of this thread alone
        while time.thread_time() < until:  # timed: likewise
            pass

    inner = clock.timed("inner", lambda: burn(0.05))
    clock.timed("outer", lambda: (burn(0.02), inner()))()
    assert clock.total_s["inner"] >= 0.05 > clock.total_s["outer"] >= 0.02


def test_the_command_measures_a_training_and_says_where_the_time_goes(tmp_path, capsys):
    words = ["skill=pick", "steps=512", "warm_up_steps=64", "repeats=1",
             "words=['experiment=debug','sim.num_layouts=1']", f"output={tmp_path}", "name=t"]
    assert main(["bench", "train", *words]) == 0
    result = json.loads((tmp_path / "bench" / "train" / "t" / "bench.json").read_text())
    assert result["ratio"] is None and result["runs"]["this"][0]["steps"] >= 64
    assert result["versions"]["this"]["learner_us"] > 0 and result["versions"]["this"]["workers_us"] > 0
    parts = result["split"]["parts_us"]
    assert all(parts[name] > 0 for name in ("physics", "observation", "reward", "reset", "acting", "learning"))
    assert "physics" in capsys.readouterr().out


@pytest.mark.parametrize("words", ["against=/nowhere", "steps=10 warm_up_steps=10"])
def test_what_cannot_be_measured_is_refused(words, tmp_path, capsys):
    assert main(["bench", "train", f"output={tmp_path / 'out'}", *words.split()]) == 2
    assert "=" in capsys.readouterr().err and not (tmp_path / "out").exists()

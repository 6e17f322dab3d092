"""rearrange eval started as several tasks: the episodes of one, shared."""

from __future__ import annotations

import csv
import json
import re
import signal
import subprocess

import pytest

from tests.e2e.front_door import environment, finish, status, succeed, wait_until
from tests.e2e.test_ranks import port
from tests.e2e.warm import forked

WORDS = ("eval", "skill=pick", "agent=zero", "sim.num_layouts=4", "episodes=40", "workers=1", "skill.max_steps=20")


def tasks(directory, *words: str, size: int = 2) -> list[subprocess.Popen]:
    """As srun starts them."""
    slurm = {"SLURM_JOB_ID": str(port()), "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": str(size),
             "MASTER_PORT": str(port()), "SLURM_STEP_TASKS_PER_NODE": str(size), "SLURM_STEP_NODELIST": "localhost"}
    return [forked([*words], directory, environment(directory) | slurm
                   | {"SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank)}) for rank in range(size)]


def test_two_tasks_have_the_result_of_one(tmp_path):
    succeed(tmp_path, *WORDS, "name=one")
    first, second = (finish(task, 300.0) for task in tasks(tmp_path, *WORDS, "video=1", "name=two"))
    assert first.returncode == second.returncode == 0, (first.stderr[-2000:], second.stderr[-2000:])
    assert first.stdout.count("eval pick  40/40 100%") == 1 and not second.stdout
    one, two = (tmp_path / "outputs/eval/pick" / name for name in ("one", "two"))
    assert json.loads((one / "metrics.json").read_text()) == json.loads((two / "metrics.json").read_text())
    rows = [[row | {"video": ""} for row in csv.DictReader((run / "episodes.csv").open())] for run in (one, two)]
    assert rows[0] == rows[1] and [int(row["index"]) for row in rows[1]] == list(range(40))
    assert status(two) == "finished" and len(list((two / "videos").glob("*.mp4"))) == 1


@pytest.mark.parametrize("signum, code", [(signal.SIGKILL, 1), (signal.SIGTERM, 1)])
def test_a_task_that_ends_early_ends_the_others_with_one_message(tmp_path, signum, code):
    first, second = tasks(tmp_path, *(word.replace("=40", "=100000") for word in WORDS), "name=two")
    log = tmp_path / "outputs/eval/pick/two/log.txt"
    wait_until(lambda: log.exists() and re.search(r"[1-9]\d*/100k", log.read_text()), first, 240.0)
    second.send_signal(signum)
    done = finish(first, 60.0)
    assert done.returncode == code and "Traceback" not in done.stderr, done.stderr
    assert done.stderr.count("died" if signum == signal.SIGKILL else "rank 1 was stopped by SIGTERM") == 1
    assert finish(second, 60.0).returncode == (130 if signum == signal.SIGTERM else -9)
    assert status(log.parent) == "failed" and json.loads((log.parent / "metrics.json").read_text())["interrupted"]


@pytest.mark.parametrize("words", [("eval", "skill=all"), ("train", "-m", "skill=pick", "seed=0,1"), ("reproduce",),
                                   ("eval", "hab=tidy_house", "substitute=true", "agent=tp_srl")])
def test_what_is_for_one_process_says_so(tmp_path, words):
    first, second = (finish(task) for task in tasks(tmp_path, *words))
    assert first.returncode == second.returncode == 2
    assert "srun or torchrun" in first.stderr and first.stderr.count("\n") == 1 and not second.stderr
    assert not (tmp_path / "outputs").exists()

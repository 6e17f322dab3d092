"""The process of evaluations dies, is stopped, or its environment hangs: training returns, and what that means is
said."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.trainer.faults.fault_tools import Held, config
from tests.trainer.toys import Paced, Pointer
from tests.waiting import until
from trainer import evaluation, train

EVALUATED = dict(eval_every=128, eval_episodes=2, checkpoint_every_s=1e9)
NO_MORE = "no more evaluations come"

class Failing(Pointer):
    """An environment of evaluations that does something odd in its first `times` processes, which leave a file each."""

    def __init__(self, folder: Path, fault: str, place: str, times: int = 9):
        super().__init__()
        tries = len(list(folder.glob("try_*")))
        self.fault, self.place = fault if tries < times else "", place
        (folder / f"try_{tries}_{os.getpid()}").touch()
        self.at("init")

    def at(self, place: str) -> None:
        if not self.fault or place != self.place:
            return
        if self.fault == "hangs":
            time.sleep(600)  # timed: an environment that hangs
        if self.fault == "exits":
            os._exit(0)
        os.kill(os.getpid(), getattr(signal, self.fault))

    def reset(self, **words):
        self.at("reset")
        return super().reset(**words)

    def step(self, action):
        self.at("step")
        return super().step(action)

    def close(self):
        self.at("close")


def run(folder: Path, *of_env, steps: int = 512, **settings):
    """A training whose evaluations are played in a `Failing` of these arguments, and the number of their processes."""
    made = replace(config("nover", steps, num_envs=4, num_workers=1), **EVALUATED | settings)
    made = replace(made, collect=replace(made.collect, step_timeout_s=5.0))  # timed: a healthy step takes 1 ms
    # What waits for a process would otherwise train as fast as it can meanwhile.
    trained_in = functools.partial(Paced, 0.005) if steps > 512 else Pointer
    result = train(trained_in, made, eval_env=functools.partial(Failing, folder, *of_env), progress=False)
    return result, len(list(folder.glob("try_*")))


@pytest.mark.parametrize("fault, place",
                         [("hangs", "step"), ("SIGKILL", "init"), ("SIGSTOP", "reset"), ("exits", "reset"),
                                          *(pytest.param(*pair, marks=pytest.mark.slow)
                                            for pair in (("hangs", "init"), ("hangs", "reset"), ("SIGKILL", "step")))])
def test_a_run_whose_evaluations_never_work_ends_and_says_so(fault, place, tmp_path, caplog, monkeypatch):
    if (fault, place) == ("hangs", "init"):
        monkeypatch.setattr(evaluation, "START_TIMEOUT_S", 20.0)  # timed: instead of five minutes
    before = Held()
    result, tries = run(tmp_path, fault, place, stop_at=0.9)
    told = [record.message for record in caplog.records if "evaluation" in record.message]
    assert result.reason == "complete" and result.steps == 512 and result.best is None
    assert tries == (1 if (fault, place) == ("hangs", "init") else 2)
    assert sum(NO_MORE in line for line in told) == 1 and "stop_at=0.9 cannot end the run any more" in told[-1]
    assert sum("it is started again" in line for line in told) == tries - 1
    words = {"hangs": "hangs", "SIGKILL": "was killed by signal SIGKILL", "SIGSTOP": "was stopped by a signal",
             "exits": "exited with status 0"}
    assert all(words[fault] in line for line in told), told
    Held().none_more(before)


@pytest.mark.parametrize("fault, place", [("SIGKILL", "init"), ("SIGSTOP", "step"), ("exits", "reset"),
                                          *(pytest.param(*pair, marks=pytest.mark.slow)
                                            for pair in (("SIGKILL", "step"), ("SIGSTOP", "init")))])
def test_a_process_that_dies_once_is_started_again_and_stop_at_acts(fault, place, tmp_path, caplog, monkeypatch):
    if fault == "SIGSTOP":
        monkeypatch.setattr(evaluation, "START_TIMEOUT_S", 20.0)  # timed: instead of five minutes
    result, tries = run(tmp_path, fault, place, 1, steps=10**7, stop_at=-1e6)
    assert result.reached and result.best and tries == 2
    assert caplog.text.count("it is started again") == 1 and NO_MORE not in caplog.text


def test_a_process_that_is_killed_between_two_evaluations_is_started_again(tmp_path, caplog):
    class Kills:
        killed = 0

        def at_log(self, state):
            if "eval/return" in state.metrics and not self.killed:
                self.killed = int(next(tmp_path.glob("try_*")).name.split("_")[-1])
                os.kill(self.killed, signal.SIGKILL)

    made = replace(config("nover", 512, num_envs=4, num_workers=1), **EVALUATED, log_every_s=1e-9)
    kills = Kills()
    result = train(Pointer, made, eval_env=functools.partial(Failing, tmp_path, "", ""), progress=False,
                   callbacks=[kills])
    assert kills.killed and result.history[-1]["eval/at_step"] == 512 and len(list(tmp_path.glob("try_*"))) == 2


@pytest.mark.parametrize("fault", ["hangs", "SIGSTOP", "exits", "SIGKILL"])
def test_an_environment_that_does_not_close_does_not_hold_up_the_end(fault, tmp_path, caplog):
    before = Held()
    result, tries = run(tmp_path, fault, "close")
    assert result.best and tries == 1 and ("close" in caplog.text) == (fault in ("hangs", "SIGSTOP"))
    Held().none_more(before)


def test_the_environment_of_evaluations_is_closed(tmp_path):
    class Closes(Pointer):
        def close(self):
            (tmp_path / "closed").touch()

    train(Pointer, replace(config("nover", 256, num_envs=4, num_workers=1), **EVALUATED), eval_env=Closes,
          progress=False)
    assert (tmp_path / "closed").exists()


SCRIPT = """
import functools, sys
from dataclasses import replace
from pathlib import Path
from tests.trainer.faults.fault_tools import config
from tests.trainer.faults.test_evaluation_process import EVALUATED, Failing
from tests.trainer.toys import Pointer
from trainer import train

train(Pointer, replace(config("nover", 512, num_envs=4, num_workers=1), **EVALUATED), progress=False,
      eval_env=functools.partial(Failing, Path(sys.argv[1]), "hangs", "init"))
"""


def test_ctrl_c_does_not_wait_for_an_environment_that_is_made_for_ever(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, tmp_path], cwd=Path(__file__).parents[3])
    try:
        until(lambda: list(tmp_path.glob("try_*")), "the environment of evaluations", process=process)
        process.send_signal(signal.SIGINT)
        until(lambda: process.poll() is not None, "the end of training")
    finally:
        process.kill()

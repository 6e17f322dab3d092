"""An environment that leaves the interpreter is at fault: a WorkerError names it, in whatever process it is stepped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import gymnasium as gym
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from tests.trainer.faults.fault_tools import config
from tests.trainer.toys import Pointer
from tests.waiting import until
from trainer import train
from trainer.errors import WorkerError


class Own(BaseException):
    """What is neither an Exception nor one of Python's own."""


class Leaves(Pointer):
    """Leaves the interpreter at one place: at its seventh step, its second reset, when it is made, or closed."""

    def __init__(self, how: str, place: str):
        super().__init__()
        self.how, self.place, self.times = how, place, {"step": 7, "reset": 2}.get(place, 1)
        self.at("init")

    def at(self, place: str) -> None:
        self.times -= place == self.place
        if place != self.place or self.times:
            return
        if self.how == "sys.exit":
            sys.exit(0)
        if self.how == "os._exit":
            os._exit(0)
        raise {"SystemExit": SystemExit, "KeyboardInterrupt": KeyboardInterrupt("pretended"),
               "GeneratorExit": GeneratorExit, "Own": Own("mine")}[self.how]

    def reset(self, **words):
        self.at("reset")
        return super().reset(**words)

    def step(self, action):
        self.at("step")
        return super().step(action)

    def close(self):
        self.at("close")


class AsVector(gym.vector.VectorEnv):
    """Four of them in one, without Gymnasium's own code between."""

    def __init__(self, how: str, place: str, mode: AutoresetMode):
        self.inner = SyncVectorEnv([partial(Leaves, how, place)] * 4, autoreset_mode=mode)
        self.num_envs, self.metadata = 4, self.inner.metadata
        self.single_observation_space = self.inner.single_observation_space
        self.single_action_space = self.inner.single_action_space
        self.reset, self.step, self.close = self.inner.reset, self.inner.step, self.inner.close


KINDS = {"one": Leaves, "next step": partial(AsVector, mode=AutoresetMode.NEXT_STEP),
         "disabled": partial(AsVector, mode=AutoresetMode.DISABLED)}
HOW = ("sys.exit", "os._exit", "SystemExit", "KeyboardInterrupt", "GeneratorExit", "Own")


# Each pair of how, where and in which kind of environment; not all triples.
PLACES = ("init", "reset", "step")
TRIPLES = [(how, place, list(KINDS)[(h + p) % 3]) for h, how in enumerate(HOW) for p, place in enumerate(PLACES)]


@pytest.mark.parametrize("how, place, kind", TRIPLES)
def test_in_the_process_that_learns_it_is_a_worker_error(how, place, kind):
    settings = config("ver", 256, num_envs=4, num_workers=0)
    with pytest.raises(WorkerError, match=f"(?s)the .*environment .*failed "
                                          f"{'while it was made' if place == 'init' else 'at'}.*Traceback"):
        train(partial(KINDS[kind], how, place), settings, progress=False)


@pytest.mark.parametrize("how", ["sys.exit", "os._exit", "KeyboardInterrupt"])
def test_it_is_one_in_the_thread_that_collects(how):
    with pytest.raises(WorkerError, match=r"\(number 0 of 4\) failed at step 7 of its episode"):
        train(partial(Leaves, how, "step"), config("ver+overlap", 256, num_envs=4, num_workers=0), progress=False)


@pytest.mark.parametrize("how, place", [*((how, "step") for how in HOW), ("sys.exit", "init"), ("os._exit", "init"),
                                        ("sys.exit", "reset"), ("os._exit", "reset")])
def test_in_a_worker_it_is_a_worker_error(how, place):
    with pytest.raises(WorkerError, match=r"environment worker 0 .*(failed|exited with status 0)"):
        train(partial(Leaves, how, place), config("nover", 256, num_envs=4, num_workers=1), progress=False)


@pytest.mark.parametrize("how, workers", [*((how, 0) for how in HOW), ("sys.exit", 1), ("os._exit", 1)])
def test_when_it_is_closed_the_run_is_complete_and_it_is_told(how, workers, caplog):
    """A worker tells it on the screen."""
    make = partial(KINDS["disabled"] if workers == 0 else Leaves, how, "close")
    result = train(make, config("ver", 128, num_envs=4, num_workers=workers), progress=False)
    assert result.reason == "complete" and ("failed while it was closed" in caplog.text) == (workers == 0)


def test_an_environment_may_fork_and_its_child_may_leave():
    class Forks(Pointer):
        def step(self, action):
            if (child := os.fork()) == 0:
                os._exit(3)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
            return super().step(action)

    assert train(Forks, config("ver", 64, num_envs=2, num_workers=0), progress=False).reason == "complete"


SCRIPT = """
import sys
from pathlib import Path
from tests.trainer.faults.fault_tools import config
from tests.trainer.toys import Pointer
from trainer import train

class Slow(Pointer):
    def step(self, action):
        self.count = getattr(self, "count", 0) + 1
        if self.count == 3:
            Path(sys.argv[1]).touch()
            while True:
                try:
                    sum(range(10000))
                except BaseException:
                    raise
        return super().step(action)

train(Slow, config("ver", 256, num_envs=2, num_workers=0), progress=False)
"""


def test_ctrl_c_in_the_middle_of_a_step_is_no_fault_of_the_environment(tmp_path):
    """The first asks to stop after the step, the second stops at once."""
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, tmp_path / "there"], cwd=Path(__file__).parents[3],
                               stderr=subprocess.PIPE, text=True)
    until((tmp_path / "there").exists, "the step", process=process)
    errors = ""
    while process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            errors = process.communicate(timeout=0.5)[1]  # timed: between two signals
        except subprocess.TimeoutExpired:
            pass
    assert errors.rstrip().endswith("KeyboardInterrupt") and "WorkerError" not in errors
    assert process.returncode == -signal.SIGINT

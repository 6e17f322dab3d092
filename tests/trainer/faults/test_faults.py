"""Workers that are killed and stopped, environments that misbehave, in every mode: one message, a quick end,
nothing lost or leaked."""

from __future__ import annotations

import dataclasses
import functools
import os
import re
import signal
import threading
import time
from contextlib import closing

import numpy as np
import pytest

from tests.trainer.faults.fault_tools import MODES, Counted, Held, Odd, config, steps_counted, when_saved, workers
from tests.trainer.toys import Faulty, Paced, Pointer
from trainer import load_checkpoint, train
from trainer.workers.environments import Environments, WorkerError, WorkerProcess

FAULTS = {
    "killed": "was killed by signal SIGKILL during a step of environment [26]\\.",
    "os exit": "exited with status 7 during a step of environment [26]\\.",
    "NaN": "failed: environment [26] returned an observation 'goal' that is not finite",
    "leaves": "failed: environment [26] at step \\d+\n(?s:.*)SystemExit: goodbye",
    "raises": "failed: environment [26] at step \\d+\n(?s:.*)ZeroDivisionError: the drawer fell out",
    "shape": "failed: environment [26] at step \\d+: observation 'goal' has shape \\(3,\\), its space says \\(2,\\)",
    "NaN reward": "failed: environment [26] at step \\d+: reward is nan",
    "key missing": "failed: environment [26] at step \\d+: the observation has no 'goal'",
    "text": "failed: environment [26] at step \\d+\n(?s:.*)could not convert string",
    "four values": "failed: environment [26] at step \\d+: step gave 4 values; Gymnasium's gives",
    "array reward": "failed: environment [26] at step \\d+: reward is array\\(\\[0., 0.\\]\\), not a number",
    "infinite reward": "failed: environment [26] at step \\d+: reward is inf",
    "final NaN": "failed: environment [26] returned an observation 'goal' that is not finite",
    "final shape": "failed: environment [26] at step \\d+: observation 'goal' has shape \\(3,\\)",
    "reset is NaN": "failed: environment [26] returned an observation 'goal' that is not finite",
    "first reset raises": "failed: environment [26] at reset\n(?s:.*)the front door is locked",
    "hangs": "hangs: environment [26] has not finished its step for",
    "reset hangs": "hangs: environment [26] has not finished its reset for",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_environment_at_fault_is_named(fault):
    before, workers_n = Held(), 2 if fault == "killed" else 1
    with pytest.raises(WorkerError) as error:
        train(functools.partial(Odd, fault),
              config(num_envs=4 * workers_n, num_workers=workers_n, step_timeout_s=5.0))  # timed: a step takes 1 ms
    message = str(error.value)
    del error  # its traceback holds the memory shared with the workers
    assert re.search("environment worker [01] \\(environments (0-3|4-7), pid \\d+\\) " + FAULTS[fault],
                     message), message
    Held().none_more(before)


@pytest.mark.parametrize("mode", MODES)
def test_a_killed_worker_ends_the_run_and_it_can_be_continued(tmp_path, mode, caplog):
    """kill -9 of a worker at any moment, in every mode; in one of them the same again in the continued run."""
    train(Pointer, config(mode, 128), tmp_path)  # loads what is loaded once
    before = Held()
    for _ in range(2 if mode == "ver" else 1):
        known = load_checkpoint(tmp_path)["counters"]
        caplog.clear()

        killed: list[int] = []

        def kill():
            killed.append(workers()[-1])  # by process id, and these start again from the bottom: either worker
            os.kill(killed[0], signal.SIGKILL)

        thread = when_saved(tmp_path, kill)
        with pytest.raises(WorkerError) as error:
            train(Pointer, config(mode), tmp_path, resume_from=tmp_path)
        thread.join()
        assert re.fullmatch(rf"environment worker (0 \(environments 0-3|1 \(environments 4-7), pid {killed[0]}\) "
                            r"was killed by signal SIGKILL.*", str(error.value))
        counters = load_checkpoint(tmp_path)["counters"]
        assert counters["updates"] >= known["updates"] + 2 and counters["steps"] == 128 * counters["updates"]
        lost = re.findall(r"(\d+) steps collected since update (\d+)", caplog.text)
        assert all(0 < int(n) < 384 and int(u) >= known["updates"] for n, u in lost) and len(lost) <= 1
        Held().none_more(before)
    result = train(Pointer, config(mode, counters["steps"] + 256), tmp_path, resume_from=tmp_path)
    assert result.steps == counters["steps"] + 256


@pytest.mark.parametrize("mode, fault, words", [
    ("nover", "raises", "the drawer fell out"), ("ddppo", "NaN", "not finite"), ("hts", "shape", "has shape"),
    ("ver+overlap", "NaN reward", "reward is nan"), ("hts", "hangs", "hangs: environment"),
    ("ddppo", "hangs", "hangs: environment"), ("deterministic", "hangs", "hangs: environment"),
    ("appo", "raises", "the drawer fell out"),
    ("ver+two", "raises", "the drawer fell out"), ("ver+two", "hangs", "hangs: environment"),
])
def test_a_bad_environment_in_every_mode(tmp_path, mode, fault, words):
    before = Held()
    with pytest.raises(WorkerError, match=words):
        train(functools.partial(Faulty, fault, at=120),
              config(mode, step_timeout_s=5.0), tmp_path)  # timed: a healthy step takes 1 ms
    assert load_checkpoint(tmp_path)["counters"]["steps"] > 0
    Held().none_more(before)


def test_lost_steps_are_told(tmp_path, caplog):
    """The 20th step of the first environment is in the second rollout: what was collected of it is counted."""
    with pytest.raises(WorkerError):
        train(functools.partial(Faulty, "raises", at=20),
              config("nover", num_envs=2, num_workers=1, min_batch=2, max_wait_s=60.0),
              tmp_path)
    assert "6 steps collected since update 1 (step 32 of the run) were not learned from and are lost." in caplog.text


@pytest.mark.parametrize("mode", ["ver", "ver+overlap", "ver+two", "appo"])
def test_steps_that_a_stop_costs_are_told(tmp_path, mode, caplog):
    """What was collected while the last update was learned; and at most one step of each environment is under way."""
    def make():
        return Counted(Pointer(), counts)

    (counts := tmp_path / "counts").mkdir()
    when_saved(tmp_path, lambda: os.kill(os.getpid(), signal.SIGTERM))
    result = train(make, config(mode), tmp_path)
    lost = sum(map(int, re.findall(r"(\d+) steps collected since update \d+", caplog.text)))
    assert result.reason == "SIGTERM" and 0 <= steps_counted(counts) - result.steps - lost <= 8
    assert mode in ("ver+overlap", "appo") or not lost


def test_a_deterministic_run_tells_from_where_it_goes_on(tmp_path, caplog):
    first = dataclasses.replace(config("deterministic", 256), checkpoint_every_s=300.0)
    train(Pointer, first, tmp_path)
    with pytest.raises(WorkerError):
        train(functools.partial(Faulty, "raises", at=70), dataclasses.replace(first, steps=10**6), tmp_path,
              resume_from=tmp_path)
    assert re.search(r"(128|256|384|512) steps learned from since the checkpoint of step 256 are lost", caplog.text)
    assert load_checkpoint(tmp_path)["step"] == 256


def test_the_others_go_on_while_a_worker_is_stopped(tmp_path):
    """SIGSTOP, and SIGCONT once the others have done three updates without it: VER loses nothing but its steps."""
    held: list[int] = []

    def stop():
        held.append(workers()[0])
        os.kill(held[0], signal.SIGSTOP)
        when_saved(tmp_path, lambda: os.kill(held[0], signal.SIGCONT), updates=3)

    thread = when_saved(tmp_path, stop)
    done = threading.Event()
    train(Pointer, config(steps=128 * 30), tmp_path, observers=(lambda *_: done.set(),))
    thread.join()
    assert held and done.is_set() and load_checkpoint(tmp_path)["counters"]["steps"] == 128 * 30


@pytest.mark.parametrize("mode", ["nover", "ddppo", "hts", "appo", "ver+overlap", "deterministic"])
def test_a_worker_that_is_stopped_for_a_while_costs_time_only(tmp_path, mode):
    def pause():
        pid = workers()[0]
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.5)  # timed: how long it is stopped
        os.kill(pid, signal.SIGCONT)

    thread = when_saved(tmp_path, pause)
    result = train(functools.partial(Paced, 0.001), config(mode, 128 * 8), tmp_path)
    thread.join()
    assert result.reason == "complete" and result.steps == 128 * 8


@pytest.mark.parametrize("mode", ["ver", "hts", "appo"])
def test_a_worker_that_stays_stopped_is_named(tmp_path, mode):
    """Even though the others alone could go on for ever."""
    thread = when_saved(tmp_path, lambda: os.kill(workers()[1], signal.SIGSTOP))
    with pytest.raises(WorkerError, match=r"environment worker 1 \(.*\) hangs: it was stopped by a signal, "
                                          r"and environment [4-7] has not"):
        train(Pointer, config(mode, step_timeout_s=5.0), tmp_path)  # timed: a healthy step takes 1 ms
    thread.join()
    assert not workers() and load_checkpoint(tmp_path)["counters"]["updates"] >= 2


def ready(environments: Environments) -> None:
    while environments.under_way.any():
        environments.read(0.5)


def test_many_slow_environments_of_one_worker_do_not_hang():
    """The last of eight waits for longer than the limit, but the worker tells of one after another."""
    settings = config(num_envs=8, num_workers=1,
                      step_timeout_s=4.0).collect  # timed: eight times a step, and one takes an eighth of it
    with closing(Environments(functools.partial(Paced, 0.75), settings, 0)) as environments:
        ready(environments)
        environments.step(np.arange(8), np.zeros((8, 2), np.float32))
        ready(environments)
        assert sorted(environments.ready[8:]) == list(range(8))


def test_time_in_which_nobody_listened_is_no_hang():
    """A learner that learns for longer than the limit, or is stopped together with its workers."""
    settings = config(num_envs=2, num_workers=1,
                      step_timeout_s=2.0).collect  # timed: what the worker then has anew for 1 ms of work
    with closing(Environments(Pointer, settings, 0)) as environments:
        ready(environments)
        os.kill(environments.workers[0].process.pid, signal.SIGSTOP)
        environments.step(np.arange(2), np.zeros((2, 2), np.float32))
        time.sleep(3.0)  # timed: longer than the limit
        environments.read(0.0)
        os.kill(environments.workers[0].process.pid, signal.SIGCONT)
        ready(environments)


def test_a_worker_that_does_not_read_cannot_block_the_learner():
    settings = config(num_envs=2000, num_workers=1, step_timeout_s=4.0).collect  # timed: the worker never answers
    with closing(Environments(Pointer, settings, 0)) as environments:
        ready(environments)
        os.kill(environments.workers[0].process.pid, signal.SIGSTOP)
        with pytest.raises(WorkerError, match="hangs: it was stopped by a signal, and environment 0 has not finished "
                                              "its step"):
            for e in range(2000):
                environments.step(np.array([e]), np.zeros((1, 2), np.float32))


def test_stopped_workers_are_ended_together(monkeypatch):
    environments = Environments(Pointer, config(num_envs=6, num_workers=6).collect, 0)
    ready(environments)
    for pid in workers():
        os.kill(pid, signal.SIGSTOP)
    graces, kill = [], WorkerProcess.kill
    monkeypatch.setattr(WorkerProcess, "kill", lambda worker, grace_s: (graces.append(grace_s), kill(worker, grace_s)))
    environments.close()
    assert not workers() and len(graces) == 6
    assert max(graces[1:]) <= 0.0 < graces[0], "the first takes all the time there is"


def test_an_environment_that_is_never_built_is_reported(monkeypatch):
    from trainer.workers import environments

    class Endless(Pointer):
        def __init__(self):
            threading.Event().wait()  # an environment that hangs

    monkeypatch.setattr(environments, "START_TIMEOUT_S", 3.0)
    with pytest.raises(WorkerError,
                       match=r"environment worker 0 \(environments 0-3, pid \d+\) did not start within 3 s"):
        train(Endless, config())
    assert not workers()


def test_many_runs_in_one_process_leak_nothing():
    """Good ones and failing ones, in turn, in the modes with and without a second thread."""
    def rounds(n: int) -> None:
        for i in range(n):
            train(Pointer, config(("ver", "hts")[i % 2], 256))
            with pytest.raises(WorkerError):
                train(functools.partial(Faulty, "raises", at=20), config(("ver+overlap", "nover")[i % 2]))

    rounds(2)
    before = Held()
    rounds(2)
    Held().none_more(before, memory_mib=20)

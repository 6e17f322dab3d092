"""A soak: training after training, in random modes, while workers are killed, stopped and slowed and environments fail.

    pytest -m slow tests/trainer/test_faults_soak.py                         two minutes
    FAULT_SOAK_S=14400 FAULT_SOAK_SEED=7 pytest -m slow -s tests/trainer/test_faults_soak.py      four hours, other faults
"""

from __future__ import annotations

import functools
import os
import random
import signal
import threading
import time

import pytest

from tests.trainer.fault_tools import MODES, Held, Odd, config, workers
from tests.trainer.toys import Counter
from trainer import load_checkpoint, train
from trainer.environments import WorkerError

HARM = ("kill", "pause", "stop for ever", "slow", "environment", "nothing")
ODD = ("killed", "leaves", "key missing", "infinite reward", "final NaN", "final shape", "reset is NaN", "hangs", "reset hangs", "os exit")
LIMIT_S = 5.0  # step_timeout_s: far above what these steps take on a machine that is busy


def harm(kind: str, rng: random.Random, over: threading.Event) -> None:
    """What happens to one worker of a run, from some moment until the run is over."""
    while not (pids := workers()) and not over.is_set():
        time.sleep(0.05)
    if not pids or over.wait(rng.uniform(0.0, 3.0)):
        return
    victim = rng.choice(pids)

    def tell(signum: int) -> None:
        if victim in workers():  # the number still belongs to one of ours
            os.kill(victim, signum)

    if kind == "kill":
        tell(signal.SIGKILL)
    elif kind == "stop for ever":
        tell(signal.SIGSTOP)
    elif kind == "pause":
        tell(signal.SIGSTOP)
        over.wait(rng.uniform(0.1, 1.0))
        tell(signal.SIGCONT)
    elif kind == "slow":  # it gets a tenth of the time
        until = time.monotonic() + rng.uniform(1.0, 4.0)
        while time.monotonic() < until and not over.is_set():
            tell(signal.SIGSTOP)
            over.wait(0.09)
            tell(signal.SIGCONT)
            over.wait(0.01)


@pytest.mark.slow
def test_soak(tmp_path):
    seed, ends = int(os.environ.get("FAULT_SOAK_SEED", "0")), time.monotonic() + float(os.environ.get("FAULT_SOAK_S", "120"))
    rng = random.Random(seed)
    before, tally, round_ = None, dict.fromkeys(HARM, 0), 0
    while time.monotonic() < ends:
        if round_ == 2 * len(MODES):
            before = Held()  # each mode has been here twice: what is loaded once, is loaded
        mode, kind = MODES[round_ % len(MODES)], rng.choice(HARM)
        run, steps = tmp_path / mode, 0
        if run.exists():
            steps = load_checkpoint(run)["counters"]["steps"]
        make_env = functools.partial(Odd, rng.choice(ODD)) if kind == "environment" else functools.partial(Counter, 0.001)
        run = run if kind != "environment" else tmp_path / f"odd_{round_}"  # its observations have other keys
        over, began = threading.Event(), time.monotonic()
        thread = threading.Thread(target=harm, args=(kind, random.Random(rng.random()), over), daemon=True)
        thread.start()
        resume = run if run.exists() else None
        goal = (steps if resume else 0) + 128 * rng.randint(4, 20)
        settings = config(mode, goal, step_timeout_s=LIMIT_S)
        told = None
        try:
            result = train(make_env, settings, run, resume_from=resume)
            assert result.steps >= goal and kind not in ("environment",), (mode, kind)
        except WorkerError as error:
            told = str(error)
        over.set()
        thread.join()
        print(f"round {round_} {mode} {kind}: {time.monotonic() - began:.1f} s; {told.splitlines()[0] if told else 'complete'}", flush=True)
        assert time.monotonic() - began < 300, (mode, kind)
        if told:
            assert kind in ("kill", "stop for ever", "environment") and "environment worker" in told, (mode, kind, told)
        if resume or not told:
            assert load_checkpoint(run)["counters"]["steps"] >= steps
        tally[kind] += 1
        round_ += 1
        if before:
            Held().none_more(before, memory_mib=30)
        assert not workers()
    print(f"{round_} runs: {tally}")
    assert round_ > 0

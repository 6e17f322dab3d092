"""A soak: hours of training while workers are killed, stopped and slowed, environments fail and stall, and ranks die.

    pytest -m slow tests/trainer/faults/test_faults_soak.py                        two minutes for each test
    FAULT_SOAK_S=4800 FAULT_SOAK_SEED=7 pytest -m slow -s tests/trainer/faults/test_faults_soak.py     four hours

Nothing may hang, leak, or lose a step without saying so: environments count their steps in files, and these must be the
steps that were learned from, those that a warning calls lost, and at most one per environment, which was under way.
"""

# all timed: a soak: it does harm at random moments and ends after a given time
from __future__ import annotations

import functools
import os
import random
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from tests.trainer.faults import fault_tools
from tests.trainer.faults.fault_tools import MODES, Counted, Held, Odd, Stalling, config, workers
from tests.trainer.ranks.test_faults_ranks import step
from tests.trainer.ranks.test_ranks import finish, start
from tests.trainer.toys import Counter, Faulty
from tests.waiting import until
from trainer import load_checkpoint, train
from trainer.workers import environments
from trainer.workers.environments import WorkerError

FATAL = ("kill", "stop for ever")
PASSING = ("pause", "slow", "pause the learner", "nothing")
HARM = (*FATAL, *PASSING, "stall", "environment")
ODD = ("raises", "killed", "leaves", "os exit", "key missing", "text", "four values", "NaN", "shape", "array reward",
       "NaN reward",
       "infinite reward", "final NaN", "final shape", "reset is NaN", "hangs", "reset hangs", "first reset raises")
FAULTY = ("raises", "killed", "hangs", "NaN reward", "NaN", "shape")
LIMIT_S = 5.0  # step_timeout_s: far above what these steps take on a machine that is busy
START_S = 100.0  # START_TIMEOUT_S
MOST_S = 200.0  # that a short run may take


def soak_seconds() -> float:
    return float(os.environ.get("FAULT_SOAK_S", "120"))


def seed() -> int:
    return int(os.environ.get("FAULT_SOAK_SEED", "0"))


def harm(kind: str, rng: random.Random, over: threading.Event) -> None:
    """What happens to one worker, now, unless the run is over."""
    if not (pids := workers()):
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
    elif kind == "pause the learner":
        me = os.getpid()
        subprocess.run(["sh", "-c", f"kill -STOP {me}; sleep {rng.uniform(0.1, 2.0):.2f}; kill -CONT {me}"])


def harm_a_run(kind: str, rng: random.Random, over: threading.Event) -> None:
    """One kind of harm from some moment on: up to three times, if the run survives it."""
    while not workers() and not over.is_set():
        time.sleep(0.05)
    for _ in range(1 if kind in FATAL else rng.randint(1, 3)):
        if over.wait(rng.uniform(0.0, 3.0)):
            return
        harm(kind, rng, over)


def replayed(run: Path) -> int:
    """Steps that environments repeat when a deterministic run is continued."""
    saved = load_checkpoint(run)["ranks"] if run.exists() else []
    return (sum(len(a) for rank in saved for a in rank["collector"]["actions"] if "collector" in rank)
            if saved and "collector" in saved[0] else 0)


def lost_steps(text: str) -> int:
    """Those that warnings call lost."""
    return sum(map(int, re.findall(r"(\d+) steps collected since update", text)))


@pytest.mark.slow
def test_many_runs(tmp_path, caplog, monkeypatch):
    """Training after training in every mode, each with one kind of harm, continued where the last one ended."""
    monkeypatch.setattr(environments, "START_TIMEOUT_S", START_S)
    rng, ends = random.Random(seed()), time.monotonic() + soak_seconds()
    counts = tmp_path / "counts"
    counts.mkdir()
    before, tally, rounds, memory, lost = None, dict.fromkeys(HARM, 0), 0, [], 0
    while time.monotonic() < ends:
        if rounds == 2 * len(MODES):
            before = Held()  # each mode has been here twice: what is loaded once, is loaded
        mode, kind = MODES[rounds % len(MODES)], rng.choice(HARM)
        run = tmp_path / (mode if kind != "environment" else f"odd_{rounds}")  # its observations have other keys
        made = functools.partial(Counter, 0.001)
        if kind == "environment":
            made = rng.choice([functools.partial(Odd, fault) for fault in ODD]
                              + [functools.partial(Faulty, fault, at=rng.randint(1, 300)) for fault in FAULTY])
        longest = 0.4 * LIMIT_S if kind == "stall" else 0.0
        make_env = functools.partial(_counted, made, longest, counts)
        known = load_checkpoint(run)["counters"]["steps"] if run.exists() else 0
        again = replayed(run)
        over, began = threading.Event(), time.monotonic()
        thread = threading.Thread(target=harm_a_run, args=(kind, random.Random(rng.random()), over), daemon=True)
        thread.start()
        goal = known + (128 * rng.randint(4, 20) if kind != "environment" else 10**9)  # which ends it
        told = None
        caplog.clear()
        try:
            result = train(make_env, config(mode, goal, step_timeout_s=LIMIT_S), run,
                           resume_from=run if run.exists() else None)
            assert result.steps >= goal
        except WorkerError as error:
            told = str(error)
        over.set()
        thread.join()
        ended = told.splitlines()[0] if told else "complete"
        what = f"round {rounds} {mode} {kind}: {time.monotonic() - began:.1f} s; {ended}"
        assert time.monotonic() - began < MOST_S, what
        assert not told or (kind in (*FATAL, "environment") and "environment worker" in told), what
        learned = (load_checkpoint(run)["counters"]["steps"] if (run / "checkpoints").exists() else 0) - known
        taken, called_lost = fault_tools.steps_counted(counts), lost_steps(caplog.text)
        under_way = taken - learned - called_lost
        assert learned >= 0
        assert (-again if told else 0) <= under_way - again <= 8, (what, learned, taken, called_lost, again)
        now = Held()
        memory.append(now.memory_mib)
        print(f"{what}; {taken} steps, {called_lost} lost, {now.memory_mib:.1f} MiB, {now.files} files, {now.shared} "
              "shared",
              flush=True)
        if before:
            now.none_more(before, memory_mib=30)
        assert not workers()
        tally[kind], rounds, lost = tally[kind] + 1, rounds + 1, lost + called_lost
    print(f"{rounds} runs: {tally}; {lost} steps called lost; {_trend(memory)}")
    assert rounds > 0


def _counted(made, longest_s: float, counts: Path):
    env = Counted(made(), counts)
    return Stalling(env, longest_s) if longest_s else env


def _trend(mib: list[float]) -> str:
    quarter = max(1, len(mib) // 4)
    return " / ".join(f"{np.median(mib[i * quarter : (i + 1) * quarter]):.1f}"
                      for i in range(4)) + " MiB in the four quarters"


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["ver", "ver+overlap", "appo"])
def test_one_run(tmp_path, caplog, mode):
    """One training for half the time, while workers and learner are stopped and slowed all the time and observations
    stall."""
    rng, ends, over = random.Random(seed()), time.monotonic() + soak_seconds() / 2, threading.Event()
    counts = tmp_path / "counts"
    counts.mkdir()
    seen: list[dict[str, float]] = []

    def trouble() -> None:
        while time.monotonic() < ends:
            over.wait(rng.uniform(0.0, 2.0))
            harm(rng.choice(PASSING), rng, over)
            pids, now = workers(), Held()
            if len(pids) == 2:
                seen.append({"learner MiB": now.memory_mib, "workers MiB": sum(map(fault_tools.resident_mib, pids)),
                             "files": now.files,
                             "workers' files": sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in pids),
                             "threads": now.threads,
                             "shared": now.shared})
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=trouble, daemon=True)
    thread.start()
    make_env = functools.partial(_counted, functools.partial(Counter, 0.003), 0.4 * LIMIT_S, counts)
    result = train(make_env, config(mode, step_timeout_s=LIMIT_S), tmp_path)
    over.set()
    thread.join()
    taken, called_lost = fault_tools.steps_counted(counts), lost_steps(caplog.text)
    print(f"{mode}: {taken} steps, {result.steps} learned from, {called_lost} called lost")
    assert result.reason == "SIGTERM" and 0 <= taken - result.steps - called_lost <= 8
    third = max(1, len(seen) // 3)
    for name in seen[0]:
        early, late = (max(s[name] for s in part) for part in (seen[third : 2 * third] or seen, seen[-third:]))
        print(f"  {name}: at most {early:.1f} in the second third, {late:.1f} in the last")
        assert late - early <= (5.0 if "MiB" in name else 0), name


@pytest.mark.slow
def test_ranks(tmp_path):
    """Two ranks, continued again and again: ranks and workers are stopped for a while, and then one of them is
    killed."""
    rng, ends, ended_in, rounds = random.Random(seed()), time.monotonic() + soak_seconds(), [], 0
    while time.monotonic() < ends:
        mode = rng.choice(["ver", "ver+overlap", "ddppo", "nover", "hts", "appo"])
        known, processes = step(tmp_path), start(2, "soaked", tmp_path, mode)
        try:
            until(lambda: step(tmp_path) > known, "a new checkpoint", 120.0, processes[0])
            pids = [p.pid for p in processes] + [w for p in processes for w in workers(p.pid)]
            for _ in range(rng.randint(0, 2)):
                paused = rng.choice(pids)
                os.kill(paused, signal.SIGSTOP)
                time.sleep(rng.uniform(0.1, 2.0))
                os.kill(paused, signal.SIGCONT)
                time.sleep(rng.uniform(0.0, 1.0))
            victim, began = rng.choice(pids), time.monotonic()
            os.kill(victim, signal.SIGKILL)
            ended = finish(processes, 60.0)
        finally:
            for p in processes:
                if p.poll() is None:
                    os.kill(p.pid, signal.SIGKILL)
        told = [line for _, text in ended for line in text.splitlines() if f"pid {victim})" in line]
        ended_in.append(time.monotonic() - began)
        print(f"round {rounds} {mode}: {ended_in[-1]:.1f} s; {told}", flush=True)
        assert len(told) == 1 and all(code != 0 for code, _ in ended), (ended, victim)
        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids),
              "the workers of a killed rank to end with it")
        assert load_checkpoint(tmp_path)["counters"]["steps"] > known and not list(tmp_path.rglob("*.partial"))
        rounds += 1
    print(f"{rounds} runs of two ranks; ended within {max(ended_in):.1f} s")

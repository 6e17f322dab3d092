"""`python -m benchmarks.batched`: its jobs, its table, what it refuses, and the command itself where EnvPool is
installed.
"""

from __future__ import annotations

import json
import os

import pytest

from benchmarks import batched
from benchmarks import run as run_benchmark
from benchmarks.batched_clock import Clock
from benchmarks.settings import Batched

TINY = ["num_envs=4", "rollout_steps=16", "mini_batches=2", "epochs=1", "seconds=0.1", "repeats=1"]


def test_a_clock_counts_from_the_first_update_to_the_first_after_its_time():
    clock = Clock(0.0)
    assert [clock.tick(steps) for steps in (100, 200, 300)] == [False, False, True]
    assert clock.result()["steps"] == 200 and clock.result()["wall_s"] > 0
    assert not any(Clock(1000.0).tick(steps) for steps in range(5))


def test_the_table_has_ratios_within_repeats():
    runs = [{"task": "A", "trainer": trainer, "steps": steps, "wall_s": 2.0, "cpu_s": 0.001}
            for trainer, steps in (("ours", 100), ("sb3", 50), ("ours", 200), ("sb3", 400))]
    ours, sb3 = batched.table(runs)[2:]
    assert ours == "| A | rearrange | 75 (50 .. 100) | 1.00 (1.00 .. 1.00) | 7.5 | 2 |"
    assert sb3.startswith("| A | SB3 PPO | 112 (25 .. 200) | 1.25 (0.50 .. 2.00) |")


def test_jobs_are_taken_in_turn():
    settings = Batched(tasks=("A", "B"), trainers=("ours", "sb3"), sample_factory="python", repeats=2, seed=5)
    made = [(job["seed"], job["task"], job["trainer"]) for job in batched.jobs(settings)]
    one = [(task, trainer) for task in "AB" for trainer in ("ours", "sb3", "sample_factory")]
    assert made == [(seed, *each) for seed in (5, 6) for each in one]


def test_what_cannot_be_measured_is_a_sentence(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(batched, "NEEDS", {"ours": ("json",), "sb3": ("json", "no_such_package")})
    for words, complaint in (
        ("trainers=[sb3]", "trainers=sb3 needs the package no_such_package: pip install 'rearrange[envpool,peers]'."),
        ("trainers=[ours] num_envs=1", "num_envs=1 is no batch"),
        ("trainers=[ours] mini_batches=7", "mini_batches=7 does not divide the 4096 steps"),
        ("trainers=[ours] sample_factory=/nowhere/python", "sample_factory=/nowhere/python is no Python interpreter")):
        assert run_benchmark("batched", [f"output={tmp_path / 'out'}", *words.split()]) == 2
        error = capsys.readouterr().err
        assert complaint in error and error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_the_command_end_to_end(tmp_path):
    """Sample Factory too where SAMPLE_FACTORY_PYTHON names an interpreter that has it and EnvPool."""
    pytest.importorskip("envpool")
    pytest.importorskip("stable_baselines3")
    peer = os.environ.get("SAMPLE_FACTORY_PYTHON")
    words = [f"output={tmp_path}", "name=b", "tasks=[CartPole-v1,HalfCheetah-v4]", *TINY]
    assert run_benchmark("batched", [*words, *([f"sample_factory={peer}"] if peer else [])]) == 0
    place = tmp_path / "bench" / "batched" / "b"
    runs = [json.loads(line) for line in (place / "runs.jsonl").read_text().splitlines()]
    assert len(runs) == 2 * (4 if peer else 3) and all(each["steps"] >= 2 * 64 and each["cpu_s"] > 0 for each in runs)
    assert json.loads((place / "bench.json").read_text())["CartPole-v1/ours/steps_per_s"] > 0

"""The engine benchmark: bounds by hand, and the command on a tiny setting."""

from __future__ import annotations

import json
import math
import os
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import engine as bench_engine
from benchmarks import run as run_benchmark
from benchmarks.engine_bounds import at_batch, inference_bound, latency_bound, measure, system_bound, trace_bound
from benchmarks.engine_table import table
from benchmarks.settings import Engine
from benchmarks.step_trace import Trace, cut
from eval.intervals import bootstrap
from rearrange.command_line.cli import main


def trace(ends, seconds, resets=()):
    """Steps that end at `ends` and last `seconds` each; those numbered in `resets` are resets."""
    ends = np.array(ends, float)
    return Trace(ends - seconds, ends, np.ones(len(ends), np.float32), np.isin(np.arange(len(ends)), resets))


def test_bounds_by_hand():
    # 0.1 s per step -> 10/s; 4 steps of 0.2 s and a reset of 0.2 s -> 4 steps in 1 s
    traces = [trace(np.arange(1, 11) / 10, 0.1), trace([0.2, 0.4, 0.6, 0.8, 1.0], 0.2, resets=[2])]
    assert trace_bound(traces) == pytest.approx(10 + 4)
    assert latency_bound(traces, 0.1) == pytest.approx(1 / 0.2 + 1 / 0.35)
    assert at_batch({1: 0.002, 2: 0.004, 4: 0.006}, 3.0) == pytest.approx(0.005)
    assert math.isnan(at_batch({}, 3.0))
    assert inference_bound({1: 0.002, 4: 0.004}) == pytest.approx(1000)


def test_system_bound_by_hand():
    assert system_bound(1000, 2000, 2.0, overlapping=False) == pytest.approx(2000 / (2 + 2))
    assert system_bound(1000, 2000, 1.0, overlapping=True) == 1000  # collection is slower
    assert system_bound(1000, 2000, 4.0, overlapping=True) == 500  # learning is slower


def test_a_run_is_measured_between_its_updates():
    """Two environments with a step every 0.1 s each while collecting; every second update second is learning."""
    ends = [t for second in range(4) for t in second + np.arange(1, 6) / 10]
    updates = [{"end_s": s + 1.0, "collect_s": 0.5, "wait_s": 0.25, "learn_s": 0.5, "batch": 2.0, "stale": 0.1,
                "steps": 10 * (s + 1)} for s in range(4)]
    traces = [trace(ends, 0.08), trace(ends, 0.05)]
    m = measure(traces, {"updates": updates}, 1, overlapping=False, latency_s={2: 0.02})
    assert (m.steps, m.steps_told, m.updates, m.seconds) == (30, 30, 3, 3.0)
    assert m.steps_per_s == pytest.approx(10) and m.fastest_steps_per_s == pytest.approx(10)
    assert m.collection_steps_per_s == pytest.approx(20) and m.wait_share == pytest.approx(0.5)
    assert m.of_trace == pytest.approx(20 / (12.5 + 20)) and m.of_latency == pytest.approx(20 / (10 + 1 / 0.07))
    overlapped = measure(traces, {"updates": updates}, 1, overlapping=True)
    assert overlapped.collection_steps_per_s == pytest.approx(10) and math.isnan(overlapped.latency_bound)
    assert sum(t.steps for t in cut(traces, 1.0, 2.0)) == 10


def test_bootstrap_interval():
    low, high = bootstrap([1.0, 2.0, 3.0, 4.0, 5.0])
    assert 1.0 < low < 3.0 < high < 5.0
    assert bootstrap([2.0]) == (2.0, 2.0)


def test_refused_settings_write_nothing(tmp_path, capsys):
    wrong = {"sample_factory=/nowhere/python": "not a file", "network=blind": "homes only",
             "num_workers=17": "num_workers=17", "inference_workers=17": "inference_workers=17",
             "env=pick network=linear": "synthetic only", "ddppo=false nover=false ver=false hts=false "
             "ver_overlap=false appo=false": "no system"}
    for words, complaint in wrong.items():
        assert run_benchmark("engine", [f"output={tmp_path / 'out'}", *words.split()]) == 2
        assert complaint in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_peer_that_cannot_make_the_home_is_told_at_once(tmp_path, capsys):
    peer = tmp_path / "python"
    peer.write_text("#!/bin/sh\ncase \"$2\" in *make_env*) echo 'ModuleNotFoundError: no mujoco here' >&2; exit "
                    "1;; esac\n")
    peer.chmod(0o755)
    assert run_benchmark("engine", [f"output={tmp_path / 'out'}", "env=pick", f"sample_factory={peer}"]) == 2
    error = capsys.readouterr().err
    assert "cannot make env=pick (ModuleNotFoundError: no mujoco here)" in error and error.count("\n") == 1
    assert not (tmp_path / "out").exists()


TINY = ["num_envs=2", "rollout_steps=16", "time_scale=0.02", "seconds=0.2", "image_size=8", "seed=3"]


def test_the_command_end_to_end(tmp_path, capsys):
    """DD-PPO, VER with overlap and APPO, one repeat."""
    words = [f"output={tmp_path}", "name=b", "repeats=1", "nover=false", "ver=false", "hts=false", *TINY]
    assert run_benchmark("engine", words) == 0
    out = capsys.readouterr().out
    result = json.loads((tmp_path / "bench" / "engine" / "b" / "bench.json").read_text())
    assert list(result["systems"]) == ["ddppo", "ver_overlap", "appo"] and "x DD-PPO" in out
    for row in result["systems"].values():
        assert row["steps_per_s"]["mean"] > 0 and row["updates"]["mean"] >= 2
        # under way at either end; overlap: a batch
        assert abs(row["steps_told"]["mean"] - row["steps"]["mean"]) <= 2 * 2 + 32
        assert 0 < row["of_trace"]["mean"] < 1.2 and row["reward"]["mean"] < 1
        assert row["no_wait_bound"]["mean"] > row["collection_steps_per_s"]["mean"] * 0.8
    ddppo = {key: figure["mean"] for key, figure in result["systems"]["ddppo"].items()}
    # all, 16 times and for the last values
    assert ddppo["times_ddppo"] == 1 and ddppo["batch"] == pytest.approx(2 * 16 / 17)
    assert ddppo["learn_s"] > 0.02 * 1.5 / (3 * 2048) * 3 * 32  # at least what is pretended
    assert not list(tmp_path.rglob("*.trace"))


@pytest.mark.parametrize("env, network, image_size", [("pick", "blind", 0), ("objectnav", "light", 32)])
def test_homes(tmp_path, env, network, image_size):
    words = [f"output={tmp_path}", "name=b", "repeats=1", "ddppo=false", "nover=false", "hts=false",
             "ver_overlap=false", "appo=false", f"env={env}", f"network={network}", f"image_size={image_size}",
             "num_envs=2", "rollout_steps=16", "seconds=0.2"]
    assert run_benchmark("engine", words) == 0
    result = json.loads((tmp_path / "bench" / "engine" / "b" / "bench.json").read_text())
    assert result["systems"]["ver"]["steps_per_s"]["mean"] > 0


@pytest.mark.skipif("SAMPLE_FACTORY_PYTHON" not in os.environ,
                    reason="SAMPLE_FACTORY_PYTHON names no interpreter with Sample Factory")
def test_sample_factory_beside_ver(tmp_path):
    words = [f"output={tmp_path}", "name=b", "repeats=1",
             "nover=false", "hts=false", "ddppo=false", "ver_overlap=false", "appo=false"]
    assert run_benchmark("engine", [*words, f"sample_factory={os.environ['SAMPLE_FACTORY_PYTHON']}", *TINY]) == 0
    rows = json.loads((tmp_path / "bench" / "engine" / "b" / "bench.json").read_text())["systems"]
    assert rows["sample_factory"]["steps_per_s"]["mean"] > 0
    previous_action = 5 * 6  # weights that Sample Factory's network lacks
    assert rows["ver"]["parameters"]["mean"] - rows["sample_factory"]["parameters"]["mean"] == previous_action


def test_a_failing_run_is_told_with_its_last_words(tmp_path):
    with pytest.raises(RuntimeError, match=r"(?s)failed \(3\).*last words"):
        bench_engine.run_process(["-c", "print('last words'); raise SystemExit(3)"], tmp_path / "log.txt", 60)
    with pytest.raises(RuntimeError, match="no end after"):
        forever = "import time; time.sleep(600)"  # timed: it never ends
        bench_engine.run_process(["-c", forever], tmp_path / "log.txt", 0.5)  # timed: nor does this


def test_ratios_pair_runs_of_the_same_repeat():
    """Two repeats, the second on a machine twice as fast: ratios are those within each repeat."""
    settings = Engine(num_envs=2, rollout_steps=4, repeats=2, seconds=1.0)
    repeats = []
    for speed in (1, 2):
        results = {}
        for name, every_s in {"unhindered": 0.1, "ddppo": 0.4, "ver": 0.2}.items():
            ends = np.arange(1, 41) * every_s / speed
            updates = [{"end_s": t, "collect_s": t / 2, "learn_s": 0.1 / speed, "steps": 0}
                       for t in (ends[9] + 1e-9, ends[39] + 1e-9)]
            results[name] = {"updates": updates, "latency_s": {1: 0.01}, "parameters": 1, "peak_mib": 1.0,
                             "processes": 1, "cores_busy": 1.0, "load": 1.0}
            results[name]["measured"] = measure([trace(ends, 0.1 / speed)], results[name], 1, name == "unhindered",
                                                {1: 0.01})
        repeats.append(results)
    result = bench_engine.summarise(settings, ["ddppo", "ver"], repeats)
    assert result["systems"]["ver"]["times_ddppo"]["values"] == pytest.approx([2, 2])
    assert result["systems"]["ver"]["steps_per_s"]["values"] == pytest.approx([5, 10])
    assert result["systems"]["ver"]["no_wait_bound"]["values"] == pytest.approx([10, 20])
    assert result["systems"]["ver"]["system_bound"]["values"] == pytest.approx([8 / (0.8 + 0.1), 8 / (0.4 + 0.05)])
    assert any(line.startswith("VER ") and "2.00" in line for line in table(result))
    assert SimpleNamespace(**result["systems"]["ver"]["of_system"]).mean == pytest.approx(5 / (8 / 0.9))


def test_a_measurement_is_a_command_of_its_own(capsys):
    assert run_benchmark("engine", ["--help"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("usage: python -m benchmarks.engine [key=value ...]") and "steps/s" in said
    assert main(["bench", "engine"]) == 2 and "python -m benchmarks.engine" in capsys.readouterr().err

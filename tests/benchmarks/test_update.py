"""The update benchmark: parts that add up, packing that is cheap, and memory as calculated by hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from benchmarks import run as run_benchmark
from benchmarks.update import PARTS, bench_update, table
from rearrange.command_line.composition.bench_settings import ADDED
from tests.e2e.warm import HOME
from trainer import ppo


def test_parts_add_up_and_packing_is_small():
    original = ppo.find_sequences
    result = bench_update(policy="blind", updates=2, device="cpu")
    parts = result["parts"]
    assert sum(p["share"] for p in parts.values()) == pytest.approx(1)
    assert all(parts[name]["seconds"] > 0 for name in PARTS)
    assert parts["packing"]["share"] < 0.1  # `python -m benchmarks.update` measures it; here the machine may be busy
    assert result["sequences"] > 32  # longer than one per environment: episodes ended
    assert ppo.find_sequences is original  # the clock is gone
    assert "packing" in "\n".join(table(result))


def test_memory_by_hand():
    """N = 4, T = 8, no image, no recurrent state: 17 observed values, 11 actions, log-probability, value, reward: 31 x
    4 bytes.
    """
    memory = bench_update(policy="blind", num_envs=4, rollout_steps=8, updates=1, device="cpu")["memory"]
    assert memory["theory_bytes"] == 4 * 8 * 31 * 4
    assert memory["rows"] == 4 * 8 + 4
    assert memory["stored_bytes"] == sum(memory["fields_bytes"].values()) > memory["theory_bytes"]


def test_with_images_the_storage_is_close_to_theory(tmp_path, capsys):
    words = [f"output={tmp_path}", "name=u", "num_envs=4", "rollout_steps=64", "updates=1", "device=cpu"]
    assert run_benchmark("update", words) == 0
    result = json.loads((tmp_path / "bench" / "update" / "u" / "bench.json").read_text())
    image = 64 * 64 * 4 * 4 * 64
    theory, stored = (result["memory"][f"{kind}_bytes"] for kind in ("theory", "stored"))
    assert image < theory < stored < 1.04 * theory
    assert "rollout storage" in capsys.readouterr().out


def test_settings_that_cannot_work_are_a_sentence(tmp_path, capsys):
    for words, said in (("update num_envs=16384 rollout_steps=1000000", "GB of memory"),
                        ("modes modes=[warp]", "modes=warp")):
        name, *others = words.split()
        assert run_benchmark(name, [*others, f"output={tmp_path / 'out'}"]) == 2
        error = capsys.readouterr().err
        assert said in error and error.count("\n") == 1 and not (tmp_path / "out").exists()


def test_a_process_that_a_measurement_starts_knows_it():
    known = os.environ | {"PYTHONPATH": str(HOME), ADDED: "1"}
    done = subprocess.run([sys.executable, "-P", "-m", "rearrange", "bench", "update", "--help"], env=known,
                          capture_output=True, text=True)
    assert done.stdout.startswith("usage: python -m benchmarks.update [key=value ...]"), done.stderr


@pytest.mark.slow
def test_the_jobs_of_a_sweep_know_the_measurement(tmp_path):
    words = ["-m", "seed=0,1", "num_envs=4", "rollout_steps=8", "updates=1", "device=cpu", "policy=blind", "name=s",
             f"output={tmp_path}"]
    assert run_benchmark("update", words) == 0
    assert len(list(tmp_path.glob("bench/update/s_seed-*/bench.json"))) == 2

"""The real commands on a real habitat-sim: evaluate, train a little, compare."""

from __future__ import annotations

import json

import pytest

from benchmarks import run as run_benchmark
from rearrange.command_line.cli import main
from tests.habitat.conftest import HOMES

pytestmark = pytest.mark.habitat


@pytest.fixture
def words(homes, tmp_path) -> list[str]:
    return ["sim=habitat", f"sim.scene_dataset={homes}", f"sim.num_layouts={HOMES}", f"output={tmp_path}", "name=it"]


def test_an_expert_picks_in_habitat_and_is_filmed(words, tmp_path):
    assert main(["eval", "skill=pick", "agent=expert", "episodes=2", "video=1", "workers=1", *words]) == 0
    made = tmp_path / "eval" / "pick" / "it"
    assert json.loads((made / "metrics.json").read_text())["success"] == 1.0
    assert len(list((made / "videos").glob("*.mp4"))) == 1


def test_a_policy_is_trained_in_habitat(words, tmp_path):
    assert main(["train", "skill=pick", "policy=blind", "split=val", "steps=512", "trainer.num_envs=2",
                 "trainer.num_workers=1", "trainer.rollout_steps=64", *words]) == 0
    assert list((tmp_path / "train" / "pick" / "it" / "checkpoints").glob("*.pt"))


def test_both_simulators_are_compared(words, tmp_path):
    assert run_benchmark("habitat", ["episodes=1", "depth_size=16", *words]) == 0
    made = json.loads((tmp_path / "bench" / "habitat" / "it" / "bench.json").read_text())
    assert made["habitat"]["steps_per_s"] > 0 and 0 < made["habitat"]["adapter_share"] < 1


def test_bench_navigation_moves_habitats_agent_as_ours(homes, tmp_path):
    assert main(["bench", "navigation", "sim=habitat", f"sim.scene_dataset={homes}", "depth_size=16", "seconds=0.1",
                 f"output={tmp_path}", "name=b"]) == 0
    both = json.loads((tmp_path / "bench" / "navigation" / "b" / "bench.json").read_text())["beside_habitat"]
    assert both["ratio"] == pytest.approx(both["mujoco_steps_per_s"] / both["habitat_steps_per_s"])
    assert both["apart_m"] < 0.3

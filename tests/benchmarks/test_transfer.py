"""The comparison of both simulators: what is counted, and what is refused. With Habitat: tests/habitat."""

from __future__ import annotations

import pytest

from benchmarks import transfer as bench
from benchmarks.settings import Transfer
from eval.evaluate import EpisodeResult
from rearrange.home.errors import UserError
from rearrange.home.settings.environment import HabitatSettings


def results(ends: str) -> list[EpisodeResult]:
    """s: success; t: time limit; d: dropped."""
    reasons = {"s": None, "t": "time_limit", "d": "dropped"}
    return [EpisodeResult(i, str(i), "val/0", end == "s", reasons[end], 10 + i, 0.0, {"arm_force_n": 5.0})
            for i, end in enumerate(ends)]


def test_episodes_are_compared_one_by_one():
    row = bench.compare(results("ssstd"), results("stdst"))
    assert (row["mujoco"]["success"], row["habitat"]["success"]) == (0.6, 0.4)
    assert row["only_mujoco"] == 2 and row["only_habitat"] == 1
    assert row["ends_in_habitat_of_what_mujoco_solves"] == {"time_limit": 1, "dropped": 1}
    assert row["ends_in_mujoco_of_what_habitat_solves"] == {"time_limit": 1}
    assert row["habitat"]["mean_steps_of_successes"] == 11.5
    lines = bench.table("pick", row)
    assert len(lines) == 3 and "60.0%" in lines[0] and "dropped 1" in lines[2]


def test_it_wants_habitat_and_known_skills():
    with pytest.raises(UserError, match="transfer compares both simulators: write sim=habitat"):
        bench.check(Transfer())
    with pytest.raises(UserError, match="skills=fly"):
        bench.check(Transfer(sim=HabitatSettings(sim="habitat"), skills=("fly",)))


def test_external_scenes_are_read_by_both_simulators_and_our_homes_by_habitat_alone(tmp_path):
    sim = HabitatSettings(sim="habitat", scene_dataset=str(tmp_path / "x.json"), scenes="a_*", gpu_device=-1,
                          num_layouts=4)
    given = Transfer(sim=sim, agent="expert", split="val", episodes=2, seed=1)
    there, here = (bench._job(given, "pick", name).env for name in ("habitat", "mujoco"))
    assert here["scene_dataset"] == there["scene_dataset"] and here["scenes"] == there["scenes"] == "a_*"
    assert there["gpu_device"] == -1 and not {"robot_urdf", "gpu_device"} & set(here) and here["sim"] == "mujoco"
    (tmp_path / "export.json").write_text("{}")
    here = bench._job(given, "pick", "mujoco").env
    assert not {"scene_dataset", "scenes"} & set(here) and here["num_layouts"] == 4

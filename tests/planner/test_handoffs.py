"""A skill that begins where a plan handed over begins as it was there: base, arm, and how the hand holds an object."""

from dataclasses import replace

import numpy as np
import pytest

from planner.rules import Rules
from rearrange.home.apartments.episodes import read_episodes, write_episodes
from skills import make_env
from tests.planner.puppet import Puppet, executor, run_episode, scenario_env


def in_hand(sim):
    """Where the held object is in the frame of the hand (3,), and its turn in the world (4,)."""
    pose = sim.object_pose(sim.held)
    return np.array([*sim.to_ee(pose[:3]), *pose[3:]])


@pytest.mark.parametrize("reset_arm", [True, False])
def test_a_skill_begins_as_the_plan_handed_over(tmp_path, reset_arm):
    seen = []

    class Watched(Puppet):
        def __init__(self, sim, skill):
            super().__init__(sim, skill)
            if skill.name in ("pick", "place"):
                held = None if sim.held is None else in_hand(sim)
                seen.append((skill.name, sim.base_pose, sim.arm_positions().copy(), held))

        def _put(self, *where):
            super()._put(*where)
            self.askew(self.sim)

        def pick(self, sim, skill):
            super().pick(sim, skill)
            self.askew(sim)

        @staticmethod
        def askew(sim):
            """What is held hangs by its side, turned."""
            if sim.held is not None:
                sim.put_in_hand(sim.held)
                x, y, z, *_ = sim.object_pose(sim.held)
                sim.put_in_hand(sim.held, (x + 0.02, y, z - 0.03, np.cos(0.5), 0.0, np.sin(0.5), 0.0))

    rules = Rules(reset_arm=reset_arm)
    report = run_episode(executor(scenario_env("tidy_house"), rules, Watched, records_handoffs=True), 0)
    assert len(report.handoffs) == len(seen) > 4
    for name in ("pick", "place"):
        path = tmp_path / f"{name}.json.gz"
        write_episodes(path, [episode for episode in report.handoffs if episode.handoff.skill == name])
        alone = make_env(name, episodes=str(path), split="val", depth_size=0)
        were = [state for state in seen if state[0] == name]
        assert len(were) == len(read_episodes(path))
        for k, (episode, (_, base, arm, held)) in enumerate(zip(read_episodes(path)[:2], were)):
            alone.reset(seed=0, options={"episode": k})
            sim = alone.unwrapped.sim
            assert alone.unwrapped.episode.id == episode.id
            np.testing.assert_allclose(sim.base_pose, base, atol=1e-6)
            np.testing.assert_allclose(sim.arm_positions(), arm, atol=1e-6)
            if held is None:
                assert sim.held is None
                continue
            assert np.abs(held[4:6]).max() > 0.1, "it does not hang upright"
            np.testing.assert_allclose(in_hand(sim), held, atol=1e-3)
            without = replace(episode, handoff=replace(episode.handoff, held_pose=None, arm_rad=None))
            write_episodes(tmp_path / "before.json", [without])
            before = make_env(name, episodes=str(tmp_path / "before.json"), split="val", depth_size=0)
            try:
                before.reset(seed=0, options={"episode": 0})
            except Exception as error:
                assert "the robot touches something where the plan handed over" in str(error)
            else:
                off = np.abs(in_hand(before.unwrapped.sim) - held).max()
                assert off > 0.01, "in a file without the pose it hangs by its top"

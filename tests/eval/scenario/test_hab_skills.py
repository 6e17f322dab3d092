"""Where the skills of a scenario come from: experts, random actions, checkpoints with their own settings."""

from __future__ import annotations

from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
import torch

from eval.agents import PolicyAgent, RandomAgent
from eval.scenario.evaluate import answers
from eval.scenario.skill_sources import shared_settings, sources
from rearrange.home.errors import UserError
from skills import pretrained
from tests.eval.scenario.hab_checkpoints import untrained
from trainer.checkpoint import load_checkpoint

NEEDED = ("navigate", "pick", "place")


def request(skill="pick", first=False, seed=0):
    from rearrange.home.robot.fetch import FETCH
    from rearrange.home.simulation.observations import space_of
    from skills import make_skill

    rng = np.random.default_rng(seed)
    keys = [key for key in make_skill(skill).observation_keys if key != "depth"]
    observation = {key: rng.standard_normal(box.shape).astype(np.float32)
                   for key, box in space_of(keys, 0, FETCH).items()}
    return SimpleNamespace(skill=skill, observation=observation, first=first, mean=False)


@pytest.fixture(scope="module")
def pick(tmp_path_factory):
    return untrained(tmp_path_factory.mktemp("checkpoints"), "pick")


@pytest.mark.parametrize("deterministic", [True, False])
def test_a_policy_answers_a_slot_alike_whoever_asks_beside_it(pick, deterministic):
    def actions(others):
        agent = PolicyAgent(load_checkpoint(pick), 4, deterministic)
        for slot in range(4):
            agent.begin(slot, 100 + slot)
        seen = []
        for step in range(6):
            asking = {2: request(first=step == 0, seed=step)}
            asking |= {slot: request(first=step % 3 == 0, seed=50 + step) for slot in others if (step + slot) % 2}
            seen.append(answers(agent, asking)[2].copy())
        return np.array(seen)

    alone = actions(())
    np.testing.assert_array_equal(alone, actions((0, 1, 3)))
    assert np.abs(alone).max() <= 1.0 and len(np.unique(alone[:, 0])) == 6


def test_a_skill_that_begins_again_has_forgotten_and_one_that_waits_has_not(pick):
    agent = PolicyAgent(load_checkpoint(pick), 2, deterministic=True)
    begin = answers(agent, {0: request(first=True)})[0].copy()
    second = answers(agent, {0: request()})[0].copy()
    assert not np.array_equal(begin, second), "the policy remembers nothing: the test cannot fail"
    np.testing.assert_array_equal(answers(agent, {0: request(first=True)})[0], begin)
    answers(agent, {1: request(first=True, seed=9)})  # slot 0 waits meanwhile
    np.testing.assert_array_equal(answers(agent, {0: request()})[0], second)


def test_random_actions_depend_on_the_seed_of_the_slot_alone():
    def draw(seeds):
        agent = RandomAgent(2, gymnasium.spaces.Box(-1.0, 1.0, (5,), np.float32))
        for slot, seed in enumerate(seeds):
            agent.begin(slot, seed)
        return agent.act({0: {}, 1: {}})

    assert np.array_equal(draw((1, 2))[1], draw((7, 2))[1]) and not np.array_equal(draw((1, 2))[0], draw((7, 2))[0])


def test_agents_and_choices(pick, tmp_path):
    found = sources("expert", {"pick": str(pick), "place": "random"}, NEEDED, tmp_path, "tidy_house")
    assert {skill: found[skill].kind for skill in NEEDED} == {"navigate": "expert", "pick": "policy", "place": "random"}
    assert found["open_fridge"].kind == "expert"
    found = sources("tp_srl", {"pick": str(pick), "navigate": "expert", "open_fridge": "newest"}, NEEDED, tmp_path,
                    "tidy_house")
    assert set(found) == set(NEEDED) and found["pick"].checkpoint == str(pick)
    assert found["place"].checkpoint == str(
        pretrained.path("place")), "what comes with the package, unless something else is said"


def test_a_missing_checkpoint_names_the_skill_and_what_to_do(pick, tmp_path, monkeypatch):
    monkeypatch.setattr(pretrained, "names", lambda: ["pick"])
    with pytest.raises(UserError,
                       match="no policy of place comes with the package.*train skill=place.*skills.place=expert"):
        sources("tp_srl", {"pick": str(pick), "navigate": "expert"}, NEEDED, tmp_path, "tidy_house")
    with pytest.raises(UserError,
                       match=r"skills.pick: no checkpoint at .*nowhere.*train skill=pick.*skills.pick=expert"):
        sources("expert", {"pick": str(tmp_path / "nowhere")}, NEEDED, tmp_path, "tidy_house")
    (tmp_path / "junk.pt").write_text("junk")
    with pytest.raises(UserError, match="skills.pick: .*junk.pt is not a complete checkpoint"):
        sources("expert", {"pick": str(tmp_path / "junk.pt")}, NEEDED, tmp_path, "tidy_house")
    with pytest.raises(UserError, match="is a checkpoint of skill pick, not of place"):
        sources("expert", {"place": str(pick)}, NEEDED, tmp_path, "tidy_house")


def test_a_policy_runs_with_the_settings_it_was_trained_with(tmp_path):
    limited = untrained(tmp_path, "pick", image_size=16, action_parts=["arm", "grip"], rest_radius_m=0.2)
    found = sources("expert", {"pick": str(limited)}, NEEDED, tmp_path, "tidy_house")
    made = found["pick"].make("pick")
    assert made.action_parts == ("arm", "grip") and made.config.rest_radius_m == 0.2 and found["pick"].image_size == 16
    assert found["navigate"].make("navigate").action_parts == ("base", "stop")


def test_policies_of_different_robots_are_refused(tmp_path):
    fast = untrained(tmp_path / "a", "pick", base_speed_m_s=2.5)
    slow = untrained(tmp_path / "b", "place")
    one = sources("expert", {"pick": str(fast)}, NEEDED, tmp_path, "x")
    assert shared_settings(one, {})["base_speed_m_s"] == 2.5, "experts take the robot as it is"
    both = sources("expert", {"pick": str(fast), "place": str(slow)}, NEEDED, tmp_path, "x")
    with pytest.raises(UserError, match=r"base_speed_m_s=2.5 and place with 1.0.*sim.base_speed_m_s="):
        shared_settings(both, {})
    assert shared_settings(both, {"base_speed_m_s": 1.5})["base_speed_m_s"] == 1.5


def test_a_checkpoint_of_another_network_is_refused(pick, tmp_path):
    content = torch.load(pick, weights_only=True)
    content["meta"]["env"]["action_parts"] = ["arm", "grip"]
    torch.save(content, tmp_path / "odd.pt")
    with pytest.raises(UserError, match="gives 10 actions, skill pick takes 8"):
        sources("expert", {"pick": str(tmp_path / "odd.pt")}, NEEDED, tmp_path, "x")

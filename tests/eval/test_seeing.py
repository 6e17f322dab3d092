"""Policies that see more than their skill's observations: in networks, in plans, behind a server, on a command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from eval.remote.wire import pack, unpack
from eval.scenario.evaluate import SLOTS, Job, make_agents, make_executor, step_all
from eval.scenario.evaluate import Slot as PlanSlot
from eval.scenario.skill_sources import Source, sources
from eval.task_from_settings import Task, held_out
from eval.trained_policy import load_pretrained, settings_of
from planner.rules import Rules
from planner.scenarios import load_scenario
from rearrange.command_line.cli import main
from rearrange.home.settings.remote import Remote, RemoteSettings
from skills import make_env
from tests.eval.scenario.hab_checkpoints import untrained
from tests.eval.test_remote import agent, answering
from trainer.config import PolicyConfig
from trainer.policy import Policy

IMAGES = ["rgb", "arm_rgb", "arm_depth", "segmentation"]
SEEN = {"observations": ["rgb", "arm_depth"], "camera_size": 12}


def test_a_network_sees_every_image_in_its_own_range():
    env = make_env("pick", depth_size=16, observations=IMAGES, camera_size=16, num_layouts=2)
    torch.manual_seed(0)  # by chance an encoder so small can answer 0 to everything
    policy = Policy(env.observation_space, env.action_space,
                    PolicyConfig(encoder="light", lstm_layers=1, hidden_size=16, embedding_size=8, body_size=0))
    assert set(policy.image_keys) == {"depth", *IMAGES}
    observation = env.reset(seed=0)[0]
    rows = {key: torch.from_numpy(np.asarray(observation[key], np.float32))[None] for key in policy.seen}
    for key, layout in policy.layouts.items():
        assert layout.shape == observation[key].shape
        assert 0 <= layout.as_hwc(rows[key]).min() <= layout.as_hwc(rows[key]).max() <= 1
    state, previous = torch.zeros(1, policy.state_size), torch.zeros(1, policy.action_size)
    first = policy.act(rows, state, previous, True).action
    for key in IMAGES:  # each of them counts
        assert not torch.equal(first,
                               policy.act(rows | {key: torch.zeros_like(rows[key])}, state, previous, True).action), key


def test_a_policy_of_a_plan_sees_what_it_was_trained_with_and_others_what_is_asked_for(tmp_path):
    path = untrained(tmp_path, "navigate", 16, **SEEN)
    told = []

    def answer(message):
        told.append(unpack(message))
        return pack({"actions": np.zeros(10)})

    with answering(*[answer] * 99) as url:
        chosen = {"navigate": str(path), "pick": url, "place": "expert"}
        found = sources("expert", chosen, ["navigate", "pick", "place"], Path("outputs"), "tidy_house", None,
                        RemoteSettings(image_size=0), ["segmentation", "instruction"], 10)
        assert (found["navigate"].seen, found["navigate"].camera_size) == (("rgb", "arm_depth"), 12)
        rules = Rules(max_steps={**Rules().max_steps, "navigate": 2, "pick": 3})
        job = Job(load_scenario("tidy_house"), "expert", {"split": "val", "num_layouts": 2}, found, rules, 1)
        executor = make_executor(job)
        agents = make_agents(job, [executor] * SLOTS)
        slot = PlanSlot(0, executor, agents, job)
        slot.next(iter([0]))
        shapes = {key: value.shape for key, value in executor.request.observation.items()}
        assert shapes["rgb"] == (12, 12, 3) and shapes["arm_depth"] == (12, 12, 1) and shapes["depth"] == (16, 16, 1)
        while len(told) < 2:
            step_all([slot], agents)
        agents["pick"].end(0)
    assert told[0]["observation/segmentation"].shape == (10, 10, 1) and "observation/rgb" not in told[0]
    assert told[0]["prompt"] == told[0]["observation/instruction"] == told[1]["prompt"] == executor.instruction
    step = next(step for step in executor.steps if step.skill == "pick")
    thing = executor.episode.objects[executor.symbols.objects[step.operator.args[0]]]
    thing = thing.partition("_")[2].replace("_", " ")
    assert thing in told[0]["prompt"], "the current step in words"


def test_spaces_of_an_agent_from_outside_have_what_is_asked_for():
    source = Source("own", image_size=8, seen=("rgb", "instruction"), camera_size=9)
    space = source.spaces("pick")[0]
    assert space["rgb"].shape == (9, 9, 3) and "instruction" in space.spaces and space["depth"].shape == (8, 8, 1)


def test_a_checkpoint_brings_what_its_policy_saw_but_not_the_random_looks(tmp_path):
    path = untrained(tmp_path, "place", 16, **SEEN, random_colors=1.0)
    env, player = load_pretrained(path, num_layouts=2)
    observation, _ = env.reset(seed=0)
    assert observation["rgb"].shape == (12, 12, 3) and player.act(observation).shape == env.action_space.shape
    assert env.unwrapped.home.random_colors == 0.0
    assert "random_light" not in settings_of({"env": {"random_light": 1.0, "camera_size": 12}})
    assert held_out(Task("pick", {"random_colors": 1.0, **SEEN}, 16), "val").env == SEEN | {"split": "val"}


def test_a_text_goes_to_a_server_as_text():
    heard = []
    with answering(lambda message: heard.append(unpack(message)) or pack({"actions": np.zeros(3)})) as url:
        one = agent(url, settings=RemoteSettings(timeout_s=60.0))
        one.act({0: {"instruction": "take the bowl", "rgb": np.zeros((2, 2, 3), np.uint8)}})
        one.end(0)
    assert heard[0]["observation/instruction"] == "take the bowl" and heard[0]["observation/rgb"].dtype == np.uint8
    assert isinstance(Remote(url), Remote)


@pytest.mark.parametrize("words, said", [
    (["train", "skill=pick", "sim.observations=[rgb,instruction]"], "leave out instruction"),
    (["train", "nav=pointnav", "sim.observations=[arm_rgb]"], "for want of an arm"),
    (["train", "skill=pick", "sim.observations=[rbg]"], "Did you mean rgb"),
])
def test_what_cannot_be_seen_is_one_sentence(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main([*words, "experiment=debug"]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1 and not list(tmp_path.iterdir())


def test_a_training_and_an_evaluation_on_colours(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small = ["experiment=debug", "policy=light", "sim.camera_size=12", "trainer.num_workers=1", "torch_threads=1",
             "steps=64", "name=x"]
    assert main(["train", "nav=objectnav", "nav.num_homes=1", "sim.observations=[rgb]", "policy.image_size=0",
                 *small]) == 0
    assert main(["eval", "nav=objectnav", "checkpoint=outputs/train/objectnav/x", "nav.num_homes=1", "nav.max_steps=4",
                 "episodes=1", "workers=1", "name=y"]) == 0

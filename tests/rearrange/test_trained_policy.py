"""A trained policy with the environment it was trained in, from Python; and what a checkpoint says of its training."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import rearrange
from eval.trained_policy import settings_of, training_of
from rearrange.command_line.cli import main
from rearrange.home.errors import UserError
from skills import SKILLS, pretrained
from trainer import CollectConfig, TrainConfig, load_checkpoint, train

SMALL = TrainConfig(steps=64, torch_threads=1, collect=CollectConfig(num_envs=2, num_workers=1, rollout_steps=16))


def roll_out(env, policy, episode: int, seed: int | None = None) -> tuple[bool, int]:
    """Success and steps of one episode."""
    observation, _ = env.reset(seed=seed, options={"episode": episode})
    policy.reset()
    steps, over = 0, False
    while not over:
        observation, _, terminated, truncated, info = env.step(policy.act(observation))
        over, steps = terminated or truncated, steps + 1
    return info["success"], steps


@pytest.mark.parametrize("skill", [name for name in SKILLS if name in pretrained.names()])
def test_the_policy_of_every_skill_solves_most_of_what_it_was_trained_for(skill):
    env, policy = rearrange.load_pretrained(skill, num_layouts=4)
    assert env.unwrapped.skill.name == skill and env.unwrapped.home.split == "val"
    made = training_of(load_checkpoint(pretrained.path(skill)))["env"]
    assert tuple(made["observation_keys"]) == tuple(env.unwrapped.skill.observation_keys)
    assert env.observation_space["depth"].shape == (64, 64, 1) and env.unwrapped.skill.max_steps == made["max_steps"]
    scales = env.unwrapped.skill.reward_scales
    assert scales == dict.fromkeys(scales, 0.0) | made["reward_scales"], "a term newer than the policy weighs nothing"
    assert sum(roll_out(env, policy, episode)[0] for episode in range(3)) >= 2


def test_it_does_what_an_evaluation_does(tmp_path, monkeypatch):
    import csv

    monkeypatch.chdir(tmp_path)
    assert main("eval skill=pick agent=pretrained deterministic=true episodes=2 split=test workers=1 name=x "
                "skill.max_steps=199".split()) == 0
    with open("outputs/eval/pick/x/episodes.csv", newline="") as file:
        theirs = [(row["success"] == "1", int(row["steps"])) for row in csv.DictReader(file)]
    env, policy = rearrange.load_pretrained("pick", split="test", deterministic=True, max_steps=199)
    seeds = [int(np.random.SeedSequence([0, episode]).generate_state(1)[0]) for episode in range(2)]  # eval.evaluate's
    assert [roll_out(env, policy, episode, seed) for episode, seed in enumerate(seeds)] == theirs
    said = json.loads(Path("outputs/eval/pick/x/metrics.json").read_text())["env"]
    trained = training_of(load_checkpoint(pretrained.path("pick")))["env"]
    assert trained["any_start"] and said["any_start"] and said["max_steps"] == 199 and said["split"] == "test"


def test_the_seed_decides_what_is_drawn():
    def first(seed: int) -> np.ndarray:
        env, policy = rearrange.load_pretrained("pick", seed=seed, num_layouts=1)
        return policy.act(env.reset(seed=0)[0])

    assert np.array_equal(first(0), first(0)) and not np.array_equal(first(0), first(1))


def make_place():
    import rearrange  # noqa: F401  registers the environments

    return gymnasium.make("rearrange/Place-v0", depth_size=16, num_layouts=np.int64(4), max_steps=9, base_speed_m_s=2.0)


@pytest.fixture(scope="module")
def of_the_engine(tmp_path_factory):
    """A run of trainer.train, which knows Gymnasium and not homes."""
    folder = tmp_path_factory.mktemp("engine")
    train(make_place, SMALL, folder / "place")
    train(lambda: gymnasium.make("Pendulum-v1"), SMALL, folder / "pendulum")
    return folder


def test_a_checkpoint_of_the_engine_says_what_it_was_trained_in(of_the_engine):
    meta = training_of(load_checkpoint(of_the_engine / "place"))
    assert meta["skill"] == "place" and meta["image_size"] == 16
    assert settings_of(meta) == {"depth_size": 16, "max_steps": 9, "base_speed_m_s": 2.0}
    assert training_of(load_checkpoint(of_the_engine / "pendulum")) == {"environment": "Pendulum-v1"}
    assert training_of({"meta": {}}) == {}
    whole = {"id": "rearrange/TidyHouse-v0", "kwargs": {"name_of_id": "tidy_house", "split": "train"}}
    assert training_of({"meta": {"gymnasium": whole}}) == {"scenario": "tidy_house", "env": {"split": "train"},
                                                           "image_size": 128}
    env, policy = rearrange.load_pretrained(of_the_engine / "place")
    assert env.unwrapped.skill.max_steps == 9 and roll_out(env, policy, 0)[1] <= 9


def test_eval_takes_a_checkpoint_of_the_engine(of_the_engine, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = f"checkpoint={of_the_engine / 'place'} episodes=2 workers=1 sim.num_layouts=4 name=x".split()
    assert main(["eval", "skill=place", *words]) == 0
    assert f"{of_the_engine / 'place'}/checkpoints/step_000000000064.pt   asked for" in capsys.readouterr().out
    assert "max_steps" not in (tmp_path / "outputs/eval/place/x/overrides.yaml").read_text()
    assert main(["eval", "skill=pick", *words]) == 2
    assert "is a checkpoint of skill place, not of pick: write skill=place" in capsys.readouterr().err
    assert main(["eval", "skill=pick", f"checkpoint={of_the_engine / 'pendulum'}"]) == 2
    assert "is a checkpoint of environment Pendulum-v1, not of pick" in capsys.readouterr().err


@pytest.mark.parametrize("what, settings, said", [
    ("pik", {}, r"no checkpoint at pik: .* Did you mean 'pick'\?"),
    ("pick", {"depth_size": 32}, "another network: it needs observation 'depth'"),
    ("pick", {"splt": "val"}, "did you mean 'split'"),
    ("pendulum", {}, "is a checkpoint of environment Pendulum-v1, not of a skill"),
])
def test_a_mistake_is_one_sentence(what, settings, said, of_the_engine):
    with pytest.raises(UserError, match=said):
        rearrange.load_pretrained(of_the_engine / what if what == "pendulum" else what, **settings)


def test_the_package_stays_light_until_it_is_asked_for():
    code = ("import sys, rearrange; assert not {'torch', 'mujoco', 'numba', 'skills'} & set(sys.modules); "
            "rearrange.load_pretrained")
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    with pytest.raises(AttributeError, match="no attribute 'load_pretraind'"):
        rearrange.load_pretraind

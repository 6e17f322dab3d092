"""The command line tells the engine's mistakes with its own keys."""

from __future__ import annotations

import dataclasses

import pytest

from rearrange.command_line.composition.parse_overrides import compose
from rearrange.home.settings.engine_messages import in_keys
from trainer import CollectConfig, PPOConfig, TrainConfig


@pytest.mark.parametrize("config, said", [
    (TrainConfig(collect=CollectConfig(num_envs=0)),
     "trainer.num_envs=0 is not allowed: it must be an integer greater than 0 and at most 16384."),
    (TrainConfig(collect=CollectConfig(mode="nover", overlap=True)),
     "trainer.overlap=true is not possible with trainer=nover: choose trainer=ver trainer.overlap=true, or "
      "trainer=hts, which is "
     "nover with overlap."),
    (TrainConfig(collect=CollectConfig(mode="hts")),
     "trainer.overlap=false is not possible with trainer=hts: hts overlaps by definition; without it, "
      "that is trainer=nover."),
    (TrainConfig(collect=CollectConfig(mode="appo", overlap=True)),
     "trainer.overlap=true is not possible with trainer=appo: appo always collects while it learns; leave it out."),
    (TrainConfig(collect=CollectConfig(mode="appo", preemption="optimal")),
     "trainer.preemption=optimal is not possible with trainer=appo, whose rollouts begin on each rank when they can: "
     "leave it at auto."),
    (TrainConfig(collect=CollectConfig(mode="appo"), deterministic=True),
     "deterministic=true is not possible with trainer=appo, whose policy changes whenever an update ends: choose "
     "trainer=ver trainer.overlap=true."),
    (TrainConfig(collect=CollectConfig(inference_workers=2), deterministic=True),
     "trainer.inference_workers=2 is not possible with deterministic=true, where environments are answered in one "
      "order; leave it "
     "at 1."),
    (TrainConfig(collect=CollectConfig(num_envs=2, rollout_steps=1), ppo=PPOConfig(mini_batches=4)),
     "ppo.mini_batches=4 exceeds the 2 steps of a rollout (trainer.num_envs=2 x trainer.rollout_steps=1)."),
])
def test_a_setting_that_cannot_work(config, said):
    with pytest.raises(ValueError) as error:
        config.check()
    assert "trainer" not in str(error.value), "the engine speaks its own names"
    assert in_keys(error.value) == said


def test_every_setting_of_collection_is_a_key():
    keys = compose("train", ["skill=pick"]).config["trainer"]
    for field in dataclasses.fields(CollectConfig):
        assert in_keys(f"collect.{field.name} is").removesuffix(" is").removeprefix("trainer.") in keys


def test_names_of_settings_are_translated_in_keys_alone_and_not_in_code_or_values():
    trace = '  File "a.py", in f\n    self.collect.num_envs = collect.go(x == True)'
    assert in_keys("steps=5 of recollect.mode, y = True") == "steps=5 of recollect.mode, y = True"
    assert in_keys(trace).count("self.collect.num_envs") == 1

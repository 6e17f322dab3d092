"""The YAML files: every choice composes, every key is explained and ruled, and mirrors the dataclass it feeds."""

from __future__ import annotations

import dataclasses

import pytest

from rearrange.settings import keys, compose as settings
from trainer.config import CollectConfig, PolicyConfig, PPOConfig, TrainConfig

COMMANDS = ("train", "eval", "reproduce", "bench", "report", "scenes", "list", "doctor")
GROUPED = [
    (command, group, choice)
    for command in COMMANDS
    for group in keys.command_file(command).groups
    for choice in keys.choices(group)
]


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch):
    monkeypatch.setattr(settings, "has_nvidia_device", lambda: False)


@pytest.mark.parametrize("command, group, choice", GROUPED)
def test_every_choice_composes_and_keeps_its_own_rules(command, group, choice):
    made = settings.compose(command, [f"{group}={choice}"])
    assert made.choices[group] == choice
    for name, _ in settings.leaves(made.config):
        assert name in made.keys and made.keys[name].rule, f"{name} has no rule"
        assert made.keys[name].text or made.keys[name].rule.is_fixed, f"{name} has no explanation"


@pytest.mark.parametrize("group, choice", sorted({(group, choice) for _, group, choice in GROUPED}))
def test_every_choice_has_a_title(group, choice):
    assert keys.choice_file(group, choice).title.endswith(".")


def fields(config_class: type) -> set[str]:
    return {field.name for field in dataclasses.fields(config_class)}


@pytest.mark.parametrize(
    "group, config_class, extra",
    [("policy", PolicyConfig, {"image_size"}), ("ppo", PPOConfig, set()), ("trainer", CollectConfig, set())],
)
def test_keys_mirror_the_engine(group, config_class, extra):
    for choice in keys.choices(group):
        config = settings.compose("train", [f"{group}={choice}"]).config[group]
        assert set(config) == fields(config_class) | extra
    assert fields(TrainConfig) - {"policy", "ppo", "collect"} <= set(settings.compose("train", []).config)


def test_defaults_of_the_engine_are_the_fast_light_preset():
    config = settings.compose("train", ["policy=light", "ppo=fast"]).config
    for group, config_class in (("policy", PolicyConfig), ("ppo", PPOConfig), ("trainer", CollectConfig)):
        for field in dataclasses.fields(config_class):
            value = config[group][field.name]
            assert (tuple(value) if isinstance(field.default, tuple) else value) == field.default, (
                f"{group}.{field.name}"
            )


@pytest.mark.parametrize("name", keys.choices("skill"))
def test_keys_mirror_the_skills(name):
    from rearrange.actions import ACTION_SIZES
    from skills import SKILL_CONFIGS

    skill, config = settings.compose("train", [f"skill={name}"]).config.skill, SKILL_CONFIGS[name]
    assert fields(config) | {"name", "initial_std"} <= set(skill) <= fields(config) | {"name", "initial_std", "initial_mean"}
    assert dict(skill.reward_scales) == dict(config().reward_scales)
    for field in dataclasses.fields(config):
        if field.name != "reward_scales":
            value, default = skill[field.name], getattr(config(), field.name)
            assert (tuple(value) if isinstance(default, tuple) else value) == default, field.name
    for group in ("initial_std", "initial_mean"):
        assert not skill.get(group) or set(skill.action_parts) <= set(skill[group]) <= set(ACTION_SIZES)


def test_every_skill_has_a_file():
    from skills import SKILLS

    assert set(keys.choices("skill")) == set(SKILLS)


def test_paper_is_table_a1():
    config = settings.compose("train", ["ppo=paper", "policy=resnet18"]).config
    ppo = config.ppo
    assert (ppo.learning_rate, ppo.schedule, ppo.epochs, ppo.mini_batches, ppo.clip) == (2.5e-4, "cosine", 3, 2, 0.2)
    assert (ppo.value_coef, ppo.normalize_advantages, ppo.discount, ppo.gae_lambda) == (0.5, False, 0.99, 0.95)
    assert (ppo.entropy_coef, ppo.entropy_target, list(ppo.entropy_bounds)) == (1e-3, 0.0, [1e-4, 1.0])
    assert (ppo.max_importance_weight, ppo.reward_scale, ppo.max_grad_norm) == (1.0, 1.0, 0.2)
    assert (config.trainer.num_envs, config.trainer.rollout_steps, config.policy.log_std_init) == (16, 128, 0.0)


@pytest.mark.parametrize("gpu, policy, ppo", [(False, "light", "fast"), (True, "resnet18", "paper")])
def test_presets_follow_the_device_unless_chosen(monkeypatch, gpu, policy, ppo):
    monkeypatch.setattr(settings, "has_nvidia_device", lambda: gpu)
    made = settings.compose("train", ["skill=pick"])
    assert (made.choices["policy"], made.choices["ppo"]) == (policy, ppo)
    assert made.config.policy.encoder == policy
    chosen = settings.compose("train", ["skill=pick", "policy=blind", "ppo=fast"])
    assert (chosen.choices["policy"], chosen.choices["ppo"]) == ("blind", "fast")
    assert settings.compose("train", ["experiment=quickstart"]).choices["policy"] == "blind"


def test_a_setting_typed_wins_over_the_preset_that_a_choice_brings():
    assert settings.compose("train", ["trainer.num_envs=8", "ppo=paper"]).config.trainer.num_envs == 8
    assert settings.compose("train", ["policy=resnet18", "experiment=quickstart"]).choices["policy"] == "resnet18"


@pytest.mark.parametrize(
    "text, good, bad",
    [
        ("int > 0", [1, 2.0, 10**12], [0, -1, 1.5, True, "1", None, float("inf")]),
        ("int >= 0 | null", [0, None], [-1, "null ", False]),
        ("float 0..1", [0, 1, 0.5], [1.01, -0.1, float("nan"), "x"]),
        ("bool | force", [True, False, "force"], [1, "forc", None]),
        ("cosine | linear", ["cosine"], ["cos", None, 1]),
        ("path | null", ["a/b", 12, None], ["", True, ["a"]]),
        ("words", [["a", "b"], []], ["a", [1], None]),
        ("float", [1, -0.5], [float("inf"), float("nan"), True]),
        ("float > 0 <= 100", [0.1, 100], [0, 100.1]),
        ("2 numbers", [[1, 2]], [[1], [1, 2, 3], [1, float("nan")]]),
        ("words of arm grip", [["grip", "arm"], ["arm"]], [[], ["arm", "arm"], ["leg"]]),
        ("float | numbers", [0.5, [1, 2]], [["a"], [], [True]]),
    ],
)
def test_rules(text, good, bad):
    rule = keys.Rule.parse(text)
    for value in good:
        assert rule.convert(value) == (str(value) if rule.is_path and value is not None else value)
    for value in bad:
        with pytest.raises(keys.NotAllowed):
            rule.convert(value)

"""The settings: every choice composes, every key is explained and ruled, and files change what there is."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import skills
from rearrange.command_line.composition import options
from rearrange.command_line.composition import parse_overrides as settings
from rearrange.command_line.composition.options import HomeCollect, HomePolicy, HomePPO
from rearrange.home.errors import UserError
from rearrange.home.settings import presets
from rearrange.home.settings.setting_fields import NotAllowed, Rule, block, check, keys_of, setting
from trainer.setting_rules import leaves

GROUPED = [(command, group, choice) for command in options.COMMANDS for group, choice in options.every_choice(command)]


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch):
    monkeypatch.setattr(options, "has_nvidia_device", lambda: False)


@pytest.mark.parametrize("command, group, choice", GROUPED)
def test_every_choice_composes_and_every_setting_is_explained(command, group, choice):
    made = settings.compose(command, [f"{group}={choice}"])
    assert made.choices[group] == choice
    for name, _ in leaves(made.config):
        assert made.keys[name].text, f"{name} has no explanation"


@pytest.mark.parametrize("group, choice", sorted({(group, choice) for _, group, choice in GROUPED}))
def test_every_choice_has_a_title(group, choice):
    assert options.title(group, choice).endswith(".") and "\n" not in options.title(group, choice)


def test_a_file_without_a_comment_has_its_name_as_title(tmp_path, monkeypatch):
    monkeypatch.setattr(presets, "CONFIGS", tmp_path)
    (tmp_path / "hab").mkdir()
    (tmp_path / "hab" / "put_away.yaml").write_text("# @package _global_\nhab:\n  clutter: 5\n")
    assert presets.title("hab", "put_away") == "Put away."


@pytest.mark.parametrize("group, choice", sorted({(group, choice) for _, group, choice in GROUPED
                                                   if group not in ("hab", "preset", "experiment")}))
def test_files_hold_only_what_they_change(group, choice):
    """A scenario is said in full; experiments and presets are on top of whatever is chosen beside them."""
    if choice not in presets.names(group):
        return
    command = next(command for command, there, _ in GROUPED if there == group)
    usual = options.defaults(keys_of(options.COMMANDS[command][0]))
    usual |= {key.name: key.default for key in options.keys(group, choice)}
    changed = dict(leaves(presets.preset(group, choice).values))
    same = {name for name, value in changed.items() if name.startswith(f"{group}.") and usual[name] == value}
    assert not same


def test_homes_have_the_settings_that_were_measured_there():
    """Whatever `trainer.train` begins with: the defaults of their dataclasses, and by name what differs."""
    config = settings.compose("train", ["policy=light", "ppo=fast"])
    assert (config.value("ppo.epochs"), config.value("ppo.mini_batches"), config.value("ppo.learning_rate"),
            config.value("ppo.schedule")) == (3, 4, 7e-4, "cosine")
    assert (config.value("ppo.reward_scale"), config.value("trainer.num_envs"),
            config.value("trainer.rollout_steps")) == (0.1, 32, 128)
    assert (config.value("policy.hidden_size"), config.value("policy.lstm_layers"), config.value("policy.body_size"),
            config.value("policy.log_std_init")) == (128, 1, 256, -0.5)
    assert all(config.value(f"policy.{key}")
               for key in ("separate_value", "normalize_observations", "normalize_returns"))
    for group, config_class in (("policy", HomePolicy), ("ppo", HomePPO), ("trainer", HomeCollect)):
        for field in dataclasses.fields(config_class):
            value = config.value(f"{group}.{field.name}")
            assert (tuple(value) if isinstance(field.default, tuple)
                    else value) == field.default, f"{group}.{field.name}"


@pytest.mark.parametrize("name", skills.SKILLS)
def test_the_settings_of_a_skill_are_its_config(name):
    from rearrange.home.action_layout import ACTION_PARTS

    skill, config = settings.compose("train", [f"skill={name}"]).config["skill"], skills.config_class(name)()
    assert set(skill) == {"name", *(field.name for field in dataclasses.fields(config))}
    for group in ("initial_std", "initial_mean"):
        assert not skill.get(group) or set(skill["action_parts"]) <= set(skill[group]) <= set(ACTION_PARTS)


@pytest.mark.parametrize("word, key, value", [
    ("name=${seed}", "name", "3"), ("name=${skill.name}_${seed}", "name", "pick_3"),
    ("ppo.clip=${ppo.gae_lambda}", "ppo.clip", 0.95), ("name=${oc.env:A_NUMBER}", "name", "7"),
    ("steps=${oc.decode:'7'}", "steps", 7), ("name=${oc.env:NOT_THERE,else}", "name", "else"),
    ("skill.reward_scales={success: ${seed}}", "skill.reward_scales.success", 3.0),
    ("policy.log_std_init=[${seed},1]", "policy.log_std_init", [3, 1])])
def test_a_value_may_be_made_from_others(word, key, value, monkeypatch):
    monkeypatch.setenv("A_NUMBER", "7")
    assert settings.compose("train", ["skill=pick", "seed=3", word]).value(key) == value


@pytest.mark.parametrize("word, said", [
    ("seed={}", "seed={} is not allowed"), ("name.foo=${nope}", "unknown key 'name.foo'"),
    ("policy.critic_keys.foo=1", "unknown key 'policy.critic_keys.foo'"),
    ("whole_task={initial_std: 3}", "whole_task.initial_std is a group of settings"),
    ("steps=${oc.env:A_NUMBER}", "steps=7 is not allowed"), ("name=${nope}", "'nope' not found"),
    ("name=${a:b}", "Unsupported interpolation type a"), ("whole_task={a.b: 1}", "unknown key 'whole_task.a.b'"),
    ("policy.log_std_max={}", "policy.log_std_max={} is not allowed")])
def test_what_cannot_be_a_value_is_one_sentence(word, said, monkeypatch):
    monkeypatch.setenv("A_NUMBER", "7")  # which is a text
    with pytest.raises(UserError, match=re.escape(said)):
        settings.compose("train", ["skill=pick", word, *(["name=x"] if "foo" in word else [])])


def test_what_is_typed_stays_in_its_own_settings():
    """Defaults and files are read once for all."""
    words = ["skill=pick", "policy=light", "ppo=paper", "logger=wandb"]
    before = settings.compose("train", words)
    typed = settings.compose("train", [*words, "skill.reward_scales.success=9", "logger.wandb.mode=online"])
    typed.values["policy.critic_keys"].append("x")
    typed.values["policy.encoder"] = "other"
    assert settings.compose("train", words).config == before.config


def test_settings_are_read_without_what_is_slow():
    code = ("import sys, rearrange.command_line.composition.options as o; [o.keys(*c) for n in o.COMMANDS for c in "
            "o.every_choice(n)]; print([m for m in ('torch', 'numpy', 'numba', 'mujoco', 'gymnasium', 'hydra', "
            "'omegaconf') if m in sys.modules])")
    done = subprocess.run([sys.executable, "-P", "-c", f"import sys; sys.argv = ['rearrange']; {code}"],
                          capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.stdout.strip() == "[]", done.stderr


SKILL = '''"""Wave: lift the hand."""
from collections.abc import Mapping
from dataclasses import dataclass
from rearrange.home.settings.setting_fields import block, setting
from skills.settings import SkillConfig, action_parts, observation_keys
from skills.skill import Skill

@dataclass(frozen=True)
class WaveConfig(SkillConfig):
    skill = "wave"
    action_parts: tuple[str, ...] = action_parts("arm")
    observation_keys: tuple[str, ...] = observation_keys("joint")
    max_steps: int = setting(50, "steps of an episode", above=0)
    reward_scales: Mapping[str, float] = block(height=setting(1.0, "per metre"))

class Wave(Skill):
    name = "wave"
'''


@pytest.fixture
def wave(tmp_path, monkeypatch):
    """A folder in which skills are looked for, too."""
    monkeypatch.setattr(skills, "__path__", [*skills.__path__, str(tmp_path)])
    monkeypatch.setattr(skills, "__file__", str(tmp_path / "__init__.py"))
    yield tmp_path / "wave.py"
    sys.modules.pop("skills.wave", None)
    options.keys.cache_clear()


def test_a_skill_is_its_file_and_its_line(wave, monkeypatch):
    wave.write_text(SKILL)
    with pytest.raises(UserError, match="add a line 'wave': 'Wave' to SKILLS"):
        settings.compose("train", ["skill=wave"])
    monkeypatch.setitem(skills.SKILLS, "wave", "Wave")
    made = settings.compose("train", ["skill=wave", "skill.reward_scales.height=2"])
    assert made.value("skill.max_steps") == 50 and made.value("skill.reward_scales.height") == 2.0
    assert options.title("skill", "wave") == "Lift the hand."
    with pytest.raises(UserError, match="skill.max_steps=banana is not allowed"):
        settings.compose("train", ["skill=wave", "skill.max_steps=banana"])
    assert skills.config_class("wave")(max_steps=7).max_steps == 7


def test_a_missing_step_on_the_way_to_a_skill_is_said(wave, monkeypatch):
    monkeypatch.setitem(skills.SKILLS, "wave", "Wave")
    with pytest.raises(UserError, match="there is no skills/wave.py"):
        settings.compose("train", ["skill=wave"])
    wave.write_text(SKILL.replace("class WaveConfig", "class WafeConfig"))
    with pytest.raises(UserError, match="has no class WaveConfig"):
        settings.compose("train", ["skill=wave"])


def test_paper_is_table_a1():
    config = settings.compose("train", ["ppo=paper", "policy=resnet18"])
    ppo = SimpleNamespace(**config.config["ppo"])
    assert (ppo.learning_rate, ppo.schedule, ppo.epochs, ppo.mini_batches, ppo.clip) == (2.5e-4, "cosine", 3, 2, 0.2)
    assert (ppo.value_coef, ppo.normalize_advantages, ppo.discount, ppo.gae_lambda) == (0.5, False, 0.99, 0.95)
    assert (ppo.entropy_coef, ppo.entropy_target, list(ppo.entropy_bounds)) == (1e-3, 0.0, [1e-4, 1.0])
    assert (ppo.max_importance_weight, ppo.reward_scale, ppo.max_grad_norm) == (1.0, 1.0, 0.2)
    assert (config.value("trainer.num_envs"), config.value("trainer.rollout_steps"),
            config.value("policy.log_std_init")) == (16, 128, 0.0)


@pytest.mark.parametrize("gpu, policy, ppo", [(False, "light", "fast"), (True, "resnet18", "paper")])
def test_presets_follow_the_device_unless_chosen(monkeypatch, gpu, policy, ppo):
    monkeypatch.setattr(options, "has_nvidia_device", lambda: gpu)
    made = settings.compose("train", ["skill=pick"])
    assert (made.choices["policy"], made.choices["ppo"]) == (policy, ppo)
    assert made.value("policy.encoder") == policy
    chosen = settings.compose("train", ["skill=pick", "policy=blind", "ppo=fast"])
    assert (chosen.choices["policy"], chosen.choices["ppo"]) == ("blind", "fast")
    assert settings.compose("train", ["experiment=quickstart"]).choices["policy"] == "blind"


def test_a_setting_typed_wins_over_the_preset_that_a_choice_brings():
    assert settings.compose("train", ["trainer.num_envs=8", "ppo=paper"]).value("trainer.num_envs") == 8
    assert settings.compose("train", ["policy=resnet18", "experiment=quickstart"]).choices["policy"] == "resnet18"


@pytest.mark.parametrize(
    "annotation, bounds, short, good, bad",
    [
        ("int", {"above": 0}, "int > 0", [1, 2.0, 10**12], [0, -1, 1.5, True, "1", None, float("inf")]),
        ("int | None", {"at_least": 0}, "int >= 0 | null", [0, None], [-1, "null ", False]),
        ("float", {"at_least": 0, "at_most": 1}, "float 0..1", [0, 1, 0.5], [1.01, -0.1, float("nan"), "x"]),
        ("bool | str", {"choices": ("force",)}, "bool | force", [True, False, "force"], [1, "forc", None]),
        ("str", {"choices": ("cosine", "linear")}, "cosine | linear", ["cosine"], ["cos", None, 1]),
        ("str | None", {"path": True}, "path | null", ["a/b", 12, None], ["", True, ["a"]]),
        ("str | None", {"choices": ("newest",), "path": True}, "newest | path | null", ["newest", "a"], [True]),
        ("tuple[str, ...]", {}, "words", [["a", "b"], []], ["a", [1], None]),
        ("float", {}, "float", [1, -0.5], [float("inf"), float("nan"), True]),
        ("float", {"above": 0, "at_most": 100}, "float > 0 <= 100", [0.1, 100], [0, 100.1]),
        ("tuple[float, float]", {}, "2 numbers", [[1, 2]], [[1], [1, 2, 3], [1, float("nan")]]),
        ("tuple[str, ...]", {"choices": ("arm", "grip")}, "words of arm grip", [["grip", "arm"], ["arm"]],
         [[], ["arm", "arm"], ["leg"]]),
        ("float | tuple[float, ...]", {}, "float | numbers", [0.5, [1, 2]], [["a"], [], [True]]),
    ],
)
def test_rules(annotation, bounds, short, good, bad):
    rule = Rule.of(annotation, **bounds)
    assert rule.short == short
    for value in good:
        assert rule.convert(value) == (str(value) if rule.is_path and value is not None else value)
    for value in bad:
        with pytest.raises(NotAllowed):
            rule.convert(value)


@dataclasses.dataclass(frozen=True)
class Example:
    size: int = setting(3, "how large", at_least=0)
    scales: dict[str, float] = block(setting(None, "both"), a=setting(1.0, "first"), b=setting(2.0, "second"))
    note: str = "no setting"


def test_settings_are_fields_with_a_meaning():
    assert [(key.name, key.default) for key in keys_of(Example)] == [("size", 3), ("scales", None), ("scales.a", 1.0),
                                                                     ("scales.b", 2.0)]
    check(Example())
    with pytest.raises(UserError, match="x.size=-1 is not allowed: it must be an integer of at least 0"):
        check(Example(size=-1), "x.")
    with pytest.raises(UserError, match="scales.b='z' is not allowed: it must be a number"):
        check(Example(scales={"b": "z"}))

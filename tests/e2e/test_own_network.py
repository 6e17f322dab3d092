"""Networks of the user's own by the commands: typed as package.module:Name, or offered by an installed package."""

from __future__ import annotations

from importlib import import_module

import pytest

from rearrange import load_pretrained
from rearrange.command_line.cli import main
from rearrange.command_line.composition.parse_overrides import compose
from rearrange.home.errors import UserError
from tests.e2e.front_door import TINY, rearrange, succeed
from trainer import load_checkpoint
from trainer.setting_rules import leaves

SMALL = (*TINY, "steps=200")
MODULE = '''
import functools
import pathlib
import torch
from trainer import Policy

pathlib.Path("imported").touch()


class Normed(Policy):
    """Has weights that the engine's own network does not have."""

    def __init__(self, observation_space, action_space, config):
        super().__init__(observation_space, action_space, config)
        self.body.append(torch.nn.LayerNorm(config.body_size))


class Other(Normed):
    pass


class Flat(torch.nn.Module):
    """An encoder."""

    def __init__(self, shape, size):
        super().__init__()
        self.layer = torch.nn.Linear(shape[0] * shape[1] * shape[2], size)

    def forward(self, image):
        return self.layer(image.flatten(1))


seeing = functools.partial(Policy, encoders={"mine": Flat})


class Careless(Policy):
    def __init__(self, observation_space, action_space, config):
        config.no_such_setting


def linear(observation_space, action_space, config):
    return torch.nn.Linear(2, 2)


number = 3
'''


def refused(folder, *words) -> str:
    """The one sentence that a command is refused with."""
    done = rearrange(folder, *words)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of networks that Python finds, and that is not installed."""
    (tmp_path / "lib/nets").mkdir(parents=True)
    (tmp_path / "lib/nets/__init__.py").touch()
    (tmp_path / "lib/nets/small.py").write_text(MODULE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "lib"))
    return tmp_path


def test_a_network_that_is_typed_trains_goes_on_and_is_evaluated(package, monkeypatch):
    own, run = "nets.small:Normed", package / "outputs/train/pick/own"
    out = succeed(package, "train", *SMALL, f"policy={own}", "name=own")
    assert f"policy {own}" in out and f"checkpoint=outputs/train/pick/own network={own} video=3" in out
    content = load_checkpoint(run)
    assert content["meta"]["network"] == own and content["network"]["name"] == "nets.small.Normed"
    begun = ("train", *SMALL, "checkpoint=outputs/train/pick/own", "name=next")
    evaluated = ("eval", "skill=pick", "checkpoint=outputs/train/pick/own", "episodes=1", "workers=1")
    plan = ("eval", "hab=tidy_house", "agent=expert", "skills.pick=outputs/train/pick/own", "episodes=1", "workers=1",
            "video=0", "planner=paper", "planner.max_steps.navigate=9")
    resumed = ("train", "skill=pick", "name=own", "resume=force", "steps=300")

    (package / "imported").unlink()
    assert f"add network={own}." in refused(package, *evaluated)
    assert f"add network={own}." in refused(package, *plan)
    assert f"add policy={own}." in refused(package, *resumed)
    assert "this one is trainer.policy.Policy: give the policy= that it was trained with" in refused(package, *begun)
    assert not (package / "imported").exists(), "a checkpoint had something imported"
    assert "give the network= that it was trained with" in refused(package, *evaluated, "network=nets.small:Other")
    assert "give the policy= that it was trained with" in refused(package, *begun, "policy=nets.small:Other")
    assert "takes no network=" in refused(package, "eval", "skill=pick", "agent=random", f"network={own}")
    assert "leave it out" in refused(package, "eval", "hab=tidy_house", "agent=expert", f"network={own}", "episodes=1")

    assert "done: 320 steps" in succeed(package, *resumed, f"policy={own}")
    assert "done: 256 steps" in succeed(package, *begun, f"policy={own}")
    assert "agent policy" in succeed(package, *evaluated, f"network={own}")
    assert "outputs/train/pick/own" in succeed(package, *plan, f"network={own}")

    with pytest.raises(UserError, match=f"give it as make_policy={own}"):
        load_pretrained(run, num_layouts=1)
    monkeypatch.syspath_prepend(package / "lib")
    monkeypatch.chdir(package)
    env, policy = load_pretrained(run, num_layouts=1, make_policy=import_module("nets.small").Normed)
    assert type(policy.policy).__name__ == "Normed" and policy.act(env.reset(seed=0)[0]).shape == env.action_space.shape


def test_a_network_of_ones_own_may_have_an_encoder_of_ones_own(package):
    own, run = "nets.small:seeing", package / "outputs/train/pick/own"
    succeed(package, "train", *SMALL, f"policy={own}", "policy.encoder=mine", "policy.image_size=16", "name=own")
    content = load_checkpoint(run)
    assert content["policy_config"]["encoder"] == "mine" and any("layer.weight" in name for name in content["policy"])
    succeed(package, "eval", "skill=pick", "checkpoint=outputs/train/pick/own", "episodes=1", "workers=1",
            f"network={own}")
    assert "policy.encoder=other is none of mine" in refused(package, "train", *SMALL, f"policy={own}",
                                                             "policy.encoder=other", "name=two")
    for words in ((), ("policy=light",)):
        assert "policy.encoder" in refused(package, "train", *SMALL, *words, "policy.encoder=mine", "name=two")
    assert not (package / "outputs/train/pick/two").exists()


def test_a_network_of_an_installed_package_needs_only_its_name(package):
    installed = package / "lib/nets-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: nets\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[rearrange.policies]\nnormed = nets.small:Normed\n")
    assert "policy=normed" in succeed(package, "train", "--help")
    assert "policy=normed" in succeed(package, "--complete", "zsh", "train", "policy=n")
    assert "Choices: blind, light, resnet18, cpc, normed." in refused(package, "train", *SMALL, "policy=norm")
    succeed(package, "train", *SMALL, "policy=normed", "name=own")
    assert load_checkpoint(package / "outputs/train/pick/own")["meta"]["network"] == "normed"
    assert "done: 320 steps" in succeed(package, "train", "skill=pick", "name=own", "resume=force", "steps=300")
    succeed(package, "eval", "skill=pick", "checkpoint=outputs/train/pick/own", "episodes=1", "workers=1")


@pytest.mark.parametrize("word, sentence", [
    ("nets.small:", "no policy called 'nets.small:'. Choices: blind, light, resnet18, cpc. Or a network of your own"),
    ("nowhere:Net", "No module named 'nowhere'. Put the folder of nowhere on PYTHONPATH, or install it."),
    ("nets.small:Nrmed", "module 'nets.small' has no attribute 'Nrmed'."),
    ("nets.small:number", "policy=nets.small:number is no network, but of type int: give a class or function"),
    ("nets.small:linear", "policy= gave a Linear without choices, action_size"),
    ("nets.small:Careless", "no_such_setting"),
    ("collections:OrderedDict", "TypeError: expected at most 1 argument"),
])
def test_what_is_no_network_is_one_sentence(word, sentence, package, monkeypatch, capsys):
    monkeypatch.syspath_prepend(package / "lib")
    monkeypatch.chdir(package)
    assert main(["train", *SMALL, f"policy={word}"]) == 2
    error = capsys.readouterr().err
    assert sentence in error and len(error.splitlines()) == 1
    assert not (package / "outputs").exists()


def test_the_settings_are_those_without_policy():
    words = ["skill=pick", "experiment=quickstart"]
    own = compose("train", [*words, "policy=a.b:C"])
    assert own.choices["policy"] == "a.b:C"
    assert dict(leaves(own.config)) == dict(leaves(compose("train", words).config)) | {"policy.network": "a.b:C"}
    assert compose("train",
                   [*words, "policy=a.b:C", "policy=light"]).config == compose("train", [*words, "policy=light"]).config
    with pytest.raises(UserError, match="policy.network"):
        compose("train", [*words, "policy=a.b:C", "policy.network=other"])

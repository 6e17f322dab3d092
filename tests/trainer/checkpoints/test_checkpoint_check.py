"""Damaged but loadable checkpoints: one sentence that names the file and what is wrong, and never more memory than the
file has."""

from __future__ import annotations

import copy
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.trainer.toys import Pointer, small
from trainer import Player, load_checkpoint, load_policy, train
from trainer.checkpoint import CheckpointError, space_to_plain

EXACT: dict[str, Any] = {"deterministic": True, "min_batch": 2}


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> Path:
    return train(Pointer, small(64), tmp_path_factory.mktemp("good")).checkpoint


@pytest.fixture(scope="module")
def exact(tmp_path_factory) -> Path:
    return train(Pointer, small(64, **EXACT), tmp_path_factory.mktemp("exact")).checkpoint


def put(content: dict[str, Any], key: str, value: Any) -> None:
    *path, last = key.split("/")
    for part in path:
        content = content[int(part) if isinstance(content, list) or part.isdigit() else part]
    content[int(last) if isinstance(content, list) or last.isdigit() else last] = value


def damaged(file: Path, place: Path, key: str, value: Any) -> Path:
    content = copy.deepcopy(torch.load(file, weights_only=True))
    put(content, key, value(content) if callable(value) else value)
    torch.save(content, place / "damaged.pt")
    return place / "damaged.pt"


def refused(act: Callable[[], Any], *words: str) -> None:
    with pytest.raises(CheckpointError) as error:
        act()
    said = str(error.value)
    assert "\n" not in said and len(said) < 600 and all(word in said for word in ("damaged.pt", *words)), said


def endless() -> list:
    """A list that is its own only item."""
    value: list = []
    value.append(value)
    return value


A_WEIGHT = "policy/value.weight"
POLICY = {  # key -> value, and what is said of it
    "step": ("seven", "step is 'seven'"),
    "policy": ([1, 2], "policy is [1, 2]; it must be the weights"),
    A_WEIGHT: (lambda c: torch.full_like(c["policy"]["value.weight"], np.nan),
               "policy.value.weight has numbers that are NaN"),
    "policy/value.bias": (torch.zeros(1).expand(10**12), "policy.value.bias is no plain tensor"),
    "policy/mean.bias": (torch.zeros(2, dtype=torch.complex64), "policy.mean.bias is no plain tensor"),
    "policy_config": (None, "policy_config is None"),
    "policy_config/hidden_size": (10**9,
                                  "policy.hidden_size=1000000000 is not allowed: it must be an integer greater than 0 "
                                   "and at most 16384"),
    "policy_config/lstm_layers": (64, "describe a network of at least"),
    "policy_config/body_layers": (-1, "policy.body_layers=-1 is not allowed: it must be an integer from 0 to 64"),
    "policy_config/embedding_size": ("wide", "policy.embedding_size='wide' is not allowed: it must be an integer"),
    "policy_config/encoder": (3, "policy.encoder=3 is not allowed: it must be light, resnet18 or null"),
    "policy_config/skip": ("yes", "policy.skip='yes'"),
    "policy_config/log_std_init": ([0.0, "a"], "policy.log_std_init"),
    "policy_config/colour": ("red", "policy_config has 'colour'"),
    "observation_space": ({"box": [10**9, 10**9], "low": 0, "high": 1}, "observation_space.obs.box is 1000000000"),
    "action_space": ({"box": [-1], "low": 0, "high": 1}, "action_space.box is -1"),
    "action_space/low": (float("nan"), "action_space.low is nan"),
    "action_space/high": ("a lot", "action_space.high is 'a lot'"),
    "meta": ("pick", "meta is 'pick'; it must be a mapping"),
    "meta/skill": (3, "meta.skill is 3"),
    "meta/env": ([], "meta.env is []"),
    "meta/gymnasium": ({"id": "rearrange/Pick-v0"}, "meta.gymnasium.kwargs is None"),
    "meta/image_size": (10**6, "meta.image_size is 1000000"),
}
TRAINING = {
    "optimizer": ({"state": {}}, "optimizer.param_groups is None"),
    "optimizer/state/0/exp_avg": (lambda c: c["optimizer"]["state"][0]["exp_avg"] * np.inf,
                                  "optimizer.state.0.exp_avg has numbers"),
    "log_alpha": (torch.zeros(3), "log_alpha is a Tensor"),
    "counters": ({"steps": 1}, "counters is ['steps']"),
    "counters/steps": (2.5, "counters.steps is 2.5"),
    "counters/updates": (-1, "counters.updates is -1"),
    "counters/seconds": (float("nan"), "counters.seconds is nan"),
    "torch_rng": (torch.zeros(10, dtype=torch.uint8), "torch_rng is no state"),
    "numpy_rng/state": ("many", "numpy_rng is no state"),
    "numpy_rng": (7, "numpy_rng is no state"),
    "window": ([{"success": "often"}], "window is a list"),
    "ranks": ({}, "ranks is a dict"),
    "ranks/0": ({"numpy_rng": {}}, "ranks.0.numpy_rng is no state"),
    "more": (endless(), "nested too deep"),
}


@pytest.mark.parametrize("key", [*POLICY, *TRAINING])
def test_whoever_reads_a_damaged_checkpoint_is_told_what_is_wrong(good, tmp_path, key):
    value, words = (POLICY | TRAINING)[key]
    file = damaged(good, tmp_path, key, value)
    refused(lambda: load_checkpoint(file), words)
    refused(lambda: Player(file, Pointer()), words)
    refused(lambda: train(Pointer, small(128), start_from=file), words)
    refused(lambda: train(Pointer, small(128), resume_from=file), words)


@pytest.mark.parametrize("space, words", [
    ({"box": [2], "low": 0, "high": 300, "dtype": "uint8"},
     "action_space.high is 300; it must be a number, or numbers of shape (2,), of uint8"),
    ({"box": [2], "low": 0, "high": 3, "dtype": "text"}, "action_space.dtype is 'text'"),
    ({"choices": [2, 3], "start": [1]}, "action_space.start is [1]; it must be a list of 2"),
    ({"choices": [2, 3], "start": [1, "a"]}, "action_space.start is 'a'"),
])
def test_action_spaces_that_cannot_be_are_told(good, tmp_path, space, words):
    refused(lambda: load_checkpoint(damaged(good, tmp_path, "action_space", space)), words)


@pytest.mark.parametrize("key", ["policy/value.weight", "policy_config/hidden_size", "policy_config/body_size"])
def test_weights_of_other_shapes_are_told(good, tmp_path, key):
    file = damaged(good, tmp_path, key, torch.zeros(1, 1) if key.startswith("policy/") else 2)
    with pytest.raises(CheckpointError, match="do not fit"):
        load_policy(load_checkpoint(file))


@pytest.mark.parametrize("key, value, words", [
    ("optimizer/state/0/exp_avg", torch.zeros(1, 1), "its optimizer is not that of its policy"),
    ("optimizer/param_groups", [], "another network"),
])
def test_an_optimizer_of_another_policy_is_told_when_a_run_goes_on(good, tmp_path, key, value, words):
    file = damaged(good, tmp_path, key, value)
    refused(lambda: train(Pointer, small(128), resume_from=file), words)


def test_a_policy_without_its_training_begins_a_run_and_continues_none(good, tmp_path):
    content = {k: v for k, v in torch.load(good, weights_only=True).items() if k not in ("optimizer", "counters")}
    torch.save(content, tmp_path / "damaged.pt")
    assert train(Pointer, small(32), start_from=tmp_path / "damaged.pt").steps == 32
    refused(lambda: train(Pointer, small(128), resume_from=tmp_path / "damaged.pt"),
            "it holds a policy without optimizer, counters")


@pytest.mark.parametrize("key, value", [
    ("ranks/0/collector/turn", 99), ("ranks/0/collector/actions", []), ("ranks/0/collector/starts", torch.zeros(2)),
    ("ranks/0/collector/generator", None), ("ranks/0/collector/state", torch.zeros(3, 3)), ("ranks/0/rollout", None),
    ("ranks/0/rollout/open", 10**9), ("ranks/0/rollout/env_steps", torch.zeros(2)),
    ("ranks/0/rollout/fields/env", torch.tensor([7, 7])), ("ranks/0/rollout/fields", {"env": torch.tensor([0, 1])}),
])
def test_what_a_deterministic_run_goes_on_from(exact, tmp_path, key, value):
    file = damaged(exact, tmp_path, key, value)
    refused(lambda: train(Pointer, small(128, **EXACT), resume_from=file))


def test_the_settings_of_a_run_that_goes_on_are_its_own(good, tmp_path):
    """What an optimizer says of itself is not taken over: it may be nonsense, and the run has settings."""
    file = damaged(good, tmp_path, "optimizer/param_groups/0/betas", "none")
    assert train(Pointer, small(128), resume_from=file).steps == 128


def test_a_file_that_would_inflate_is_not_read(good, tmp_path):
    file = tmp_path / "damaged.pt"
    with zipfile.ZipFile(good) as source, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as target:
        for part in source.infolist():
            target.writestr(part.filename, source.read(part))
        target.writestr("archive/data/999", b"\0" * 10**7)
    refused(lambda: load_checkpoint(file), "not a complete checkpoint")


def test_a_program_of_torchscript_is_refused_without_a_warning(tmp_path, recwarn):
    torch.jit.trace(torch.nn.Linear(2, 2), torch.zeros(1, 2)).save(str(tmp_path / "damaged.pt"))
    recwarn.clear()
    refused(lambda: load_checkpoint(tmp_path / "damaged.pt"), "not a complete checkpoint")
    assert not recwarn.list


def test_a_space_that_was_written_is_a_space_that_is_read(good):
    from trainer.checkpoint import space_from_plain

    content = load_checkpoint(good)
    for key in ("observation_space", "action_space"):
        assert space_to_plain(space_from_plain(content[key])) == content[key]

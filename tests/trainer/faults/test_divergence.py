"""A policy that becomes NaN: the run stops, the last good checkpoint is whole, the dump repeats the failure."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.trainer.toys import BLIND, Pointer, small
from trainer import load_checkpoint, ppo, train
from trainer.faults.nan_dump import NonFinite, reproduce

ROOT = Path(__file__).parents[3]
CONFIG = small(20_000, num_envs=4, policy=replace(BLIND, normalize_returns=False))


class Treacherous(Pointer):
    """After some hundred steps one reward is so large that its square is not a float any more."""

    count = 0

    def step(self, action):
        obs, reward, *rest = super().step(action)
        self.count += 1
        return obs, 1e30 if self.count == 60 else reward, *rest


def test_a_loss_that_is_not_finite(tmp_path):
    with pytest.raises(NonFinite, match="update 4; python -m trainer.faults.nan_dump") as error:
        train(Treacherous, CONFIG, tmp_path)
    content = load_checkpoint(tmp_path)
    assert content["counters"]["updates"] == 3 and content["step"] == 192
    assert all(torch.isfinite(v).all() for v in content["policy"].values())
    dump = torch.load(tmp_path / "diverged_rank0.pt", weights_only=True)
    assert all(torch.equal(dump["policy"][k], v) for k, v in content["policy"].items()), "the state before that update"
    assert reproduce(tmp_path) in str(error.value)
    out = subprocess.run([sys.executable, "-m", "trainer.faults.nan_dump", str(tmp_path / "diverged_rank0.pt")],
                         cwd=ROOT,
                         capture_output=True, text=True)
    assert out.returncode == 0 and out.stdout.strip() in str(error.value), out.stderr


def test_parameters_that_are_not_finite(tmp_path, monkeypatch):
    """The loss is finite, the step is not."""
    real = ppo.update

    def poisoned(policy, *words, **named):
        stats = real(policy, *words, **named)
        with torch.no_grad():
            policy.value.bias.fill_(float("inf"))
        return stats

    monkeypatch.setattr(ppo, "update", poisoned)
    with pytest.raises(NonFinite, match="parameters became NaN or infinite .value.bias.") as error:
        train(Pointer, CONFIG, tmp_path)
    dump = torch.load(tmp_path / "diverged_rank0.pt", weights_only=True)
    assert all(torch.isfinite(v).all() for v in dump["policy"].values()), "the state before that update"
    assert reproduce(tmp_path) in str(error.value)


def test_a_policy_that_overflows_while_it_acts(tmp_path, monkeypatch):
    """Every parameter is finite, what they give is not."""
    real = ppo.update

    def enlarged(policy, *words, **named):
        stats = real(policy, *words, **named)
        with torch.no_grad():
            policy.mean.weight.fill_(3e38)
        return stats

    monkeypatch.setattr(ppo, "update", enlarged)
    with pytest.raises(NonFinite, match="while it acted") as error:
        train(Pointer, CONFIG, tmp_path)
    monkeypatch.undo()
    assert reproduce(tmp_path) in str(error.value)


def test_a_dump_that_does_not_fail_says_so(tmp_path):
    with pytest.raises(NonFinite):
        train(Treacherous, CONFIG, tmp_path)
    file = tmp_path / "diverged_rank0.pt"
    dump = torch.load(file, weights_only=True)
    dump["rollout"]["reward"].clamp_(-1, 1)
    torch.save(dump, file)
    with pytest.raises(ValueError, match="does not reproduce"):
        reproduce(file)


@pytest.mark.parametrize("content, words", [(None, "cannot be read: No such file"), (b"", "is no dump"),
                                            (b"PK nonsense", "is no dump"), ("checkpoint", "is no dump")])
def test_what_is_no_dump_is_one_sentence(tmp_path, content, words):
    file = tmp_path / "diverged_rank0.pt"
    if isinstance(content, bytes):
        file.write_bytes(content)
    elif content:
        torch.save({"policy": {}}, file)
    with pytest.raises(ValueError, match=words) as error:
        reproduce(tmp_path if content is not None else file)
    assert "\n" not in str(error.value)

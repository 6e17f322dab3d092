"""The Tab key."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from rearrange.command_line.cli import main
from rearrange.command_line.completion import SHELLS, candidates


@pytest.mark.parametrize(
    "line, expected",
    [
        ("tr", ["train"]),
        ("--v", ["--version"]),
        ("train sk", ["skill="]),
        ("train skill=p", ["skill=pick", "skill=place"]),
        ("train skill=a", ["skill=all"]),
        ("train policy=r", ["policy=resnet18"]),
        ("train po", ["policy=", "policy."]),
        ("train ppo.lear", ["ppo.learning_rate="]),
        ("train ppo.schedule=c", ["ppo.schedule=cosine", "ppo.schedule=constant"]),
        ("train skill=pick skill.reward_scales.dr", ["skill.reward_scales.dropped="]),
        ("train logger=wandb logger.wandb.mode=on", ["logger.wandb.mode=online"]),
        ("train skill=nonsense ppo.cl", ["ppo.clip="]),
        ("train -m policy=light,b", ["policy=light,blind"]),
        ("train --m", ["--multirun"]),
        ("eval skill=pick agent=ra", ["agent=random"]),
        ("eval ski", ["skill=", "skills=", "skills."]),
        ("eval skills=n", ["skills=newest", "skills=null"]),
        ("eval skills.pick=new", ["skills.pick=newest"]),
        ("bench si", ["sim=", "sim.", "sim"]),
        ("train hydra", []),
        ("nonsense a", []),
    ],
)
def test_candidates(line, expected):
    assert sorted(candidates(line.split(" "))) == sorted(expected)


def test_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run [1]").mkdir()
    (tmp_path / "run [1]" / "a.pt").touch()
    assert candidates(["eval", "checkpoint=ru"]) == ["checkpoint=run [1]/"]
    assert candidates(["eval", "checkpoint=run [1]/"]) == ["checkpoint=run [1]/a.pt"]


def test_bash_gets_what_follows_the_last_equals_sign(monkeypatch, capsys):
    for line, expected in (
        ("rearrange train skill=pi", "pick \n"),
        ("rearrange train ppo.lear", "ppo.learning_rate=\n"),
    ):
        monkeypatch.setenv("COMP_LINE", line)
        monkeypatch.setenv("COMP_POINT", str(len(line)))
        assert main(["--complete", "bash", "rearrange", "x", "y"]) == 0
        assert capsys.readouterr().out == expected


@pytest.mark.parametrize("words", [[], ["bash"]])
def test_without_a_line_every_command_is_a_candidate(words, monkeypatch, capsys):
    monkeypatch.delenv("COMP_LINE", raising=False)
    assert main(["--complete", *words]) == 0
    assert "train \n" in capsys.readouterr().out


@pytest.mark.parametrize("shell", SHELLS)
def test_the_line_to_install_is_understood_by_its_shell(shell, capsys):
    assert main(["--install-completion", shell]) == 0
    line = capsys.readouterr().out
    assert len(line.splitlines()) == 1 and f"--complete {shell}" in line
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    assert subprocess.run([shell, "-n", "/dev/stdin"], input=line, text=True, capture_output=True).returncode == 0

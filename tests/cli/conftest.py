"""A stand-in for `rearrange.command_line.commands`: the front door is tested without training anything."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from rearrange import command_line
from rearrange.command_line.cli import main
from rearrange.home.errors import UserError


class FakeWork:
    """Records its calls; `behave` says what train does after it has created its directory."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, object, object]] = []
        self.behave = lambda config, run: {"episode/success": 0.75}

    def train(self, config, run):
        self.calls.append(("train", config, run))
        if config.seed == 13:
            raise UserError("nothing works with seed 13.")
        run.create()
        run.say("working")
        result = self.behave(config, run)
        (run.checkpoints / f"step_{config.steps:012d}.pt").touch()
        return result or {}  # None would say that a signal ended it

    def evaluate(self, config, run):
        self.calls.append(("eval", config, run))
        run.create()
        (run.path / "metrics.json").write_text("{}")
        return {}

    def bench(self, config, run):
        self.calls.append(("bench", config, run))
        return {}

    def report(self, config):
        self.calls.append(("report", config, None))

    def scenes(self, config):
        self.calls.append(("scenes", config, None))

    def reproduce(self, config, hydras):
        self.calls.append(("reproduce", config, None))


@pytest.fixture
def work(monkeypatch, tmp_path):
    """Stand in an empty directory, with the fake in place of the real work."""
    fake = FakeWork()
    module = SimpleNamespace(train=fake.train, evaluate=fake.evaluate, bench=fake.bench,
                             report=fake.report, reproduce=fake.reproduce, scenes=fake.scenes)
    monkeypatch.setitem(sys.modules, "rearrange.command_line.commands", module)
    monkeypatch.setattr(command_line, "commands", module, raising=False)
    monkeypatch.chdir(tmp_path)
    return fake


@pytest.fixture
def front_door(work, capsys):
    """`front_door("train skill=pick")` -> (exit status, stdout, stderr)."""

    def call(line: str | list[str]) -> tuple[int, str, str]:
        status = main(line.split() if isinstance(line, str) else line)
        out, err = capsys.readouterr()
        return status, out, err

    return call

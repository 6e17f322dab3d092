"""`skill=all`: every skill once, checked before the first starts, and one table."""

from __future__ import annotations

import json

import pytest

from rearrange.command_line import all_skills as every_skill
from rearrange.command_line.composition import options
from rearrange.command_line.runs import job
from rearrange.home.errors import UserError

FIGURES = {"success": 0.5, "success_interval_95": [0.1, 0.9], "episodes": 2, "mean_steps": 81.5,
           "failures": {"time_limit": 0.5}}


def worker(code_of: dict[str, int], seen: list[list[str]]):
    """Stands in for a process: writes what an evaluation leaves, and ends with the given status."""

    def launch(words: list[str]) -> int:
        from rearrange.command_line.composition.parse_overrides import compose
        from rearrange.command_line.runs.run_directory import folder_of

        seen.append(words)
        made = compose(words[0], words[1:])
        code = code_of.get(made.value("skill.name"), 0)
        if code == 0:
            path = folder_of(made.config, "eval") / made.value("name")
            path.mkdir(parents=True)
            (path / "metrics.json").write_text(json.dumps(FIGURES))
        return code

    return launch


@pytest.fixture
def run(monkeypatch):
    """`run(launch, command, words)`: the command, its jobs run by `launch`."""
    def call(launch, command: str, words: list[str]) -> int:
        monkeypatch.setattr(job, "launch_process", lambda words, *_: launch(words))
        return every_skill.run(command, words)

    return call


def test_every_skill_is_run_and_stands_in_the_table(run, tmp_path, capsys):
    seen: list[list[str]] = []
    code = run(worker({}, seen), "eval", ["skill=all", "agent=expert", f"output={tmp_path}", "name=x", "episodes=2"])
    skills = options.choices("skill")
    assert code == 0 and [words[1] for words in seen] == [f"skill={name}" for name in skills]
    assert all(words[0] == "eval" and {"agent=expert", "episodes=2", "name=x"} <= set(words) for words in seen)
    lines = capsys.readouterr().out.splitlines()
    for name in skills:
        row = next(line for line in lines if line.startswith(name + " "))
        assert "50.0%" in row and "10.0% .. 90.0%" in row and "time_limit 50.0%" in row and " 82 " in row + " "
    assert set(json.loads((tmp_path / "eval/all/x.json").read_text())) == set(skills)


def test_one_that_fails_does_not_stop_the_others_and_ctrl_c_does(run, tmp_path, capsys):
    seen: list[list[str]] = []
    words = ["skill=all", f"output={tmp_path}", "name=x"]
    assert run(worker({"pick": 1}, seen), "eval", words) == 1
    assert len(seen) == len(options.choices("skill")) and "failed: see above" in capsys.readouterr().out
    seen.clear()
    words[2] = "name=y"
    first = options.choices("skill")[0]
    assert run(worker({first: 130}, seen), "eval", words) == 130
    assert len(seen) == 1 and "not started" in capsys.readouterr().out


def test_one_that_was_interrupted_stands_in_the_table_with_what_it_has(run, tmp_path, capsys):
    first = options.choices("skill")[0]
    words = ["skill=all", f"output={tmp_path}", "name=x"]

    def launch(words):
        path = tmp_path / "eval" / first / "x"
        path.mkdir(parents=True)
        (path / "metrics.json").write_text(json.dumps(FIGURES | {"interrupted": True, "episodes_asked": 100}))
        return 130

    assert run(launch, "eval", words) == 130
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith(first + " "))
    assert "50.0%" in row and "2 of 100" in row and "stopped; time_limit 50.0%" in row
    assert json.loads((tmp_path / "eval/all/x.json").read_text())[first]["interrupted"] is True


@pytest.mark.parametrize("command, words, message", [
    ("train", ["skill=all"], "train takes one skill"),
    ("eval", ["skill=all", "agent=expret"], "Did you mean expert"),
    ("eval", ["skill=all", "agent=tp_srl"], "agent=tp_srl is for hab="),
    ("eval", ["skill=all", "name=-"], "name=-"),
])
def test_mistakes_are_told_before_anything_starts(run, tmp_path, command, words, message):
    seen: list[list[str]] = []
    with pytest.raises(UserError, match=message):
        run(worker({}, seen), command, [*words, f"output={tmp_path}"])
    assert not seen and not list(tmp_path.iterdir())

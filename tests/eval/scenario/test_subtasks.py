"""Sub-tasks: what begins where, and the real command."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from eval.scenario.subtasks import beginnings, table
from rearrange.command_line.cli import main


def state(skill, about):
    return SimpleNamespace(targets={4: (), 7: ()}, handoff=SimpleNamespace(skill=skill, about=about))


def test_states_are_sorted_by_what_is_done_to_what_and_those_of_repeated_steps_are_left_out():
    whole = [state("open_fridge", "fridge_door"), state("pick", 7), state("place", 7), state("pick", 4)]
    again = [state("pick", 7), state("pick", 7)]
    found = beginnings([SimpleNamespace(handoffs=kept) for kept in (whole, again, whole[:2])])
    assert {name: len(states) for name, states in found.items()} == {"open fridge": 2, "pick 2": 2, "place 2": 1, "pick 1": 1}


def test_the_table_ends_with_the_mean():
    rows = {name: {"success": share, "success_interval_95": (0.0, 1.0), "episodes": 4} for name, share in (("pick 1", 0.5), ("place 1", 1.0))}
    assert table(rows)[-1].split() == ["mean", "75.0%"] and "50.0% (0.0% .. 100.0%)" in table(rows)[1]


def test_the_command_evaluates_each_sub_task(tmp_path, capsys):
    words = ["eval", "hab=set_table", "skills=random", "skills.place=expert", "planner=paper", "episodes=1", "video=0",
             "workers=1", "subtasks=true", f"output={tmp_path}", "name=x"]
    assert main(words) == 0
    rows = json.loads((tmp_path / "eval/set_table/x/subtasks.json").read_text())
    names = ["open cabinet", "pick 1", "place 1", "open fridge", "pick 2", "place 2"]
    assert sorted(rows) == sorted([*names, "close cabinet", "close fridge"])
    assert all(row["success"] == float(row["skill"] == "place") and row["episodes"] == 1 for row in rows.values())
    assert "sub-task, from where experts leave" in capsys.readouterr().out
    assert (tmp_path / "eval/set_table/x/subtasks/place_1.json.gz").exists()


@pytest.mark.parametrize("words, said", [
    (["hab=tidy_house", "agent=tp_spa", "subtasks=true"], "which agent=tp_spa does not have"),
    (["skill=pick", "subtasks=true"], "subtasks is a setting of scenarios")])
def test_there_have_to_be_skills(words, said, tmp_path, capsys):
    assert main(["eval", *words, f"output={tmp_path}"]) == 2
    assert said in capsys.readouterr().err and not list(tmp_path.iterdir())

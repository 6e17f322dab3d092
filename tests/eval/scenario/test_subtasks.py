"""Sub-tasks: what begins where, and the real command."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest

from eval.scenario.subtasks import beginnings, repeats, table
from rearrange.command_line.cli import main


def state(skill, about):
    return SimpleNamespace(targets={4: (), 7: ()}, handoff=SimpleNamespace(skill=skill, about=about))


def test_states_are_sorted_by_what_is_done_to_what_and_repeated_steps_are_noticed():
    whole = [state("open_fridge", "fridge_door"), state("pick", 7), state("place", 7), state("pick", 4)]
    assert repeats(SimpleNamespace(handoffs=[state("pick", 7), state("pick", 7)]))
    assert not repeats(SimpleNamespace(handoffs=whole))
    found = beginnings([SimpleNamespace(handoffs=kept) for kept in (whole, whole[:2])])
    assert {name: len(states)
            for name, states in found.items()} == {"open fridge": 2, "pick 2": 2, "place 2": 1, "pick 1": 1}


def test_the_table_ends_with_the_mean():
    rows = {name: {"success": share, "success_interval_95": (0.0, 1.0), "episodes": 4, "left_out": 1, "began_solved": 2}
            for name, share in (("pick 1", 0.5), ("place 1", 1.0))}
    rows["pick 2"] = {"episodes": 0, "left_out": 5, "began_solved": 0}
    rows["place 2"] = {"episodes": 0, "left_out": 0, "began_solved": 3}
    lines = table(rows)
    assert lines[-1].split() == ["mean", "75.0%"] and "50.0% (0.0% .. 100.0%)" in lines[1]
    assert lines[1].split()[-3:] == ["4", "1", "2"]
    assert "none can be started" in lines[3] and lines[3].split()[-3:] == ["0", "5", "0"]
    assert "all began solved" in lines[4] and lines[4].split()[-3:] == ["0", "0", "3"]


def test_the_command_evaluates_each_sub_task(tmp_path, capsys):
    words = ["eval", "hab=set_table", "skills=random", "skills.place=expert", "planner=paper", "episodes=1", "video=0",
             "workers=1", "subtasks=true", f"output={tmp_path}", "name=x"]
    assert main(words) == 0
    rows = json.loads((tmp_path / "eval/set_table/x/subtasks.json").read_text())
    names = ["open cabinet", "pick 1", "place 1", "open fridge", "pick 2", "place 2"]
    assert sorted(rows) == sorted([*names, "close cabinet", "close fridge"])
    assert all(row["success"] == float(row["skill"] == "place") and row["episodes"] == 1 for row in rows.values())
    out = capsys.readouterr().out
    assert "sub-task, from where experts leave" in out and "counted: 1 of 1 episodes" in out
    assert (tmp_path / "eval/set_table/x/subtasks/place_1.json.gz").exists()


def test_states_that_cannot_be_started_or_begin_solved_are_counted_and_the_others_go_on(tmp_path, monkeypatch, capsys):
    from eval.scenario import subtasks

    def in_the_wall(results):
        found = beginnings(results)
        bad = {name: [replace(state := found[name][0], robot_start=(0.1, 0.1, 0.0),
                              handoff=replace(state.handoff, arm_rad=None, held_pose=None))] for name
               in ("pick 1", "place 1")}  # as a file of before has it
        (placed,), (index,) = found["place 1"], found["place 1"][0].targets
        solved = replace(placed, targets={index: placed.start_poses[index]},
                         handoff=replace(placed.handoff, held=None, held_pose=None))
        return found | {"pick 1": bad["pick 1"], "place 1": [*bad["place 1"], placed, solved]}

    monkeypatch.setattr(subtasks, "beginnings", in_the_wall)
    words = ["eval", "hab=tidy_house", "skills=expert", "hab.objects=[any]", "hab.starts=[open]", "hab.goals=[open]",
             "planner=paper", "episodes=1", "video=0", "workers=1", "subtasks=true", f"output={tmp_path}", "name=x"]
    assert main(words) == 0
    rows = json.loads((tmp_path / "eval/tidy_house/x/subtasks.json").read_text())
    assert rows["pick 1"] == {"skill": "pick", "episodes": 0, "left_out": 1, "began_solved": 0}
    assert rows["place 1"] == {"skill": "place", "episodes": 1, "left_out": 1, "began_solved": 1, "success": 1.0,
                               "success_interval_95": rows["place 1"]["success_interval_95"]}
    out = capsys.readouterr().out
    assert "none can be started" in out and "left out: the robot would touch something" in out


def test_where_experts_repeated_something_in_every_episode_there_is_an_empty_table(tmp_path, monkeypatch):
    from eval.scenario import evaluate, subtasks

    chains = [SimpleNamespace(handoffs=[state("pick", 7), state("pick", 7)], began_solved=False),
              SimpleNamespace(handoffs=[state("pick", 7)], began_solved=True)]  # which counts apart
    monkeypatch.setattr(evaluate, "evaluate", lambda *_: chains)
    said: list[str] = []
    run = SimpleNamespace(path=tmp_path, log=said.append, say=said.append)
    subtasks.measure(evaluate.Job(None, "tp_srl", {}, {}, None, 1, 0, False, "", 1.0, False), run, 1, lambda *_,
                     **__: nullcontext())
    assert json.loads((tmp_path / "subtasks.json").read_text()) == {}
    assert any("counted: 0 of 1" in line for line in said)


@pytest.mark.parametrize("words, said", [
    (["hab=tidy_house", "agent=tp_spa", "subtasks=true"], "which agent=tp_spa does not have"),
    (["skill=pick", "subtasks=true"], "subtasks is a setting of scenarios")])
def test_there_have_to_be_skills(words, said, tmp_path, capsys):
    assert main(["eval", *words, f"output={tmp_path}"]) == 2
    assert said in capsys.readouterr().err and not list(tmp_path.iterdir())

"""Evaluations of an episode file."""

from __future__ import annotations

import csv
from dataclasses import replace

import pytest

from rearrange.command_line.cli import main
from rearrange.home.apartments.episodes import Handoff, write_episodes
from rearrange.home.episodes.generator import generate_episode


def test_an_episode_of_a_file_that_cannot_be_started_is_left_out_and_none_counts_twice(tmp_path, monkeypatch, capsys):
    first, bad, last = (generate_episode("pick", "val", number, 4) for number in (3, 8, 11))
    x, y, z, *turned = bad.start_poses[0]
    write_episodes(tmp_path / "three.json",
                   [first, replace(bad, start_poses=((x, y, z + 1.0, *turned), *bad.start_poses[1:])), last])
    monkeypatch.chdir(tmp_path)
    words = ["eval", "skill=pick", "agent=zero", "sim.episodes=three.json", "skill.max_steps=2", "video=0", "workers=1"]
    assert main([*words, "name=x"]) == 0
    assert "1 of 3 episodes cannot be started and are left out" in capsys.readouterr().out
    rows = csv.DictReader((tmp_path / "outputs/eval/pick/x/episodes.csv").open())
    assert [row["episode_id"] for row in rows] == [first.id, last.id]
    write_episodes(tmp_path / "one.json",
                   [replace(bad, start_poses=((x, y, z + 1.0, *turned), *bad.start_poses[1:])), first])
    assert main([*words[:3], "sim.episodes=one.json", *words[4:], "episodes=1", "name=y"]) == 2
    assert "no episode of one.json can be started" in capsys.readouterr().err


@pytest.mark.parametrize("skill, handoff, start, said", [
    ("pick", Handoff("pick", "drawer_0"), (2.0, 2.0, 0.0), "about='drawer_0', and pick can be about 0, 1"),
    ("place", Handoff("place", 1, 1), (2.0, 2.0, 0.0), "about=1, and place can be about 0 there"),
    ("open_fridge", Handoff("open_fridge", "drawer_99"), (2.0, 2.0, 0.0),
     "about='drawer_99', and open_fridge can be about fridge_door there"),
    ("open_fridge", Handoff("open_fridge", "drawer_0"), (2.0, 2.0, 0.0),
     "about='drawer_0', and open_fridge can be about fridge_door there"),
    ("open_fridge", Handoff("open_fridge", 1), (2.0, 2.0, 0.0),
     "about=1, and open_fridge can be about fridge_door there"),
    ("close_cabinet", Handoff("close_cabinet", "fridge_door"), (2.0, 2.0, 0.0), "close_cabinet can be about drawer_0"),
    ("navigate", Handoff("navigate", 0), (2.0, 2.0, 0.0), "no plan hands over to skill navigate"),
    ("place", Handoff("pick", 0), (2.0, 2.0, 0.0), "was handed over to skill pick, not to place"),
    ("pick", Handoff("pick", 0), (1e6, 2.0, 0.0),
     "'start_position' puts the robot at x=1e+06, y=2 m, and it must be on the floor, 0 .. "),
    ("pick", Handoff("pick", 0), None, "'start_position' is missing"),
    ("place", Handoff("place", 0, 0, (9.0, 9.0, 1.0, 1.0, 0.0, 0.0, 0.0)), (2.0, 2.0, 0.0),
     "m from the hand, and it must be within 0.5 m"),
])
def test_a_state_that_no_plan_can_hand_over_is_one_sentence_that_names_the_file(
    skill, handoff, start, said, tmp_path, monkeypatch, capsys):
    episode = replace(generate_episode("pick", "val", 3, 4), robot_start=start, handoff=handoff)
    assert list(episode.targets) == [0] and len(episode.objects) > 1
    write_episodes(tmp_path / "states.json", [episode])
    monkeypatch.chdir(tmp_path)
    assert main(["eval", f"skill={skill}", "agent=random", "sim.episodes=states.json", "episodes=1", "workers=1"]) == 2
    error = capsys.readouterr().err
    assert "states.json, episode 'pick/val/" in error and said in error and error.count("\n") == 1

"""Evaluations of an episode file."""

from __future__ import annotations

import csv
from dataclasses import replace

from rearrange.apartments.episodes import write_episodes
from rearrange.command_line.cli import main
from rearrange.episode_making.generator import generate_episode


def test_an_episode_of_a_file_that_cannot_be_started_is_left_out_and_none_counts_twice(tmp_path, monkeypatch, capsys):
    first, bad, last = (generate_episode("pick", "val", number, 4) for number in (3, 8, 11))
    x, y, z, *turned = bad.start_poses[0]
    write_episodes(tmp_path / "three.json", [first, replace(bad, start_poses=((x, y, z + 1.0, *turned), *bad.start_poses[1:])), last])
    monkeypatch.chdir(tmp_path)
    words = ["eval", "skill=pick", "agent=zero", "sim.episodes=three.json", "skill.max_steps=2", "video=0", "workers=1"]
    assert main([*words, "name=x"]) == 0
    assert "1 of 3 episodes cannot be started and are left out" in capsys.readouterr().out
    rows = csv.DictReader((tmp_path / "outputs/eval/pick/x/episodes.csv").open())
    assert [row["episode_id"] for row in rows] == [first.id, last.id]
    write_episodes(tmp_path / "one.json", [replace(bad, start_poses=((x, y, z + 1.0, *turned), *bad.start_poses[1:])), first])
    assert main([*words[:3], "sim.episodes=one.json", *words[4:], "episodes=1", "name=y"]) == 2
    assert "no episode of one.json can be started" in capsys.readouterr().err

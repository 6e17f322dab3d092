"""Evaluation of scenarios: figures, files, videos, and that neither processes nor neighbours change an episode."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import skills.experts
from eval import slots
from eval import video as of_video
from eval.evaluate import cut_short, headline, missing
from eval.intervals import wilson
from eval.report.runs import read
from eval.scenario import evaluate as hab
from eval.scenario import figures as hab_figures
from eval.scenario import video as hab_video
from eval.scenario.skill_sources import AGENTS, Source
from planner.execute import Record
from planner.rules import SKILL_NAMES, Rules
from planner.scenarios import load_scenario
from tests.planner.puppet import Puppet

ENV = {"split": "val", "num_layouts": 4, "episodes": None}


def job(scenario="tidy_house", kind="expert", episodes=2, rules=Rules(), **changes):
    sources = {skill: Source(kind) for skill in SKILL_NAMES}
    return hab.Job(load_scenario(scenario), "expert", ENV, sources, rules, episodes, **changes)


@pytest.fixture
def puppets(monkeypatch):
    """Every expert is a puppet; nothing goes wrong."""
    slots._KEPT.clear()
    monkeypatch.setattr(skills.experts, "EXPERTS", dict.fromkeys(SKILL_NAMES, Puppet))
    monkeypatch.setattr(Puppet, "fails", {})
    yield
    slots._KEPT.clear()


def run_again(job, index, slot, watch):
    """The episode again, watched in every step; its result."""
    steps = hab.run_again(job, index, slot)
    while True:
        try:
            watch(next(steps))
        except StopIteration as end:
            return end.value


def short(**changes):
    """Random skills that have a few steps only."""
    limits = {"navigate": 9, "pick": 7}
    return job(kind="random", rules=Rules(max_steps=limits), **changes)


def test_everything_is_reached_when_every_skill_does_what_it_promises(puppets, tmp_path):
    it = job("set_table", episodes=3)
    results = hab.evaluate(it, workers=1)
    figures = hab_figures.summary(it, results)
    assert figures["success"] == figures["success_015"] == 1.0 and figures["ends"] == {}
    assert [row["name"] for row in figures["interactions"]] == ["pick 1", "place 1", "pick 2", "place 2"]
    assert all(row["success"] == 1.0 and row["interval_95"] == list(wilson(3, 3)) for row in figures["interactions"])
    assert set(figures["handoff"]) == {"open_cabinet", "pick", "place", "open_fridge", "close_cabinet", "close_fridge"}
    assert figures["handoff"]["pick"]["n"] == 6 and figures["handoff"]["pick"]["distance_m"] < 0.3
    for rows in figures["by_distance"].values():
        assert [(row["from_m"], row["n"], row["success"]) for row in rows] == [(0.0, 6, 1.0)], "it came near"
    assert set(figures["by_distance"]) == {"pick", "place"}
    text = hab_figures.plan_text(results[0])
    assert "success" in text.splitlines()[0] and len(text.splitlines()) == 17
    assert "open_cabinet cabinet_0 (drawer" in text
    assert results[0].metrics["stage_2"] == 1.0
    assert figures["mean_simulated_s"] == pytest.approx(figures["mean_steps"] / 30)


def test_files_agree_with_the_episodes_and_the_report_reads_them(tmp_path):
    it = short(episodes=3)
    results = hab.evaluate(it, workers=1)
    figures = hab_figures.summary(it, results)
    (tmp_path / "videos").mkdir()
    hab_figures.write(tmp_path, it, figures, results, {1: "videos/episode_0001_failure.mp4"})
    with open(tmp_path / "episodes.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert json.loads((tmp_path / "metrics.json").read_text()) == json.loads(json.dumps(figures))
    assert [row["index"] for row in rows] == ["0", "1", "2"] and rows[1]["video"].endswith(".mp4")
    assert not rows[0]["video"]
    assert {(row["ended_in"], row["reason"]) for row in rows} == {("pick", "time limit: nothing picked")}
    assert figures["ends"] == {"pick: time limit: nothing picked": 1.0} and figures["success"] == 0.0
    assert all(int(row["steps"]) == result.steps >= 16 for row, result in zip(rows, results))
    assert np.mean([float(row["handoff_m"])
                    for row in rows]) == pytest.approx(figures["handoff"]["pick"]["distance_m"], abs=1e-3)
    plan = (tmp_path / "plan.txt").read_text()
    assert plan.count("episode ") == 3 and "place object_4" in plan and plan.count("not begun") == 3 * 18
    found = read(tmp_path)
    assert found.is_scenario and found.what == "tidy_house" and len(found.episodes) == 3
    table = "\n".join(hab_figures.table_lines(figures))
    assert "n = 3" in table and "place 5" in table and "ended in pick: time limit: nothing picked" in table


def test_processes_and_neighbours_change_nothing():
    it = short(episodes=hab.CHUNK + 2, seed=3)
    one, two = hab.evaluate(it, workers=1), hab.evaluate(it, workers=2)
    assert one == two and len({result.steps for result in one} | {result.scene for result in one}) > 3
    watched = []
    again = run_again(it, 5, one[5].slot, lambda run: watched.append(run.sim.base_pose))
    assert again == one[5] and len(watched) == again.steps + 1
    other = hab.evaluate(replace(it, episodes=2, seed=4), workers=1)
    assert [result.episode_id for result in other] != [result.episode_id for result in one[:2]]


def test_without_navigation_nothing_is_handed_over():
    it = replace(short(episodes=1), rules=Rules(navigate=False, max_steps={"pick": 7}))
    (result,) = hab.evaluate(it, workers=1)
    assert {step.skill for step in result.plan} == {"pick", "place"} and result.steps == 7
    figures = hab_figures.summary(it, [result])
    assert figures["handoff"] == {} and set(figures["by_distance"]) == {"pick"}
    away = []
    run_again(it, 0, result.slot,
              lambda run: away.append(math.dist(run.sim.base_pose[:2], run.sim.object_position(0)[:2])))
    first = result.plan[0]
    assert first.skill == "pick" and first.words.startswith("pick object_0")
    assert first.from_m == pytest.approx(away[0], abs=1e-3)
    (row,) = figures["by_distance"]["pick"]
    assert row["n"] == 1 and row["success"] == 0 and row["from_m"] <= first.from_m
    assert f"7 steps from {first.from_m:.1f} m, time limit" in hab_figures.plan_text(result)
    assert f"pick from {row['from_m']:.0f} m on" in "\n".join(hab_figures.table_lines(figures))


def outcome(index, success, steps):
    metrics = {"success": float(success), "success_15cm": 0.0}
    return hab.EpisodeResult(index, 0, f"e{index}", "val/0", success, None, None, steps, 0, metrics)


def test_which_episodes_are_shown():
    results = [outcome(0, False, 5), outcome(1, False, 9), outcome(2, True, 7), outcome(3, True, 8)]
    assert [result.index for result in hab_video.shown(results, 3)] == [2, 0, 1]
    assert [result.index for result in hab_video.shown(results, 9)] == [2, 0, 1, 3]
    assert [result.index for result in hab_video.shown(results[2:], 3)] == [2, 3] and hab_video.shown(results, 0) == []


@pytest.mark.parametrize("end, records, holding, expected", [
    ("pick: time limit", [("pick", False)], False, ("pick", "time limit: nothing picked")),
    ("pick: time limit", [("pick", False)], True, ("pick", "time limit: wrong object")),
    ("pick: time limit", [("pick", True)], True, ("pick", "time limit: hand not at rest")),
    ("place: time limit", [("pick", True), ("place", False)], True, ("place", "time limit: not released")),
    ("place: time limit", [("pick", True), ("place", False)], False, ("place", "time limit: released elsewhere")),
    ("open_fridge: time limit", [("open_fridge", False)], False, ("open_fridge", "time limit: not opened")),
    ("bad_stop", [("pick", True), ("place", False), ("pick", True)], False,
     ("place", "bad stop: its effects did not hold")),
    ("bad_stop", [("pick", True), ("place", True)], False, ("stop", "bad stop: undone later")),
    ("close_fridge: time limit", [("close_fridge", True)], False, ("close_fridge", "time limit: hand not at rest")),
    ("time_limit", [("pick", True), ("navigate", None)], False, ("navigate", "time limit of the episode")),
])
def test_where_and_why(end, records, holding, expected):
    made = [Record(skill, skill, ended="done", effects_hold=hold) for skill, hold in records]
    assert hab.why_ended(SimpleNamespace(end=end, records=made, never_held=(), metrics={}), holding) == expected
    if end == "time_limit":
        dropped = SimpleNamespace(end=end, records=made, never_held=(), metrics={"objects_on_floor": 1.0})
        assert hab.why_ended(dropped, holding) == (expected[0], f"{expected[1]}, an object on the floor")


@pytest.mark.parametrize("hold, reason", [(True, "start zone not left"), (False, "not opened")])
def test_a_hand_that_never_left_its_start_zone_is_said_so(hold, reason):
    made = [Record("open_fridge", "open_fridge", effects_hold=hold, in_start_zone=True)]
    report = SimpleNamespace(end="open_fridge: time limit", records=made, metrics={})
    assert hab.why_ended(report, False) == ("open_fridge", f"time limit: {reason}")


def test_a_video_shows_the_object_its_goal_where_to_drive_the_step_and_why_it_ended(tmp_path, monkeypatch):
    import imageio.v3 as iio

    from rearrange.home.pictures.picture import Ghost, Sphere, WireBox

    it = replace(short(episodes=1), video_dir=str(tmp_path), video_speed=2)
    (result,) = hab.evaluate(it, workers=1)
    ends, compose = [], of_video.compose

    def noting(*args, outcome, reason, **more):
        ends.append((outcome, reason))
        assert "holds nothing" in args[2] and more["hand"].shape == (224, 224, 3)
        return compose(*args, outcome=outcome, reason=reason, **more)

    monkeypatch.setattr(of_video, "compose", noting)
    *before, (index, count, path) = hab_video.record_one(it, result)
    assert ends.count((None, "")) == len(ends) - 1 and (False, f"{result.ended_in}: {result.reason}") in ends
    assert len(ends) == count == hab_video.frames_of(it, [result]) and all(made[2] is None for made in before)
    frames = iio.imread(path)
    assert index == 0 and path.name == "episode_0000_failure.mp4" and iio.immeta(path)["fps"] == 30
    assert len(frames) == (result.steps + 1) // 2 + 1 + 21 and frames.shape[1:] == (720, 1280, 3) and frames.std() > 20
    lines, kinds = [], []
    run_again(it, 0, 0, lambda run: (lines.append(hab_video.plan_lines(run)), kinds.append(hab_video.marks(run))))
    assert lines[0][0].startswith("> 1  navigate to ") and lines[-1][1].startswith("> 2  pick ")
    assert [type(mark) for mark in kinds[0]] == [WireBox, Ghost, Sphere]
    assert [type(mark) for mark in kinds[-1]] == [WireBox, Ghost]


def test_the_panel_of_a_plan_says_what_is_held():
    sim = SimpleNamespace(held=1, held_handle=None,
                          episode=SimpleNamespace(objects=("024_bowl", "005_tomato_soup_can")))
    assert hab_video.what_is_held(sim) == "holds the tomato soup can"
    sim.held, sim.held_handle = None, "fridge_door"
    assert hab_video.what_is_held(sim) == "holds the handle of fridge door"
    sim.held_handle = None
    assert hab_video.what_is_held(sim) == "holds nothing"


def test_an_episode_that_goes_another_way_is_not_passed_off_as_the_first(tmp_path):
    it = replace(short(episodes=1), video_dir=str(tmp_path), video_speed=5)
    (result,) = hab.evaluate(it, workers=1)
    with pytest.raises(RuntimeError, match="went another way"):
        list(hab_video.record_one(it, replace(result, steps=result.steps + 1)))
    assert not list(tmp_path.iterdir())


def test_the_settings_mirror_the_rules():
    import dataclasses

    from rearrange.command_line.composition import parse_overrides as settings

    composed = settings.compose("eval", ["hab=tidy_house", "planner=paper"])
    config = composed.config
    fields = {field.name for field in dataclasses.fields(Rules)}
    assert set(config["planner"]) == fields - {"navigate"} and set(config["skills"]) == set(SKILL_NAMES)
    assert Rules(**{key: dict(value) if key == "max_steps" else value
                    for key, value in config["planner"].items()}) == Rules()
    assert set(AGENTS) <= set(composed.keys["agent"].rule.words())


def test_what_is_finished_is_kept_when_the_rest_cannot_be():
    it, kept = short(episodes=10), []

    def progress(done, successes):
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hab.evaluate(it, 2, progress, kept.extend)
    whole = {result.index: result for result in hab.evaluate(it, workers=1)}
    assert len(kept) == 5 and [result.index for result in kept] == sorted(result.index for result in kept)
    assert all(result.metrics == whole[result.index].metrics for result in kept)
    figures = cut_short(hab_figures.summary(it, kept), it.episodes)
    assert figures["episodes"] == 5
    assert missing(figures)[0].startswith("interrupted: 5 of 10 episodes were finished, 5 are missing")
    assert headline(figures)["episodes"] == 5 and not missing(hab_figures.summary(it, kept))

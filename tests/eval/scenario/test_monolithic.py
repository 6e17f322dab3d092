"""One policy for a whole scenario: trained by the engine, carried out as one step, refused where it does not fit."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from eval.scenario.evaluate import make_agents, make_executor, why_ended
from planner.monolithic import NAME, WholeTask
from planner.scenario_env import ScenarioEnv
from planner.scenarios import load_scenario
from rearrange.command_line.cli import main
from rearrange.env.home_env import HomeSettings
from tests.e2e.front_door import status, succeed
from tests.eval.scenario.hab_checkpoints import untrained

SMALL = ("experiment=debug", "policy=light", "policy.image_size=16", "trainer.num_workers=1", "torch_threads=1",
         "sim.num_layouts=2")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A directory with a tiny training run."""
    folder = tmp_path_factory.mktemp("monolithic")
    out = succeed(folder, "train", "hab=set_table", *SMALL, "steps=128", "name=tiny", "whole_task.max_steps=40")
    assert "rearrange eval hab=set_table agent=monolithic checkpoint=outputs/train/set_table/tiny" in out
    return folder


def test_training_leaves_a_policy_that_is_evaluated(home):
    rows = (home / "outputs/train/set_table/tiny/metrics.jsonl").read_text().splitlines()
    last = json.loads(rows[-1])
    assert {"reward/distance", "reward/picked", "reward/slack", "failure/time_limit"} <= set(last)
    assert last["reward/slack"] == pytest.approx(-0.4), "40 steps"
    out = succeed(home, "eval", "hab=set_table", "agent=monolithic", "checkpoint=outputs/train/set_table/tiny",
                  "episodes=1", "video=1", "video_speed=60", "workers=1", "hab.max_steps=90", "sim.num_layouts=2",
                  "name=x")
    run = home / "outputs/eval/set_table/x"
    figures = json.loads((run / "metrics.json").read_text())
    assert figures["agent"] == "monolithic" and list(figures["skills"]) == ["monolithic"]
    assert len(figures["interactions"]) == 4
    assert "monolithic: time limit of the episode" in out and "whole task  90 steps" in (run / "plan.txt").read_text()
    with open(run / "episodes.csv", newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["steps"] == "90" and len(list((run / "videos").glob("*.mp4"))) == 1


def test_a_stopped_training_resumes(home):
    out = succeed(home, "train", "hab=set_table", "name=tiny", "resume=force", "steps=192")
    assert "continues" in out and status(home / "outputs/train/set_table/tiny") == "finished"
    assert main(["train", "hab=set_table", "name=tiny", "resume=true", f"output={home}/outputs"]) == 2  # it is finished


@pytest.mark.parametrize("words, said", [
    ("hab=set_table agent=monolithic", ("no policy of set_table comes with", "rearrange train hab=set_table")),
    ("hab=set_table agent=monolithic checkpoint=gone", ("no checkpoint at gone", "rearrange train hab=set_table")),
    ("hab=set_table agent=monolithic checkpoint=pick.pt", ("checkpoint of skill pick, not of scenario set_table",)),
    ("hab=tidy_house agent=monolithic checkpoint=RUN", ("of scenario set_table, not of scenario tidy_house",)),
    ("hab=set_table hab.problem=set_table_paper hab.objects=[any] hab.starts=[open] hab.goals=[open] "
     "agent=monolithic checkpoint=RUN",
     ("another network", "all_obj_goal")),
    ("hab=set_table agent=monolithic skills.pick=expert", ("agent=monolithic has no skills",)),
    ("skill=pick agent=monolithic", ("agent=monolithic is for hab=",)),
])
def test_what_does_not_fit_is_one_sentence(home, words, said, tmp_path, monkeypatch, capsys):
    untrained(tmp_path, "pick")
    monkeypatch.chdir(tmp_path)
    assert main(["eval", *words.replace("RUN", f"{home}/outputs/train/set_table/tiny").split()]) == 2
    error = capsys.readouterr().err.strip()
    assert all(part in error for part in said) and "\n" not in error, error
    assert {path.name for path in tmp_path.iterdir()} == {"pick.pt"}


@pytest.mark.parametrize("line, said", [
    ("train hab=set_table skill=pick", "train takes one skill, one navigation task or one scenario"),
    ("train skill=pick whole_task.max_steps=9", "whole_task.max_steps is a setting of scenarios"),
    ("train hab=set_tabel", "Did you mean hab=set_table"),
])
def test_mistakes_of_training(line, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(line.split()) == 2 and said in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_the_policy_is_asked_for_every_step_and_may_stop():
    env = ScenarioEnv(load_scenario("set_table"), HomeSettings("val", depth_size=0, num_layouts=2))
    run = WholeTask(env)
    report = run.reset(0)
    firsts, action = [], np.zeros(11)
    for step in range(3):
        firsts.append((run.request.skill, run.request.first))
        assert env.observation_space.contains(run.request.observation)
        action[-1] = 1.0 if step == 2 else -1.0
        assert run.advance(action) == (step == 2)
    assert firsts == [(NAME, True), (NAME, False), (NAME, False)]
    assert report.end == "bad_stop" and report.records[0].steps == 3 and run.request is None
    assert why_ended(report, False) == (NAME, "bad stop: its effects did not hold")


def test_agents_of_a_job_have_the_policy_alone(home):
    from dataclasses import replace

    from eval.scenario.evaluate import Job
    from eval.scenario.skill_sources import whole_task_source
    from planner.rules import Rules

    scenario = replace(load_scenario("set_table"), max_steps=5)
    source = whole_task_source(str(home / "outputs/train/set_table/tiny"),
                               ScenarioEnv(scenario, HomeSettings("val", depth_size=0)), home / "outputs")
    job = Job(scenario, "monolithic", {"num_layouts": 2}, {NAME: source}, Rules(), 1)
    assert source.image_size == 16 and set(make_agents(job, [])) == {NAME}
    assert make_executor(job).env.home.depth_size == 16

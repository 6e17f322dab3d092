"""`rearrange eval hab=`: the real command from end to end, all scenarios in turn, and mistakes."""

from __future__ import annotations

import csv
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from planner.scenarios import load_scenario
from rearrange.command_line import all_skills as every_skill
from rearrange.command_line.cli import main
from rearrange.command_line.runs import job
from rearrange.env.scenario_episodes import scenario_episodes
from rearrange.home.apartments.episodes import read_episodes, write_episodes
from tests.e2e.front_door import succeed
from tests.eval.scenario.hab_checkpoints import untrained

SHORT = ("planner.max_steps.navigate=9", "planner.max_steps.pick=7", "sim.num_layouts=4")


def test_a_scenario_with_a_policy_an_expert_and_random_actions(tmp_path):
    import imageio.v3 as iio

    checkpoint = untrained(tmp_path, "pick", image_size=16)
    out = succeed(tmp_path, "eval", "hab=tidy_house", f"skills.pick={checkpoint}", "skills.navigate=expert",
                  "skills.place=random", "episodes=2", "video=1", "video_speed=3", "workers=1", "name=mixed",
                  "planner=paper", *SHORT)
    run = tmp_path / "outputs/eval/tidy_house/mixed"
    figures = json.loads((run / "metrics.json").read_text())
    with open(run / "episodes.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert figures["agent"] == "tp_srl" and figures["episodes"] == len(rows) == 2
    assert figures["skills"] == {"navigate": "expert", "pick": str(checkpoint), "place": "random"}
    assert len(figures["interactions"]) == 10 and "pick 1" in out and "95 % interval" in out and "n = 2" in out
    assert rows[0]["ended_in"] == "pick" and rows[0]["video"].endswith("episode_0000_failure.mp4")
    (video,) = (run / "videos").iterdir()
    frames = iio.imread(video)
    assert len(frames) > 6 and abs(frames[0].astype(int) - frames[-1]).max() > 50
    assert "navigate_to_object object_0" in (run / "plan.txt").read_text()
    assert json.loads((run / "status.json").read_text())["status"] == "finished"


def test_a_fresh_installation_runs_a_plan_with_what_comes_with_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["eval", "hab=tidy_house", "episodes=1", "video=0", "workers=1", "name=fresh", *SHORT]) == 0
    first, head, *rows = capsys.readouterr().out.splitlines()[:5]
    assert first == "eval outputs/eval/tidy_house/fresh   tidy_house   agent tp_srl"
    assert [head.split()[0], *(row.split()[:2] for row in rows)] == [
        "skill", ["navigate", "pretrained"], ["pick", "pretrained"], ["place", "pretrained"]]
    assert all("the default" in row and "of 500 episodes" in row for row in rows)
    assert first in (tmp_path / "outputs/eval/tidy_house/fresh/log.txt").read_text()


@pytest.mark.parametrize("words, pick, place", [
    ("", "pretrained", "pretrained"), ("agent=pretrained", "pretrained", "pretrained"),
    ("skills=newest", "new", "pretrained"),
    ("skills.pick=expert skills=newest", "expert", "pretrained"), ("skills=expert skills.pick=newest", "new", "expert"),
    ("agent=expert", "expert", "expert"), ("agent=expert skills=pretrained", "pretrained", "pretrained"),
])
def test_words_choose_for_all_skills_and_for_one(words, pick, place, tmp_path):
    from eval.scenario.command import make_job
    from rearrange.command_line.composition import parse_overrides as settings
    from rearrange.command_line.composition.options import options_of

    run = tmp_path / "train/pick/new"
    made = untrained(run / "checkpoints", "pick")
    made.rename(made.with_name("step_000000000001.pt"))
    (run / "config.yaml").write_text("{}")
    (run / "status.json").write_text('{"status": "finished", "result": {}}')
    composed = settings.compose("eval",
                                ["hab=tidy_house", f"output={tmp_path}", "episodes=1", *SHORT[2:], *words.split()])
    job = make_job(options_of(composed))
    ran = {name: job.skills[name].choice.run_by for name in ("pick", "place")}
    assert ran == {"pick": str(run / "checkpoints/step_000000000001.pt") if pick == "new" else pick, "place": place}
    assert job.agent == ("expert" if "agent=expert" in words else "tp_srl")


def test_of_many_tries_at_the_same_thing_the_first_are_kept(tmp_path, capsys):
    words = ["eval", "hab=tidy_house", "agent=tp_srl_nonav", "skills=random", "episodes=1", "video=0", "workers=1",
             "handoffs=true", f"output={tmp_path}", *SHORT]
    assert main([*words, "name=all"]) == 0 and main([*words, "name=two", "handoff_tries=2"]) == 0
    every, kept = (read_episodes(str(tmp_path / f"eval/tidy_house/{name}/handoffs/pick.json.gz")) for name
                   in ("all", "two"))
    tries = Counter(episode.handoff.about for episode in every)
    assert max(tries.values()) > 2
    counts = Counter(episode.handoff.about for episode in kept)
    assert counts == {about: min(2, count) for about, count in tries.items()}
    assert [episode.id for episode in kept] == [episode.id for number, episode in enumerate(every)
                                                if [e.handoff.about
                                                    for e in every[:number]].count(episode.handoff.about) < 2]
    capsys.readouterr()
    assert main([*words, "name=none", "handoff_tries=2", "handoffs=false"]) == 2
    error = capsys.readouterr().err
    assert "handoff_tries=2 is for handoffs=true" in error and error.count("\n") == 1
    assert not (tmp_path / "eval/tidy_house/none").exists()


def test_every_scenario_in_turn(tmp_path, capsys, monkeypatch):
    seen = []

    def launch(words):
        seen.append(words[1])
        scenario = words[1].partition("=")[2]
        run = tmp_path / "eval" / scenario / "x"
        run.mkdir(parents=True)
        count = 5 if scenario == "tidy_house" else 2
        interactions = [{"name": f"{what} {k + 1}", "success": 0.9, "interval_95": [0.6, 1.0]}
                        for k in range(count) for what in ("pick", "place")]
        figures = {"success": 0.7, "success_interval_95": [0.4, 0.9], "episodes": 10, "mean_steps": 1234.0,
                   "ends": {"pick: time limit": 0.3}, "interactions": interactions}
        (run / "metrics.json").write_text(json.dumps(figures))
        return 0

    words = ["hab=all", "agent=expert", f"output={tmp_path}", "name=x"]
    monkeypatch.setattr(job, "launch_process", lambda words, *_: launch(words))
    assert every_skill.run("eval", words, group="hab") == 0
    assert seen == ["hab=prepare_groceries", "hab=set_table", "hab=tidy_house"]
    out = capsys.readouterr().out
    assert out.count("40.0% .. 90.0%") == 3 and out.count("pick: time limit 30.0%") == 3
    assert "place 5" in out and out.count("90%") == 10 + 4 + 4
    assert set(json.loads((tmp_path / "eval/all_scenarios/x.json").read_text())) == {word[4:] for word in seen}


@pytest.mark.parametrize("words, said", [
    ("hab=tidy_hous", ("no scenario", "Did you mean hab=tidy_house")),
    ("hab=nowhere.yaml", ("no scenario 'nowhere.yaml'", "tidy_house")),
    ("hab=tidy_house agent=exprt", ("agent=exprt", "Did you mean expert")),
    ("hab=tidy_house agent=zero", ("agent=zero is for skill=", "tp_srl_nonav")),
    ("hab=tidy_house skill=pick", ("both given",)),
    ("hab=tidy_house checkpoint=a.pt", ("checkpoint=a.pt is for skill=", "skills.pick=a.pt")),
    ("hab=tidy_house checkpoint=newest", ("checkpoint=newest is for skill=", "skills=newest")),
    ("skill=pick agent=tp_srl", ("agent=tp_srl is for hab=",)),
    ("skill=pick skills.pick=expert", ("skills.pick is a setting of scenarios", "hab=tidy_house")),
    ("skill=pick planner.recovery=retry", ("planner.recovery is a setting of scenarios",)),
    ("hab=tidy_house planner.recovery=again", ("planner.recovery=again", "retry")),
    ("hab=tidy_house skills.pik=expert", ("unknown key 'skills.pik'", "skills.pick")),
    ("hab=tidy_house skills=newst", ("skills=newst is not allowed", "Did you mean newest", "skills.navigate=")),
    ("hab=tidy_house skills=outputs/train", ("skills=outputs/train is not allowed", "skills.navigate=")),
    ("hab=tidy_house planner.max_steps=9", ("planner.max_steps is a group of settings",)),
    ("skill=pick skills=newest", ("skills is a setting of scenarios", "hab=tidy_house")),
    ("skill=pick checkpoint=newst", ("no checkpoint at newst", "Did you mean checkpoint=newest")),
    ("hab=tidy_house agent=monolithic", ("no policy of tidy_house", "rearrange train hab=tidy_house")),
    ("hab=tidy_house agent=expert skills.place=gone.pt",
     ("skills.place: no checkpoint at gone.pt", "skills.place=expert")),
    ("hab=tidy_house agent=expert hab.problem=gone", ("no planning problem 'gone'",)),
    ("hab=tidy_house agent=expert hab.clutter_on=[]", ("clutter_on=[] leaves no place",)),
    ("hab=tidy_house agent=expert hab.clutter_on=[top_drawer]", ("clutter_on=[top_drawer] is shut",)),
    ("hab=tidy_house agent=expert sim.episodes=gone.json", ("gone.json",)),
    ("hab=all hab=tidy_house agent=expert", ("hab=all and hab=tidy_house are both given",)),
    ("hab=all skills.open_fridge=gone.pt",
     ("skills.open_fridge: no checkpoint at gone.pt", "skills.open_fridge=expert")),
])
def test_a_mistake_is_one_sentence_and_leaves_nothing(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["eval", *words.split()]) == 2
    error = capsys.readouterr().err.strip()
    assert all(part in error for part in said), error
    assert "\n" not in error and "Traceback" not in error and error.startswith("rearrange eval: ")
    assert not list(tmp_path.iterdir())


def test_every_episode_of_a_file_is_tried_before_the_first(tmp_path, monkeypatch, capsys):
    first, second = scenario_episodes(load_scenario("set_table").scenario, 2)
    x, y, _, *turned = second.targets[0]
    write_episodes(tmp_path / "two.json.gz",
                   [first, replace(second, targets={**second.targets, 0: (x, y, 2.3, *turned)})])
    monkeypatch.chdir(tmp_path)
    words = ["eval", "hab=set_table", "agent=expert", "sim.episodes=two.json.gz", "episodes=5"]
    assert main(words) == 2
    error = capsys.readouterr().err.strip()
    assert "episode 'set_table/val/1': the robot cannot reach the goal of 024_bowl" in error and "\n" not in error
    assert [path.name for path in tmp_path.iterdir()] == ["two.json.gz"]


def test_no_episode_of_a_file_counts_twice(tmp_path, monkeypatch, capsys):
    write_episodes(tmp_path / "two.json", list(scenario_episodes(load_scenario("tidy_house").scenario, 2)))
    monkeypatch.chdir(tmp_path)
    words = ["eval", "hab=tidy_house", "agent=random", "sim.episodes=two.json", "episodes=7", "seed=1", "workers=1",
             "video=0", "name=x", *SHORT]
    assert main(words) == 0
    assert "two.json has 2 episodes: each is run once, instead of episodes=7" in capsys.readouterr().out
    with open("outputs/eval/tidy_house/x/episodes.csv", newline="") as file:
        assert {row["episode_id"] for row in csv.DictReader(file)} == {"tidy_house/val/0", "tidy_house/val/1"}
    assert json.loads(Path("outputs/eval/tidy_house/x/metrics.json").read_text())["episodes"] == 2


def test_all_scenarios_are_checked_before_the_first(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["eval", "hab=all", "agent=exprt"]) == 2 and "agent=exprt" in capsys.readouterr().err
    assert main(["train", "hab=all", "skill=pick"]) == 2 and "hab=all is for eval" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_scenario_of_one_s_own(tmp_path, monkeypatch):
    from rearrange.command_line.composition import parse_overrides as settings
    from tests.planner.test_own_scenario import block

    folder = tmp_path / "my own scenarios"
    folder.mkdir()
    (folder / "put_away.yaml").write_text(block("yaml", "put_away"))
    (folder / "put_away.pddl").write_text(block("lisp", "put_away"))
    made = settings.compose("eval", [f"hab={folder}/put_away.yaml", "hab.clutter=3"])
    assert (made.value("hab.name"), made.value("hab.clutter"), made.value("hab.max_steps")) == ("put_away", 3, 2000)
    assert Path(made.value("hab.problem")) == folder / "put_away.pddl"
    settings.require(made)

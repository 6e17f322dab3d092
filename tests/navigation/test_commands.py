"""`nav=` on the command line: trained, evaluated with any number of processes, filmed, and refused in one sentence."""

import csv
import json

import pytest

from rearrange.command_line.cli import main
from skills import pretrained


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a policy that was trained for a moment."""
    folder = tmp_path_factory.mktemp("navigation")
    words = ["nav=pointnav", "experiment=debug", "policy=light", "policy.image_size=16", "nav.num_homes=4", "name=a",
             f"output={folder}"]
    assert main(["train", *words]) == 0
    return folder


def evaluate(place, name, *words):
    assert main(["eval", "nav=pointnav", f"output={place}", f"name={name}", "nav.max_steps=40", *words]) == 0
    return place / "eval" / "pointnav" / name


def test_figures_do_not_depend_on_the_number_of_processes(place):
    rows = []
    for workers in (1, 2):
        path = evaluate(place, f"w{workers}", f"checkpoint={place}/train/pointnav/a", "episodes=8",
                        f"workers={workers}")
        rows.append(list(csv.reader((path / "episodes.csv").open())))
        figures = json.loads((path / "metrics.json").read_text())
        assert figures["nav"] == "pointnav" and len(figures["spl_interval_95"]) == 2 and figures["by_distance"]
        assert {"spl", "soft_spl", "distance_to_goal_m", "collisions"} <= set(figures["measures"])
    assert rows[0] == rows[1]


def test_the_policy_plays_in_python(place):
    import rearrange

    env, policy = rearrange.load_pretrained(place / "train/pointnav/a", max_steps=20)
    observation, _ = env.reset(seed=0)
    assert env.unwrapped.split == "val" and observation["depth"].shape == (16, 16, 1)
    over = False
    while not over:
        observation, _, terminated, truncated, info = env.step(policy.act(observation))
        over = terminated or truncated
    assert "spl" in info["metrics"]


def test_it_drives_the_fetch_in_navigate(place, capsys):
    words = ["skill=navigate", "agent=pointnav", f"checkpoint={place}/train/pointnav/a", "skill.max_steps=12",
             "episodes=2", "workers=1"]
    assert main(["eval", *words, f"output={place}", "name=fetch"]) == 0
    figures = json.loads((place / "eval" / "navigate" / "fetch" / "metrics.json").read_text())
    assert figures["agent"] == "pointnav" and figures["episodes"] == 2 and figures["checkpoint"].endswith(".pt")
    capsys.readouterr()


def test_another_task_begins_with_what_fits(place, capsys):
    words = ["nav=flee", "experiment=debug", "policy=light", "policy.image_size=16", "nav.num_homes=4", "name=b",
             f"output={place}"]
    assert main(["train", *words, f"checkpoint={place}/train/pointnav/a", "transfer=pointnav"]) == 0
    assert ("taken over: egomotion, depth, previous action, body, lstm; "
            "new: gps_compass, normalizer, value_body, mean, value, return_scale\n") in capsys.readouterr().out


def test_a_film_shows_the_map(place, capsys):
    path = evaluate(place, "film", "agent=oracle", "episodes=2", "video=1", "workers=1")
    assert len(list((path / "videos").glob("*.mp4"))) == 1
    assert "SPL " in capsys.readouterr().out


@pytest.mark.parametrize(
    "words, sentence",
    [(["eval", "skill=pointnav"], "pointnav is no skill but a navigation task: write nav=pointnav."),
     (["train", "nav=pick"], "pick is no navigation task but a skill: write skill=pick."),
     (["train", "nav=pointnav", "sim=habitat"], "nav=pointnav sim=habitat needs nav.scene_dataset="),
     (["train", "nav=pointnav", "sim.num_layouts=3"], "sim.num_layouts=3 is for skill= and hab="),
     (["train", "nav=pointnav", "skill=pick"], "skill=pick and nav=pointnav are both given"),
     (["eval", "nav=pointnav", "agent=expert"],
      "agent=expert is for skill=; nav=pointnav takes policy, pretrained, random, forward"),
     (["eval", "skill=pick", "agent=oracle"], "agent=oracle is for nav=; skill=pick takes"),
     (["eval", "skill=pick", "agent=pointnav"], "agent=pointnav is for skill=navigate; skill=pick takes"),
     (["eval", "hab=tidy_house", "agent=pointnav"], "agent=pointnav is for skill=navigate"),
     (["eval", "nav=pointnav", "agent=oracle", "nav.actions=velocity"], "take discrete actions"),
     *[(["eval", f"nav={task}", f"agent={agent}"],
        f"agent={agent} is for nav=pointnav; nav={task} tells no point to go to.")
       for task in ("objectnav", "flee", "explore") for agent in ("forward", "goal_follower", "map")],
     *[(["eval", f"nav={task}", "agent=oracle"], f"is for tasks with a goal; nav={task} has none.")
       for task in ("flee", "explore")],
     (["train", "nav=pointnav", "nav.turn_deg=banana"], "nav.turn_deg=banana is not allowed"),
     (["train", "nav=pointnaw"], "Did you mean nav=pointnav?"), (["train"], "Or a navigation task, nav=: "),
     (["train", "nav=flee", "transfer=pointnav"], "transfer=pointnav needs checkpoint=: pretrained, a run or a file."),
     (["train", "nav=flee", "transfer=pointnav", "checkpoint=pretrained", "policy.hidden_size=64"],
      "it is of a network of other sizes"),
     (["train", "nav=objectnav", "nav.segmentation=false", "checkpoint=pretrained"], "of observation 'segmentation' "
      "its policy sees of shape (64, 64, 1) and this run's has none. Choose the settings that it was trained with, "
      "or begin with what fits of it: transfer=objectnav."),
     (["train", "nav=flee", "transfer=objectnav", f"checkpoint={pretrained.path('pointnav')}"],
      "is a checkpoint of nav pointnav, not of transfer=objectnav.")])
def test_mistakes(words, sentence, tmp_path, capsys):
    assert main([*words, f"output={tmp_path}"]) == 2
    said = capsys.readouterr().err
    assert sentence in said and said.count("\n") == 1 and not list(tmp_path.iterdir())


def test_a_policy_of_the_cylinder_drives_the_fetch_with_its_actions(place):
    words = ["eval", "nav=pointnav", "nav.agent=fetch", f"checkpoint={place}/train/pointnav/a", "nav.max_steps=3",
             "episodes=1", "workers=1"]
    assert main([*words, f"output={place}", "name=on_fetch"]) == 0

"""Episodes for training where the hand has little room: they are read back, and lie where they should."""

from __future__ import annotations

import subprocess
import sys
from itertools import islice

import pytest

from benchmarks import under_boards
from benchmarks.under_boards import SKILLS, has_little_room, main, states_along
from rearrange.home.apartments.episodes import read_episodes
from rearrange.home.apartments.kept_layouts import scene_layout
from skills import make_env
from skills.experts import expert_class


@pytest.mark.parametrize("skill", SKILLS)
def test_they_lie_in_fridges_and_under_boards_of_training_homes_and_can_be_trained_on(skill, tmp_path):
    main(skill, 6, file := tmp_path / "new" / "episodes.json.gz")
    env = make_env(skill, depth_size=0, split="train", furniture="wide", any_start=True, episodes=str(file))
    kinds = set()
    for index in range(6):
        env.reset(options={"episode": index})
        episode = env.unwrapped.episode
        place = scene_layout(episode.scene).receptacle(getattr(episode, SKILLS[skill])[0])
        assert has_little_room(place) and episode.scene.startswith("wide/train/")
        kinds.add(place.kind)
    assert kinds == {"fridge", "shelf"}


@pytest.mark.parametrize("skill", SKILLS)
@pytest.mark.parametrize("along", [0, 2])
def test_those_above_a_height_are_on_boards_of_fridges_alone(skill, along):
    for episode in islice(states_along(skill, along, 1.1) if along else under_boards.episodes(skill, 1.1), 5):
        place = scene_layout(episode.scene).receptacle(getattr(episode, SKILLS[skill])[0])
        assert place.kind == "fridge" and place.center_m[2] > 1.1


@pytest.mark.parametrize("skill", SKILLS)
def test_states_along_the_way_of_an_expert_lead_to_its_success(skill, tmp_path):
    """In some of them the hand holds the object already, or still."""
    main(skill, 6, file := tmp_path / "along.json.gz", along=3)
    env = make_env(skill, depth_size=0, split="train", furniture="wide", any_start=True, episodes=str(file))
    holding = []
    for index in range(6):
        env.reset(options={"episode": index})
        task = env.unwrapped
        holding.append(task.sim.held is not None)
        expert, over, info = expert_class(skill)(task.sim, task.skill), False, {}
        while not over:
            _, _, terminated, truncated, info = env.step(expert.act())
            over = terminated or truncated
        assert info["is_success"] or (skill == "place" and not holding[-1]), "the expert of Place begins with it"
    assert any(holding)


def test_ctrl_c_writes_what_there_is(tmp_path, monkeypatch, capsys):
    def stopped(skill, above_m):
        yield from islice(every(skill, above_m), 2)
        raise KeyboardInterrupt

    every = under_boards.episodes
    monkeypatch.setattr(under_boards, "episodes", stopped)
    assert main("pick", 6, tmp_path / "cut.json.gz") == 130 and len(read_episodes(tmp_path / "cut.json.gz")) == 2
    told = capsys.readouterr()
    assert "2 episodes of pick" in told.out and "interrupted" in told.err and "episodes of pick  1/6" in told.err


@pytest.mark.parametrize("words, said", [
    (("open_cabinet",), "open_cabinet is none of pick, place"), (("pick", "count=many"), "count=many must be"),
    (("pick", "count=0"), "count=0 must be"), (("pick", "to=file"), "there is no to=;"),
    (("place", "out=here"), "out=here must be a file"), (("pick", "above=2"), "above=2 must be a height")])
def test_what_it_does_not_know_is_one_sentence(words, said):
    done = subprocess.run([sys.executable, "-m", "benchmarks.under_boards", *words], capture_output=True, text=True)
    assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1

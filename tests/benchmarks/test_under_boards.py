"""Episodes for training where the hand has little room: they are read back, and lie where they should."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks.under_boards import SKILLS, has_little_room, main
from rearrange.home.apartments.kept_layouts import scene_layout
from skills import make_env


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


def test_what_it_does_not_know_is_answered_by_how_it_is_used():
    for words in ((), ("open_cabinet",), ("pick", "count=many"), ("pick", "to=file")):
        done = subprocess.run([sys.executable, "-m", "benchmarks.under_boards", *words], capture_output=True, text=True)
        assert done.returncode == 1 and "python -m benchmarks.under_boards place" in done.stderr

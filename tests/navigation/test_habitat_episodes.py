"""Habitat's own episode files of PointNav and ObjectNav: read into our frame, checked, counted."""

import copy
import gzip
import json
import math

import pytest

from rearrange.command_line.cli import main
from rearrange.home.errors import UserError
from rearrange.navigation.habitat_episodes import read_habitat_episodes

HALF = math.sqrt(0.5)
POINT = {"episodes": [{"episode_id": "7", "scene_id": "gibson/Adrian.glb", "start_position": [1.0, 0.5, -2.0],
                       "start_rotation": [0, HALF, 0, HALF], "info": {"geodesic_distance": 6.0, "difficulty": "easy"},
                       "goals": [{"position": [4.0, 0.5, 2.0], "radius": None}], "shortest_paths": None,
                       "start_room": None}]}
OBJECT = {
    "category_to_task_category_id": {"chair": 0},
    "goals_by_category": {"a.glb_chair": [{"position": [9, 0, 9], "object_id": 3, "object_category": "chair",
                                           "view_points": [{"agent_state": {"position": [0, 0, -3.0],
                                                                            "rotation": [0, 0, 0, 1]}, "iou": 0.2}]}]},
    "episodes": [{"episode_id": "0", "scene_id": "hm3d/val/a.glb", "start_position": [0, 0, 0],
                  "start_rotation": [0, 0, 0, 1], "info": {"geodesic_distance": 3.0}, "goals": [],
                  "object_category": "chair"}]}


def written(folder, content, name="val.json.gz"):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(gzip.compress(json.dumps(content).encode()))
    return folder / name


def test_pointnav_in_our_frame(tmp_path):
    episode, = read_habitat_episodes(written(tmp_path, POINT))
    assert (episode.id, episode.scene, episode.start, episode.goals) == ("7", "gibson/Adrian.glb", (1.0, 2.0, 0.5),
                                                                         ((4.0, -2.0, 0.5),))
    assert episode.ratio == pytest.approx(6 / 5)
    # Habitat's agent looks along -z, our y; a quarter turn to the left about its y axis, our z: along -x.
    assert abs(episode.yaw_rad) == pytest.approx(math.pi)


def test_objectnav_has_the_view_points_of_its_category(tmp_path):
    episode, = read_habitat_episodes(written(tmp_path, OBJECT))
    assert episode.category == "chair" and episode.goals == ((0.0, 3.0, 0.0),) and episode.ratio == 1.0
    assert episode.yaw_rad == pytest.approx(math.pi / 2)


def test_splits_whose_episodes_lie_by_scene(tmp_path, capsys):
    file = written(tmp_path / "train", {"episodes": []}, "train.json.gz")
    with pytest.raises(UserError, match="has no episodes, and there is no .*content"):
        read_habitat_episodes(file)
    for name in ("Adrian", "Zeta"):
        part = copy.deepcopy(POINT)
        part["episodes"][0]["scene_id"] = f"gibson/{name}.glb"
        written(tmp_path / "train" / "content", part, f"{name}.json.gz")
    assert main(["scenes", "list", f"dataset={file}"]) == 0
    assert capsys.readouterr().out.split("\n")[1] == "gibson/Zeta.glb   1 episodes"
    assert main(["scenes", "check", f"dataset={file}"]) == 0
    said = capsys.readouterr().out
    assert "1 of 2 episodes has an id that stands before" in said and "its contents are others, in other scenes" in said
    assert "2 episodes in 2 scenes   PointNav" in said and "to drive: mean 6.00 m" in said and "1.2 to 1.4" in said


@pytest.mark.parametrize(
    "of, at, value, words",
    [(POINT, "info", {"geodesic_distance": math.inf}, "on two islands of floor"),
     (POINT, "info", {"geodesic_distance": math.nan}, "'info.geodesic_distance' should be a number of metres, not NaN"),
     (POINT, "start_position", [0, math.nan, 0], "'start_position' should be a list of 3 finite numbers"),
     (POINT, "start_rotation", [1, 0, 0, 0], "turns about the vertical"), (POINT, "goals", [], "'goals' is empty"),
     (POINT, "goals", [{"position": [1, 2]}], r"'goals\[0\].position' should be a list of 3 finite numbers"),
     (OBJECT, "object_category", "sofa", "scene hm3d/val/a.glb has no sofa"), (OBJECT, "scene_id", 3, "'scene_id' "
                                                                               "should be a text, not 3")])
def test_what_is_wrong_is_one_sentence(of, at, value, words, tmp_path):
    content = copy.deepcopy(of)
    content["episodes"][0][at] = value
    with pytest.raises(UserError, match=f"val.json.gz, episode 0: .*{words}"):
        read_habitat_episodes(written(tmp_path, content))


def test_files_that_are_none(tmp_path, capsys):
    for content, words in ((b"junk", "expected JSON"), (gzip.compress(b'{"episodes": 3}'), "a list under")):
        (tmp_path / "x.json.gz").write_bytes(content)
        assert main(["scenes", "check", f"dataset={tmp_path / 'x.json.gz'}"]) == 2
        said = capsys.readouterr().err
        assert words in said and said.count("\n") == 1

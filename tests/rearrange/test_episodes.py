"""Episodes: Habitat's file schema both ways, errors in a file, and what the generator draws."""

from __future__ import annotations

import gzip
import json
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from rearrange.home.apartments.containers import OPEN_M_OR_RAD
from rearrange.home.apartments.episodes import Episode, Handoff, Marker, read_episodes, write_episodes
from rearrange.home.apartments.kept_layouts import scene_layout
from rearrange.home.apartments.objects import OBJECTS
from rearrange.home.episodes import generator as made
from rearrange.home.episodes.generator import MIN_MOVE_M, generate_episode
from rearrange.home.errors import UserError
from rearrange.home.geometry import to_frame


@pytest.fixture
def episode() -> Episode:
    half = math.sqrt(0.5)
    return Episode(id="7", scene="train/3", objects=("013_apple", "024_bowl", "013_apple"),
                   start_poses=((1.0, 2.0, 3.0, 1.0, 0.0, 0.0, 0.0), (0.1, -0.2, 0.3, half, 0.0, 0.0, half),
                                (4.0, 5.0, 6.0, 0.5, 0.5, -0.5, 0.5)),
                   targets={2: (1.0, 1.5, 0.9, half, 0.0, 0.0, -half)}, target_receptacles=("table_0",),
                   goal_receptacles=("counter_0",), articulated={"drawer_1": 0.5, "fridge_door": 1.5},
                   markers=(Marker("handle", "fridge_:0000", "fridge_door", (0.1, 0.2, 0.3)),),
                   labels={0: "clutter|0", 2: "any_targets|0"}, robot_start=(1.0, 2.0, 0.5))


def close(a: Episode, b: Episode) -> bool:
    of_a, of_b = ((*e.start_poses, *e.targets.values(), e.robot_start) for e in (a, b))
    same = all(np.allclose(p, q, atol=1e-6) for p, q in zip(of_a, of_b))
    words = ("id", "scene", "objects", "target_receptacles", "goal_receptacles", "articulated", "labels", "markers")
    return same and all(getattr(a, name) == getattr(b, name) for name in words) and list(a.targets) == list(b.targets)


@pytest.mark.parametrize("name", ["episodes.json", "episodes.json.gz"])
def test_a_file_gives_back_what_was_written(tmp_path, episode, name):
    generated = generate_episode("pick", "train", 11, 8)
    write_episodes(tmp_path / name, [episode, generated])
    read = read_episodes(tmp_path / name)
    assert close(episode, read[0])
    assert generated.objects == read[1].objects
    assert np.allclose(generated.start_poses, read[1].start_poses, atol=1e-6)
    assert (name.endswith("gz")) == ((tmp_path / name).read_bytes()[:2] == b"\x1f\x8b")


def test_the_file_is_in_habitats_frame_and_schema(tmp_path, episode):
    write_episodes(tmp_path / "e.json", [episode])
    entry = json.loads((tmp_path / "e.json").read_text())["episodes"][0]
    assert entry["rigid_objs"][0][0] == "013_apple.object_config.json"
    matrix = np.array(entry["rigid_objs"][0][1])
    assert np.allclose(matrix[:3, 3], [1.0, 3.0, -2.0])  # our z is Habitat's y, our y its -z
    turned = np.array(entry["rigid_objs"][1][1])  # a quarter turn about the vertical takes x to our y, Habitat's -z
    assert np.allclose(turned[:3, :3] @ [1, 0, 0], [0, 0, -1], atol=1e-9)
    assert list(entry["targets"]) == ["013_apple_:0001"]
    assert entry["ao_states"] == {"kitchen_counter_:0000": {"drawer_1": 0.5}, "fridge_:0000": {"fridge_door": 1.5}}
    assert entry["target_receptacles"] == [["table_0", None]]
    assert entry["start_position"] == [1.0, 0.0, -2.0]


def test_a_file_of_another_scene_keeps_its_links(tmp_path, episode):
    write_episodes(tmp_path / "e.json", [episode])
    content = json.loads((tmp_path / "e.json").read_text())
    entry = content["episodes"][0]
    entry.update(ao_states={"fridge_:0000": {"2": 1.5}}, goal_receptacles=[["fridge_:0000", 3]],
                 start_position=[0, 0, 0], start_rotation=[0, 0, 0, 1], name_to_receptacle={"x": "y"})
    (tmp_path / "e.json").write_text(json.dumps(content))
    read = read_episodes(tmp_path / "e.json")
    assert read[0].articulated == {"fridge_:0000|2": 1.5}
    assert read[0].robot_start is None
    write_episodes(tmp_path / "again.json", read)
    again = json.loads((tmp_path / "again.json").read_text())["episodes"][0]
    assert again["ao_states"] == entry["ao_states"] and again["goal_receptacles"] == entry["goal_receptacles"]


@pytest.mark.parametrize("field, value", [
    ("rigid_objs", None), ("rigid_objs", [["apple"]]), ("rigid_objs", [["a", [[1, 2], [3, 4]]]]),
    ("targets", {"nothing_:0000": []}), ("scene_id", 3), ("ao_states", {"fridge": 2}), ("markers", [{"name": "x"}]),
    ("start_position", [0, "a", 0]),
    ("rigid_objs", [["a", [[-1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]]]),  # a mirror
    ("rigid_objs", [["a", [[1, 0.6, 0, 0], [0, 0.8, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]]]),  # sheared
    ("rigid_objs", [["a", [[1, 0, 0, 10**400], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]]]),
    ("start_position", [0, 10**400, 0]), ("ao_states", {"fridge_:0000": {"fridge_door": 10**400}}),
    ("goal_receptacles", ["table"]), ("rigid_objs", [["a", [[2, 0, 0, 0], [0, 2, 0, 0], [0, 0, 2, 0], [0, 0, 0, 1]]]]),
])
def test_a_wrong_field_is_named(tmp_path, episode, field, value):
    path = tmp_path / "bad.json"
    write_episodes(path, [episode])
    content = json.loads(path.read_text())
    content["episodes"][0][field] = value
    path.write_text(json.dumps(content))
    with pytest.raises(UserError) as error:
        read_episodes(path)
    assert str(path) in str(error.value) and field in str(error.value) and "\n" not in str(error.value)


def test_a_pattern_is_of_several_files_in_order(tmp_path, episode):
    for name, runs in (("b[1]", 2), ("a", 1)):
        (tmp_path / name).mkdir()
        write_episodes(tmp_path / name / "pick.json.gz", [replace(episode, id=f"{name}{k}") for k in range(runs)])
    assert [each.id for each in read_episodes(tmp_path / "*" / "pick.json.gz")] == ["a0", "b[1]0", "b[1]1"]
    with pytest.raises(UserError, match="no episode file matches .*place.json.gz"):
        read_episodes(tmp_path / "*/place.json.gz")


@pytest.mark.parametrize("content", [
    b"", b"not json", b"[]", b'{"episodes": 3}', gzip.compress(b"{")[:-4], b"\x00\xff\x1f",
    b"[" * 100_000, b'{"episodes": ' + b"9" * 5000 + b"}"], ids=range(8))
def test_what_is_not_an_episode_file_is_refused(tmp_path, content):
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    with pytest.raises(UserError, match="bad.json"):
        read_episodes(path)
    with pytest.raises(UserError, match="missing.json"):
        read_episodes(tmp_path / "missing.json")


def test_generation_depends_on_split_and_index_alone():
    episodes = [generate_episode("pick", "val", i, 4) for i in (5, 6, 5)]
    assert episodes[0] == episodes[2] != episodes[1]
    assert generate_episode("pick", "train", 5, 4).objects != episodes[0].objects or episodes[0].scene != "train/1"


def test_places_are_drawn_as_numpy_draws_them():
    ours, theirs = np.random.default_rng(0), np.random.default_rng(0)
    for most in np.random.default_rng(1).uniform(0.0, 4.0, 1000).tolist():
        assert made.up_to(most, ours) == theirs.uniform(-most, most)


def test_generated_episodes_keep_the_rules():
    kinds: Counter[str] = Counter()
    for i in range(200):
        episode = generate_episode("pick", "train", i, 6)
        receptacles = {r.name: r for r in scene_layout(episode.scene).receptacles}
        start, goal = receptacles[episode.target_receptacles[0]], receptacles[episode.goal_receptacles[0]]
        kinds[start.kind] += 1
        assert 1 <= len(episode.objects) <= 20 and max(Counter(episode.objects).values()) <= 2
        assert {r.link for r in (start, goal) if r.link} == set(episode.articulated)
        assert all(value == OPEN_M_OR_RAD[joint.split("_")[0]] for joint, value in episode.articulated.items())
        assert math.dist(episode.start_poses[0][:3], episode.targets[0][:3]) >= MIN_MOVE_M
        boxes = [(*pose[:3], OBJECTS[name].radius_m, OBJECTS[name].half_height_m)
                 for name, pose in zip(episode.objects, episode.start_poses)]
        for a in range(len(boxes)):
            for b in range(a):
                apart = math.dist(boxes[a][:2], boxes[b][:2]) > boxes[a][3] + boxes[b][3]
                above = abs(boxes[a][2] - boxes[b][2]) > boxes[a][4] + boxes[b][4]
                assert apart or above, f"objects {a}, {b} of episode {i}"
    expected = {"table", "coffee_table", "counter", "sink", "chair", "sofa", "tv_stand", "shelf", "fridge", "drawer"}
    assert set(kinds) == expected and min(kinds.values()) >= 8, kinds


def test_unknown_kind_and_negative_index_are_the_users_mistake():
    with pytest.raises(UserError, match="kind"):
        generate_episode("juggle", "train", 0)
    with pytest.raises(UserError, match="numbered from 0"):
        generate_episode("pick", "train", -1)


def test_what_is_moved_is_where_the_arm_gets_in_time():
    for split in ("train", "val", "test"):
        for index in range(150):
            episode = generate_episode("pick", split, index)
            layout = scene_layout(episode.scene)
            bodies = {body.name: body for body in layout.bodies}
            model = OBJECTS[episode.objects[0]]
            ends = ((episode.target_receptacles[0], episode.start_poses[0]),
                    (episode.goal_receptacles[0], episode.targets[0]))
            for name, pose in ends:
                receptacle = layout.receptacle(name)
                height_m = pose[2] - model.half_height_m
                low = receptacle.kind in ("shelf", "fridge") and receptacle.clearance_m < made.LOW_CLEARANCE_M
                assert not (low
                            and (height_m < made.LOW_BOARD_M or 2 * model.half_height_m > made.UNDER_BOARD_HEIGHT_M))
                assert receptacle.kind != "drawer" or height_m > 0.4
                assert receptacle.kind != "chair" or model.radius_m <= made.CHAIR_RADIUS_M
                if receptacle.kind == "fridge":
                    _, y = to_frame(pose[0], pose[1], (*receptacle.center_m[:2], receptacle.yaw_rad))
                    hinge = bodies["fridge_door"].hinge_sign
                    assert receptacle.half_extents_m[1] - hinge * y > made.BESIDE_DOOR_M - 1e-6


def test_a_handoff_is_kept_in_the_file_and_damage_to_it_is_told(tmp_path):
    episode = generate_episode("pick", "train", 0)
    kept = [replace(episode, robot_start=(1.0, 2.0, 0.5), handoff=Handoff("place", 0, 0)),
            replace(episode, robot_start=(1.0, 2.0, 0.5), handoff=Handoff("open_fridge", "fridge_door"))]
    write_episodes(tmp_path / "e.json.gz", kept)
    assert [read.handoff for read in read_episodes(tmp_path / "e.json.gz")] == [each.handoff for each in kept]
    write_episodes(tmp_path / "bad.json", [replace(kept[0], handoff=Handoff("place", 99))])
    with pytest.raises(UserError, match=r"bad.json, episode 0: field 'info.handoff' should be .*not .*99"):
        read_episodes(tmp_path / "bad.json")

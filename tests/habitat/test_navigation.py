"""PointNav and ObjectNav in Habitat-Sim with Habitat's episode files, in exported homes and in bare files of scenes."""

import json
import math

import numpy as np
import pytest

from rearrange.command_line.cli import main
from rearrange.home.axis_conventions import to_y_up
from rearrange.home.errors import UserError
from rearrange.navigation import make_env
from rearrange.navigation.scripted_agents import SCRIPTED, oracle_actions

pytestmark = pytest.mark.habitat
HOME = "data/homes/scenes/val_0000.scene_instance.json"
HIGH_M = 2.6  # of the upper floor


def entry(number, scene, start, yaw, goals, **more):
    """An episode as Habitat writes it; points x, y, z (m), z up."""
    half = (yaw - math.pi / 2) / 2
    return {"episode_id": str(number), "scene_id": scene, "start_position": to_y_up(start),
            "start_rotation": [0, math.sin(half), 0, math.cos(half)],
            "goals": [{"position": to_y_up(goal)} for goal in goals], "info": {"geodesic_distance": 2.0}} | more


def file_of(folder, *episodes, **more):
    path = folder / "val.json"
    path.write_text(json.dumps({"episodes": list(episodes)} | more))
    return str(path)


def in_habitat(folder, *episodes, task="pointnav", env=None, **more):
    """An environment with these episodes."""
    settings = {"split": "val", "depth_size": 16} | (env or {})
    return make_env(task, sim="habitat", episodes=file_of(folder, *episodes, **more), **settings)


def drive(env, episode=0):
    """The oracle's episode: its last info, and the highest point."""
    agent, over, highest = SCRIPTED["oracle"](env), False, -math.inf
    observation, _ = env.reset(options={"episode": episode})
    agent.begin()
    while not over:
        observation, _, terminated, truncated, info = env.step(agent.act(observation))
        over, highest = terminated or truncated, max(highest, env.walker.point[2])
    return info, highest


def without_habitat(homes, **settings):
    """The same home, read without Habitat, at the start of an episode."""
    env = make_env("pointnav", scene_dataset=str(homes), split="val", scenes="val_0000", **settings)
    seen, _ = env.reset(options={"episode": 3})
    return env, seen


def in_file_frame(env, x, y, z=0.0):
    return tuple(np.add((x, y, z), env.home.origin_m).tolist())


def as_in_file(env, number=0):
    """The episode that an environment without Habitat is in."""
    x, y, yaw = env.episode.start
    return entry(number, HOME, in_file_frame(env, x, y), yaw, [in_file_frame(env, *env.episode.goal)])


def test_the_same_actions_lead_to_the_same_places_and_depth(homes, tmp_path):
    ours, _ = without_habitat(homes, depth_size=32)
    actions = oracle_actions(ours, 3)
    seen, _ = ours.reset(options={"episode": 3})
    env = in_habitat(tmp_path, as_in_file(ours), env={
        "scene_dataset": str(homes), "depth_size": 32, "observations": ("rgb",), "camera_size": 16,
        "render_mode": "rgb_array"})
    there, info = env.reset(options={"episode": 0})
    assert info["episode_id"] == "val_0000/0" and env.observation_space.contains(there) and there["rgb"].std() > 0
    assert np.allclose(seen["pointgoal"], there["pointgoal"], atol=0.02)
    assert np.mean(np.abs(seen["depth"] - there["depth"]) < 0.01) > 0.97
    for action in actions[:10]:
        seen, there = ours.step(action)[0], env.step(action)[0]
    assert np.allclose(seen["pointgoal"], there["pointgoal"], atol=0.05)
    info, _ = drive(env)
    assert info["success"] and 0.8 < info["metrics"]["spl"] <= 1.0 and env.render().std() > 10
    assert info["metrics"]["shortest_m"] == pytest.approx(ours.task.shortest_m, rel=0.1)


def test_the_command(homes, tmp_path):
    ours, _ = without_habitat(homes, depth_size=32)
    file = file_of(tmp_path, *[as_in_file(ours, k) for k in range(3)])
    words = ["nav=pointnav", "sim=habitat", f"nav.scene_dataset={homes}", f"nav.episodes={file}", f"output={tmp_path}"]
    for agent in ("oracle", "pretrained"):
        assert main(["eval", *words, "workers=2", f"agent={agent}", f"name={agent}"]) == 0
    figures = json.loads((tmp_path / "eval" / "pointnav" / "oracle" / "metrics.json").read_text())
    assert figures["episodes"] == 3 and figures["success"] == 1.0
    assert main(["train", *words, "experiment=debug", "policy.image_size=16", "name=t"]) == 0


def test_categories_and_view_points_are_those_of_the_file(homes, tmp_path):
    ours, _ = without_habitat(homes, depth_size=0, radius_m=0.25, height_m=0.88)
    around = np.arange(-0.5, 0.6, 0.1)
    near = [np.add(ours.episode.goal, (dx, dy)) for dx in around for dy in around]
    points = [{"agent_state": {"position": to_y_up(in_file_frame(ours, *point))}}
              for point in near if ours.home.is_free(*point)]
    env = in_habitat(
        tmp_path, as_in_file(ours, 7) | {"goals": [], "object_category": "bed"}, task="objectnav",
        env={"scene_dataset": str(homes), "segmentation": False, "sliding": True},
        goals_by_category={"val_0000.scene_instance.json_bed": [{"view_points": points}]},
        category_to_task_category_id={"sofa": 1, "bed": 2, "chair": 0})
    there, _ = env.reset(options={"episode": 0})
    assert there["objectgoal"].tolist() == [0, 0, 1] and env.status_lines()[0] == "look for: bed"
    assert drive(env)[0]["success"]


@pytest.fixture(scope="module")
def two_floors(tmp_path_factory):
    """A bare file of a scene, z up, as Gibson's are: a floor, and one above its far end to which a ramp leads."""
    import trimesh

    def slab(low, high):
        return trimesh.creation.box(bounds=(low, high))

    ramp = trimesh.convex.convex_hull([(x, y, z + below) for x, z in ((4, 0), (9, HIGH_M)) for y in (0, 3)
                                       for below in (-0.2, 0)])
    floors = slab((0, 0, -0.2), (5, 6, 0)), slab((9, 0, HIGH_M - 0.2), (14, 6, HIGH_M))
    folder = tmp_path_factory.mktemp("scans") / "gibson"
    folder.mkdir()
    trimesh.util.concatenate([*floors, ramp]).export(folder / "Ramp.glb")
    return folder.parent


def test_a_way_up_a_ramp_in_a_bare_file(two_floors, tmp_path):
    env = in_habitat(tmp_path, entry(0, "gibson/Ramp.glb", (2, 1.5, 0), math.pi, [(12, 1.5, HIGH_M)]),
                     env={"scene_dataset": str(two_floors)})
    info, highest = drive(env)
    assert info["success"] and highest == pytest.approx(HIGH_M, abs=0.3)
    way_m, metrics = 2 + math.hypot(5, HIGH_M) + 3, info["metrics"]
    assert metrics["shortest_m"] == pytest.approx(way_m, rel=0.05) and metrics["driven_m"] >= 0.95 * way_m
    assert metrics["spl"] > 0.9


@pytest.mark.parametrize("start, goal, scene, words", [
    ((2, 1.5, 0), (40, 1.5, 0), "gibson/Ramp.glb", "the goal of episode 0 is not on the floor of gibson/Ramp.glb"),
    ((2, 1.5, 1.5), (3, 1.5, 0), "gibson/Ramp.glb", "the start of episode 0 is not on the floor"),
    ((2, 1.5, 0), (3, 1.5, 0), "gibson/None.glb", "has no file gibson/None.glb"),
])
def test_episodes_without_a_place_are_refused(two_floors, tmp_path, start, goal, scene, words):
    env = in_habitat(tmp_path, entry(0, scene, start, 0.0, [goal]), env={"scene_dataset": str(two_floors)})
    with pytest.raises(UserError, match=words) as error:
        env.reset(options={"episode": 0})
    assert "\n" not in str(error.value)

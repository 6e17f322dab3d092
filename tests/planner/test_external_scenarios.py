"""The three scenarios in scenes that are none of our homes: drawn without an episode file, the same everywhere."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import replace

import numpy as np
import pytest

from planner.instructions import instructions
from planner.scenario_env import ScenarioEnv
from planner.scenarios import load_scenario, scenarios
from rearrange.command_line.cli import main
from rearrange.env import HomeSettings
from rearrange.env.external_scenarios import external_homes, refused_scenarios
from rearrange.env.scenario_episodes import PLACE_WORDS, NotPossible, scenario_episode_in
from rearrange.home.apartments.episodes import read_episodes
from rearrange.home.episodes.generator import SceneLacks
from rearrange.home.episodes.scene_check import Unsolvable, check_episode
from rearrange.home.geometry import from_frame
from rearrange.home.simulation.mujoco.build_model import handle_part
from rearrange.home.simulation.scenes.scene_simulator import SceneSimulator
from rearrange.home.simulation.simulator_interface import SimulatorConfig
from tests.habitat.others import as_of_others
from tests.rearrange.scene_data import make_furnished_room


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    """Two homes as a data set that says nothing of its being ours."""
    folder = tmp_path_factory.mktemp("scenes")
    assert main(["scenes", "export", f"out={folder / 'homes'}", "count=2", "episodes_of=[]"]) == 0
    return as_of_others(folder / "homes" / "rearrange.scene_dataset_config.json", folder / "others")


def drawn(dataset, name, index=0):
    return scenario_episode_in(external_homes(dataset, "val"), load_scenario(name).scenario, index)


@pytest.fixture(scope="module")
def episodes(dataset):
    return {name: [drawn(dataset, name, index) for index in (0, 1)] for name in scenarios()}


@pytest.mark.parametrize("name", scenarios())
def test_an_episode_is_drawn_by_the_rules_of_its_scenario(dataset, episodes, name):
    scenario = load_scenario(name).scenario
    sim = SceneSimulator(SimulatorConfig(), dataset)
    for index, episode in enumerate(episodes[name]):
        layout = sim.layout_of(episode)
        assert episode.scene == f"others/val_000{index}" and len(episode.targets) == len(scenario.objects)
        words, places = scenario.starts + scenario.goals, episode.target_receptacles + episode.goal_receptacles
        for word, place in zip(words, places):
            found = PLACE_WORDS[word](layout) if word in PLACE_WORDS else layout.receptacles
            assert place in [r.name for r in found] and word in (*PLACE_WORDS, layout.receptacle(place).kind)
        check_episode(sim, episode, drawn=True)
        assert sim.stands_free(*episode.robot_start)


def test_a_drawn_episode_that_cannot_be_solved_is_refused(dataset, episodes):
    episode = episodes["tidy_house"][0]
    x, y, z, *turn = episode.start_poses[0]
    floating = replace(episode, start_poses=((x, y, z + 0.5, *turn), *episode.start_poses[1:]))
    sim = SceneSimulator(SimulatorConfig(), dataset)
    check_episode(sim, floating)  # one of a file is tried, and failed
    with pytest.raises(Unsolvable, match="does not rest where the episode puts it"):
        check_episode(sim, floating, drawn=True)


@pytest.mark.parametrize("name", scenarios())
def test_the_environment_draws_them_without_an_episode_file(dataset, episodes, name):
    env = ScenarioEnv(load_scenario(name), HomeSettings("val", depth_size=0, scene_dataset=str(dataset)))
    env.reset(options={"episode": 1})
    assert env.episode == episodes[name][1]
    mixed = ScenarioEnv(load_scenario(name), HomeSettings("val", depth_size=0, scene_dataset=str(dataset), mix=0.5))
    mixed.reset(options={"episode": 0})
    first = mixed.episode.scene
    homes = {first} | {mixed.episode.scene for index in range(1, 6) if mixed.reset(options={"episode": index})}
    assert {scene.partition("/")[0] for scene in homes} == {"others", "val"}


@pytest.fixture(scope="module")
def written(dataset, tmp_path_factory):
    folder = tmp_path_factory.mktemp("written")
    for word in ("hab=set_table", "hab=prepare_groceries", "skill=close_cabinet"):
        out = folder / f"{word.partition('=')[2]}.json.gz"
        assert main(["scenes", "episodes", f"dataset={dataset}", word, "count=2", f"out={out}"]) == 0
    return folder


def test_written_episodes_are_read_back_the_same(written, episodes):
    for name in ("set_table", "prepare_groceries"):
        assert read_episodes(written / f"{name}.json.gz") == episodes[name]


def world_handle(body):
    x, y, z = handle_part(body).center_m
    return (*from_frame(x, y, body.pose()), body.position_m[2] + z)


def test_others_find_everything_in_the_frame_and_by_the_links_of_the_scene(dataset, written, tmp_path):
    sim = SceneSimulator(SimulatorConfig(), dataset)
    for file in sorted(written.glob("*.json.gz")):
        ours = read_episodes(file)
        content = json.loads(gzip.decompress(file.read_bytes()))
        for entry in content["episodes"]:
            del entry["info"]["rearrange"]
            assert entry["scene_id"].endswith(".scene_instance.json") and entry["additional_obj_config_paths"]
        (tmp_path / "theirs.json").write_text(json.dumps(content))
        for episode, expected in zip(read_episodes(tmp_path / "theirs.json"), ours):
            found = sim.convert_episode(episode)
            assert np.allclose(found.start_poses, expected.start_poses, atol=1e-9)
            assert np.allclose(list(found.targets.values()), list(expected.targets.values()), atol=1e-9)
            assert found.articulated == pytest.approx(expected.articulated)
            assert found.target_receptacles == expected.target_receptacles
            assert found.goal_receptacles == expected.goal_receptacles
            if expected.robot_start:
                assert found.robot_start == pytest.approx(expected.robot_start)
            theirs, handles = (list(map(world_handle, sim.layout_of(each).bodies)) for each in (found, expected))
            assert np.allclose(theirs, handles, atol=1e-6)


def test_check_says_per_scenario_whether_a_scene_allows_it_and_why_not(dataset, tmp_path, capsys):
    room = make_furnished_room(tmp_path / "room")
    listed = [load_scenario(name).scenario for name in scenarios()]
    assert refused_scenarios(dataset, "val_0000", listed) == {}
    assert "no fridge" in refused_scenarios(room, "furnished", listed)["prepare_groceries"]
    main(["scenes", "check", f"dataset={dataset}"])
    table = [line.split() for line in capsys.readouterr().out.splitlines()]
    heads = next(row for row in table if "tidy_house" in row)
    assert {"prepare_groceries", "set_table", "pick"} <= set(heads)
    assert next(row for row in table if row[:1] == ["val_0001"] and "yes" in row).count("yes") == 10


def test_a_scenario_that_scenes_do_not_allow_is_refused_with_the_reason(tmp_path):
    room = make_furnished_room(tmp_path / "room")
    with pytest.raises(NotPossible, match="prepare_groceries is not possible in scene .*, which has no fridge"):
        scenario_episode_in(external_homes(room, "val", "furnished"), load_scenario("prepare_groceries").scenario, 0)


def test_homes_take_turns_until_one_allows_it(dataset):
    homes, scenario = external_homes(dataset, "val"), load_scenario("prepare_groceries").scenario

    def layout_of(scene):
        if scene.startswith("bare"):
            raise SceneLacks(scene, "has no fridge")
        return homes.layout_of(scene)

    bare = [f"bare_{number}" for number in range(6)]
    found = scenario_episode_in(replace(homes, scenes=[*bare, *homes.scenes], layout_of=layout_of), scenario, 0)
    assert found.scene == homes.scenes[0]
    with pytest.raises(NotPossible, match="scenes bare_0, bare_1, bare_2 and 3 more, the last of which has no fridge"):
        scenario_episode_in(replace(homes, scenes=bare, layout_of=layout_of), scenario, 0)


@pytest.mark.parametrize(("words", "said"), [
    ([], "name a data set with dataset="), (["hab=set_table", "skill=pick"], "name a data set with dataset="),
    (["hab=set_table", "out=x.json"], r"out=x.json should be a file \*.json.gz"),
    (["hab=set_table", "action=list"], "hab= is for rearrange scenes episodes; rearrange scenes list takes dataset=."),
    (["skill=pick", "skill.max_steps=5"], "skill.max_steps= changes no scenes"),
    (["action=list", "furniture=wide"], "furniture= is for rearrange scenes export, measure; rearrange scenes list"),
    (["hab=set_table", "furniture=wide"], "rearrange scenes episodes takes dataset=, scenes="),
    (["action=measure", "split=test"], "split= is for rearrange scenes export, episodes"),
    (["hab=set_table", "scenes=nowhere_*"], "no scene of .* is called 'nowhere_")])
def test_what_cannot_be_written_is_said_in_a_sentence(dataset, words, said, capsys):
    action = [] if any(word.startswith("action=") for word in words) else ["episodes"]
    assert main(["scenes", *action, f"dataset={dataset}", *words]) == 2
    assert re.search(said, " ".join(capsys.readouterr().err.split()))


def test_places_of_others_are_spoken_of_by_their_kind(dataset, episodes):
    env = ScenarioEnv(load_scenario("set_table"), HomeSettings("val", depth_size=0, scene_dataset=str(dataset)))
    env.reset(options={"episode": episodes["set_table"][0]})
    words = instructions(env.sim, env.symbols, env._goal)[1]  # noqa: SLF001 what the problem asks for
    assert "out of the drawer" in words and "out of the fridge" in words and "on the table" in words

"""Episodes of the scenarios: HAB's rules, the same everywhere, and possible."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from planner.scenario import plan
from planner.scenario_env import ScenarioEnv
from planner.scenarios import load_scenario, make_scenario, scenarios
from planner.search import Outcome
from rearrange.env.home_env import HomeSettings
from rearrange.env.scenario_episodes import HAB_OPEN, Scenario, scenario_episode, scenario_episodes
from rearrange.home.apartments.containers import inside
from rearrange.home.apartments.episodes import NoStartPose, read_episodes, write_episodes
from rearrange.home.apartments.floor_grid import floor_grid
from rearrange.home.episodes.scene_check import MAX_SETTLE_M, check_episode
from rearrange.home.errors import UserError
from rearrange.home.simulation.mujoco.simulator import MujocoSimulator
from skills.arguments import about_object
from skills.navigate import Navigate

COUNT = 6
EXPECTED = {  # objects moved, all objects, steps of the plan, steps of an episode
    "tidy_house": (5, 18, 20, 7500), "prepare_groceries": (3, 18, 12, 6000), "set_table": (2, 19, 16, 6750)}


@pytest.fixture(scope="module")
def episodes():
    return {name: list(scenario_episodes(load_scenario(name).scenario, COUNT)) for name in scenarios()}


@pytest.fixture(scope="module")
def sim():
    return MujocoSimulator()


def test_hab_has_three_scenarios():
    assert set(EXPECTED) <= set(scenarios())


@pytest.mark.parametrize("name", EXPECTED)
def test_counts_and_places(name, episodes):
    moved, total, _, max_steps = EXPECTED[name]
    assert load_scenario(name).max_steps == max_steps
    for i, episode in enumerate(episodes[name]):
        assert episode.id == f"{name}/val/{i}"
        assert episode.scene in [f"val/{i + k}" for k in range(3)], "the next homes replace one that allows nothing"
        assert len(episode.targets) == moved and total - 3 <= len(episode.objects) <= total
        assert max(episode.objects.count(kind) for kind in episode.objects) <= 2
        assert ("013_apple" in episode.objects) == (name == "set_table")


def test_tidy_house_moves_between_open_places(episodes, sim):
    for episode in episodes["tidy_house"]:
        sim.reset(episode)
        for receptacle in (*episode.target_receptacles, *episode.goal_receptacles):
            assert sim.home.layout.receptacle(receptacle).kind in HAB_OPEN
        assert episode.articulated == {}


def test_prepare_groceries_has_the_fridge_open(episodes, sim):
    for episode in episodes["prepare_groceries"]:
        sim.reset(episode)
        kinds = [[sim.home.layout.receptacle(r).kind for r in names]
                 for names in (episode.target_receptacles, episode.goal_receptacles)]
        assert kinds == [["fridge", "fridge", "counter"], ["counter", "counter", "fridge"]]
        assert episode.articulated == {"fridge_door": 1.5}
        assert [inside(sim, sim.start_positions[k], "fridge_door") for k in range(3)] == [True, True, False]


def test_set_table_takes_bowl_and_apple_from_behind_closed_doors(episodes, sim):
    for episode in episodes["set_table"]:
        sim.reset(episode)
        drawer, fridge = episode.target_receptacles
        assert episode.objects[:2] == ("024_bowl", "013_apple") and episode.articulated == {}
        assert drawer in ("drawer_1", "drawer_3") and fridge == "fridge_1"
        assert inside(sim, sim.start_positions[0], drawer) and inside(sim, sim.start_positions[1], "fridge_door")
        assert episode.goal_receptacles == ("dining_table",) * 2


@pytest.mark.parametrize("name", EXPECTED)
def test_everything_rests_and_the_robot_starts_free(name, episodes, sim):
    for episode in episodes[name]:
        sim.reset(episode)
        assert sim.settle_distance_m <= MAX_SETTLE_M
        sim.place_robot(*episode.robot_start)
        assert not sim.robot_collides()
        grid = floor_grid(sim.home.layout, openings=episode.articulated)
        assert grid.is_reachable(*episode.robot_start[:2])
    starts = np.array([episode.robot_start for episode in episodes[name]])
    assert np.ptp(starts, axis=0).min() > 1.0, "anywhere, facing anywhere"


@pytest.mark.parametrize("name", ["tidy_house", "prepare_groceries"])
def test_skills_find_where_to_start_at_every_object_and_goal(name, episodes, sim):
    skill = Navigate()
    for episode in episodes[name]:
        for k, index in enumerate(episode.targets):
            for kind, receptacle in (("pick", episode.target_receptacles[k]), ("place", episode.goal_receptacles[k])):
                sim.reset(episode)
                arguments = replace(about_object(sim, episode, index), next_skill=kind)
                try:
                    skill.set_goal(sim, arguments, sim.home.layout.receptacle(receptacle), np.random.default_rng(0))
                except NoStartPose as error:
                    pytest.fail(f"{episode.id}, object {k}: {error}")


def test_skills_find_where_to_open(episodes, sim):
    skill = Navigate()
    for episode in episodes["set_table"]:
        for k, kind in enumerate(("open_cabinet", "open_fridge")):
            sim.reset(episode)
            receptacle = sim.home.layout.receptacle(episode.target_receptacles[k])
            arguments = replace(about_object(sim, episode, k), next_skill=kind)
            skill.set_goal(sim, arguments, receptacle, np.random.default_rng(0))


@pytest.mark.parametrize("name", EXPECTED)
def test_every_episode_has_the_plan_of_its_scenario(name, episodes, sim):
    config = load_scenario(name)
    for episode in episodes[name]:
        sim.reset(episode)
        sim.place_robot(*episode.robot_start)
        found = plan(sim, config.problem)
        assert found.result.outcome is Outcome.SOLVED and len(found.steps) == EXPECTED[name][2]


def digest(episodes) -> str:
    """Of what an episode is, to a tenth of a millimetre."""
    text = repr([(e.id, e.scene, e.objects, np.round(e.start_poses, 4).tolist(),
                  np.round(list(e.targets.values()), 4).tolist(), np.round(e.robot_start, 4).tolist())
                 for e in episodes])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@pytest.mark.parametrize("name", EXPECTED)
def test_the_same_number_gives_the_same_episode_in_any_order(name, episodes):
    scenario = load_scenario(name).scenario
    again = [scenario_episode(scenario, "val", i) for i in (3, 1)]
    assert again == [episodes[name][3], episodes[name][1]]
    assert scenario_episode(scenario, "train", 3) != again[0]
    assert len({digest([episode]) for episode in episodes[name]}) == COUNT
    assert sum(episode.scene == f"val/{i}" for i, episode in enumerate(episodes[name])) >= COUNT - 2


@pytest.mark.parametrize("name", EXPECTED)
def test_episodes_survive_a_file_in_habitats_format(name, episodes, tmp_path, sim):
    write_episodes(tmp_path / "episodes.json.gz", episodes[name])
    read = read_episodes(tmp_path / "episodes.json.gz")
    for ours, back in zip(episodes[name], read, strict=True):
        np.testing.assert_allclose(back.start_poses, ours.start_poses, atol=1e-9)
        np.testing.assert_allclose(list(back.targets.values()), list(ours.targets.values()), atol=1e-9)
        np.testing.assert_allclose(back.robot_start, ours.robot_start, atol=1e-9)
        assert replace(back, start_poses=(), targets={}, robot_start=None) == replace(
            ours, start_poses=(), targets={}, robot_start=None)
    env = ScenarioEnv(load_scenario(name), HomeSettings("val", depth_size=0, episodes=tmp_path / "episodes.json.gz"))
    _, info = env.reset(options={"episode": 1})
    assert info["episode_id"] == f"{name}/val/1"


# ---------------------------------------------------------------------- what cannot be done


def good(episodes):
    return episodes["tidy_house"][0]


def changed(episode, **how):
    return replace(episode, **how)


def moved_goal(episode, x, y, z):
    return replace(episode, targets={**episode.targets, 0: (x, y, z, *episode.targets[0][3:])})


@pytest.mark.parametrize("change, message", [
    (lambda e: changed(e, scene="apartment_1"), "has no scene 'apartment_1'"),
    (lambda e: changed(e, targets={}), "moves no object"),
    (lambda e: changed(e, articulated={"oven": 1.0}), "no joint 'oven'; it has .*fridge_door"),
    (lambda e: changed(e, articulated={"fridge_door": 3.0}), "fridge_door cannot stand at 3; it moves from 0 to 2.4"),
    (lambda e: moved_goal(e, *e.targets[0][:2], 2.3), "cannot reach the goal of"),
    (lambda e: moved_goal(e, -5.0, 0.0, 0.5), r"cannot reach the goal of .* at \(-5.00, 0.00, 0.50\) in scene val/0"),
    (lambda e: changed(e, start_poses=((*e.start_poses[0][:2], 1.6, 1.0, 0.0, 0.0, 0.0), *e.start_poses[1:])),
     "does not rest where the episode puts it"),
    (lambda e: changed(e, robot_start=(0.05, 0.05, 0.0)), r"cannot start at \(0.05, 0.05\)"),
])
def test_an_episode_that_its_scene_cannot_satisfy(change, message, episodes):
    env = ScenarioEnv(load_scenario("tidy_house"), HomeSettings("val", depth_size=0))
    with pytest.raises(UserError, match=message) as caught:
        env.reset(options={"episode": change(good(episodes))})
    assert "\n" not in str(caught.value) and str(caught.value).endswith(".")


def test_an_episode_of_another_scenario(episodes):
    env = ScenarioEnv(load_scenario("set_table"), HomeSettings("val", depth_size=0))
    with pytest.raises(UserError, match="moves 5 objects; scenario set_table moves 2"):
        env.reset(options={"episode": good(episodes)})


def test_a_scenario_that_a_home_does_not_allow(sim):
    crowded = Scenario("crowd", ("any",) * 9, ("chair_0",) * 9, ("sofa",) * 9)
    refusal = "scenes val/0, val/1, val/2 and 17 more, the last of which allows none of 100 .*(full|no place)"
    with pytest.raises(UserError, match=refusal):
        scenario_episode(crowded, "val", 0)
    nowhere = Scenario("nowhere", ("any",), ("garage",), ("sofa",))
    with pytest.raises(UserError, match="has no place called 'garage'; it has open, top_drawer"):
        scenario_episode(nowhere, "val", 0)
    for split, index, message in (("moon", 0, "split=moon is not one of"), ("val", -1, "numbered from 0")):
        with pytest.raises(UserError, match=message):
            scenario_episode(nowhere, split, index)


@pytest.mark.parametrize("values, message", [
    ({"objects": ["any"], "starts": ["open"]}, "the key 'name' is missing"),
    ({"name": None}, "mine.yaml: name=None is not allowed"),
    ({"name": "../../mine"}, "mine.yaml: name=../../mine is not allowed: it names the directory of results"),
    ({"clutterr": 3}, "no key 'clutterr' .did you mean 'clutter'"),
    ({"clutter": -1}, "clutter=-1 is not allowed"),
    ({"objects": "any"}, "objects=any is not allowed: it must be a list of words"),
    ({"starts": ["open", "open"]}, "lists of one length"),
    ({"objects": ["banana"]}, "no object called 'banana'"),
    ({"opened": ["oven"]}, "opened=oven should be some of drawer, fridge"),
    ({"clutter_on": []},
     r"clutter_on=\[\] leaves no place for the other objects of clutter=13; name a place, or set clutter=0"),
    (dict.fromkeys(("starts", "goals"), ["open"] * 20) | {"objects": ["024_bowl"] + ["any"] * 19},
     "objects has 19 times any; a home has 17 objects"),
    ({"problem": "nothing"},
     "no planning problem 'nothing': it should be one of .*set_table, set_table_paper, tidy"),
])
def test_mistakes_in_a_scenario_file(values, message):
    right = {"name": "mine", "problem": "tidy_house", "objects": ["any"], "starts": ["open"], "goals": ["sofa"]}
    settings = values if "is missing" in message else right | values
    with pytest.raises(UserError, match=message):
        make_scenario(settings, "mine.yaml")


def test_clutter_that_has_no_place_because_all_is_shut():
    scenario = Scenario("shut", ("any",), ("open",), ("sofa",), clutter=3, clutter_on=("top_drawer",))
    refusal = r"scenario shut: in home val/0 all of clutter_on=\[top_drawer\] is shut; name a place"
    with pytest.raises(UserError, match=refusal):
        scenario_episode(scenario, "val", 0)
    for given in ({"opened": ("drawer",)}, {"clutter": 0}):
        scenario_episode(replace(scenario, **given), "val", 0)


def test_a_scenario_that_does_not_exist():
    with pytest.raises(UserError, match="no scenario 'tidy_hous' .did you mean tidy_house... it should be one of"):
        load_scenario("tidy_hous")


def test_a_scenario_mixes_no_generated_episodes_into_a_file():
    with pytest.raises(UserError, match="sim.episodes_share=0.5 is for training skills; a scenario takes"):
        ScenarioEnv(load_scenario("set_table"), HomeSettings("val", depth_size=0, episodes_share=0.5))


def test_check_leaves_a_good_episode_alone(episodes, sim):
    check_episode(sim, good(episodes))

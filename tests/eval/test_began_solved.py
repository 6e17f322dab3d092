"""Episodes that begin solved are found when they begin: drawn again where they are generated, counted apart where a
file has them."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from planner.scenario_env import ScenarioEnv
from planner.scenarios import make_scenario
from rearrange.command_line.cli import main
from rearrange.env.home_env import HomeSettings
from rearrange.env.scenario_episodes import Scenario, scenario_episode
from rearrange.home.apartments.episodes import Handoff, read_episodes, repeated_ids, write_episodes
from rearrange.home.episodes.generator import generate_episode
from rearrange.home.errors import UserError
from skills import make_env
from tests.planner.puppet import AWAY_RAD, REST_RAD

ONE_OBJECT = {"objects": ["any"], "starts": ["open"], "goals": ["open"], "clutter": 0}
TYPED = ["hab=tidy_house", *(f"hab.{key}=[{value[0]}]" if isinstance(value, list) else f"hab.{key}={value}"
                             for key, value in ONE_OBJECT.items())]


def evaluated(folder, *words) -> tuple[dict, list[dict[str, str]]]:
    """The figures and rows of `rearrange eval`."""
    assert main(["eval", *words, "video=0", f"output={folder}/out", "name=x"]) == 0
    (path,) = folder.glob("out/eval/*/x")
    with (path / "episodes.csv").open() as rows:
        return json.loads((path / "metrics.json").read_text()), list(csv.DictReader(rows))


def shut(number: int):
    return replace(generate_episode("close_fridge", "val", number, 4), articulated={})


@pytest.mark.parametrize("workers", [1, 2])
def test_of_a_file_they_are_counted_apart_with_any_number_of_processes(workers, tmp_path, capsys):
    first, last = shut(1), shut(3)
    episodes = [first, *(generate_episode("close_fridge", "val", number, 4) for number in range(20, 38)), last]
    write_episodes(tmp_path / "doors.json", episodes)
    figures, rows = evaluated(tmp_path, "skill=close_fridge", "agent=zero", f"sim.episodes={tmp_path / 'doors.json'}",
                              "skill.max_steps=2", f"workers={workers}")
    others = len(rows) - 2
    assert (figures["episodes"], figures["success"], figures["began_solved"]) == (others, 0.0, 2) and others > 8
    assert figures["failures"] == {"time_limit": 1.0} and figures["mean_steps"] == 2.0, "all figures are of the others"
    assert [int(row["index"]) for row in rows if row["began_solved"] == "1"] == [0, 19]
    said = (f"2 of {others + 2} episodes began solved and are counted apart, with success 0.0%: all figures are those "
            f"of the other {others}")
    assert said in capsys.readouterr().out


def test_a_file_of_nothing_else_has_no_figures_and_no_error(tmp_path, capsys):
    write_episodes(tmp_path / "doors.json", [shut(1)])
    figures, rows = evaluated(tmp_path, "skill=close_fridge", "agent=zero", f"sim.episodes={tmp_path / 'doors.json'}",
                              "workers=1")
    assert figures["episodes"] == 0 and figures["success"] is None and figures["began_solved"] == 1
    assert rows[0]["began_solved"] == "1"
    assert "1 of 1 episodes began solved" in capsys.readouterr().out
    (path,) = tmp_path.glob("out/eval/*/x")
    assert main(["report", f"runs=[{path}]", f"out={tmp_path / 'r.html'}"]) == 2
    assert "all of its 1 episodes began solved" in capsys.readouterr().err


def test_a_scenario_of_a_file_whose_goal_holds_is_counted_apart(tmp_path, capsys):
    usual = scenario_episode(Scenario("tidy_house", **{key: tuple(value) if isinstance(value, list) else value
                                                       for key, value in ONE_OBJECT.items()}), "val", 0, 4)
    solved = replace(usual, targets={0: usual.start_poses[0]}, goal_receptacles=usual.target_receptacles)
    write_episodes(tmp_path / "homes.json", [usual, solved])
    figures, rows = evaluated(tmp_path, *TYPED, "skills=random", "planner=paper", "planner.max_steps.navigate=3",
                              "workers=1", f"sim.episodes={tmp_path / 'homes.json'}")
    assert (figures["episodes"], figures["success"], figures["began_solved"], figures["began_solved_success"]) == (
        1, 0.0, 1, 1.0)
    assert [row["began_solved"] for row in rows] == ["0", "1"]
    said = capsys.readouterr().out
    assert "1 of 2 episodes began solved" in said
    assert f"homes.json: 1 of 2 episodes has an id that stands before, first '{usual.id}'" in said
    assert "its contents are others" in said


def test_a_scenario_whose_goal_holds_wherever_it_begins_is_one_sentence(tmp_path):
    (tmp_path / "shut.pddl").write_text("(define (problem p) (:domain home) (:objects $objects) (:init $init) (:goal "
                                        "(closed fridge)))")
    config = make_scenario({"name": "mine", "problem": "shut.pddl", "max_steps": 5, **ONE_OBJECT}, "mine.yaml",
                           tmp_path)
    with pytest.raises(UserError, match="the goal of scenario mine holds at the start of all 20 episodes"):
        ScenarioEnv(config, HomeSettings("val", depth_size=0, num_layouts=2)).reset(options={"episode": 0})


def test_another_is_drawn_for_a_generated_one():
    """Navigate's episode 232 of validation homes begins where a stop would be a success."""
    env = make_env("navigate", split="val", depth_size=0, any_start=True)
    _, info = env.reset(options={"episode": 232})
    assert not env.begins_solved and info["skipped_episodes"] == 1 and info["episode_id"] != "navigate/val/232"
    env.reset(options={"episode": generate_episode("navigate", "val", 232, 96)})
    assert env.begins_solved, "one that is given is begun as it is"


@pytest.mark.parametrize("skill, changes, at_goal, solved", [
    ("pick", {"held": 0, "arm_rad": REST_RAD}, False, True), ("pick", {"held": 0, "arm_rad": AWAY_RAD}, False, False),
    ("pick", {"arm_rad": REST_RAD}, False, False), ("place", {"held": 0, "arm_rad": REST_RAD}, False, False),
    ("place", {"arm_rad": AWAY_RAD}, True, True), ("place", {"arm_rad": AWAY_RAD}, False, False)])
def test_what_is_left_to_do_decides_where_a_plan_hands_over(skill, changes, at_goal, solved):
    """Held at rest, Pick has nothing to do; Place has where the hand is empty and the object at its goal."""
    drawn = generate_episode("pick", "val", 3, 4)
    env = make_env("pick", split="val", depth_size=0, num_layouts=4)
    env.reset(options={"episode": drawn})
    robot = tuple(env.sim.base_pose)
    handed = replace(drawn, robot_start=robot, handoff=Handoff(skill, 0, **changes),
                     targets={0: drawn.start_poses[0]} if at_goal else drawn.targets)
    env = make_env(skill, split="val", depth_size=0, **({"settle_steps": 15} if skill == "place" else {}))
    env.reset(options={"episode": handed})
    assert env.begins_solved == solved


@pytest.mark.parametrize("changes, said",
                         [([{}, {}, {}], "2 of 3 episodes have an id that stands before, first 'a' of episodes 0 and "
                           "1; the contents of all of them are the same"),
                          ([{}, {"articulated": {"fridge_door": 1.0}}], "1 of 2 episodes has an id that stands before, "
                           "first 'a' of episodes 0 and 1; its contents are others"),
                          ([{}, {}, {"articulated": {"fridge_door": 1.0}}], "the contents of 1 of them are the same"),
                          ([{}, {"scene": "val/9"}], "its contents are others, in other scenes"),
                          ([{}, {"id": "b"}], None)])
def test_ids_that_repeat_are_one_sentence(changes, said):
    episode = replace(generate_episode("pick", "val", 3, 4), id="a")
    found = repeated_ids("f.json", [replace(episode, **change) for change in changes])
    assert (not found) if said is None else found[0].startswith("f.json: ") and said in found[0]


def test_ids_that_repeat_are_told_by_an_evaluation_and_their_rows_stay_apart(tmp_path, capsys):
    one = generate_episode("pick", "val", 3, 4)
    write_episodes(tmp_path / "two.json", [one, one])
    _, rows = evaluated(tmp_path, "skill=pick", "agent=zero", f"sim.episodes={tmp_path / 'two.json'}",
                        "skill.max_steps=2", "workers=1")
    assert "two.json: 1 of 2 episodes has an id that stands before" in capsys.readouterr().out
    assert [row["index"] for row in rows] == ["0", "1"] and len({row["episode_id"] for row in rows}) == 1


def test_a_key_that_stands_twice_in_an_episode_file_is_refused(tmp_path):
    write_episodes(tmp_path / "one.json", [generate_episode("pick", "val", 3, 4)])
    text = (tmp_path / "one.json").read_text()
    (tmp_path / "one.json").write_text(text.replace('"targets":', '"targets": {}, "targets":', 1))
    with pytest.raises(UserError, match="an object names 'targets' twice"):
        read_episodes(tmp_path / "one.json")


def test_an_episode_of_a_file_with_nothing_to_show_is_not_recorded(tmp_path, capsys):
    pytest.importorskip("pyarrow")
    write_episodes(tmp_path / "doors.json", [shut(1), generate_episode("close_fridge", "val", 21, 4), shut(3)])
    words = ["record", "skill=close_fridge", "agent=zero", f"sim.episodes={tmp_path / 'doors.json'}",
             "skill.max_steps=2", "successes_only=false"]
    assert main([*words, "image_size=0", "episodes=3", "workers=1", f"out={tmp_path / 'skill'}"]) == 0
    said = capsys.readouterr().out
    assert "1 of 3 episodes" in said and "2 of 3 attempts began solved, with nothing to show, and are left out" in said
    assert "success 0% of 1 attempts" in said
    usual = scenario_episode(Scenario("tidy_house", **{key: tuple(value) if isinstance(value, list) else value
                                                       for key, value in ONE_OBJECT.items()}), "val", 0, 4)
    write_episodes(tmp_path / "homes.json",
                   [replace(usual, targets={0: usual.start_poses[0]}, goal_receptacles=usual.target_receptacles)])
    words = ["record", *TYPED, "agent=expert", f"sim.episodes={tmp_path / 'homes.json'}", "image_size=0", "episodes=1",
             "workers=1"]
    assert main([*words, f"out={tmp_path / 'scenario'}"]) == 0
    assert "1 of 1 attempts began solved" in capsys.readouterr().out


def test_of_generated_episodes_none_that_begins_solved_is_recorded_or_driven():
    from eval.recording.skill_episodes import BEGAN_SOLVED, SkillJob, record_skill
    from eval.slots import episode_seed
    from eval.view.driver import Driver
    from eval.view.sessions import SkillSession

    easy = {"split": "val", "depth_size": 0, "num_layouts": 4, "any_start": True, "goal_radius_m": 4.0,
            "goal_angle_rad": 1.5, "max_steps": 2}
    job = SkillJob("navigate", easy, "zero")
    session = SkillSession(SimpleNamespace(job=job), Driver())
    env, solved = job.make(), set()
    for number in range(12):
        env.reset(seed=episode_seed(0, number), options={"episode": env.numbered_episode(number)})
        solved |= {number} if env.begins_solved else set()
    recorded = {each.attempt: each for each in record_skill(job, range(12))}
    assert 0 < len(solved) < 12
    assert {number for number, each in recorded.items() if each.failure == BEGAN_SOLVED} == solved
    assert all(bool(each.steps) != (number in solved) for number, each in recorded.items())
    session.begin(min(solved))
    assert session.number == next(number for number in range(min(solved), 12) if number not in solved)

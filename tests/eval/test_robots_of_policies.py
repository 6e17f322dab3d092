"""Policies and recordings are of a robot and a hand, and say so where they do not fit."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

import rearrange
from eval.point_goal import level_depth, pointnav_config
from eval.policy_file import meanings
from eval.protocol import protocol
from eval.recording.folder import Folder, refuse_another
from eval.recording.lerobot import LeRobotFiles
from eval.recording.replay import replay as replayed
from eval.scenario.skill_sources import Source, sources
from eval.trained_policy import check_robot, settings_of, training_of
from rearrange.command_line import listing
from rearrange.home.action_layout import action_meanings
from rearrange.home.errors import UserError
from rearrange.home.robot import robot_named
from rearrange.navigation import CONFIGS
from skills import pretrained
from tests.eval.recording.fake import FEATURES, recorded

OWN, HIDDEN = "own_robot:SMALL", "nowhere.at_all:ROBOT"
POLICY = Path("mine.pt")


@pytest.fixture(autouse=True)
def examples(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "examples"))


@pytest.mark.parametrize("trained, env, said", [
    ({}, {"robot": OWN}, "mine.pt is of the robot fetch, not of own_robot:SMALL: write sim.robot=fetch, or"),
    ({"robot": HIDDEN}, {}, "the robot nowhere.at_all:ROBOT, not of fetch: write sim.robot=nowhere.at_all:ROBOT, or"),
    ({}, {"robot": "fetch", "hand": "fingers"}, "robot fetch, not of fetch with fingers: leave sim.hand=fingers out"),
    ({"robot": "other", "hand": "hook"}, {},
     "robot other with hook, not of fetch: write sim.robot=other sim.hand=hook")])
def test_a_policy_of_another_robot_is_refused_in_one_sentence_and_its_robot_is_not_imported(trained, env, said):
    with pytest.raises(UserError, match=said.replace(".", r"\.")):
        check_robot(POLICY, trained, env)
    assert not [name for name in sys.modules if name.startswith("nowhere")]


def test_the_same_robot_fits_however_its_hand_is_named():
    check_robot(POLICY, {}, {"robot": "fetch"})
    check_robot(POLICY, {"hand": "suction"}, {"robot": "fetch", "hand": None})
    check_robot(POLICY, {"robot": OWN}, {"robot": OWN, "hand": "suction"})


def test_a_policy_is_evaluated_in_the_usual_homes_wherever_it_was_trained():
    assert settings_of({"env": {"furniture": "wide", "split": "train", "max_steps": 9}}) == {"max_steps": 9,
                                                                                            "depth_size": 0}


def test_a_checkpoint_brings_a_robot_that_has_a_name_and_none_that_has_to_be_typed():
    named = {"robot": "other", "hand": "hook"}
    assert settings_of({"env": named}) == named | {"depth_size": 0}
    assert settings_of({"env": {"robot": HIDDEN, "hand": "hook"}}) == {"depth_size": 0}


def test_a_navigation_policy_does_not_have_its_robot_imported():
    trained = {"agent": HIDDEN, "actions": "velocity"}
    assert settings_of({"env": trained}) == {"actions": "velocity", "depth_size": 0}
    with pytest.raises(UserError, match="nav.agent=nowhere.at_all:ROBOT, which is imported only where you type it"):
        check_robot(POLICY, trained, {"agent": "fetch"})
    with pytest.raises(UserError, match="which is imported only where it is typed"):
        pointnav_config(trained, "mine.pt")
    assert not [name for name in sys.modules if name.startswith("nowhere")]


def test_a_checkpoint_of_version_0_2_is_of_the_fetch_whose_urdf_it_names():
    env = {"robot": "robots/f.urdf", "rest_position_m": [0.5, 0.0, 1.0]}
    meta = training_of({"meta": {"skill": "pick", "env": env}})
    assert meta["env"] == {"robot_urdf": "robots/f.urdf", "rest_position_m": None}
    check_robot(POLICY, meta["env"], {"robot": "fetch"})
    assert "arm.shoulder_pan" in meanings(meta | {"env": meta["env"] | {
        "action_parts": ["arm"], "base_speed_m_s": 1.0, "base_turn_rad_s": 1.5}})["action"]
    assert protocol("pick", env) == "HAB's start, sim.robot_urdf=robots/f.urdf"
    assert protocol("pick", {"robot": None, "rest_position_m": [0.5, 0.0, 1.0]}) == "HAB's start"


def test_a_recording_of_version_0_2_goes_on_where_what_is_new_has_its_defaults():
    before = {"skill": {"rest_position_m": [0.5, 0.0, 1.0], "max_steps": 200}, "sim": {"robot": None}, "image_size": 64}
    now = {"skill": {"rest_position_m": None, "max_steps": 200}, "sim": {"robot": "fetch", "hand": None},
           "image_size": 64, "depth_video": False}
    usual = {"sim.robot": "fetch", "sim.hand": None, "depth_video": False}
    refuse_another(POLICY, before, now, usual)
    with pytest.raises(UserError, match="depth_video=False, now True"):
        refuse_another(POLICY, before, now | {"depth_video": True}, usual)


def test_a_narrow_camera_is_refused_by_a_policy_that_sees_more():
    robot = SimpleNamespace(head=replace(robot_named().head, fov_deg=60.0), said="narrow with suction")
    with pytest.raises(UserError, match="sees 90 degrees, and the head camera of narrow with suction 60"):
        level_depth(SimpleNamespace(robot=robot), 32, CONFIGS["pointnav"]())


def test_a_camera_that_looks_aside_is_refused_by_a_policy_that_drives_where_it_looks():
    with pytest.raises(UserError, match="sees what is ahead, and the head camera of stretch3 with fingers looks aside"):
        level_depth(SimpleNamespace(robot=robot_named("stretch3")), 32, CONFIGS["pointnav"]())


def test_policies_of_the_package_are_of_the_fetch_in_python_in_plans_and_in_the_list(tmp_path):
    with pytest.raises(UserError, match="pick.pt is of the robot fetch, not of own_robot:SMALL"):
        rearrange.load_pretrained("pick", robot=OWN)
    with pytest.raises(UserError, match="pick.pt is of the robot fetch, not of own_robot:SMALL"):
        sources("expert", {"pick": "pretrained"}, ["pick"], tmp_path, "tidy_house", robot={"robot": OWN})
    assert pretrained.card("pick")["robot"] == robot_named().said == "fetch with suction"
    text = listing.text(tmp_path)
    assert "robots (sim.robot=)" in text and re.search(r"^  fetch +suction, fingers$", text, re.MULTILINE)
    assert text.count("fetch with suction") == 7


@pytest.mark.parametrize("agent, chosen, robot, said", [
    ("tp_spa", {}, {"robot": "stretch3"}, "agent=tp_spa takes things by suction .* the robot is stretch3 with fingers"),
    ("expert", {"pick": "spa"}, {"hand": "fingers"}, "skills.pick=spa takes .* the robot is fetch with fingers: take")])
def test_sense_plan_act_is_for_a_cup_on_an_arm_that_reaches_ahead(agent, chosen, robot, said, tmp_path):
    with pytest.raises(UserError, match=said):
        sources(agent, chosen, ["navigate", "pick"], tmp_path, "tidy_house", robot=robot)
    assert sources(agent, chosen, ["navigate", "pick"], tmp_path, "tidy_house")["pick"].kind == "spa"


def test_agents_from_outside_have_the_spaces_of_the_robot_that_was_typed():
    observations, actions = Source("own", shared={"robot": OWN}).spaces("pick")
    assert observations["joint"].shape == (6,) and actions.shape == (9,)


def test_an_exported_policy_says_what_its_robot_does():
    env = {"action_parts": ["arm", "base"], "base_speed_m_s": 1.0, "base_turn_rad_s": 1.5}
    assert "arm.shoulder_pan" in meanings({"skill": "pick", "env": env})["action"]
    assert meanings({"skill": "pick", "env": env | {"robot": HIDDEN}})["action"] == f"arm, base of the robot {HIDDEN}"
    assert "±0.01 m, ±0.02 rad" in action_meanings(robot_named(OWN), 1.0, 1.5)["arm"]


def test_a_recording_of_a_robot_that_has_to_be_typed_is_not_replayed_without(tmp_path):
    Folder(tmp_path, LeRobotFiles(tmp_path, FEATURES, 30), {"format": "lerobot"},
           {"skill": "pick", "env": {"robot": HIDDEN}}, 1e9).close()
    with pytest.raises(UserError, match="recording of the robot nowhere.at_all:ROBOT, .* add sim.robot=nowhere"):
        replayed(tmp_path, 1, 1)


@pytest.mark.parametrize("env, robot", [({}, "fetch"), ({"robot": OWN}, OWN)])
def test_a_lerobot_data_set_says_who_acted(tmp_path, env, robot):
    folder = Folder(tmp_path, LeRobotFiles(tmp_path, FEATURES, 30), {"format": "lerobot"}, {"env": env}, 1e9)
    try:
        files = folder._files
        files.add(0, [recorded(0, 4)], 0, 0, {"task 0": 0})
        assert json.loads(files.of_all(1, 1, 4, {"task 0": 0})[tmp_path / "meta/info.json"])["robot_type"] == robot
    finally:
        folder.close()

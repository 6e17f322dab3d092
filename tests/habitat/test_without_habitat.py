"""What of `rearrange.habitat` needs no Habitat: contacts, frames, the robot's file, refusals."""

from __future__ import annotations

import math
import os
import xml.etree.ElementTree as ElementTree
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import run as run_benchmark
from rearrange.command_line.cli import main
from rearrange.env.make_simulator import make_simulator
from rearrange.habitat import installed as need
from rearrange.habitat import loading
from rearrange.habitat.contacts import RobotParts, collides, forces, within_angle
from rearrange.habitat.driving_base import BASE_JOINTS, with_driving_base
from rearrange.habitat.frames import camera_transform, rotation_of_link, turn_of_object
from rearrange.habitat.loading import quiet_loading
from rearrange.home.axis_conventions import AXES, to_y_up
from rearrange.home.errors import UserError
from rearrange.home.geometry import quat_matrix
from rearrange.home.robot.cameras import mounting
from rearrange.home.robot.fetch import FETCH
from rearrange.home.scene_files.scene_data import SceneData
from rearrange.home.simulation.simulator_interface import SimulatorConfig

ROBOT, CUP, BASE_LINK, ARM_LINK = 7, 26, 2, 20
STAGE, APPLE, BOWL = 0, 30, 31
PARTS = RobotParts(ROBOT, frozenset(range(-1, 18)), CUP)


def point(a, b, force=1.0, distance=0.0, normal=(0.0, 1.0, 0.0)):
    """A contact point as Habitat gives it; a and b: (object, link)."""
    return SimpleNamespace(
        object_id_a=a[0], link_id_a=a[1], object_id_b=b[0], link_id_b=b[1], normal_force=force,
        contact_distance=distance, contact_normal_on_b_in_ws=normal, position_on_a_in_ws=(1.0, 2.0, 3.0))


def test_forces_on_arm_and_base_are_the_largest_ones_and_kept_apart():
    points = [point((ROBOT, ARM_LINK), (STAGE, -1), 30.0), point((APPLE, -1), (ROBOT, ARM_LINK), 50.0),
              point((STAGE, -1), (ROBOT, BASE_LINK), 80.0), point((APPLE, -1), (STAGE, -1), 900.0),
              point((ROBOT, ARM_LINK), (ROBOT, BASE_LINK), 900.0)]
    arm, base, touches = forces(points, PARTS, held=None)
    assert (arm, base, touches) == (50.0, 80.0, [])


def test_what_the_hand_holds_is_a_part_of_the_arm_and_does_not_press_on_it():
    points = [point((ROBOT, CUP), (APPLE, -1), 500.0), point((APPLE, -1), (STAGE, -1), 40.0)]
    assert forces(points, PARTS, held=APPLE)[:2] == (40.0, 0.0)
    assert forces(points, PARTS, held=None)[:2] == (500.0, 0.0)


def test_the_cup_touches_what_is_near_enough_and_the_normal_points_into_it():
    points = [point((ROBOT, CUP), (APPLE, -1), normal=(0.0, 1.0, 0.0)),
              point((BOWL, -1), (ROBOT, CUP), normal=(0.0, -1.0, 0.0)),
              point((ROBOT, CUP), (STAGE, -1), distance=0.015), point((ROBOT, ARM_LINK), (BOWL, -1))]
    _, _, touches = forces(points, PARTS, held=None)
    assert [touch.object_id for touch in touches] == [APPLE, BOWL]
    assert touches[0].towards == (0.0, -1.0, 0.0) == touches[1].towards  # the normal is from b to a
    assert within_angle(touches[0], (0.0, -1.0, 0.0), math.cos(0.1))
    assert not within_angle(touches[0], (1.0, 0.0, 0.0), math.cos(1.0))
    assert within_angle(touches[0], (0.0, 1.0, 0.0), -2.0)  # no limit


def test_the_robot_collides_when_it_or_its_load_is_inside_something_else():
    deep = {"distance": -0.005}
    assert collides([point((ROBOT, ARM_LINK), (STAGE, -1), **deep)], ROBOT, None, 1e-3)
    assert collides([point((APPLE, -1), (STAGE, -1), **deep)], ROBOT, APPLE, 1e-3)
    assert not collides([point((APPLE, -1), (STAGE, -1), **deep), point((ROBOT, CUP), (STAGE, -1))], ROBOT, None, 1e-3)
    assert not collides([point((ROBOT, CUP), (APPLE, -1), **deep)], ROBOT, APPLE, 1e-3)


def test_frames_between_z_up_and_y_up():
    turned = np.eye(4)
    rotation = quat_matrix(np.array((0.5, 0.1, 0.7, np.sqrt(0.25))))
    turned[:3, :3] = AXES @ rotation  # a z-up link in a y-up world
    assert np.allclose(np.reshape(rotation_of_link(turned), (3, 3)), rotation)
    quat = SimpleNamespace(scalar=math.cos(0.2), vector=(0.0, math.sin(0.2), 0.0))  # a turn about up
    assert np.allclose(turn_of_object(quat), (math.cos(0.2), 0, 0, math.sin(0.2)))


def test_the_head_camera_looks_forward_and_down_with_its_head_up():
    camera = camera_transform(mounting(FETCH.head))
    assert np.allclose(camera[:3, :3].T @ camera[:3, :3], np.eye(3)) and np.linalg.det(camera[:3, :3]) > 0.99
    forward = -camera[:3, 2]
    assert math.isclose(math.degrees(math.atan2(-forward[1], forward[0])), 21.8, abs_tol=0.05)
    assert np.allclose(camera[:3, 0], to_y_up((0.0, -1.0, 0.0))) and camera[1, 1] > 0.9


URDF = """<robot name="r"><link name="base_link"><visual><geometry><mesh filename="a.glb"/></geometry></visual>
<collision group="4"><geometry><box size="1 1 1"/></geometry></collision></link><link name="arm"/>
<joint name="shoulder" type="revolute"><parent link="base_link"/><child link="arm"/></joint></robot>"""


def test_the_robot_is_put_on_two_slides_and_a_turn(tmp_path):
    robot = ElementTree.fromstring(with_driving_base(URDF, tmp_path))
    above, order = "floor", []
    while above != "arm":
        joint = next(joint for joint in robot.findall("joint") if joint.find("parent").get("link") == above)
        order.append(joint.get("name"))
        above = joint.find("child").get("link")
    assert order == [*(name for name, _, _ in BASE_JOINTS), "shoulder"]
    assert next(robot.iter("mesh")).get("filename") == str(tmp_path.resolve() / "a.glb")
    assert next(robot.iter("collision")).get("group") is None  # furniture shall stop it
    with pytest.raises(UserError, match="cannot be read"):
        with_driving_base("<robot", tmp_path)
    with pytest.raises(UserError, match="not 2"):
        with_driving_base('<robot><link name="a"/><link name="b"/></robot>', tmp_path)


def test_without_habitat_there_is_one_sentence(monkeypatch):
    monkeypatch.setattr(need, "is_installed", lambda: False)
    with pytest.raises(UserError, match="not installed here: see docs/habitat.md"):
        make_simulator("habitat", SimulatorConfig(), SceneData("x.scene_dataset_config.json"))
    with pytest.raises(UserError, match="mujoco, habitat"):
        make_simulator("bullet", SimulatorConfig())


@pytest.mark.parametrize("command", [
    "eval skill=pick agent=random", "train skill=pick", "eval hab=tidy_house agent=expert", "train hab=tidy_house",
    "benchmarks habitat", "benchmarks transfer"])
def test_every_command_says_so_and_ends_with_status_2(command, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(need, "is_installed", lambda: False)
    first, *words = [*command.split(), "sim=habitat", f"output={tmp_path}"]
    assert (run_benchmark(words[0], words[1:]) if first == "benchmarks" else main([first, *words])) == 2
    said = capsys.readouterr().err
    assert "sim=habitat needs habitat-sim" in said and said.count("\n") == 1 and not list(tmp_path.iterdir())


@pytest.mark.parametrize(("given", "said"), [(None, "needs sim.scene_dataset"), ("absent.json", "is not a file"),
                                             (__file__, "should end in")])
def test_a_data_set_that_is_not_there_is_named(given, said):
    with pytest.raises(UserError, match=said):
        SceneData(given).check()


def test_the_device_is_what_there_is():
    assert need.device(None, nvidia=False) == -1 and need.device(None, nvidia=True) == 0
    assert need.device(2, nvidia=True) == 2 and need.device(-1, nvidia=True) == -1


def test_habitats_lines_about_a_data_sets_files_are_left_out_unless_something_is_raised(capfd, monkeypatch):
    def load(fails: bool) -> None:
        with quiet_loading():
            os.write(2, b"[05:42]:[Error]:[Metadata] a.cpp(305)::validateMap : not found\n"
                        b"[05:42]:[Error]:[Scene] a stage is broken\n")
            if fails:
                raise RuntimeError

    monkeypatch.setattr(loading, "ASKED", False)
    load(False)
    assert capfd.readouterr().err == "[05:42]:[Error]:[Scene] a stage is broken\n"
    with pytest.raises(RuntimeError):
        load(True)
    assert "validateMap" in capfd.readouterr().err
    monkeypatch.setattr(loading, "ASKED", True)
    load(False)
    assert "validateMap" in capfd.readouterr().err

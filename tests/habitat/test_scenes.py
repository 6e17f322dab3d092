"""What the adapter takes from the files of external scenes, on data of ReplicaCAD's form that is made here.

Nothing here needs Habitat, of which there is a stand-in where something asks for it.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from rearrange.env.make_simulator import draws_in_scenes, scene_data
from rearrange.habitat.homes import Homes
from rearrange.habitat.mujoco_twin import Twin
from rearrange.habitat.sim_instance import World
from rearrange.home.apartments.episodes import Episode
from rearrange.home.errors import UserError
from rearrange.home.scene_files.scene_data import SceneData, is_exported
from rearrange.home.settings.environment import HomeSettings
from rearrange.home.simulation.scenes.scene_parts import THIN_M
from rearrange.home.simulation.scenes.scene_simulator import SceneSimulator
from rearrange.home.simulation.simulator_interface import SimulatorConfig
from tests.rearrange.scene_data import make_furnished_room


@pytest.fixture
def room(tmp_path):
    return make_furnished_room(tmp_path)


class Opened:
    """A stand-in for `World`: which scenes it was asked to load."""

    def __init__(self) -> None:
        self.scene, self.asked = None, []

    def knows(self, name: str) -> bool:
        return True

    def load(self, name: str, ours: bool) -> bool:
        self.asked.append((name, ours))
        return True


def episode(*objects, scene="small/furnished") -> Episode:
    poses = tuple((*at, 1.0, 0.0, 0.0, 0.0) for _, at in objects)
    return Episode("made", scene, tuple(name for name, _ in objects), poses)


def test_what_a_scene_is_to_a_robot_is_what_the_embedded_simulator_finds(room):
    world = Opened()
    home, loaded = Homes(world, room).enter(episode(scene="data/configs/scenes/furnished.scene_instance.json"))
    sim = SceneSimulator(SimulatorConfig(), room)
    sim.reset(episode())
    assert loaded and world.asked == [("furnished", False)]
    assert home is sim.home.scene and home.links == {"drawer_1": ("cupboard_:0000", "drawer1")}


@pytest.mark.parametrize("name", [
    "objects/table.glb", "objects/convex/table.glb", "configs/objects/rug.object_config.json",
    "urdf/cupboard/cupboard.urdf", "stages/room.glb"])
def test_a_missing_file_is_named_before_habitat_is_asked(room, name):
    (room.parent / name).unlink()
    world = Opened()
    with pytest.raises(UserError, match=name.rpartition("/")[2].partition(".")[0]) as said:
        Homes(world, room).enter(episode())
    assert not world.asked and "\n" not in str(said.value)


def test_a_rug_lets_the_robot_pass_and_a_table_does_not():
    def thing(low, high, turn=np.eye(3), y=0.0):
        frame = np.eye(4)
        frame[:3, :3], frame[1, 3] = turn, y
        node = SimpleNamespace(cumulative_bb=SimpleNamespace(min=low, max=high))
        return SimpleNamespace(root_scene_node=node, transformation=frame, collidable=True, motion_type="dynamic")

    upright = np.array([(1, 0, 0), (0, 0, 1), (0, -1, 0)])  # of what its file has lying
    low, flat = (-1, 0, -1), (1, 0.018, 1)
    lifted = thing(low, flat, y=0.02)  # as ReplicaCAD's, whose tops are at 26 to 34 mm
    rug, table, hung = thing(low, flat), thing(low, (1, 0.4, 1)), thing(low, flat, upright)
    things = [rug, table, hung, lifted]
    kinds = SimpleNamespace(physics=SimpleNamespace(MotionType=SimpleNamespace(KINEMATIC="kinematic")))
    World.let_pass(SimpleNamespace(furniture=things, habitat=kinds), THIN_M)
    assert [one.collidable for one in things] == [False, True, True, False]
    assert [one.motion_type for one in things] == ["kinematic", "dynamic", "dynamic", "kinematic"]


def test_a_drawer_is_a_link_of_what_habitat_has_loaded():
    names = {0: "body", 1: "drawer1"}
    body = SimpleNamespace(get_link_ids=lambda: list(names), get_link_name=names.get)
    world = SimpleNamespace(bodies={"cupboard_:0000": body}, scene="furnished")
    assert World.link_called(world, "cupboard_:0000", "drawer1") == (body, 1)
    for handle, link in (("cupboard_:0001", "drawer1"), ("cupboard_:0000", "drawer2")):
        with pytest.raises(UserError, match="furnished"):
            World.link_called(world, handle, link)


def test_the_twin_of_an_external_scene_shows_what_is_there(room):
    """So experts plan on what collides there, and pictures are drawn with and without videos."""
    there, here = SceneSimulator(SimulatorConfig(), room), SceneSimulator(SimulatorConfig(), room)
    there.reset(episode(("003_cracker_box", (4.5, 1.5, 0.11))))
    there.set_joint("drawer_1", 0.3)
    there.place_robot(5.0, 3.0, 1.0)
    there.body = SimpleNamespace(still=there.robot.arm.still)
    twin = Twin(here).of(there)
    assert twin is here and twin.joint_position("drawer_1") == pytest.approx(0.3)
    assert np.allclose(twin.depth_image(32), there.depth_image(32), atol=1e-4)
    assert np.allclose(twin.object_position(0), there.object_position(0)) and twin.home.layout is there.home.layout


def test_episodes_are_drawn_in_external_scenes_and_in_homes_that_were_exported(room):
    settings = HomeSettings("val", scene_dataset=str(room), sim="habitat")
    assert draws_in_scenes(settings) and scene_data(settings, None).scenes == ()
    assert SceneData(str(room)).robot_file() is None  # then it is ours
    (room.parent / "export.json").write_text("{}")
    assert is_exported(room) and not draws_in_scenes(settings)
    assert list(scene_data(settings, None).scenes)[:2] == ["val/0", "val/1"]
    with pytest.raises(UserError, match="fetch.urdf"):
        SceneData(str(room)).robot_file()
    assert draws_in_scenes(HomeSettings("val", scene_dataset=str(room))) and not draws_in_scenes(HomeSettings("val"))

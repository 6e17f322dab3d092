"""Exported homes in the real habitat-sim: the same depth image, things at rest where ours are, joints that open."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from rearrange.habitat.export.episode_files import HANDLE
from rearrange.home.apartments.episodes import read_episodes
from rearrange.home.axis_conventions import matrix_to_pose, pose_to_matrix, to_y_up
from rearrange.home.episodes.generator import generate_episode
from rearrange.home.geometry import from_frame
from rearrange.home.robot.fetch import ARM, HEAD, TORSO_START_M
from rearrange.home.simulation.mujoco.simulator import MujocoSimulator

habitat_sim = pytest.importorskip("habitat_sim", reason="habitat-sim is not installed")
pytest.importorskip("trimesh", reason="exporting scenes needs trimesh")
mn = pytest.importorskip("magnum")

SIZE, FAR_M = 128, 10.0
KINDS = ("pick", "open_fridge", "close_cabinet", "close_fridge")
HOMES = 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    from rearrange.command_line.cli import main

    out = tmp_path_factory.mktemp("scenes") / "homes"
    words = f"scenes export split=val count={HOMES} episodes_of=[{','.join(KINDS)}] out={out}"
    assert main(words.split()) == 0
    return out


@pytest.fixture(scope="module")
def habitat(folder):
    return Habitat(folder)


class Habitat:
    """A plain habitat_sim.Simulator with the head camera as its only sensor."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.sim, self.things = folder, None, []

    def load(self, episode: dict | None, scene: str) -> None:
        """A scene, with the objects and joints of an entry of an episode file."""
        config = habitat_sim.SimulatorConfiguration()
        config.scene_dataset_config_file = str(next(self.folder.glob("*.scene_dataset_config.json")))
        config.scene_id, config.gpu_device_id, config.enable_physics = scene, -1, True
        config.physics_config_file = str(next(self.folder.glob("*.physics_config.json")))
        camera = habitat_sim.CameraSensorSpec()
        camera.uuid, camera.sensor_type = "depth", habitat_sim.SensorType.DEPTH
        camera.resolution, camera.hfov = [SIZE, SIZE], 90.0
        camera.position = mn.Vector3(0, 0, 0)
        agent = habitat_sim.AgentConfiguration(sensor_specifications=[camera])
        settings = habitat_sim.Configuration(config, [agent])
        if self.sim is None:
            self.sim = habitat_sim.Simulator(settings)
        else:
            self.sim.reconfigure(settings)
        self.rigid, self.articulated = self.sim.get_rigid_object_manager(), self.sim.get_articulated_object_manager()
        self.rigid.remove_all_objects()
        self.things = []
        for name, matrix in episode["rigid_objs"] if episode else ():
            (template,) = self.sim.get_object_template_manager().get_template_handles(name)
            self.things.append(self.rigid.add_object_by_template_handle(template))
            self.things[-1].transformation = mn.Matrix4(np.array(matrix).T.tolist())
        for handle, states in (episode or {"ao_states": {}})["ao_states"].items():
            body = self.articulated.get_object_by_handle(handle)
            positions = body.joint_positions
            for link, value in states.items():
                positions[body.get_link_joint_pos_offset(int(link))] = value
            body.joint_positions = positions

    def add_robot(self, pose: tuple[float, float, float]):
        """At a base pose of ours, in the start posture."""
        robot = self.articulated.add_articulated_object_from_urdf(str(self.folder / "robots" / "fetch.urdf"),
                                                                  fixed_base=True)
        x, y, yaw = pose
        robot.transformation = matrix((x, y, 0.0, math.cos(yaw / 2), 0.0, 0.0, math.sin(yaw / 2)))
        positions = robot.joint_positions
        values = dict(
            zip((f"{name}_joint" for name in ARM.names), ARM.start)) | {"torso_lift_joint": TORSO_START_M}
        for link in robot.get_link_ids():
            if robot.get_link_joint_name(link) in values:
                positions[robot.get_link_joint_pos_offset(link)] = values[robot.get_link_joint_name(link)]
        robot.joint_positions = positions
        return robot

    def depth(self, pose: tuple[float, float, float]) -> np.ndarray:
        """What the head camera of a robot at a base pose of ours sees, in metres; FAR_M where that is nothing."""
        eye, target = (to_y_up((*from_frame(p[0], p[1], pose), p[2]))
                       for p in (HEAD.position_m, HEAD.target_m))
        node = self.sim.get_agent(0).scene_node
        node.transformation = mn.Matrix4.look_at(mn.Vector3(*eye), mn.Vector3(*target), mn.Vector3(0, 1, 0))
        image = np.array(self.sim.get_sensor_observations()["depth"])
        return np.where((image == 0) | (image > FAR_M), FAR_M, image)


def matrix(pose) -> mn.Matrix4:
    return mn.Matrix4(np.array(pose_to_matrix(pose)).T.tolist())


def entries(folder: Path, kind: str) -> list[dict]:
    import gzip
    import json

    return json.loads(gzip.decompress((folder / "episodes" / "val" / f"{kind}.json.gz").read_bytes()))["episodes"]


def ours_and_theirs(habitat, kind, index):
    """The same episode in both, objects in Habitat where ours came to rest."""
    episode, entry = generate_episode(kind, "val", index, HOMES), entries(habitat.folder, kind)[index]
    assert read_episodes(habitat.folder / "episodes" / "val" / f"{kind}.json.gz")[index].scene == episode.scene
    sim = MujocoSimulator()
    sim.reset(episode)
    habitat.load(entry, entry["scene_id"])
    for i, thing in enumerate(habitat.things):
        thing.transformation = matrix(sim.object_pose(i))
    return sim, entry


def free_poses(sim, count):
    """Base poses where the robot touches nothing."""
    rng, poses = np.random.default_rng(0), []
    while len(poses) < count:
        x, y, yaw = (*(rng.uniform(0.4, side - 0.4) for side in sim.home.layout.size_m), rng.uniform(-math.pi, math.pi))
        sim.place_robot(x, y, yaw)
        if not sim.robot_collides():
            poses.append((x, y, yaw))
    return poses


@pytest.mark.parametrize("kind, index", [(kind, index) for kind in KINDS for index in range(HOMES)])
def test_both_show_the_same_depth(habitat, kind, index):
    """Within 2 cm on 99 % of the pixels, robot and open drawers and doors in the picture."""
    from rearrange.home.pictures.raster import DepthCamera

    sim, _ = ours_and_theirs(habitat, kind, index)
    camera, image = DepthCamera(sim.model, SIZE, far_m=FAR_M), np.empty((SIZE, SIZE), np.float32)
    robot = None
    for pose in free_poses(sim, 6):
        sim.place_robot(*pose)
        ours = camera.render(sim.data, image) * FAR_M
        if robot is not None:
            habitat.articulated.remove_object_by_handle(robot.handle)
        robot = habitat.add_robot(pose)
        off = np.abs(habitat.depth(pose) - ours)
        assert (off < 0.02).mean() > 0.99, (pose, (off < 0.02).mean())
        assert np.median(off) < 0.001


@pytest.mark.parametrize("kind, index", [(kind, index) for kind in KINDS for index in range(HOMES)])
def test_things_stay_where_the_episode_puts_them(habitat, kind, index):
    """Three seconds of physics from the poses of the episode; ours come to rest in MuJoCo."""
    sim, entry = ours_and_theirs(habitat, kind, index)
    for thing, (_, start) in zip(habitat.things, entry["rigid_objs"]):
        thing.transformation = mn.Matrix4(np.array(start).T.tolist())
    for _ in range(360):
        habitat.sim.step_physics(1 / 120)
    for i, thing in enumerate(habitat.things):
        there = matrix_to_pose(np.array(thing.transformation).tolist())
        assert math.dist(there[:3], sim.object_position(i)) < 0.01, (entry["rigid_objs"][i][0], there[:3])


@pytest.mark.parametrize("index", range(HOMES))
def test_drawers_and_doors_open_the_right_way(habitat, index):
    """Every handle is where ours is at every opening; a force opens them to the end of their range and no farther."""
    sim, _ = ours_and_theirs(habitat, "pick", index)
    entry = entries(habitat.folder, "pick")[index]
    markers = {marker["name"]: marker["params"] for marker in entry["markers"]}
    for joint in sim.home.handles:
        place = markers[joint]
        body = habitat.articulated.get_object_by_handle(place["object"])
        link = next(i for i in body.get_link_ids() if body.get_link_name(i) == place["link"])
        at = body.get_link_joint_pos_offset(link)
        low, high = sim.model.joint(joint).range
        assert (body.joint_position_limits[0][at], body.joint_position_limits[1][at]) == pytest.approx((low, high))
        for opening in (low, 0.3 * high, high):
            positions = body.joint_positions
            positions[at] = opening
            body.joint_positions = positions
            there = body.get_link_scene_node(link).transformation.transform_point(mn.Vector3(*place["offset"]))
            sim.set_joint(joint, opening)
            sim.place_robot(0.0, 0.0, 0.0)
            assert tuple(there) == pytest.approx(to_y_up(tuple(sim.handle_position(joint))), abs=1e-4)
        sim.set_joint(joint, 0.0)
        positions = body.joint_positions
        positions[at] = 0.0
        body.joint_positions = positions
        forces = np.zeros(len(body.joint_forces))
        forces[body.get_link_dof_offset(link)] = 10.0
        for step in range(480):
            body.joint_forces = forces.tolist()
            habitat.sim.step_physics(1 / 120)
        assert body.joint_positions[at] == pytest.approx(high, abs=0.02), joint
        body.joint_positions = [0.0] * len(positions)
        body.joint_velocities = [0.0] * len(body.joint_velocities)


@pytest.mark.parametrize("ahead_m, touches", [(1.0, True), (1.2, False)])
def test_the_arm_meets_the_door_as_ours_does(habitat, ahead_m, touches):
    """The robot before the shut fridge, its hand in the door or before it; nothing else of the robot touches
    anything.
    """
    sim, _ = ours_and_theirs(habitat, "open_fridge", 0)
    x, y, yaw = sim.home.layout.fridge_pose
    pose = (*from_frame(ahead_m, 0.0, (x, y, yaw)), yaw + math.pi)
    sim.place_robot(*pose)
    assert sim.robot_collides() == touches
    robot, door = habitat.add_robot(pose), habitat.articulated.get_object_by_handle(HANDLE["fridge"])
    habitat.sim.perform_discrete_collision_detection()
    own = {robot.object_id, *robot.link_object_ids}
    pairs = [{p.object_id_a, p.object_id_b} for p in habitat.sim.get_physics_contact_points()]
    met = [pair - own for pair in pairs if pair & own]
    assert bool(met) == touches and all(pair <= {door.object_id, *door.link_object_ids} for pair in met)
    habitat.articulated.remove_object_by_handle(robot.handle)


def test_habitat_counts_the_links_as_the_episodes_do(habitat):
    entry = entries(habitat.folder, "pick")[0]
    habitat.load(entry, entry["scene_id"])
    assert set(habitat.articulated.get_object_handles()) == set(HANDLE.values())
    robot = habitat.add_robot((1.0, 1.0, 0.0))
    assert robot.get_link_joint_name(15) == "shoulder_pan_joint" and robot.get_link_name(23) == "suction_cup_link"

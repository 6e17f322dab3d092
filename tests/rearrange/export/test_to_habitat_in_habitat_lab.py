"""Exported homes in the real habitat-lab: its own Fetch drives our URDF, it finds receptacles, reads the episodes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from rearrange.home.axis_conventions import to_y_up
from rearrange.home.geometry import from_frame
from rearrange.home.robot.fetch import ARM
from rearrange.home.simulation.mujoco.simulator import MujocoSimulator

pytest.importorskip("habitat_sim", reason="habitat-sim is not installed")
pytest.importorskip("habitat", reason="habitat-lab is not installed")
pytest.importorskip("trimesh", reason="exporting scenes needs trimesh")

from tests.rearrange.export.test_to_habitat_in_habitat import (  # noqa: E402, F401
    Habitat,
    entries,
    folder,
    generate_episode,
    habitat,
    matrix,
)

HOMES = 3
STOCK_TASK = Path(__file__).resolve().parents[2] / "habitat" / "stock_task.py"


@pytest.fixture
def loaded(habitat: Habitat):  # noqa: F811
    entry = entries(habitat.folder, "close_cabinet")[0]
    habitat.load(entry, entry["scene_id"])
    return habitat


def test_its_fetch_drives_our_urdf(loaded):
    """In the start posture the end-effector is where ours is; the motors hold it there, and it touches nothing."""
    from habitat.articulated_agents.robots.fetch_suction import FetchSuctionRobot

    sim = MujocoSimulator()
    sim.reset(generate_episode("close_cabinet", "val", 0, HOMES))
    x, y, yaw = sim.home.layout.counter_pose
    pose = (*from_frame(1.5, 0.0, (x, y, yaw)), yaw + np.pi / 2)
    sim.place_robot(*pose)
    config = SimpleNamespace(articulated_agent_urdf=str(loaded.folder / "robots" / "fetch.urdf"))
    robot = FetchSuctionRobot(config, loaded.sim)
    robot.reconfigure()
    robot.sim_obj.transformation = matrix((*pose[:2], 0.0, np.cos(pose[2] / 2), 0.0, 0.0, np.sin(pose[2] / 2)))
    robot.update()
    assert robot.arm_joint_pos == pytest.approx(ARM.start, abs=1e-6)
    assert np.array(robot.ee_transform().translation) == pytest.approx(to_y_up(sim.ee_position), abs=1e-4)
    lower, upper = robot.arm_joint_limits
    assert lower[[0, 1, 3, 5]] == pytest.approx([-1.6056, -1.221, -2.251, -2.16], abs=1e-4)
    for _ in range(120):  # a second
        robot.update()
        loaded.sim.step_physics(1 / 120)
    loaded.sim.perform_discrete_collision_detection()
    own = {robot.sim_obj.object_id, *robot.sim_obj.link_object_ids}
    touched = [p for p in loaded.sim.get_physics_contact_points() if {p.object_id_a, p.object_id_b} & own]
    assert robot.arm_joint_pos == pytest.approx(ARM.start, abs=0.02) and not touched
    loaded.articulated.remove_object_by_handle(robot.sim_obj.handle)


def test_it_finds_the_receptacles_on_our_surfaces(loaded):
    from habitat.datasets.rearrange.samplers.receptacle import find_receptacles

    sim = MujocoSimulator()
    sim.reset(generate_episode("close_cabinet", "val", 0, HOMES))
    layout = sim.home.layout
    found = {receptacle.name.removeprefix("receptacle_aabb_"): receptacle
             for receptacle in find_receptacles(loaded.sim)}
    assert set(found) == {receptacle.name for receptacle in layout.receptacles}
    for ours in layout.receptacles:
        center = ours.center_m
        if ours.parent is not None:
            body = next(body for body in layout.bodies if body.name == ours.parent)
            opening = sim.joint_position(ours.parent)
            center = (*from_frame(*center[:2], body.pose(opening)), body.position_m[2] + center[2])
        bounds = found[ours.name].bounds
        there = found[ours.name].get_global_transform(loaded.sim).transform_point(bounds.center())
        below = (0.0, bounds.size_y() / 2, 0.0)
        assert np.array(there) - below == pytest.approx(to_y_up(center), abs=1e-3), ours.name


@pytest.mark.parametrize("kind", ["pick", "close_fridge"])
def test_it_reads_the_episodes(habitat, kind):  # noqa: F811
    from habitat.datasets.rearrange.rearrange_dataset import RearrangeDatasetV0, RearrangeEpisode

    data_set = RearrangeDatasetV0.__new__(RearrangeDatasetV0)
    data_set.episodes, data_set.config = [], None
    import json

    data_set.from_json(json.dumps({"episodes": entries(habitat.folder, kind)}))
    assert len(data_set.episodes) == HOMES and all(isinstance(episode, RearrangeEpisode)
                                                   for episode in data_set.episodes)
    for episode in data_set.episodes:
        assert set(episode.targets) <= set(episode.info["object_labels"])


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with an empty data/ and homes/ with one home and its episodes of the scenarios."""
    from rearrange.command_line.cli import main

    lab = tmp_path_factory.mktemp("lab")
    (lab / "data").mkdir()
    before = os.getcwd()
    os.chdir(lab)
    try:
        assert main(
            ["scenes", "export", "out=homes", "count=1", "episodes_of=[tidy_house,prepare_groceries,set_table]"]) == 0
    finally:
        os.chdir(before)
    return lab


@pytest.mark.parametrize("task", ["tidy_house", "prepare_groceries", "set_table"])
def test_its_own_tasks_run(place, task):
    done = subprocess.run([sys.executable, "-P", str(STOCK_TASK), task, "homes"], cwd=place, capture_output=True,
                          text=True, timeout=300)
    assert done.returncode == 0 and "ok" in done.stdout.split(), done.stderr[-2000:]

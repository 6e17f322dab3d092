"""Sense-plan-act: it knows its senses alone, its map is what was seen, its distances are those of the points."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from planner.execute import Executor
from planner.spa import controllers as spa
from planner.spa.senses import SIZE, Senses, arm_spheres
from planner.spa.voxel_map import CloudClearance, Map
from rearrange.home.errors import UserError
from rearrange.home.robot.fetch import ARM, BASE, FETCH
from rearrange.home.simulation.mujoco.simulator import MujocoSimulator
from skills.arguments import about_object
from skills.experts.arm_model import arm_model
from tests.planner.puppet import executor, scenario_env


@pytest.fixture(scope="module")
def run() -> Executor:
    """Tidy House, carried out by the controllers."""
    run = executor(scenario_env("tidy_house"))
    run.experts = spa.controllers()
    return run


def fake(points: np.ndarray, depth: float = 10.0) -> SimpleNamespace:
    """Senses at the origin that see these points, and `depth` metres in every direction."""
    return SimpleNamespace(base_pose=(0.0, 0.0, 0.0), points=lambda: np.array(points, float).reshape(-1, 3),
                           depth_m=lambda: np.full((SIZE, SIZE), depth), robot=FETCH)


def test_the_points_of_the_camera_lie_on_what_is_there(run):
    import mujoco

    run.reset(0, 0)
    senses, sim = Senses(run.sim), run.sim
    points = senses.points()
    assert len(points) > SIZE * SIZE / 3 and (np.abs(points[:, 2]) < 0.01).sum() > 100, "the floor is at 0"
    eye = sim.data.camera("head").xpos
    for point in points[::len(points) // 40]:
        ray, geom = (point - eye) / np.linalg.norm(point - eye), np.zeros(1, np.int32)
        hit_m = mujoco.mj_ray(sim.model, sim.data, eye, ray, None, 1, -1, geom)
        assert hit_m == pytest.approx(np.linalg.norm(point - eye), abs=0.02)
        assert not sim.model.geom(int(geom[0])).name.startswith(("arm_", "gripper", "suction")), "it sees itself"
    tip, _ = senses.hand()
    assert tip == pytest.approx(sim.ee_position, abs=0.01)


def test_controllers_cannot_reach_the_simulator(run):
    run.reset(0, 0)
    allowed = {"arm_positions", "arm_targets", "base_pose", "config", "depth_m", "from_base", "hand", "is_holding",
               "points", "robot", "to_base"}
    assert {name for name in (*dir(Senses), *vars(Senses(run.sim))) if not name.startswith("_")} == allowed
    for name, make in spa.controllers().items():
        skill = run.skills[name]
        about = about_object(run.sim, run.episode, next(iter(run.episode.targets)))
        skill.arguments = replace(about, handle="fridge_door")
        controller = make(run.sim, skill)
        assert not any(isinstance(value, MujocoSimulator) for value in vars(controller).values()), name


def test_the_map_forgets_what_it_sees_through():
    home = Map((0.0, 0.0, 0.0), BASE)
    home.look(fake([[1.0, 0.0, 0.9], [1.0, 0.0, 0.01]], depth=0.8))
    assert home.boxes.sum() == 1 and home.near(0.0, 0.0)[0] == pytest.approx((1.0, 0.0, 0.9), abs=0.03), "not the floor"
    home.look(fake([], depth=0.8))
    assert home.boxes.sum() == 1, "it may be hidden behind what is seen"
    home.look(fake([], depth=3.0))
    assert home.boxes.sum() == 0


def test_distances_are_to_the_points():
    home = Map((0.0, 0.0, 0.0), BASE)
    arm = np.array(ARM.start)
    ahead = CloudClearance(fake([[BASE.radius_m + 0.03, 0.0, 0.2]]), home, None)
    assert ahead.distance((0.0, 0.0, 0.0), arm, base_only=True) == pytest.approx(0.03, abs=0.011)
    assert ahead.distance((0.1, 0.0, 0.0), arm, base_only=True) < -0.05
    centres, radii = arm_spheres(FETCH, arm)
    tip, _ = arm_model(FETCH).hand(arm)
    assert centres[-1] == pytest.approx(tip, abs=0.03) and len(centres) == len(radii) > 10
    at_palm = fake([centres[-2]])
    assert CloudClearance(at_palm, home, None).distance((0.0, 0.0, 0.0), arm) < -0.02
    assert CloudClearance(at_palm, home, tip).distance((0.0, 0.0, 0.0), arm) > 0.04, "it is to be touched"


def test_it_stands_where_it_sees_the_target_and_drives_around():
    home = Map((0.0, 0.0, 0.0), BASE)
    wall = [[1.0, y, z] for y in np.arange(-1.0, 1.01, 0.04) for z in (0.3, 0.9)]
    shelf = [[2.4, y, z] for y in np.arange(-0.5, 0.51, 0.04) for z in np.arange(0.1, 0.8, 0.04)]
    home.look(fake(wall + shelf, depth=0.2))
    (x, y, yaw), way = home.way_to(fake([]), (2.5, 0.0), (0.62, 0.86), [])
    assert 0.6 < math.dist((x, y), (2.5, 0.0)) < 0.9 and math.cos(yaw - math.atan2(-y, 2.5 - x)) > 0.999
    pose, driven = (0.0, 0.0, 0.0), 0.0
    while math.dist(pose[:2], (x, y)) > 0.1 and driven < 10.0:
        after = home.ahead(way, pose)
        driven += math.dist(pose[:2], after)
        pose = (*after, 0.0)
        assert min(math.dist(pose[:2], point[:2]) for point in wall) > BASE.radius_m
    assert 2.5 < driven < 6.0, "around the wall"


def test_it_drives_to_the_first_object(run):
    run.reset(0, 0)
    target = run.sim.start_positions[run.symbols.objects["object_0"]]
    while run.at == 0 and not run.done:
        run.advance(None)
    assert run.report.records[0].ended == "done" and 0.4 < math.dist(run.sim.base_pose[:2], target[:2]) < 1.1


def test_a_scenario_whose_plan_closes_something_is_refused(run):
    from eval.scenario.skill_sources import sources

    assert {source.kind for source in sources("tp_spa", {}, ["pick"], None, "x").values()} == {"spa"}
    with pytest.raises(UserError, match="close_cabinet"):
        sources("tp_spa", {}, ["close_cabinet"], None, "x")

"""Whether the robot can stand somewhere is found without the whole state, which is as if it had been computed."""

import math

import mujoco
import numpy as np
import pytest

from rearrange.home.episodes.generator import generate_episode
from rearrange.home.simulation.mujoco.simulator import MujocoSimulator
from rearrange.home.simulation.simulator_base import RobotInHome


def same(one: MujocoSimulator, other: MujocoSimulator, fields: str) -> bool:
    return all(np.array_equal(getattr(one.data, name), getattr(other.data, name)) for name in fields.split())


@pytest.mark.parametrize("held", [None, 0])
def test_it_leaves_the_state_of_the_whole_computation(held):
    """Poses before the objects of an episode, one after another: what one of them wakes stays awake in the next."""
    rng, woken, free = np.random.default_rng(0), 0, 0
    quick, whole = MujocoSimulator(), MujocoSimulator()
    for episode in (generate_episode("pick", "train", index) for index in range(12)):
        for sim in (quick, whole):
            sim.reset(episode)
        for _ in range(20):
            x, y, _ = quick.start_positions[rng.integers(len(episode.objects))]
            yaw, away = rng.uniform(-math.pi, math.pi), rng.uniform(0.3, 0.9)
            pose, asleep = (x - away * math.cos(yaw), y - away * math.sin(yaw), yaw), quick.data.tree_asleep.copy()
            stands = quick.stands_free(*pose, held)
            assert stands == RobotInHome.stands_free(whole, *pose, held)
            assert same(quick, whole, "qpos qvel ctrl tree_asleep xpos site_xpos eq_active")
            assert (quick.base_pose, quick.ee_position, quick.held) == (whole.base_pose, whole.ee_position, whole.held)
            woken += int(((asleep >= 0) & (quick.data.tree_asleep < 0)).sum())
            free += stands
            if stands:
                assert same(quick, whole, "qacc qfrc_constraint efc_force actuator_force")
                for sim in (quick, whole):
                    sim.step(base=[1.0, 0.5])
                assert same(quick, whole, "qpos qvel qacc_warmstart tree_asleep")
    assert woken > 10 and free > 20, "or nothing would have been tested"


def test_only_a_free_place_is_computed_whole(monkeypatch):
    sim = MujocoSimulator()
    sim.reset(generate_episode("pick", "train", 0))
    computed, forward = [], mujoco.mj_forward
    monkeypatch.setattr(mujoco, "mj_forward", lambda *of: computed.append(of) or forward(*of))
    (width, depth), yaws = sim.home.layout.size_m, np.linspace(-math.pi, math.pi, 8)
    in_wall = [sim.stands_free(0.0, y, yaw) for y in np.arange(0.5, depth, 0.5) for yaw in yaws]
    assert not any(in_wall) and len(computed) < 0.2 * len(in_wall), "where it touches things that sleep"
    assert any(sim.stands_free(x, depth / 2, yaw) for x in np.arange(0.5, width, 0.5) for yaw in yaws) and computed


def test_nothing_is_between_a_point_and_itself():
    sim = MujocoSimulator()
    sim.reset(generate_episode("pick", "train", 0))
    (x, y, _), top = sim.home.layout.receptacles[0].center_m, (0.0, 0.0, 2.0)
    assert not sim.blocked(top, top) and not sim.blocked((x, y, 0.0), (x, y, 1e-13)) and sim.blocked((x, y, -1.0), top)

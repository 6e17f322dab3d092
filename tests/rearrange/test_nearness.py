"""Leaving far links out of the collision test changes nothing that happens."""

import mujoco
import numpy as np
import pytest

import rearrange.simulator
from rearrange.compiled_home import load_home
from rearrange.nearness import FURNITURE_BIT, reachable
from skills import make_env


def drive_around(steps: int, base_speed_m_s: float) -> tuple[np.ndarray, int]:
    """States of a robot that is driven and waved into things, and how many contacts there were."""
    env = make_env("pick", depth_size=0, base_speed_m_s=base_speed_m_s)
    rng = np.random.default_rng(0)
    env.reset(seed=1)
    states, contacts = [], 0  # homes differ in their number of drawers
    for i in range(steps):
        if i % 40 == 0:
            drift = rng.normal(0.0, 1.5, env.action_space.shape)
        _, _, terminated, truncated, _ = env.step(np.clip(drift + 0.3 * rng.standard_normal(drift.shape), -1, 1))
        states.append(env.sim.data.qpos.copy())
        contacts += env.sim.data.ncon
        if terminated or truncated:
            env.reset()
    return np.concatenate(states), contacts


@pytest.mark.parametrize("base_speed_m_s", [1.0, 2.5])
def test_the_motion_is_the_same_bit_for_bit(monkeypatch, base_speed_m_s):
    fast, contacts = drive_around(900, base_speed_m_s)
    assert contacts > 50  # or nothing would have been tested
    monkeypatch.setattr(rearrange.simulator, "reachable", lambda *args: args[-1].__setitem__(slice(None), args[-3]))
    full, _ = drive_around(900, base_speed_m_s)
    assert np.array_equal(fast, full)


def test_links_far_from_everything_are_left_out_and_near_ones_are_not():
    home = load_home("train/0")
    near, data = home.nearness, mujoco.MjData(home.model)
    bits, room = np.zeros(len(near.bits), np.int32), np.empty((len(near.bits), 7))
    still = np.zeros(near.dofs.stop - near.dofs.start)

    def links_tested(x: float, y: float, speed: float = 0.0) -> int:
        mujoco.mj_copyData(data, home.model, home.parked)
        data.qpos[home.base_qpos] = (x, y, 0.0)
        mujoco.mj_kinematics(home.model, data)
        reachable(near.furniture, data.geom_xpos, data.geom_xmat, near.geoms, near.boxes, still + speed, near.reach_m,
                  near.link_of_dof, 1 / 30, near.bits, room, bits)
        return int((bits & FURNITURE_BIT > 0).sum())

    all_links = int((near.bits & FURNITURE_BIT > 0).sum())
    assert links_tested(-30.0, -30.0) == 0
    assert links_tested(-30.0, -30.0, speed=1000.0) == all_links  # nothing is far at such a speed
    wall = near.furniture[0]
    assert 0 < links_tested(float(wall[0]) - 0.3, float((wall[1] + wall[4]) / 2)) <= all_links
    assert all(near.reach_m > 0.25) and near.reach_m.max() < 2.5

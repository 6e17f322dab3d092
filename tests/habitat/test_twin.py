"""The twin of a Habitat simulator: an embedded simulator with everything where it is there.

Here MuJoCo's simulator stands for Habitat's.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from rearrange.habitat.mujoco_twin import Twin
from rearrange.home.robot.fetch import TORSO
from rearrange.home.simulation.mujoco.simulator import MujocoSimulator
from skills import make_env


def seen_as_habitat(sim):
    """What a twin asks of Habitat's simulator."""
    torso_m = float(sim.data.qpos[sim.model.joint(TORSO).qposadr[0]])
    return SimpleNamespace(
        episode=sim.episode, home=sim.home, base_pose=sim.base_pose, body=SimpleNamespace(still={TORSO: torso_m}),
        arm_positions=sim.arm_positions, object_pose=sim.object_pose, joint_position=sim.joint_position)


def same(twin, sim) -> bool:
    poses = [(twin.object_pose(i), sim.object_pose(i)) for i in range(len(sim.episode.objects))]
    hands = twin.data.site("end_effector").xpos, sim.data.site("end_effector").xpos
    joints = [(twin.joint_position(name), sim.joint_position(name)) for name in sim.home.handles]
    return all(np.allclose(a, b, atol=1e-9) for a, b in (*poses, hands, *joints))


@pytest.mark.parametrize("skill", ["place", "open_fridge"])
def test_it_has_everything_where_it_is_whenever_it_is_asked_after_a_step(skill):
    env = make_env(skill, depth_size=0, num_layouts=2)
    twin, sim = Twin(MujocoSimulator(env.sim.config)), env.sim
    for episode in range(2):
        env.reset(options={"episode": episode})
        assert same(twin.of(seen_as_habitat(sim)), sim)
        for _ in range(15):
            env.step(np.full(env.action_space.shape, 0.5, np.float32))
        assert not same(twin.of(seen_as_habitat(sim)), sim), "nobody said that it is not current"
        twin.is_current = False
        assert same(twin.of(seen_as_habitat(sim)), sim)

"""Pick and Place with `any_start`: from every side from which the object, or its goal, is in reach."""

from __future__ import annotations

import math

import pytest

from rearrange.home.geometry import wrap_angle
from skills import make_env

SEEDS = 12


def starts(skill: str, episode: int, **settings) -> list[tuple[float, float, float]]:
    """Base poses (x, y, yaw) at which an episode starts with one seed after another."""
    env = make_env(skill, depth_size=0, any_start=True, start_yaw_noise_rad=0.0, **settings)
    poses = []
    for seed in range(SEEDS):
        env.reset(seed=seed, options={"episode": episode})
        sim, target = env.sim, env.skill.target
        assert not sim.robot_collides() and sim.held == (target if skill == "place" else None)
        x, y, yaw = sim.base_pose
        point = sim.episode.targets[target] if skill == "place" else sim.start_positions[target]
        assert wrap_angle(math.atan2(point[1] - y, point[0] - x) - yaw) == pytest.approx(0.0, abs=0.01)
        poses.append((x, y, yaw, math.dist((x, y), point[:2])))
    return poses


@pytest.mark.parametrize("skill", ["pick", "place"])
def test_it_starts_on_more_sides_than_one_and_always_in_reach(skill):
    turned = 0
    for episode in range(8):
        poses = starts(skill, episode, start_position_noise_m=0.0)
        in_reach = [distance <= 0.85 for *_, distance in poses]
        assert all(in_reach) or not any(in_reach)  # none may be in reach: then HAB's start is taken
        turned += max(abs(wrap_angle(yaw - poses[0][2])) for _, _, yaw, _ in poses) > 1.0
    assert turned >= 2


@pytest.mark.parametrize("skill", ["pick", "place"])
def test_noise_moves_the_start(skill):
    still, moved = (starts(skill, 0, start_position_noise_m=noise) for noise in (0.0, 0.1))
    assert len({pose[:2] for pose in still}) < len({pose[:2] for pose in moved}) == SEEDS
    assert max(distance for *_, distance in moved) <= 0.85 + 0.2 * math.sqrt(2) + 1e-6

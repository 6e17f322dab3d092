"""What every listed skill must fulfil; a new line in SKILLS is tested without a new test."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from rearrange.env.skill_env import ENV_FAILURES
from rearrange.home.action_layout import ACTION_PARTS
from rearrange.home.episodes.generator import KINDS, generate_episode
from rearrange.home.errors import UserError
from rearrange.home.simulation.observations import OBSERVATIONS
from skills import SKILLS, config_class, make_env, skill_class
from tests.rearrange.penetration import arm_axis_depth_m, robot_depth_m


@pytest.fixture(params=SKILLS)
def env(request):
    return make_env(request.param, depth_size=16)


def test_names_and_config(env):
    skill = env.skill
    assert skill_class(skill.name) is type(skill) and config_class(skill.name) is type(skill.config)
    assert skill.episode_kind in KINDS
    assert set(skill.action_parts) <= set(ACTION_PARTS)
    assert set(skill.observation_keys) <= {"depth", *OBSERVATIONS}
    with pytest.raises(dataclasses.FrozenInstanceError):
        skill.config.max_steps = 1


def test_it_sees_every_observation_that_it_is_said_to_have(env):
    with pytest.raises(UserError, match="; there are ") as caught:
        make_env(env.skill.name, observation_keys=("smell",))
    keys = tuple(str(caught.value).partition("there are ")[2].rstrip(".").split(", "))
    assert set(env.skill.observation_keys) <= set(keys)
    assert set(make_env(env.skill.name, depth_size=16, observation_keys=keys).reset(seed=0)[0]) == set(keys)


def test_same_seed_same_trajectory_whatever_came_before(env):
    def trajectory(env) -> list[bytes]:
        rng, out = np.random.default_rng(3), []
        observation, info = env.reset(seed=11)
        out += [info["episode_id"].encode(), *(value.tobytes() for value in observation.values())]
        for _ in range(40):
            observation, reward, terminated, truncated, _ = env.step(rng.uniform(-1, 0.5, env.action_space.shape))
            out += [np.float64(reward).tobytes(), *(value.tobytes() for value in observation.values())]
            if terminated or truncated:
                break
        return out

    first = trajectory(env)
    env.reset(seed=4)
    assert trajectory(env) == first == trajectory(make_env(env.skill.name, depth_size=16))


def test_an_episode_that_does_not_say_what_to_move_is_refused(env):
    episode = generate_episode(env.skill.episode_kind, "train", 0)
    empty = dataclasses.replace(episode, target_receptacles=(), goal_receptacles=())
    for wrong in (empty, dataclasses.replace(empty, targets={})):
        with pytest.raises(UserError, match="episode") as error:
            env.reset(options={"episode": wrong})
        assert "\n" not in str(error.value)


def test_a_spectator_sees_marks_and_words(env):
    env.reset(seed=0)
    marks, lines = env.skill.marks(env.sim), env.status_lines()
    assert marks and 2 <= len(lines) <= 5 and all(line and "\n" not in line for line in lines)


def test_reward_terms_are_those_of_the_scales_and_failures_are_listed(env):
    rng = np.random.default_rng(0)
    for seed in range(5):
        env.reset(seed=seed)
        while True:
            _, reward, terminated, truncated, info = env.step(rng.uniform(-1, 1, env.action_space.shape))
            assert np.isfinite(reward)
            if terminated or truncated:
                break
        names = {name.removeprefix("reward/") for name in info["metrics"] if name.startswith("reward/")}
        assert names == set(env.skill.reward_scales)
        assert set(env.skill.reward_terms(env.sim)) == names
        failures = {name.removeprefix("failure/") for name in info["metrics"] if name.startswith("failure/")}
        assert failures == {*env.skill.failures, *ENV_FAILURES}


def test_doing_nothing_fails_by_time_and_never_succeeds(env):
    for seed in range(3):
        env.reset(seed=seed)
        nothing = np.zeros(env.action_space.shape, np.float32)
        truncated = terminated = False
        while not (terminated or truncated):
            _, _, terminated, truncated, info = env.step(nothing)
        assert truncated and env.steps == env.skill.max_steps and not info["success"]


def test_random_actions_hold_nothing_without_touch_and_go_through_nothing(env):
    rng = np.random.default_rng(1)
    deepest = 0.0
    for seed in range(6):
        env.reset(seed=100 + seed)
        sim, noise = env.sim, np.zeros(env.action_space.shape)
        held_before, done = False, False
        while not done:
            noise = 0.95 * noise + 0.3 * rng.standard_normal(noise.shape)
            _, _, terminated, truncated, _ = env.step(noise)
            done = terminated or truncated
            deepest = max(deepest, robot_depth_m(sim))
            if sim.is_holding and not held_before:
                assert sim.hand.touches(), "held without touch"
            held_before = sim.is_holding
    assert deepest < 0.04


def test_no_robot_starts_with_its_arm_in_a_wall(env):
    """Found in test homes, by the episodes that a trained policy could not move in: 6 of 500 of Navigate."""
    env = make_env(env.skill.name, split="test", depth_size=0)
    for episode in range(100, 130):  # 115 of Navigate was one
        env.reset(options={"episode": episode})
        assert arm_axis_depth_m(env.sim) == 0.0, f"episode {episode}"

"""A vector of homes gives what Gymnasium's own vector of the same environments gives, in every mode."""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import rearrange
from rearrange.env.vector_env import VectorOfHomes
from rearrange.home.errors import UserError

N = 3
CASES = (  # an id with settings under which episodes end after some steps
    ("rearrange/Pick-v0", {"num_layouts": 2, "depth_size": 16, "max_steps": 4, "observations": ["rgb", "instruction"],
                           "camera_size": 8}),
    ("rearrange/Place-v0", {"num_layouts": 2, "depth_size": 0, "max_steps": 7}),
    ("rearrange/OpenFridge-v0", {"num_layouts": 2, "depth_size": 0, "max_steps": 3}),
    ("rearrange/PointNav-v0", {"num_homes": 2, "depth_size": 16, "max_steps": 5}),
    ("rearrange/SetTable-v0", {"num_layouts": 2, "depth_size": 0}),
)


def both(id: str, settings: dict[str, Any], mode: AutoresetMode) -> tuple[gymnasium.vector.VectorEnv, ...]:
    ours = gymnasium.make_vec(id, N, vectorization_mode="vector_entry_point", autoreset_mode=mode.value, **settings)
    one = partial(gymnasium.make, id, disable_env_checker=True, **settings)
    return ours, SyncVectorEnv([one] * N, autoreset_mode=mode)


def assert_same(ours: Any, theirs: Any, where: str = "") -> None:
    if isinstance(theirs, dict):
        assert set(ours) == set(theirs), where
        for key in theirs:
            assert_same(ours[key], theirs[key], f"{where}/{key}")
    elif isinstance(theirs, (tuple, list)) or isinstance(theirs, np.ndarray) and theirs.dtype == object:
        assert len(ours) == len(theirs), where
        for a, b in zip(ours, theirs):
            assert_same(a, b, where)
    elif isinstance(theirs, np.ndarray):
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape and (ours == theirs).all(), where
    else:
        assert ours == theirs, where


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("id, settings", CASES)
def test_it_gives_what_gymnasiums_vector_gives_bit_for_bit(id, settings, mode):
    pair = both(id, settings, mode)
    assert isinstance(pair[0], VectorOfHomes) and pair[0].metadata["autoreset_mode"] is mode
    for name in ("observation_space", "action_space", "single_observation_space", "single_action_space", "render_mode"):
        assert getattr(pair[0], name) == getattr(pair[1], name)
    assert_same(*(envs.reset(seed=5) for envs in pair))
    pair[0].action_space.seed(0)
    ended = 0
    for _ in range(20):
        actions = pair[0].action_space.sample()
        results = [envs.step(actions) for envs in pair]
        assert_same(*results)
        done = results[0][2] | results[0][3]
        ended += done.sum()
        if done.any() and mode is AutoresetMode.DISABLED:
            assert_same(*(envs.reset(options={"reset_mask": done}) for envs in pair))
    assert ended or "max_steps" not in settings
    for envs in pair:
        envs.close()


def test_arrays_that_were_handed_out_stay_as_they_are():
    envs, _ = both(*CASES[1], AutoresetMode.SAME_STEP)
    first, _ = envs.reset(seed=[1, 2, 3])
    before = {key: value.copy() for key, value in first.items()}
    rewards = [envs.step(envs.action_space.sample())[1] for _ in range(3)]
    assert_same(first, before)
    assert rewards[0] is not rewards[1] and not (rewards[0] == rewards[2]).all()


@pytest.mark.parametrize("asked, said", [
    (lambda envs: envs.reset(seed=[1, 2]), "2 seeds for 3 environments"),
    (lambda envs: envs.reset(options={"reset_mask": np.zeros(3, bool)}), "reset_mask"),
    (lambda envs: envs.reset(options={"reset_mask": [True, True, True]}), "reset_mask"),
    (lambda envs: envs.step(envs.action_space.sample()[:2]), "2 actions for 3 environments"),
])
def test_a_wrong_size_is_one_sentence(asked, said):
    envs, _ = both(*CASES[1], AutoresetMode.NEXT_STEP)
    envs.reset(seed=0)
    with pytest.raises(ValueError, match=said):
        asked(envs)


@pytest.mark.parametrize("settings, said", [
    ({"num_envs": 0}, "num_envs=0"), ({"autoreset_mode": "Never"}, "autoreset_mode='Never' is none of NextStep"),
    ({"depth_size": -1}, "depth_size"), ({"speed": 3}, "speed"),
])
def test_a_wrong_setting_is_one_sentence(settings, said):
    with pytest.raises(UserError, match=said):
        gymnasium.make_vec("rearrange/Pick-v0", **{"num_envs": 2, **settings})


def test_one_that_has_ended_is_not_stepped_where_nothing_begins_by_itself():
    envs, _ = both(*CASES[2], AutoresetMode.DISABLED)
    envs.reset(seed=0)
    with pytest.raises(RuntimeError, match=r"environments \[0, 1, 2\] have ended"):
        for _ in range(4):
            envs.step(envs.action_space.sample())


def test_every_id_has_a_vector_and_attributes_are_reached():
    assert rearrange.__version__
    ids = [id for id in gymnasium.registry if id.startswith("rearrange/")]
    assert ids and all(gymnasium.spec(id).vector_entry_point for id in ids)
    envs = gymnasium.make_vec("rearrange/PointNav-v0", 2, num_homes=2, render_mode="rgb_array")  # the default
    assert isinstance(envs, VectorOfHomes)
    envs.reset(seed=3)
    assert [picture.shape for picture in envs.render()] == [envs.render()[0].shape] * 2
    assert len(envs.call("status_lines")) == 2
    envs.set_attr("mark", [1, 2])
    assert envs.get_attr("mark") == (1, 2)

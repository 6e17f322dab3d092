"""The recipe for Stable-Baselines3 in docs/gymnasium.md, and its policy as an agent in docs/remote.md."""

from __future__ import annotations

import contextlib
import io
import json
import os

import gymnasium
import numpy as np
import pytest
import torch

import rearrange  # noqa: F401
from rearrange.command_line.cli import main
from tests.docs.markdown import HOME, blocks, commands

sb3 = pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is not installed: pip install -e '.[peers]'")


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    """What the recipe leaves after 128 steps."""
    os.environ["SB3_LOGDIR"] = str(tmp_path_factory.mktemp("sb3"))  # else a folder in the system's temporary one
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    (code,) = (code for code in blocks(HOME / "docs" / "gymnasium.md", "python") if "stable_baselines3" in code)
    for full, small in (("total_timesteps=100_000", "total_timesteps=128"), ('make("train", 8)', 'make("train", 2)'),
                        ("n_steps=128", "n_steps=32"), ("eval_freq=2048", "eval_freq=64, n_eval_episodes=1")):
        assert full in code
        code = code.replace(full, small)
    names = {"__name__": "recipe"}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, "docs/gymnasium.md", "exec"), names)
    torch.set_num_threads(threads)
    del os.environ["SB3_LOGDIR"]
    return names | {"printed": printed.getvalue()}


def test_it_trains_and_counts_successes(recipe):
    model = recipe["model"]
    assert model.num_timesteps == 128
    assert "Success rate: " in recipe["printed"]
    assert type(model.policy.features_extractor.extractors["depth"]).__name__ == "NatureCNN"


def test_the_network_sees_the_depth_as_it_is(recipe):
    model, env = recipe["model"], recipe["make"]("val", 1)
    given = env.reset()
    observation, _ = model.policy.obs_to_tensor(given)
    preprocess = sb3.common.preprocessing.preprocess_obs
    seen = preprocess(observation, env.observation_space, model.policy.normalize_images)["depth"]
    assert seen.shape == (1, 1, 64, 64) and np.array_equal(seen.numpy(), given["depth"])


def test_without_the_recipe_depth_is_flattened_as_the_page_says():
    env = gymnasium.make("rearrange/Pick-v0", depth_size=64, num_layouts=2)
    policy = sb3.PPO("MultiInputPolicy", env, n_steps=64).policy
    assert type(policy.features_extractor.extractors["depth"]).__name__ == "Flatten"


def test_it_steps_environments_in_processes_of_its_own(recipe):
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import SubprocVecEnv

    envs = make_vec_env("rearrange:rearrange/Pick-v0", 2, env_kwargs={"depth_size": 16, "num_layouts": 2},
                        vec_env_cls=SubprocVecEnv, vec_env_kwargs={"start_method": "forkserver"})
    try:
        assert envs.reset()["depth"].shape == (2, 16, 16, 1)
        _, rewards, _, infos = envs.step(np.zeros((2, 10), np.float32))
        assert np.isfinite(rewards).all() and all("is_success" in info for info in infos)
    finally:
        envs.close()


def test_its_policy_is_evaluated_as_the_page_on_remote_policies_says(recipe, tmp_path, monkeypatch):
    page = HOME / "docs" / "remote.md"
    (code,) = (code for code in blocks(page, "python") if "stable_baselines3" in code)
    (line,) = (line for line in commands(page) if "sb3_pick" in line)
    recipe["model"].save(tmp_path / "sb3_pick")
    (tmp_path / "sb3_pick.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert main([*line.split()[1:], "episodes=2", "workers=1", "skill.max_steps=4", "video=0", "name=sb3"]) == 0
    assert json.loads((tmp_path / "outputs/eval/pick/sb3/metrics.json").read_text())["mean_steps"] == 4

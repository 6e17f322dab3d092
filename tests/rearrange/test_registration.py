"""The environments as Gymnasium and its friends use them: ids, the checker, bounds, wrappers, videos, worker
processes.
"""

from __future__ import annotations

import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import rearrange
from planner.scenario_env import ScenarioEnv
from planner.scenarios import scenarios
from rearrange.command_line.listing import text
from rearrange.env.registration import environment_id
from rearrange.home.errors import UserError
from rearrange.home.settings.environment import NAVIGATION
from rearrange.home.simulation.observations import _OF, OBSERVATIONS
from skills import SKILLS, make_env, skill_class
from skills.experts import EXPERTS
from tests.rearrange.screen import Screen

IDS = [environment_id(name) for name in (*SKILLS, *scenarios(), *NAVIGATION)]
NAVIGATION_IDS = [environment_id(name) for name in NAVIGATION]


def python(code: str, **options) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_ids_are_of_skills_scenarios_and_navigation_tasks_and_are_listed(tmp_path):
    assert {"rearrange/Pick-v0", "rearrange/OpenCabinet-v0", "rearrange/TidyHouse-v0", "rearrange/SetTable-v0",
            "rearrange/PointNav-v0"} < set(IDS)
    others = {"rearrange/Skill-v0", "rearrange/Scenario-v0"}  # of all that are not ours
    assert {id for id in gymnasium.registry if id.startswith("rearrange/")} == set(IDS) | others
    listed = text(tmp_path).split()
    assert all(id in listed for id in IDS)


@pytest.mark.parametrize("id", IDS)
def test_gymnasiums_checker_has_nothing_to_say(id, monkeypatch):
    monkeypatch.setitem(sys.modules, "tkinter", Screen().tkinter)  # it sees every render_mode
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(id, depth_size=16, render_mode="rgb_array",
                             **{"num_homes" if id in NAVIGATION_IDS else "num_layouts": 2})
        check_env(env.unwrapped)  # makes it anew for each, to see it render
    made = env.unwrapped
    assert env.spec.id == id and (made.split if id in NAVIGATION_IDS else made.home.split) == "train"
    assert env.observation_space["depth"].shape == (16, 16, 1), "the settings that were given"


@pytest.mark.parametrize("code", [
    "import rearrange, gymnasium; spec = gymnasium.spec('rearrange/Pick-v0')",
    "import gymnasium, rearrange; spec = gymnasium.spec('rearrange/SetTable-v0')",
    "import gymnasium; spec = gymnasium.make('rearrange:rearrange/Pick-v0', depth_size=0).spec",
])
def test_importing_the_package_is_enough(code, tmp_path):
    assert python(f"{code}; print(spec.namespace)", cwd=tmp_path) == "rearrange"


def test_a_package_that_imports_it_may_be_run_as_a_module(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "__init__.py").write_text("import rearrange")
    (tmp_path / "mine" / "__main__.py").write_text("import gymnasium; print('rearrange/Pick-v0' in gymnasium.registry)")
    done = subprocess.run([sys.executable, "-m", "mine"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.stdout == "True\n", done.stderr


def test_importing_the_package_imports_no_simulator():
    assert python("import sys, rearrange; print([m for m in ('mujoco', 'numba', 'torch', 'hydra') if m in "
                  "sys.modules])") == "[]"


def test_processes_that_gymnasium_starts_know_the_ids():
    def make():
        return gymnasium.make("rearrange:rearrange/Pick-v0", depth_size=0, num_layouts=2)

    envs = gymnasium.vector.AsyncVectorEnv([make, make], context="spawn")
    try:
        observation, _ = envs.reset(seed=3)
        assert observation["obj_start"].shape == (2, 3)
    finally:
        envs.close()


def test_names_are_loaded_on_first_use():
    assert rearrange.make_env is make_env and set(rearrange.__all__) == set(rearrange._HOME)
    assert issubclass(rearrange.UserError, ValueError) and rearrange.RearrangeEnv.__name__ == "RearrangeEnv"
    with pytest.raises(AttributeError, match="module 'rearrange' has no attribute 'mak_env'"):
        rearrange.mak_env


# ---------------------------------------------------------------------- settings of an id


def test_an_id_is_of_one_skill():
    assert gymnasium.make("rearrange/Pick-v0", depth_size=0, skill="pick").unwrapped.skill.name == "pick"
    with pytest.raises(UserError, match="skill='place' cannot be given here"):
        gymnasium.make("rearrange/Pick-v0", skill="place")


def test_settings_of_a_scenario():
    env = gymnasium.make("rearrange/TidyHouse-v0", depth_size=0, max_steps=3, num_layouts=2, split="val",
                         reward_scales={"slack": -1.0}).unwrapped
    _, info = env.reset(seed=0)
    assert info["scene"].startswith("val/")
    for _ in range(3):
        _, reward, terminated, truncated, info = env.step(np.full(11, -1.0, np.float32))
        assert reward < -0.9
    assert truncated and info["success"] is info["is_success"] is False


@pytest.mark.parametrize("settings, said", [
    ({"splitt": "val"}, "scenario tidy_house has no setting 'splitt' (did you mean 'split'?)"),
    ({"max_steps": 0}, "max_steps=0"), ({"split": "x"}, "split=x"), ({"depth_size": "64"}, "depth_size='64'"),
    ({"reward_scales": {"slak": 1.0}}, "'slak'"), ({"config": None}, "no setting 'config'"),
])
def test_wrong_settings_of_a_scenario_are_told(settings, said):
    with pytest.raises(UserError) as error:
        gymnasium.make("rearrange/TidyHouse-v0", **settings)
    assert said in str(error.value) and "\n" not in str(error.value)


# ---------------------------------------------------------------------- observations stay within their bounds


def rollouts(env, actor, episodes: int):
    """Every observation of some episodes, and the last info of each."""
    for episode in range(episodes):
        observation, _ = env.reset(options={"episode": episode})
        act, over = actor(env, np.random.default_rng(episode)), False
        yield observation, None
        while not over:
            observation, _, terminated, truncated, info = env.step(act())
            over = terminated or truncated
            yield observation, info if over else None


def at_random(env, rng):
    return lambda: rng.uniform(-1, 1, env.action_space.shape).astype(np.float32)


def in_jerks(env, rng):
    """Full commands, held for a second: what throws the arm against furniture."""
    state = {"step": 0}

    def act():
        if state["step"] % 30 == 0:
            state["action"] = np.sign(rng.uniform(-1, 1, env.action_space.shape)).astype(np.float32)
        state["step"] += 1
        return state["action"]

    return act


def by_expert(env, rng):
    return EXPERTS[env.skill.name](env.sim, env.skill).act


def outside(space: gymnasium.spaces.Dict, observation: dict[str, np.ndarray]) -> list[str]:
    return [key for key, box in space.items() if not box.contains(observation[key])]


@pytest.mark.parametrize("skill", SKILLS)
def test_observations_of_a_skill_stay_within_their_bounds(skill):
    keys = ["depth",
            *(key for key in OBSERVATIONS if _OF.get(key, skill_class(skill).about) == skill_class(skill).about)]
    env = make_env(skill, depth_size=16, split="val", observation_keys=keys, max_steps=200)
    assert all(box.is_bounded() for box in env.observation_space.values())
    for actor in (at_random, in_jerks, *([by_expert] if skill in EXPERTS else [])):
        for observation, info in rollouts(env, actor, 3):
            assert not outside(env.observation_space, observation)
            assert info is None or info["is_success"] == info["success"]


@pytest.mark.parametrize("name", scenarios())
def test_observations_of_a_scenario_stay_within_their_bounds(name):
    env = gymnasium.make(environment_id(name), depth_size=16, split="val", max_steps=150).unwrapped
    assert isinstance(env, ScenarioEnv) and all(box.is_bounded() for box in env.observation_space.values())
    for actor in (at_random, in_jerks):
        assert not any(outside(env.observation_space, observation) for observation, _ in rollouts(env, actor, 2))


def test_broken_physics_is_within_the_bounds_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MuJoCo writes its warning into the working directory
    for id in ("rearrange/Pick-v0", "rearrange/SetTable-v0"):
        env = gymnasium.make(id, depth_size=0).unwrapped
        env.reset(seed=1)
        env.sim.data.qvel[:] = 300.0
        observation, _, _, truncated, info = env.step(np.zeros(env.action_space.shape, np.float32))
        assert truncated and info["metrics"]["failure/unstable"] == 1.0 and not outside(env.observation_space,
                                                                                        observation)


# ---------------------------------------------------------------------- wrappers


def test_wrappers_of_gymnasium_take_it():
    env = gymnasium.make("rearrange/Pick-v0", depth_size=8, num_layouts=2)
    flat = gymnasium.wrappers.FlattenObservation(env)
    assert flat.observation_space.contains(flat.reset(seed=0)[0])
    stacked = gymnasium.wrappers.FrameStackObservation(env, 3)
    assert stacked.reset(seed=0)[0]["depth"].shape == (3, 8, 8, 1)
    scaled = gymnasium.wrappers.RescaleAction(env, -0.5, 0.5)
    scaled.reset(seed=0)
    assert scaled.step(scaled.action_space.sample())[4]["success"] in (True, False)


def test_a_video_is_recorded(tmp_path):
    pytest.importorskip("moviepy", reason="gymnasium.wrappers.RecordVideo needs moviepy")
    import imageio.v3 as iio

    env = gymnasium.make("rearrange/Pick-v0", depth_size=0, num_layouts=2, max_steps=5, render_mode="rgb_array")
    with gymnasium.wrappers.RecordVideo(env, str(tmp_path), disable_logger=True) as env:
        env.reset(seed=0)
        while not any(env.step(env.action_space.sample())[2:4]):
            pass
    (video,) = tmp_path.glob("*.mp4")
    assert iio.improps(video, plugin="FFMPEG").shape[1:] == (512, 512, 3)
    assert iio.immeta(video, plugin="FFMPEG")["fps"] == env.metadata["render_fps"] == 30

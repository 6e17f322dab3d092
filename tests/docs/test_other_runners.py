"""docs/other_runners.md: LeRobot and vla-eval run our environments, where they are installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess

import numpy as np
import pytest

from planner.scenario_env import make_env as make_scenario_env
from skills import make_env
from tests.docs.markdown import HOME, blocks

PAGE = HOME / "docs/other_runners.md"


def run(variable: str, code: str, **more: str) -> dict:
    """What a program prints last as JSON, run by the python that a variable of the environment names."""
    python = os.environ.get(variable)
    if not python:
        pytest.skip(f"{variable} does not name the python of an environment with that runner (docs/{PAGE.name})")
    done = subprocess.run([python, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=900,
                          env={**os.environ, "PYTHONPATH": str(HOME), **more})
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


LEROBOT = """
import json, os, numpy as np
from lerobot.envs.factory import make_env
from lerobot.envs.utils import preprocess_observation
(env,) = make_env("me/homes", n_envs=2, hub_cache_dir=os.environ["CACHE"], trust_remote_code=True)["rearrange"].values()
observation, _ = env.reset(seed=[3, 4])
shown, told, over = preprocess_observation(observation), list(env.call("task_description")), False
for step in range(env.call("_max_episode_steps")[0]):
    *_, terminated, truncated, info = env.step(np.zeros(env.action_space.shape, np.float32))
    if (terminated | truncated).any():
        break
print(json.dumps({"shapes": {name: list(value.shape) for name, value in shown.items()}, "told": told,
                  "state": shown["observation.state"][0].tolist(), "steps": step + 1,
                  "success": [bool(value) for value in info["final_info"]["is_success"]]}))
"""


def test_lerobot_makes_our_environments_from_a_repository_on_the_disk(tmp_path):
    (tmp_path / "models--me--homes/refs").mkdir(parents=True)
    (tmp_path / "models--me--homes/refs/main").write_text("0")
    shutil.copytree(HOME / "examples/envhub", tmp_path / "models--me--homes/snapshots/0")
    said = run("REARRANGE_LEROBOT_PYTHON", LEROBOT, CACHE=str(tmp_path), HF_HUB_OFFLINE="1")
    env = make_env("pick", split="val", depth_size=0)
    observation, _ = env.reset(seed=3)
    assert said["told"][0] == env.instruction and said["success"] == [False, False]
    assert said["steps"] == env.skill.max_steps
    state = np.concatenate([observation[name] for name in sorted(observation)])
    assert said["state"] == pytest.approx(state.tolist(), abs=1e-4), "the columns of a recording"
    assert said["shapes"] == {"observation.state": [2, len(state)], "observation.images.rgb": [2, 3, 96, 96]}


VLA_EVAL = """
import json, os, numpy as np, yaml
from vla_eval import evaluate
from vla_eval.model_servers.predict import PredictModelServer
seen = []
class Stops(PredictModelServer):
    def predict(self, obs, ctx):
        images = {name: list(image.shape) for name, image in obs["images"].items()}
        seen.append([obs["task_description"], obs["state"].tolist(), images])
        return {"actions": np.array([0.0] * 10 + [1.0], np.float32)}
    def get_action_spec(self):
        return {}
    get_observation_spec = get_action_spec
config = yaml.safe_load(os.environ["CONFIG"])
config["benchmarks"][0] |= {"episodes_per_task": 2}
config["benchmarks"][0]["params"] |= {"tasks": ["hab=set_table"], "camera_size": 32}
(found,) = evaluate(Stops(), config | {"render": "cpu"}, no_save=True, docker=False)
print(json.dumps({"episodes": [each["metrics"] for each in found["tasks"][0]["episodes"]], "seen": seen,
                  "errors": found["num_errors"]}))
"""


def test_vla_eval_evaluates_a_policy_in_our_scenarios():
    (config,) = blocks(PAGE, "yaml")
    said = run("REARRANGE_VLA_EVAL_PYTHON", VLA_EVAL, CONFIG=config)
    assert said["errors"] == 0 and len(said["episodes"]) == len(said["seen"]) == 2
    from eval.slots import episode_seed

    env = make_scenario_env("set_table", split="val", depth_size=0)
    for number, (figures, (told, state, images)) in enumerate(zip(said["episodes"], said["seen"], strict=True)):
        observation, _ = env.reset(seed=episode_seed(0, number), options={"episode": number})
        assert told == env.instruction and images == {"rgb": [32, 32, 3], "arm_rgb": [32, 32, 3]}
        assert state == pytest.approx(np.concatenate([observation[name] for name in sorted(observation)]), abs=1e-4)
        *_, info = env.step(np.array([0.0] * 10 + [1.0]))
        assert figures == {name: info["metrics"][name] for name in figures} and figures["episode_steps"] == 1
        assert {"success", "goal_share", "driven_m", "hand_path_m"} < figures.keys()

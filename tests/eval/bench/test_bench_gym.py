"""`rearrange bench gym`: its tasks, its runs, and going on where it stopped."""

from __future__ import annotations

import json

import numpy as np
import pytest

from eval.bench import gym
from eval.bench.gym import table
from eval.bench.gym.tasks import TASKS, CartPoleSeen, Recall
from rearrange.command_line.composition.bench_settings import GYM_TASKS
from rearrange.home.errors import UserError
from tests.e2e.front_door import succeed


def test_the_settings_name_the_tasks():
    assert GYM_TASKS == tuple(TASKS)


def test_recall_pays_for_the_sign_that_was_shown_first_and_is_seen_no_more():
    env = Recall(wait=3)
    seen, _ = env.reset(seed=0)
    sign = int(seen.argmax())
    for t in range(4):
        action = sign if t == 3 else (sign + 1) % 4
        seen, reward, over, *_ = env.step(action)
        assert not seen[:4].any() and reward == float(t == 3) and over == (t == 3)


def test_cartpole_is_seen_where_it_is():
    env = CartPoleSeen()
    image, _ = env.reset(seed=0)
    assert env.observation_space.contains(image)
    columns = []
    for x in (-1.5, 0.0, 1.5):
        picture = env._draw(np.array([x, 0.0, 0.3, 0.0]))
        cart, pole = np.argwhere(picture == 128), np.argwhere(picture == 255)
        columns.append(cart[:, 1].mean())
        assert pole[pole[:, 0].argmin(), 1] > cart[:, 1].mean() + 3, "leaning to the right"
    assert columns == sorted(columns) and columns[1] == pytest.approx(31.5, abs=1)


def test_runs_are_made_once_and_a_stopped_measurement_goes_on(tmp_path):
    """The real command, twice: the second adds one task to the file of the first."""
    pytest.importorskip("stable_baselines3")
    file = tmp_path / "runs.jsonl"
    words = ["bench", "gym", "steps=600", "seeds=1", f"runs={file}", f"output={tmp_path}", "trainers=[ours,sb3]"]
    said = []
    for tasks in ("[cartpole]", "[cartpole,recall]"):
        said.append(succeed(tmp_path, *words, f"tasks={tasks}"))
    runs = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(each["task"], each["trainer"]) for each in runs] == [
        ("cartpole", "ours"), ("cartpole", "sb3"), ("recall", "ours")]
    assert all(each["curve"] and each["cpu_s"] > 0 for each in runs)
    assert "| cartpole | 600 | rearrange |" in said[1] and "| recall | 600 | rearrange |" in said[1]


def test_figures_and_table_of_seeds(tmp_path):
    run = {"task": "cartpole", "trainer": "ours", "steps": 100, "wall_s": 2.0, "cpu_s": 0.001}
    runs = [run | {"seed": seed, "curve": [(50, 1.0), (100, value)]} for seed, value in ((0, 10.0), (1, 30.0))]
    assert table.figures(runs) == {"cartpole/ours/return": 20.0, "cartpole/ours/processor_us": 10.0}
    assert "| cartpole | 100 | rearrange | 20 (10 .. 30) | 10, 30 | 50 | 10 |" in table.as_text(runs)
    (tmp_path / "other.jsonl").write_text("{}\n")
    with pytest.raises(UserError, match="is no file of runs of bench gym"):
        gym.read(tmp_path / "other.jsonl")

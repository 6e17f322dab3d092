"""Our scenarios and skills as a benchmark of vla-eval (github.com/allenai/vla-evaluation-harness), whose runner asks a
model server for actions:

    benchmarks:
      - benchmark: "eval.remote.vla_benchmark:Homes"
        params: {tasks: [hab=set_table, skill=pick], camera_size: 224}

Episodes are those of `rearrange eval` with the same seed. This file needs the package vla-eval, and nothing imports it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from vla_eval.benchmarks.base import StepBenchmark, StepResult
from vla_eval.specs import IMAGE_RGB, LANGUAGE, DimSpec

from eval.slots import SEED_STRIDE, episode_seed
from planner.scenario_env import make_env as make_scenario_env
from rearrange.home.errors import UserError
from skills import make_env

MOST_STEPS = 1_000_000  # of an episode, for the runner: ours end by themselves
METRICS = {"success": "mean", "goal_share": "mean", "driven_m": "mean", "hand_path_m": "mean", "episode_steps": "mean"}
"""Of an episode, and how the runner adds them up; a skill has the first and the last."""


class Homes(StepBenchmark):
    """Tasks of a robot in homes.

    Args:
        tasks: each `hab=` or `skill=` and a name.
        split: apartments.
        seed: of the episodes.
        camera_size: pixels on a side of the colours; 0: there are none.
        image_size: of the depth; 0: there is none.
    """

    render_backends = frozenset({"gpu", "cpu"})  # pictures are drawn by the processor

    def __init__(self, tasks: Sequence[str] = ("hab=set_table",), split: str = "val", seed: int = 0,
                 camera_size: int = 224, image_size: int = 0) -> None:
        super().__init__()
        self._tasks, self._seed, self._name = list(tasks), seed, ""
        colours = {"observations": ("rgb", "arm_rgb"), "camera_size": camera_size} if camera_size else {}
        self._settings = {"split": split, "depth_size": image_size} | colours
        for task in self._tasks:
            if task.partition("=")[0] not in ("hab", "skill") or not task.partition("=")[2]:
                raise UserError(f"tasks: {task!r} is no task: write hab= or skill= and a name, as in hab=set_table.")
        if not self._tasks:
            raise UserError("tasks=[] names no task: write hab= or skill= and a name.")
        self._enter(self._tasks[0])

    @classmethod
    def configure_render(cls, mode: str) -> dict[str, str]:
        return {}

    def _enter(self, task: str) -> None:
        """Make the environment of a task, where it is another one."""
        if task != self._name:
            group, _, name = task.partition("=")
            if self._name:
                self._env.close()
            self._env = (make_scenario_env if group == "hab" else make_env)(name, **self._settings)
            self._name = task

    def get_tasks(self) -> list[dict[str, Any]]:
        return [{"name": task, "suite": task.partition("=")[0]} for task in self._tasks]

    def reset(self, task: dict[str, Any]) -> Any:
        self._enter(task["name"])
        number = int(task.get("episode_idx", 0))
        observation, _ = self._env.reset(seed=episode_seed(self._seed, number),
                                         options={"episode": number + SEED_STRIDE * self._seed})
        return observation

    def step(self, action: dict[str, Any]) -> StepResult:
        values = np.clip(np.asarray(action["actions"], np.float32).reshape(-1), -1.0, 1.0)
        observation, reward, terminated, truncated, info = self._env.step(values)
        return StepResult(observation, float(reward), terminated or truncated, info)

    def make_obs(self, raw_obs: Any, task: dict[str, Any]) -> dict[str, Any]:
        boxes = self._env.observation_space.spaces
        vectors = [name for name in sorted(boxes) if len(boxes[name].shape or ()) == 1]
        return {"images": {name: raw_obs[name] for name in raw_obs if len(boxes[name].shape or ()) == 3},
                "task_description": self._env.instruction,
                "state": np.concatenate([np.asarray(raw_obs[name], np.float32) for name in vectors])}

    def get_step_result(self, step_result: StepResult) -> dict[str, Any]:
        """The figures of an episode; one that the runner ended early is no success."""
        told = step_result.info.get("metrics") or {}
        return {name: float(told[name]) for name in METRICS if name in told} | {"success": bool(told.get("success"))}

    def get_metric_keys(self) -> dict[str, str]:
        return METRICS

    def get_metadata(self) -> dict[str, Any]:
        return {"max_steps": MOST_STEPS, "action_dim": self._env.action_space.shape[0]}

    def get_action_spec(self) -> dict[str, DimSpec]:
        numbers = self._env.action_space.shape[0]
        return {"actions": DimSpec("actions", numbers, "fetch_arm_grip_base_stop", (-1.0, 1.0))}

    def get_observation_spec(self) -> dict[str, DimSpec]:
        boxes = self._env.observation_space.spaces.values()
        size = sum(box.shape[0] for box in boxes if len(box.shape or ()) == 1)
        return {"image": IMAGE_RGB, "language": LANGUAGE, "state": DimSpec("state", size, "fetch_vectors_by_name")}

"""A navigation task behind the page: the agent in its home, what it sees, and the way that it drives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from eval.evaluate import Job
from eval.slots import SEED_STRIDE, agent_seed, episode_seed, failure_of
from eval.task_from_settings import make_env
from eval.view.home_in_scene import HomeInScene
from eval.view.sessions import OneAgent, agent_of
from rearrange.home.geometry import PlanePose
from rearrange.home.pictures.looks import Looks
from rearrange.home.pictures.overlay import depth_picture
from rearrange.home.pictures.picture import Ghost, Sphere, WireBox
from rearrange.navigation.homes import WALL_M
from rearrange.navigation.settings import CYLINDER

BODY_RGB, FACE_RGB, GOAL_RGB = (0.2, 0.47, 0.86), (0.95, 0.95, 1.0), (0.89, 0.29, 0.2)
GOAL_M = 0.15  # radius of the disc that marks a goal


class CylinderBody:
    """Where a cylinder is, for the cameras of the page, which else ask a simulator and its twin."""

    def __init__(self, env: Any) -> None:
        self._env = env

    @property
    def twin(self) -> CylinderBody:
        return self

    @property
    def base_pose(self) -> PlanePose:
        return self._env.pose

    def from_base(self, point: Sequence[float]) -> tuple[float, float, float]:
        """A point of the agent's frame in the home's."""
        (x, y, yaw), (ahead, left, up) = self._env.pose, point
        c, s = math.cos(yaw), math.sin(yaw)
        return x + c * ahead - s * left, y + s * ahead + c * left, up

    def camera_pose(self, camera: str, looks: Looks) -> np.ndarray:
        """Right, down and forward of its level camera, and its place, (4, 3)."""
        eye, right, ahead = (np.array(self.from_base((*point, self._env.config.camera_height_m)))
                             for point in ((0.0, 0.0), (0.0, -1.0), (1.0, 0.0)))
        return np.array([right - eye, (0.0, 0.0, -1.0), ahead - eye, eye])

    def marks(self) -> list[Ghost | Sphere]:
        """The cylinder, and its face."""
        radius_m, height_m = self._env.config.body_m
        return [Ghost("cylinder", (radius_m, height_m / 2), self.from_base((0.0, 0.0, height_m / 2)), rgb=BODY_RGB,
                      alpha=0.9),
                Sphere(self.from_base((radius_m, 0.0, 0.9 * height_m)), 0.4 * radius_m, FACE_RGB, 1.0)]


class NavigationSession(OneAgent):
    """One navigation task; episodes are those of `rearrange eval` with the same seed."""

    map_label = "The home from above: green the shortest way, blue what was driven"

    def __init__(self, job: Job) -> None:
        self.job, self.name, self.env = job, job.skill, make_env(job.skill, **job.env)
        self._agent = agent_of(job, self.env, job.checkpoint)
        self._body = CylinderBody(self.env) if self.env.config.agent == CYLINDER else None

    @property
    def sim(self) -> Any:
        return self.env.agent.sim if self._body is None else self._body

    @property
    def step_s(self) -> float:
        return 1.0 / self.env.agent.actions_per_s

    def begin(self, number: int) -> None:
        self.number, self.done, self.success, self.reason = number, False, False, ""
        seed = episode_seed(self.job.seed, number)
        self._observation, info = self.env.reset(seed=seed, options={"episode": number + SEED_STRIDE * self.job.seed})
        self.words = info["instruction"]
        self._agent.begin(0, agent_seed(seed))

    def step(self) -> None:
        action = self._agent.act({0: self._observation})[0]
        self._observation, _, terminated, truncated, info = self.env.step(action)
        self.done = terminated or truncated
        if self.done:
            self.success = bool(info["success"])
            self.reason = "" if self.success else (failure_of(info["metrics"]) or "").replace("_", " ")

    def marks(self) -> list[Any]:
        env, found = self.env, [] if self._body is None else self._body.marks()
        # The physics of robots measures from inside the outer walls.
        shift = WALL_M if self._body is None else 0.0
        if (goal := env.episode.goal) is not None:
            found.append(Ghost("cylinder", (GOAL_M, 0.02), (goal[0] - shift, goal[1] - shift, 0.02), rgb=GOAL_RGB,
                               alpha=0.9))
        return found + [_box_around(env.home.shapes, piece, shift) for piece in self._wanted()]

    def _wanted(self) -> list[int]:
        """Numbers of the furniture that is looked for."""
        wanted = getattr(self.env.task, "wanted", None)
        return [] if wanted is None else np.unique(self.env.home.shapes.piece[wanted]).tolist()

    def lines(self) -> list[str]:
        env = self.env
        return [f"step {env.steps} of {env.max_steps}", f"reward so far {sum(env.reward_sums.values()):.2f}",
                *env.status_lines()]

    def show(self, home: HomeInScene) -> None:
        if self._body is None:
            home.show(self.sim.twin, self.marks())
        else:
            home.show_still(self.env.home, self.marks())

    def forget_map(self) -> None:
        """Nothing: the task draws its own."""

    def pictures(self, pixels: int) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
        env = self.env
        depth = depth_picture(self._observation["depth"], pixels)
        colour = None if env.home.meshes else env.photograph(["rgb"], pixels)["rgb"]
        return depth, colour, env.picture()


def _box_around(shapes: Any, piece: int, shift_m: float) -> WireBox:
    """The edges of the box around a piece of furniture."""
    mine = shapes.piece == piece
    half = (np.abs(shapes.rotations[mine].reshape(-1, 3, 3)) @ shapes.halves[mine, :3, None])[:, :, 0]
    low = (shapes.centers[mine] - half).min(axis=0) - (shift_m, shift_m, 0.0)
    high = (shapes.centers[mine] + half).max(axis=0) - (shift_m, shift_m, 0.0)
    return WireBox(tuple((low + high) / 2), tuple((high - low) / 2))

"""Recorded episodes of scenarios. Whatever carries out the plan, a frame is for the whole robot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np

from eval.recording.features import Feature, features_of, names_of_action
from eval.recording.skill_episodes import BEGAN_SOLVED, STEPS_PER_S, task_in_words
from eval.recording.tape import Recorded, Tape, plain
from eval.scenario.evaluate import SLOTS, Job, Slot, finished, make_executor
from eval.slots import kept
from planner.rules import kept_grip
from planner.scenario_env import ScenarioEnv
from rearrange.env.home_env import HomeSettings
from rearrange.home.settings.environment import SEEN
from rearrange.home.simulation.observations import Observation, seen_space


@dataclass(frozen=True)
class ScenarioJob:
    """What is recorded. image_size: pixels of the depth image; 0 means none. raw: images stay arrays.

    seen, camera_size: other images, some of `rearrange.home.settings.environment.SEEN`, and their pixels.
    """

    eval: Job
    image_size: int
    seen: tuple[str, ...] = ()
    camera_size: int = 128
    raw: bool = False
    depth_video: bool = False

    def make(self) -> RecordingEnv:
        """One environment."""
        return RecordingEnv(self, self.eval.scenario, HomeSettings(depth_size=0, **self.eval.env))


class RecordingEnv(ScenarioEnv):
    """A scenario whose steps go on a tape.

    The skills of a plan look with images of their own, and measure from where they begin. A frame has what one policy
    for the whole task sees: its own images, and the way from the start of the episode. Every command is a whole action
    in float32, so that `step` with the recorded actions does the same.
    """

    def __init__(self, job: ScenarioJob, *args: Any) -> None:
        super().__init__(*args)
        self._job = job
        self.tape: Tape | None = None

    @property
    def recorded_space(self) -> gymnasium.spaces.Dict:
        """The observations of a frame."""
        size = self._job.image_size
        depth = {"depth": gymnasium.spaces.Box(0.0, 1.0, (size, size, 1), np.float32)} if size else {}
        vectors = {key: space for key, space in self.observation_space.spaces.items() if key != "depth"
                   and key not in SEEN}
        return gymnasium.spaces.Dict({**depth, **vectors, **seen_space(self._job.seen, self._job.camera_size)})

    def features(self) -> dict[str, Feature]:
        """The columns of a data set."""
        names = names_of_action(self.sim.robot, self.action_parts)
        return features_of(self.recorded_space, names, self._job.depth_video)

    def reset(self, *, seed: int | None = None,
              options: dict[str, Any] | None = None) -> tuple[Observation, dict[str, Any]]:
        self.close_tape()
        observation, info = super().reset(seed=seed, options=options)
        self._start, self.start_seed, self.task = self.scene.start_base_pose, seed, task_in_words(self, info)
        self._seen = self._look(self._images())
        self.tape = Tape(self.features(), STEPS_PER_S, self._job.raw)
        return observation, info

    def advance(self, arm: list[float] | None = None, grip: float | None = None, base: list[float] | None = None,
                stop: bool = False) -> tuple[float, bool, bool, dict[str, Any]]:
        grip = kept_grip(self.sim.is_holding) if grip is None else grip
        action = np.clip(np.array([*(arm or [0.0] * 7), grip, *(base or [0.0, 0.0]), 1.0 if stop else -1.0],
                                  np.float32), -1.0, 1.0)
        values = action.tolist()
        lagged = self._images() if self.home.image_lag else {}
        reward, terminated, truncated, info = super().advance(values[:7], values[7], values[8:10], stop)
        self.tape.frame(self._seen, action, reward, terminated, truncated, bool(info["success"]))
        if not (terminated or truncated) or self._job.raw:
            self._seen = self._look(lagged if self.home.image_lag else self._images())
        return reward, terminated, truncated, info

    def _look(self, images: Observation) -> Observation:
        scene = self.scene
        begun, scene.start_base_pose = scene.start_base_pose, self._start
        try:
            return self.observe() | images
        finally:
            scene.start_base_pose = begun

    def _images(self) -> Observation:
        """The images of a frame; the floor map that a skill keeps does not get them."""
        scene, job = self.scene, self._job
        theirs = scene.maps_floor, scene.depth_size, scene.seen, scene.camera_size
        scene.maps_floor, scene.depth_size = False, job.image_size
        scene.seen, scene.camera_size = job.seen, job.camera_size
        try:
            return scene.take_images()
        finally:
            scene.maps_floor, scene.depth_size, scene.seen, scene.camera_size = theirs

    @property
    def last_seen(self) -> Observation:
        """What the newest frame has, or, where images stay arrays, what was seen after it."""
        return self._seen

    def recorded(self, attempt: int, success: bool, reason: str) -> Recorded:
        """The episode on the tape, which is over."""
        tape, self.tape = self.tape, None
        start = {"seed": self.start_seed, "episode": plain(self.episode)}
        return tape.recorded(attempt, start, self.task, success, None if success else reason, self.last_seen)

    def close_tape(self) -> None:
        """Give up what is on the tape."""
        if self.tape:
            self.tape.close()
        self.tape = None


def record_scenario(job: ScenarioJob, attempts: Sequence[int]) -> Iterator[Recorded]:
    """These attempts, in this process, as they end."""
    executors = kept(repr(job), lambda: make_executor(job.eval, lambda *args: RecordingEnv(job, *args)), SLOTS)
    try:
        for slot in finished(job.eval, executors, attempts):
            yield _recorded(slot)
    finally:
        for executor in executors:
            executor.env.close_tape()


def _recorded(slot: Slot) -> Recorded:
    result, env = slot.result(), slot.executor.env
    if result.began_solved:
        env.close_tape()
        return Recorded(result.index, {}, "", False, BEGAN_SOLVED, 0, 0.0)
    return env.recorded(result.index, result.success, f"{result.ended_in}: {result.reason}")

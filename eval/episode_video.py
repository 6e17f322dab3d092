"""Records one episode: the scene from outside beside what the policy sees, with the skill, the step and the outcome."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from eval.slots import failure_of
from eval.video import FPS, HAND_SIZE, SCENE_SIZE, VideoError, VideoWriter, composed, in_words, known_floor, pace

if TYPE_CHECKING:
    from rearrange.env.skill_env import RearrangeEnv


class EpisodeRecorder:
    """Writes `episode_<index>_<success|failure>.mp4`; nothing stays of an episode that is not finished.

    A frame shows 1/30 s, or more where `speed`, times as fast as the robot, is above 1. Where an action lasts several
    steps of the simulator, the panel shows between them what the policy saw last; first that is `observation`, of the
    reset.
    """

    def __init__(self, env: RearrangeEnv, directory: Path, index: int, observation: dict[str, np.ndarray],
                 speed: float = 1.0):
        self.env, self.directory, self.index = env, directory, index
        self._see(observation)
        self._rewards = "reward +0.00   sum 0.0"
        self._speed, (self._every, fps) = speed, pace(speed)
        if hasattr(env, "skill"):
            env.scene.picture_size = SCENE_SIZE
        else:  # of navigation, an action is a frame
            fps *= env.metadata["render_fps"] / FPS
        self._steps = 0
        self._video = VideoWriter(directory / f"episode_{index:04d}.mp4", fps)
        self._problem: VideoError | None = None
        self._video.__enter__()
        env.during_action = self._between

    def frame(self, observation: dict[str, np.ndarray], reward: float, total: float, info: dict[str, Any],
              over: bool) -> None:
        """The end of one action. VideoError if the file cannot be written."""
        if self._problem:
            raise self._problem
        self._see(observation)
        self._rewards = f"reward {reward:+.2f}   sum {total:.1f}"
        if not over:
            return self._add()
        self._add(info["success"], (failure_of(info["metrics"]) or "").replace("_", " "))

    def _see(self, observation: dict[str, np.ndarray]) -> None:
        self._depth, seen = observation.get("depth"), observation.get("segmentation")
        # A mask of floats is ObjectNav's; others hold numbers of things.
        self._mask = seen if seen is not None and seen.dtype == np.float32 else None

    def _between(self) -> None:
        """Add a frame within an action. An error waits for its end: the episode is finished without its video."""
        if self._problem is None:
            try:
                self._add()
            except VideoError as error:
                self._problem = error

    def _add(self, outcome: bool | None = None, reason: str = "") -> None:
        """Add the scene as it stands, if this step has a frame; the last step always has one."""
        env = self.env
        self._steps += 1
        if self._steps % self._every and outcome is None:
            return env.scene.follow() if hasattr(env, "skill") else None
        skill = getattr(env, "skill", None)  # navigation tasks have none: their picture is a map
        lines = [f"step {env.steps} of {env.max_steps}{in_words(self._speed)}", self._rewards,
                 *env.status_lines()]
        picture = env.scene.frame(skill.marks(env.sim), HAND_SIZE) if skill else partial(_alone, env.render())
        self._video.draw(partial(composed, picture, self._depth, lines, title=(skill or env).name,
                                 footer=f"{env.episode.scene}   {env.episode.id}", outcome=outcome, reason=reason,
                                 floor=skill and known_floor(env.scene, skill), mask=self._mask))

    def close(self, success: bool) -> str:
        """Finish the file, name it by the outcome, and return its path."""
        self.env.during_action = None
        self._video.__exit__(None, None, None)
        path = self._video.path.rename(self.directory
                                       / f"episode_{self.index:04d}_{'success' if success else 'failure'}.mp4")
        return str(path)

    def discard(self) -> None:
        """Give the episode up."""
        self.env.during_action = None
        self._video.__exit__(RuntimeError, None, None)


def _alone(picture: np.ndarray) -> tuple[np.ndarray, None]:
    """A picture without one of the hand."""
    return picture, None

"""Records one episode: the scene from outside beside what the policy sees, with the skill, the step and the outcome."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from eval.video import VideoWriter, compose, known_floor


class EpisodeRecorder:
    """Writes `episode_<index>_<success|reason>.mp4`; nothing stays of an episode that is not finished."""

    def __init__(self, env: Any, directory: Path, index: int):
        self.env, self.directory, self.index = env, directory, index
        self._video = VideoWriter(directory / f"episode_{index:04d}.mp4")
        self._video.__enter__()

    def frame(self, observation: dict[str, np.ndarray], reward: float, total: float, info: dict[str, Any], over: bool) -> None:
        """One step of the episode."""
        env = self.env
        lines = [f"step {env.steps} of {env.skill.max_steps}", f"reward {reward:+.2f}   sum {total:.1f}", *env.status_lines()]
        failure = None
        if over:
            reasons = [k.removeprefix("failure/") for k, v in info["metrics"].items() if k.startswith("failure/") and v]
            failure = reasons[0] if reasons else None
            lines.append(failure.replace("_", " ") if failure else "success")
        image = compose(env.render(), observation.get("depth"), lines, title=env.skill.name,
                        footer=f"{env.episode.scene}   {env.episode.id}", outcome=info["success"] if over else None,
                        floor=known_floor(env.sim, env.skill))
        for _ in range(env.skill.action_repeat):  # a frame is 1/30 s
            self._video.add(image)

    def close(self, success: bool) -> str:
        """Finish the file, name it by the outcome, and return its path."""
        self._video.__exit__(None, None, None)
        path = self._video.path.rename(self.directory / f"episode_{self.index:04d}_{'success' if success else 'failure'}.mp4")
        return str(path)

    def discard(self) -> None:
        """Give the episode up."""
        self._video.__exit__(RuntimeError, None, None)

"""Episodes of one skill, recorded: many at once, as an evaluation runs them (eval/evaluate.py)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np

from eval.agents import make_agent
from eval.evaluate import kept_environments
from eval.recording.features import Feature, features_of, names_of_action
from eval.recording.tape import Recorded, Tape, plain
from eval.slots import SEED_STRIDE, agent_seed, episode_seed, failure_of, run_slots
from eval.task_from_settings import make_env
from rearrange.home.errors import UserError

STEPS_PER_S = 30
NOT_STARTED, BEGAN_SOLVED = "not started", "began solved"  # why attempts have no frames


@dataclass(frozen=True)
class SkillJob:
    """What is recorded. env: settings of its make_env. agent, checkpoint, network: as in `eval.evaluate.Job`.

    raw: images stay arrays.
    """

    skill: str
    env: dict[str, Any]
    agent: str
    checkpoint: str | None = None
    network: str | None = None
    deterministic: bool = False
    seed: int = 0
    raw: bool = False
    depth_video: bool = False

    def make(self) -> gymnasium.Env:
        """One environment."""
        return make_env(self.skill, **self.env)


def features_of_skill(env: gymnasium.Env, depth_video: bool = False) -> dict[str, Feature]:
    """The columns of a data set of this environment. depth_video: as of `features_of`."""
    return features_of(env.observation_space, names_of_action(env.sim.robot, env.action_parts), depth_video)


def frames_per_s(env: gymnasium.Env) -> float:
    """Actions a second: fewer than steps of physics where one holds for several."""
    return STEPS_PER_S / env.skill.action_repeat


def task_in_words(env: gymnasium.Env, info: dict[str, Any]) -> str:
    """The task of the episode that has just begun: the environment's instruction, else its name and things."""
    said = info.get("instruction")
    if said:
        return str(said)
    from skills.picture_marks import spoken_name

    things = [f"the {spoken_name(env.sim, index)}" for index in env.episode.targets]
    several = ", ".join(things[:-1]) + " and " + things[-1] if len(things) > 1 else "".join(things)
    where = "where they belong" if len(things) > 1 else "where it belongs"
    return f"{env.config.name.replace('_', ' ')}: bring {several} {where}"


def record_skill(job: SkillJob, attempts: Sequence[int]) -> Iterator[Recorded]:
    """These attempts, in this process, as they end."""
    import torch

    from trainer.checkpoint import load_checkpoint

    torch.set_num_threads(1)
    envs = kept_environments(job.skill, job.env)
    checkpoint = load_checkpoint(job.checkpoint) if job.checkpoint else None
    agent = make_agent(job.agent, checkpoint, envs, job.deterministic, job.network)
    slots = [_Slot(number, env, agent, job) for number, env in enumerate(envs[:len(attempts)])]
    return run_slots(slots, agent, attempts)


class _Slot:
    """One environment and the episode that runs in it."""

    def __init__(self, number: int, env: Any, agent: Any, job: SkillJob) -> None:
        self.number, self.index, self.observation = number, None, None
        self._env, self._agent, self._job = env, agent, job
        self._features, self._fps = features_of_skill(env, job.depth_video), frames_per_s(env)
        self._tape: Tape | None = None

    def next(self, waiting: Iterator[int]) -> Iterator[Recorded]:
        """Begin the next episode that can be begun and is not solved already; yield those before it."""
        for attempt in waiting:
            why, seed = NOT_STARTED, episode_seed(self._job.seed, attempt)
            episode = self._env.numbered_episode(attempt + SEED_STRIDE * self._job.seed)
            try:
                self.observation, info = self._env.reset(seed=seed, options={"episode": episode})
            except UserError:  # the robot finds no place, or things do not rest
                if self._env.listed:  # in an episode of the user's own
                    raise
            else:
                if not self._env.begins_solved:
                    self.index, self._task = attempt, task_in_words(self._env, info)
                    self._start = {"seed": seed, "episode": plain(self._env.episode)}
                    self._agent.begin(self.number, agent_seed(seed))
                    self._tape = Tape(self._features, self._fps, self._job.raw)
                    return
                why = BEGAN_SOLVED
            yield Recorded(attempt, {}, "", False, why, 0, 0.0)
        self.index = None
        self._agent.end(self.number)

    def step(self, action: np.ndarray) -> Recorded | None:
        """One action; the episode if it is over."""
        action = np.clip(np.asarray(action, np.float32), -1.0, 1.0)
        before = self.observation
        self.observation, reward, terminated, truncated, info = self._env.step(action)
        over = terminated or truncated
        self._tape.frame(before, action, reward, terminated, truncated, bool(info["success"]))
        if not over:
            return None
        metrics = info["metrics"]
        tape, self._tape = self._tape, None
        return tape.recorded(self.index, self._start, self._task, bool(metrics["success"]), failure_of(metrics),
                             self.observation)

    def close(self) -> None:
        """Give up what runs."""
        if self._tape:
            self._tape.close()

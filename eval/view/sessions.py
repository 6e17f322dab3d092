"""What runs behind the page: a skill, the plan of a scenario, or a person who drives through either.

It runs an episode at a time, and all kinds are used by the attributes of `Session`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from eval.agents import PolicyAgent, make_agent
from eval.recording.record import Prepared
from eval.recording.scenario_episodes import ScenarioJob
from eval.recording.skill_episodes import SkillJob, features_of_skill, frames_per_s, task_in_words
from eval.recording.tape import Recorded, Tape, plain
from eval.scenario.evaluate import SLOTS, Job, Slot, make_agents, make_executor, step_all
from eval.scenario.video import marks, phase, short
from eval.slots import SEED_STRIDE, episode_seed, failure_of
from eval.view.driver import Driver
from eval.view.own_code import OwnAgentApart
from planner.scenario_env import ScenarioEnv
from rearrange.env.home_env import HomeScene, HomeSettings
from rearrange.home.errors import CannotStart, UserError
from rearrange.home.simulation.simulator_interface import STEP_S, Simulator
from skills.skill import Skill

MOST_SKIPPED = 50  # episodes in which the robot finds no place, one after another


class Session(ABC):
    """What the viewer shows.

    name: of the skill or scenario. env: its environment. number: of the episode. words: its task. done, success,
    reason: how the episode ended. driver: the person who acts, if one does. recorded: a driven episode that is over and
    was taped.
    """

    name: str
    env: Any
    number = 0
    words = ""
    done = success = False
    reason = ""
    driver: Driver | None = None
    recorded: Recorded | None = None

    @property
    def sim(self) -> Simulator:
        return self.env.sim

    @property
    def scene(self) -> HomeScene:
        return self.env.scene

    @property
    def parts(self) -> dict[str, slice]:
        """Of an action."""
        return dict(self.env.action_parts)

    @property
    def value(self) -> float | None:
        """What the policy that acts expects of reward from here on; None where no policy acts."""
        return None

    @abstractmethod
    def begin(self, number: int) -> None:
        """Start the episode of this number, or the next one that can be started. UserError."""

    @abstractmethod
    def step(self) -> None:
        """One action."""

    @abstractmethod
    def marks(self) -> list[Any]:
        """What a spectator sees, as in videos."""

    @abstractmethod
    def lines(self) -> list[str]:
        """What a spectator reads."""

    def plan(self) -> tuple[list[str], int]:
        """The steps of the plan in words, and which of them is carried out."""
        return [], 0

    def skill(self) -> Skill | None:
        """The skill that runs now."""
        return None

    def reload(self, skill: str, file: Path) -> None:
        """Another checkpoint of what runs a skill. CheckpointError."""

    def close(self) -> None:
        """Give up what is taped."""


class SkillSession(Session):
    """One skill. taped: whether what a person drives is put on a tape."""

    def __init__(self, made: Prepared, driver: Driver | None = None) -> None:
        self.job: SkillJob = made.job
        self.name, self.driver, self.env = self.job.skill, driver, self.job.make()
        self.taped = False
        self._tape: Tape | None = None
        self._agent = None if driver else self._make_agent(self.job.checkpoint)

    def _make_agent(self, file: str | None) -> Any:
        from trainer.checkpoint import load_checkpoint

        job = self.job

        def make() -> Any:
            return make_agent(job.agent, load_checkpoint(file) if file else None, [self.env], job.deterministic,
                              job.network)

        return OwnAgentApart(f"agent={job.agent}", make) if ":" in job.agent else make()

    def reload(self, skill: str, file: Path) -> None:
        self._agent = self._make_agent(str(file))

    @property
    def value(self) -> float | None:
        return float(self._agent.values[0]) if isinstance(self._agent, PolicyAgent) else None

    def begin(self, number: int) -> None:
        self.close()
        for self.number in range(number, number + MOST_SKIPPED):
            seed = episode_seed(self.job.seed, self.number)
            episode = self.env.numbered_episode(self.number + SEED_STRIDE * self.job.seed)
            try:
                self._observation, info = self.env.reset(seed=seed, options={"episode": episode})
                if self.env.listed or not self.env.begins_solved:
                    break
                why = CannotStart(f"episode {episode.id!r} begins solved.")
            except UserError as error:  # the robot finds no place, or things do not rest
                why = error
        else:
            raise why
        self.done, self.success, self.reason, self.recorded = False, False, "", None
        self.words = task_in_words(self.env, info)
        self._start = {"seed": seed, "episode": plain(self.env.episode)}
        if self.driver:
            self.driver.begin(self.sim)
            self._tape = Tape(features_of_skill(self.env), frames_per_s(self.env)) if self.taped else None
        else:
            self._agent.begin(0, seed)

    def step(self) -> None:
        action = self.driver.action(self.sim, self.parts) if self.driver else self._agent.act({0: self._observation})[0]
        action = np.clip(np.asarray(action, np.float32), -1.0, 1.0)
        before = self._observation
        self._observation, reward, terminated, truncated, info = self.env.step(action)
        self.done = terminated or truncated
        if self._tape:
            self._tape.frame(before, action, reward, terminated, truncated, bool(info["success"]))
        if self.done:
            self.success = bool(info["success"])
            self.reason = "" if self.success else _spoken_failure(info["metrics"])
            if self._tape:
                tape, self._tape = self._tape, None
                self.recorded = tape.recorded(0, self._start, self.words, self.success,
                                              None if self.success else self.reason, self._observation)

    def marks(self) -> list[Any]:
        return self.env.skill.marks(self.sim)

    def lines(self) -> list[str]:
        env = self.env
        return [f"step {env.steps} of {env.skill.max_steps}", f"reward so far {sum(env.reward_sums.values()):.2f}",
                *env.status_lines()]

    def skill(self) -> Skill | None:
        return self.env.skill

    def close(self) -> None:
        if self._tape:
            self._tape.close()
        self._tape = None


class PlanSession(Session):
    """A scenario whose plan is carried out by skills, or one policy for all of it."""

    _value: float | None = None

    def __init__(self, job: Job) -> None:
        self.job, self.name = job, job.scenario.name
        self._run = make_executor(job)
        self.env = self._run.env
        self._agents = make_agents(job, [self._run] * SLOTS)

    def reload(self, skill: str, file: Path) -> None:
        from trainer.checkpoint import load_checkpoint

        source = self.job.skills[skill]
        self._agents[skill] = PolicyAgent(load_checkpoint(file), SLOTS, self.job.deterministic, source.network)

    @property
    def value(self) -> float | None:
        return self._value

    def begin(self, number: int) -> None:
        self.number, self.done, self.success, self.reason = number, False, False, ""
        self._slot = Slot(0, self._run, self._agents, self.job)
        self._slot.next(iter([number]))
        self.words, self._value = self.env.instruction, None

    def step(self) -> None:
        request = self._run.request
        step_all([self._slot], self._agents)
        if request is not None:  # else the last action holds, or an expert acts
            agent = self._agents[request.skill]
            self._value = float(agent.values[0]) if isinstance(agent, PolicyAgent) else None
        elif self.skill() is None:
            self._value = None
        self.done = self._run.done
        if self.done:
            result = self._slot.result()
            self.success = result.success
            self.reason = "" if result.success else f"{result.ended_in}: {result.reason}".replace("_", " ")

    def marks(self) -> list[Any]:
        return marks(self._run)

    def lines(self) -> list[str]:
        return [f"now: {phase(self._run)}".replace("_", " "), *_scenario_lines(self.env)]

    def plan(self) -> tuple[list[str], int]:
        return [short(self._run, step) for step in self._run.steps], self._run.at

    def skill(self) -> Skill | None:
        step = self._run.step
        return self._run.skills[step.skill] if step is not None else None


class DrivenScenario(Session):
    """A scenario that a person drives through. taped: whether it is put on a tape."""

    def __init__(self, made: Prepared, driver: Driver) -> None:
        self.job: ScenarioJob = made.job
        self.name, self.driver, self.taped = made.name, driver, False
        self._envs: dict[bool, ScenarioEnv] = {}
        self.env = self._env()

    def _env(self) -> ScenarioEnv:
        if self.taped not in self._envs:
            hab, home = self.job.eval, HomeSettings(depth_size=0, **self.job.eval.env)
            self._envs[self.taped] = self.job.make() if self.taped else ScenarioEnv(hab.scenario, home)
        return self._envs[self.taped]

    def begin(self, number: int) -> None:
        self.close()
        self.number, self.done, self.success, self.reason, self.recorded = number, False, False, "", None
        self.env = self._env()
        seed = episode_seed(self.job.eval.seed, number)
        self.env.reset(seed=seed, options={"episode": self.job.eval.episode(number)})
        self.words = self.env.instruction
        self.driver.begin(self.sim)

    def step(self) -> None:
        _, _, terminated, truncated, info = self.env.step(self.driver.action(self.sim, self.parts))
        self.done = terminated or truncated
        if not self.done:
            return
        self.success = bool(info["success"])
        self.reason = "" if self.success else _spoken_failure(info["metrics"])
        if self.taped:
            self.recorded = self.env.recorded(0, self.success, self.reason)

    def marks(self) -> list[Any]:
        return marks(SimpleNamespace(steps=(), episode=self.env.episode, sim=self.sim))

    def lines(self) -> list[str]:
        return _scenario_lines(self.env)

    def close(self) -> None:
        if close := getattr(self.env, "close_tape", None):
            close()


def _spoken_failure(metrics: dict[str, float]) -> str:
    return (failure_of(metrics) or "").replace("_", " ")


def _scenario_lines(env: ScenarioEnv) -> list[str]:
    targets = len(env.episode.targets)
    at_goal = sum(env.at_goal(k) for k in range(targets))
    return [f"step {env.steps} of {env.max_steps} ({env.steps * STEP_S:.0f} s)",
            f"objects at their goals: {at_goal} of {targets}"]

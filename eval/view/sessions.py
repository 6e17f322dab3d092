"""What runs behind the page: a skill, the plan of a scenario, or a person who drives through either. Navigation tasks
are in `eval.view.navigation`.

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
from eval.slots import SEED_STRIDE, agent_seed, episode_seed, failure_of
from eval.view.driver import Driver
from eval.view.home_in_scene import HomeInScene
from eval.view.own_code import OwnAgentApart
from planner.scenario_env import ScenarioEnv
from rearrange.env.home_env import HomeScene, HomeSettings
from rearrange.home.errors import CannotStart, UserError
from rearrange.home.mapping.floor_map import SHOWN_CELL_M, FloorMap, map_of
from rearrange.home.pictures.overlay import depth_picture, floor_picture
from rearrange.home.simulation.simulator_interface import STEP_S, Simulator
from skills.skill import Skill

SIGHT_PIXELS = 128  # of the depth image that the map of the floor is drawn from
MOST_SKIPPED = 50  # episodes in which the robot finds no place, one after another


class Session(ABC):
    """What the viewer shows.

    name: of the skill, navigation task or scenario. env: its environment. number: of the episode. words: its task.
    done, success, reason: how the episode ended. driver: the person who acts, if one does. recorded: a driven episode
    that is over and was taped. step_s: seconds of one action. map_label: what the map of the floor is.
    """

    name: str
    env: Any
    number = 0
    words = ""
    done = success = False
    reason = ""
    driver: Driver | None = None
    recorded: Recorded | None = None
    step_s = STEP_S
    map_label = "Its map of the floor, ahead is up"
    _map: FloorMap

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

    def show(self, home: HomeInScene) -> None:
        """Show the home and what moves in it."""
        home.show(self.sim.twin, self.marks())

    def forget_map(self) -> None:
        """Begin the map of the floor anew."""
        self._map = map_of(self.sim.robot, self.sim.base_pose)

    def pictures(self, pixels: int) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
        """What the robot sees now: depth, colours where there are any, and a map of the floor; (H, W, 3) uint8."""
        sim, known = self.sim, self.scene.floor_map
        depth = sim.depth_image(SIGHT_PIXELS)
        self._map.add(depth, sim.base_pose, sim.ee_in_base)
        seen = self.scene.image if self.scene.image is not None else depth
        floor = floor_picture(self._map.around(sim.base_pose, self._target()), SHOWN_CELL_M, pixels,
                              known.latest_route if known else None)
        return depth_picture(seen, pixels), sim.head_picture(pixels), floor

    def _target(self) -> tuple[float, float]:
        """Place of the skill's goal on the floor (world, m); that of the robot without a skill."""
        skill, sim = self.skill(), self.sim
        if skill is None:
            return sim.base_pose[:2]
        point = sim.handle_position(skill.target_handle) if skill.target_handle is not None else skill.nav_point
        return (sim.base_pose if point is None else point)[:2]

    def reload(self, skill: str, file: Path) -> None:
        """Another checkpoint of what runs a skill. CheckpointError."""

    def close(self) -> None:
        """Give up what is taped."""


def agent_of(job: Any, env: Any, file: str | None) -> Any:
    """Who acts in an environment, by a job and its checkpoint. CheckpointError; UserError."""
    from trainer.checkpoint import load_checkpoint

    def make() -> Any:
        return make_agent(job.agent, load_checkpoint(file) if file else None, [env], job.deterministic, job.network)

    return OwnAgentApart(f"agent={job.agent}", make) if ":" in job.agent else make()


def value_of(agent: Any) -> float | None:
    """What a policy expects of reward from here on; None of another agent."""
    return float(agent.values[0]) if isinstance(agent, PolicyAgent) else None


class OneAgent(Session):
    """What one agent carries out, or a person. job: says which."""

    job: Any
    _agent: Any

    def reload(self, skill: str, file: Path) -> None:
        self._agent = agent_of(self.job, self.env, str(file))

    @property
    def value(self) -> float | None:
        return value_of(self._agent)


class SkillSession(OneAgent):
    """One skill. taped: whether what a person drives is put on a tape."""

    def __init__(self, made: Prepared, driver: Driver | None = None) -> None:
        self.job: SkillJob = made.job
        self.name, self.driver, self.env = self.job.skill, driver, self.job.make()
        self.taped = False
        self._tape: Tape | None = None
        self._agent = None if driver else agent_of(self.job, self.env, self.job.checkpoint)

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
            self._agent.begin(0, agent_seed(seed))

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
        return [f"step {env.steps} of {env.max_steps}", f"reward so far {sum(env.reward_sums.values()):.2f}",
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
            self._value = value_of(self._agents[request.skill])
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

"""Evaluation of a scenario: plans carried out in many episodes at once, on all cores, with batched inference.

An episode depends on the seed and its number alone: not on how many processes share the work, nor on which episodes run
beside it. So the few that are shown in a video are run again afterwards, when it is known which they are.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from eval.agents import Agent, PolicyAgent, RandomAgent
from eval.evaluate import run_chunks
from eval.scenario.skill_sources import Source
from eval.slots import SEED_STRIDE, episode_seed, kept
from planner.execute import Executor, Record, Report, Request
from planner.monolithic import NAME, WholeTask
from planner.rules import Rules
from planner.scenario import spoken
from planner.scenario_env import ScenarioEnv
from planner.scenarios import ScenarioConfig
from planner.spa.controllers import controllers
from planner.stages import stage_names
from rearrange.env.home_env import HomeSettings

if TYPE_CHECKING:
    from rearrange.home.apartments.episodes import Episode

SLOTS = 4  # environments per process, stepped together; fixed, because a batch of another size may round differently
CHUNK = 8  # episodes handed to a process at a time


@dataclass(frozen=True)
class Job:
    """What to evaluate."""

    scenario: ScenarioConfig
    agent: str
    env: Mapping[str, Any]  # fields of HomeSettings
    skills: Mapping[str, Source]
    rules: Rules
    episodes: int
    seed: int = 0
    deterministic: bool = False
    video_dir: str | None = None
    video_speed: float = 4.0  # times as fast as the robot
    handoffs: bool = False  # keep the states in which manipulation skills began
    protocol: str = "paper"  # the choice of `planner` that `rules` began with, and what was typed to differ from it
    needed: tuple[str, ...] = ()  # of `skills` those that plans need; more may have something that runs them

    def episode(self, index: int) -> int:
        """Number of the index-th episode in its split."""
        return index + SEED_STRIDE * self.seed


@dataclass(frozen=True)
class StepResult:
    """How one step of a plan went."""

    words: str  # the operator, for people
    skill: str
    steps: int
    ended: str  # done, time_limit, what ended the episode, or "not begun"
    effects_hold: bool | None
    handed_to: str | None = None  # of navigate: the skill that came next
    distance_m: float | None = None  # of navigate: from where the next skill starts in training
    angle_rad: float | None = None
    from_m: float | None = None  # of pick and place: how far the base stood from the object or its goal when it began


@dataclass(frozen=True)
class EpisodeResult:
    """How one episode went. ended_in, reason: None on success."""

    index: int
    slot: int  # the place it had in a batch
    episode_id: str
    scene: str
    success: bool
    ended_in: str | None  # a skill, or "stop"
    reason: str | None
    steps: int
    recoveries: int
    metrics: Mapping[str, float]
    plan: tuple[StepResult, ...] = field(default=())
    handoffs: tuple[Episode, ...] = field(default=(), repr=False)
    began_solved: bool = False  # the whole goal held before the robot did anything

    def stages(self) -> list[bool]:
        """Which interactions succeeded, two for each object that the goal is about."""
        count = sum(name.startswith("stage_") for name in self.metrics) // 2
        return [bool(self.metrics[name]) for name in stage_names(count)]


def evaluate(job: Job, workers: int | None = None, progress: Callable[[int, int], None] | None = None,
             keep: Callable[[list[EpisodeResult]], None] | None = None) -> list[EpisodeResult]:
    """Run all episodes of a job; the results by index. `progress` and `keep` as for `eval.evaluate.evaluate`."""
    chunks = [list(range(a, min(a + CHUNK, job.episodes))) for a in range(0, job.episodes, CHUNK)]
    return run_chunks(run_chunk, job, chunks, workers, progress, keep)


def run_chunk(job: Job, indices: Sequence[int]) -> Iterator[EpisodeResult]:
    """Some episodes, SLOTS at a time, in this process, as they end. A slot whose episode is over takes the next one."""
    key = json.dumps([str(job.scenario), dict(job.env), {k: str(v) for k, v in job.skills.items()}, str(job.rules),
                      job.handoffs], sort_keys=True, default=str)
    for slot in finished(job, kept(key, lambda: make_executor(job), SLOTS), indices):
        yield slot.result()


def finished(job: Job, executors: Sequence[Executor], indices: Sequence[int]) -> Iterator[Slot]:
    """The slots in which these episodes run, each time that one of them is over."""
    agents = make_agents(job, executors)
    waiting: Iterator[int] = iter(indices)
    slots = [Slot(number, executor, agents, job) for number, executor in enumerate(executors[:len(indices)])]
    with _ending(agents, slots):
        for slot in slots:
            slot.next(waiting)
        while any(slot.index is not None for slot in slots):
            step_all(slots, agents)
            for slot in slots:
                if slot.index is not None and slot.executor.done:
                    yield slot
                    slot.next(waiting)


@contextmanager
def _ending(agents: Mapping[str, Agent], slots: Sequence[Slot]) -> Iterator[None]:
    """End the agents' slots afterwards, whatever happened: servers are told."""
    try:
        yield
    finally:
        for agent in agents.values():
            for slot in slots:
                agent.end(slot.number)


def run_again(job: Job, index: int, slot_number: int) -> Generator[Executor, None, EpisodeResult]:
    """The same episode again, in the slot that it had: yields at its start and after every step, returns the result."""
    executor = make_executor(job)
    agents = make_agents(job, [executor] * SLOTS)
    slot = Slot(slot_number, executor, agents, job)
    with _ending(agents, [slot]):
        slot.next(iter([index]))
        yield slot.executor
        while not slot.executor.done:
            step_all([slot], agents)
            yield slot.executor
        return slot.result()


def step_all(slots: Sequence[Slot], agents: Mapping[str, Agent]) -> None:
    """One step in every slot that has an episode: each skill's policy answers all that ask for it at once."""
    asking: dict[str, dict[int, Any]] = {}
    for slot in slots:
        if slot.index is not None and (request := slot.executor.request) is not None:
            asking.setdefault(request.skill, {})[slot.number] = request
    actions = {skill: answers(agents[skill], requests) for skill, requests in asking.items()}
    for slot in slots:
        if slot.index is not None:
            request = slot.executor.request
            slot.executor.advance(None if request is None else actions[request.skill][slot.number])


def answers(agent: Agent, requests: Mapping[int, Request]) -> dict[int, np.ndarray]:
    """Slot -> action; what begins has forgotten."""
    for slot, request in requests.items():
        if request.first:
            agent.forget(slot)
    return agent.act({slot: request.observation for slot, request in requests.items()},
                     mean=[slot for slot, request in requests.items() if request.mean])


class Slot:
    """One executor and the episode that runs in it."""

    def __init__(self, number: int, executor: Executor, agents: Mapping[str, Agent], job: Job) -> None:
        self.number, self.executor, self._agents, self._job = number, executor, agents, job
        self.index: int | None = None

    def next(self, waiting: Iterator[int]) -> None:
        """Begin the next episode, if there is one."""
        self.index = next(waiting, None)
        if self.index is None:
            return
        seed = episode_seed(self._job.seed, self.index)
        for skill, agent in self._agents.items():
            agent.begin(self.number, int(np.random.SeedSequence([seed, *skill.encode()]).generate_state(1)[0]))
        self.executor.reset(self._job.episode(self.index), seed)
        self._words = self._spoken()

    def _spoken(self) -> dict[str, str]:
        run = self.executor
        return {str(step.operator): spoken(step.operator, run.symbols, run.env.episode) for step in run.steps}

    def result(self) -> EpisodeResult:
        """How the episode went that has just ended."""
        run = self.executor
        report, metrics = run.report, run.report.metrics
        success = bool(metrics["success"])
        words = self._words | self._spoken()
        ended_in, reason = (None, None) if success else why_ended(report, run.sim.is_holding)
        return EpisodeResult(self.index, self.number, report.episode_id, report.scene, success, ended_in, reason,
                             int(metrics["episode_steps"]), report.recoveries, metrics, _steps(run, words),
                             tuple(report.handoffs), run.env.begins_solved)


def _steps(run: Executor, words: Mapping[str, str]) -> tuple[StepResult, ...]:
    """The steps that were carried out, in order, then those of the plan that were not begun."""
    records, steps = run.report.records, []
    for i, record in enumerate(records):
        to = None
        if record.skill == "navigate":
            to = next((other.skill for other in records[i + 1:] if other.skill != "navigate"), None)
        steps.append(StepResult(words.get(record.operator, record.operator), record.skill, record.steps, record.ended,
                                record.effects_hold, to, record.goal_distance_m, record.goal_angle_rad, record.from_m))
    last = records[-1].operator if records else None
    current = run.at < len(run.steps) and str(run.steps[run.at].operator) == last and records[-1].ended != "done"
    left = run.steps[run.at + current:]
    return (*steps, *(StepResult(words[str(s.operator)], s.skill, 0, "not begun", None) for s in left))


def why_ended(report: Report, holding: bool) -> tuple[str, str]:
    """Where (skill) and why an episode without success ended.

    A bad stop, after the whole plan, is put down to the first skill whose effects did not hold when it handed over.
    """
    last = report.records[-1] if report.records else None
    if report.end == "bad_stop":
        missed = next((record for record in report.records if record.effects_hold is False), None)
        if missed:
            return missed.skill, "bad stop: its effects did not hold"
        never = " ".join(f"({' '.join(atom)})" for atom in report.never_held)
        return "stop", f"bad stop: {never} never held" if never else "bad stop: undone later"
    if last is None or report.end in ("time_limit", "unstable"):
        dropped = ", an object on the floor" if report.metrics.get("objects_on_floor") else ""
        reason = f"time limit of the episode{dropped}" if report.end == "time_limit" else str(report.end)
        return last.skill if last else "stop", reason
    return last.skill, "time limit: " + _unfinished(last, holding)


def _unfinished(record: Record, holding: bool) -> str:
    """Why a manipulation skill had not finished at its time limit."""
    if record.effects_hold:
        return "start zone not left" if record.in_start_zone else "hand not at rest"
    if record.skill == "pick":
        return "wrong object" if holding else "nothing picked"
    if record.skill == "place":
        return "not released" if holding else "released elsewhere"
    return "not closed" if record.skill.startswith("close") else "not opened"


def make_agents(job: Job, executors: Sequence[Executor]) -> dict[str, Agent]:
    """Skill -> what acts for it, for those that no expert runs. executors: of each slot."""
    agents: dict[str, Agent] = {}
    for skill, source in job.skills.items():
        if source.kind == "policy":
            import torch

            from trainer.checkpoint import load_checkpoint

            torch.set_num_threads(1)
            agents[skill] = PolicyAgent(load_checkpoint(source.checkpoint), SLOTS, job.deterministic, source.network)
        elif source.kind == "remote":
            from eval.remote.agent import RemoteAgent

            agents[skill] = RemoteAgent(source.remote, SLOTS, source.spaces(skill)[1], lambda slot,
                                        skill=skill: executors[slot].instruction)
        elif source.kind == "own":
            agents[skill] = source.own_agent(skill, SLOTS)
        elif source.kind == "random":
            agents[skill] = RandomAgent(SLOTS, source.spaces(skill)[1])
    return agents


def make_executor(job: Job, make_env: Callable[..., ScenarioEnv] = ScenarioEnv,
                  kind: type[Executor] = Executor) -> Executor | WholeTask:
    """An environment of the scenario, and what carries plans out in it, or asks one policy for every action."""
    if NAME in job.skills:
        source = job.skills[NAME]
        seen = {"observations": source.seen or None, "camera_size": source.camera_size}
        return WholeTask(make_env(job.scenario, HomeSettings(depth_size=source.image_size, **{**job.env, **seen})))
    from skills.experts import expert_class

    skills = {name: source.make(name) for name, source in job.skills.items()}
    experts = {name: expert_class(name) for name, source in job.skills.items() if source.kind == "expert"}
    experts |= {name: made for name, made in controllers().items() if name in job.skills
                and job.skills[name].kind == "spa"}
    experts |= {name: _point_goal(source, job) for name, source in job.skills.items() if source.kind == "pointnav"}
    sizes = {name: source.image_size for name, source in job.skills.items()}
    env = make_env(job.scenario, HomeSettings(depth_size=0, **job.env))
    seen = {name: (source.seen, source.camera_size) for name, source in job.skills.items()}
    return kind(env, skills, experts, job.rules, sizes, job.handoffs, seen)


def _point_goal(source: Source, job: Job) -> Callable[..., Any]:
    """What makes the driver of Navigate by a policy of PointNav, as an `Executor` takes experts."""
    import torch

    from eval.point_goal import NavigatePointNav, Pilot
    from planner.spa.controllers import Memory
    from trainer.checkpoint import load_checkpoint

    torch.set_num_threads(1)
    pilot = Pilot(load_checkpoint(source.checkpoint), source.checkpoint, job.deterministic, source.network)
    return functools.partial(NavigatePointNav, pilot, Memory(), actions=job.rules.actions)

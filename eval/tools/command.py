"""`rearrange tools`: an episode of a scenario whose skills an agent calls, from settings to a run directory."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval.policy_choice import table
from eval.scenario.command import make_job
from eval.scenario.evaluate import SLOTS, Job, Slot, make_agents, make_executor, step_all
from eval.scenario.video import Film
from eval.tools.stdio import Stdio, require_package
from eval.tools.toolbox import Answer, Toolbox
from eval.video import VideoWriter, pace
from planner.single_steps import SingleSteps
from rearrange.command_line.composition.options import EvalOptions, ToolsOptions, options_as
from rearrange.command_line.runs.run_directory import write_whole
from rearrange.home.files import not_waiting
from rearrange.home.simulation.simulator_interface import STEP_S

if TYPE_CHECKING:
    from rearrange.command_line.runs.run_directory import Run

_FIGURES = ("success", "success_15cm", "success_stable", "goal_share", "driven_m", "hand_path_m", "objects_at_goal",
            "objects_on_floor", "disturbed_objects")


class ClientGone(Exception):
    """Nobody waits for the answer of the call that is under way."""


def offer(options: ToolsOptions, run: Run) -> dict[str, float]:
    """Offer tools on standard input and output until the client goes; the figures of the episode."""
    require_package()
    client = Stdio()
    agent = "tp_srl" if options.agent == "newest" else options.agent
    job = make_job(options_as(EvalOptions, options, agent=agent, episodes=1), str(run.videos), every_skill=True)
    episode = Episode(job, options.episode)
    run.create()
    run.say(f"tools {run.path}   {job.scenario.name}   episode {options.episode}   agent {job.agent}")
    for line in table(source.choice for source in job.skills.values() if source.choice):
        run.say(line)
    calls = refused = 0
    try:
        if options.video:
            episode.film(run.videos / "episode.mp4")
        tools = Toolbox(episode.run, lambda: episode.step(client))
        for call in client.calls():
            before = episode.run.env.steps
            try:
                answer = tools.call(call.name, call.arguments)
            except ClientGone:
                answer = Answer("Not finished: the client has gone.")
            calls, refused = calls + 1, refused + answer.refused
            _note(run.path, call.name, call.arguments, answer, before, episode.run.env.steps)
            if episode.run.done and not answer.refused:  # safe before the client hears of it, and goes
                _write(run.path, job, episode, calls, refused)
                episode.end()
            if not client.closed.is_set():
                client.reply(call, answer)
    finally:
        if not episode.run.done:
            episode.run.leave()
        run.result = _write(run.path, job, episode, calls, refused)
        episode.end()
    run.say(f"{'success' if run.result['success'] else 'no success'}   {run.result['goal_share']:.0%} of the goal   "
            f"{calls} calls, {refused} refused   {run.path}")
    return run.result


class Episode:
    """An episode that is run call by call."""

    def __init__(self, job: Job, number: int) -> None:
        self.number, self._job = number, job
        self.run: SingleSteps = make_executor(job, kind=SingleSteps)
        self._agents = make_agents(job, [self.run] * SLOTS)
        self._slot = Slot(0, self.run, self._agents, job)
        self._slot.next(iter([number]))
        self._files, self._film = ExitStack(), None

    def film(self, path: Path) -> None:
        """Film it from now on."""
        self._film = Film(self._files.enter_context(VideoWriter(path, pace(self._job.video_speed)[1])), self._job)
        self._film.watch(self.run)

    def step(self, client: Stdio) -> None:
        """One step of what is under way. ClientGone where nobody waits for it."""
        if client.closed.is_set():
            raise ClientGone
        step_all([self._slot], self._agents)
        if self._film:
            self._film.watch(self.run)

    def end(self) -> None:
        """Finish the film of the episode that is over, and tell policy servers."""
        if self._film:
            success = bool(self.run.report.metrics["success"])
            self._film.last(success, "" if success else self.run.report.end)
            self._film = None
        self._files.close()
        for agent in self._agents.values():
            agent.end(0)


def _note(path: Path, tool: str, arguments: dict[str, Any], answer: Answer, before: int, after: int) -> None:
    """Add a call to calls.jsonl."""
    line = json.dumps({"tool": tool, "arguments": arguments, "answer": answer.text, "refused": answer.refused,
                       "from_step": before, "to_step": after})
    with open(path / "calls.jsonl", "a", encoding="utf-8", opener=not_waiting) as file:
        file.write(line + "\n")


def _write(path: Path, job: Job, episode: Episode, calls: int, refused: int) -> dict[str, float]:
    """metrics.json of an episode that is over; its headline figures."""
    report = episode.run.report
    steps = int(report.metrics["episode_steps"])
    figures = {"scenario": job.scenario.name, "agent": job.agent, "protocol": job.protocol, "split": job.env["split"],
               "seed": job.seed, "episode": episode.number, "episode_id": report.episode_id, "scene": report.scene,
               "ended": report.end, "calls": calls, "refused_calls": refused, "steps": steps,
               "simulated_s": steps * STEP_S, **{name: report.metrics[name] for name in _FIGURES}}
    write_whole(path / "metrics.json", json.dumps(figures, indent=2) + "\n")
    return {name: figures[name] for name in ("success", "goal_share", "calls", "steps")}

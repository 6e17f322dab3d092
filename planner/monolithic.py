"""One policy for a whole scenario, without a plan: the monolithic baseline of Szot et al. 2021.

It runs like the skills of a plan (`planner.execute.Executor`), as one step that lasts as long as the episode.
"""

from __future__ import annotations

import numpy as np

from planner.execute import Record, Report, Request, reason_of_end
from planner.rules import Step
from planner.scenario_env import ScenarioEnv
from rearrange.home.apartments.episodes import Episode

NAME = "monolithic"


class WholeTask:
    """Carries out one episode after another by asking a policy for every action."""

    steps: tuple[Step, ...] = ()  # there is no plan
    at = 0
    step: Step | None = None

    def __init__(self, env: ScenarioEnv) -> None:
        self.env, self.sim = env, env.sim
        self.report: Report | None = None
        self.request: Request | None = None
        self.done = True

    def reset(self, episode: int | Episode, seed: int = 0) -> Report:
        """Load an episode."""
        observation, _ = self.env.reset(seed=seed, options={"episode": episode})
        self.episode = self.env.episode
        self.report = Report(self.episode.id, self.episode.scene, None, [Record("whole task", NAME)])
        self.request, self.done = Request(NAME, observation, True), False
        return self.report

    def advance(self, action: np.ndarray) -> bool:
        """One step of the environment; True when the episode is over."""
        observation, _, terminated, truncated, info = self.env.step(action)
        record = self.report.records[0]
        record.steps += 1
        if not (terminated or truncated):
            self.request = Request(NAME, observation, False)
            return False
        self.report.metrics, self.request, self.done = info["metrics"], None, True
        self.report.end = reason_of_end(info["metrics"])
        record.effects_hold = self.report.end == "success"
        record.ended = "done" if record.effects_hold else self.report.end
        return True

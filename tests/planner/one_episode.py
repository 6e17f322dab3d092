"""An episode of a plan from beginning to end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.execute import Executor, Report
from rearrange.home.apartments.episodes import Episode


def run_episode(executor: Executor, episode: int | Episode, policies: Mapping[str, Any] | None = None,
                seed: int = 0) -> Report:
    """One episode from beginning to end. `policies`: skill -> callable (observation, first) -> action, for the skills
    that no expert runs.
    """
    report = executor.reset(episode, seed)
    while not executor.done:
        request = executor.request
        executor.advance(None if request is None else policies[request.skill](request.observation, request.first))
    return report

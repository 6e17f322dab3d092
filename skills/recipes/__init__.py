"""How the policies that come with the package are trained: `<task>.yaml`, lessons that follow each other.

A lesson has `words`, settings of `rearrange train`. One with `plans` (scenario: episodes) begins in the states in which
plans hand over to the skill. Before it, so many episodes of these scenarios run in training homes of the lesson's
furniture, with the policy of the lesson before and the package's other policies; `tries` is their `handoff_tries`.
`rearrange reproduce policies` carries recipes out. The package's policies had what is the last lesson here in several
trainings, as it was found; their cards have every command.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Lesson:
    """One training run. plans: scenario -> episodes; tries: states kept of the skill at the same thing, None = all."""

    words: tuple[str, ...]
    plans: Mapping[str, int] = field(default_factory=dict)
    tries: int | None = None


def names() -> list[str]:
    """Skills and navigation tasks that have a recipe."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def lessons(task: str) -> list[Lesson]:
    """The lessons of a task's recipe, in order."""
    from rearrange.home.settings.yaml_files import plain_yaml

    return [Lesson(tuple(lesson["words"].split()), lesson.get("plans", {}), lesson.get("tries"))
            for lesson in plain_yaml(FOLDER / f"{task}.yaml")["lessons"]]


def recipe_of(words: list[str]) -> str | None:
    """The task whose last lesson was typed so, with other settings or without; None for a training of one's own."""
    from rearrange.home.settings.environment import NAVIGATION

    typed = set(words)
    return next((task for task in names() if f"{'nav' if task in NAVIGATION else 'skill'}={task}" in typed
                 and set(lessons(task)[-1].words) <= typed), None)

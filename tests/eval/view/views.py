"""What `rearrange view` prepares for some words."""

from __future__ import annotations

from typing import Any

from eval.skill_command import recorded_skill
from eval.view.choices import choose
from rearrange.command_line.composition.options import options_of
from rearrange.command_line.composition.parse_overrides import compose


def made(*words: str) -> tuple[Any, ...]:
    """What a Viewer takes after its server. words: the first names the task."""
    settings = compose("view", list(words))
    return options_of(settings), recorded_skill, words[0], choose(settings.overrides, words[0], settings.value("agent"),
                                                       settings.value("seed"), recorded_skill)

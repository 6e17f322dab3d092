"""Trained policies that come with the package: `<task>.pt` in half precision, and `<task>.yaml`, which says what it is.

A task is a skill or a navigation task. `python -m benchmarks.publish_policy` writes them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


def names() -> list[str]:
    """Skills and navigation tasks that have a trained policy here."""
    return sorted(path.stem for path in FOLDER.glob("*.pt"))


def path(task: str) -> Path:
    """The policy's file. Raises UserError where there is none."""
    from rearrange.home.errors import UserError
    from rearrange.home.settings.environment import NAVIGATION

    if task not in names():
        known, group = ", ".join(names()) or "none", "nav" if task in NAVIGATION else "skill"
        raise UserError(f"no trained policy of {group}={task} comes with this version (there are: {known}). Train one "
                        f"with rearrange train {group}={task}, or give checkpoint=<its directory>.")
    return FOLDER / f"{task}.pt"


def card(task: str) -> dict[str, Any]:
    """What is known about the policy: command, commit, steps, limits; its success in homes that it has never seen."""
    from rearrange.home.settings.yaml_files import plain_yaml

    return plain_yaml(path(task).with_suffix(".yaml"))


def steps(card: dict[str, Any]) -> int:
    """Environment steps that a policy and those that it began with were trained for."""
    before = card.get("started_from")
    return card["steps"] + (steps(before) if isinstance(before, dict) else 0)


def hours(card: dict[str, Any]) -> float:
    """Hours that it was trained for, and those that it began with."""
    before = card.get("started_from")
    return card["training_hours"] + (hours(before) if isinstance(before, dict) else 0)

"""Trained policies that come with the package: `<skill>.pt` in half precision, and `<skill>.yaml`, which says what it is.

They are written by `python -m eval.publish`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


def names() -> list[str]:
    """Skills that have a trained policy here."""
    return sorted(path.stem for path in FOLDER.glob("*.pt"))


def path(skill: str) -> Path:
    """The policy's file. Raises UserError where there is none."""
    from rearrange.errors import UserError

    if skill not in names():
        known = ", ".join(names()) or "none"
        raise UserError(f"no trained policy of skill {skill} comes with this version (there are: {known}). Train one with "
                        f"rearrange train skill={skill}, or give checkpoint=<its directory>.")
    return FOLDER / f"{skill}.pt"


def card(skill: str) -> dict[str, Any]:
    """What is known about the policy: command, commit, steps, success on apartments it has never seen."""
    from rearrange.settings.yaml_files import plain_yaml

    return plain_yaml(path(skill).with_suffix(".yaml"))


def steps(card: dict[str, Any]) -> int:
    """Environment steps that a policy and those that it began with were trained for."""
    before = card.get("started_from")
    return card["steps"] + (steps(before) if isinstance(before, dict) else 0)

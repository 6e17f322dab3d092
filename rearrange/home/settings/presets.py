"""The YAML files of configs/<group>/: each changes some settings, under the name of a choice.

    # What learns fastest on a small budget.      the first comment says what it is
    # @package _global_                           keys are full names then, else those of the group
    defaults:
      - override /policy: blind                   what it chooses in other groups
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CONFIGS = Path(__file__).resolve().parents[3] / "configs"


@dataclass(frozen=True)
class Preset:
    """chooses: group -> choice. values: settings by full name, nested."""

    chooses: dict[str, str]
    values: dict[str, Any]


def names(group: str) -> list[str]:
    """The presets of a group."""
    return sorted(path.stem for path in (CONFIGS / group).glob("*.yaml"))


@functools.cache
def preset(group: str, name: str) -> Preset:
    """What a file says. `group` is where its keys belong, unless it says that they are full names."""
    from rearrange.home.settings.yaml_files import plain_yaml  # brings OmegaConf; names and titles do without

    path = CONFIGS / group / f"{name}.yaml"
    values = plain_yaml(path) or {}
    chooses = dict(choice for line in values.pop("defaults", []) for choice in line.items())
    is_global = "# @package _global_" in path.read_text(encoding="utf-8").splitlines()
    return Preset({key.removeprefix("override /"): str(choice) for key, choice in chooses.items()},
                  values if is_global else {group: values})


def title(group: str, name: str) -> str:
    """What a preset is, in one sentence: all that `--help` needs of it."""
    lines = (CONFIGS / group / f"{name}.yaml").read_text(encoding="utf-8").splitlines()
    return next(line[2:] for line in lines if line.startswith("# ") and "@package" not in line)

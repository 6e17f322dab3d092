"""The choices of the groups of settings that need no dataclass: names of navigation tasks, and the YAML files of
configs/<group>/.

Each file changes some settings, under the name of a choice:

    # What learns fastest on a small budget.      the first comment says what it is
    # @package _global_                           keys are full names then, else those of the group
    defaults:
      - override /policy: blind                   what it chooses in other groups
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rearrange.home.settings.yaml_files import parsed

CONFIGS = Path(__file__).resolve().parents[3] / "configs"
NAVIGATION = {"pointnav": "PointNav", "objectnav": "ObjectNav", "flee": "Flee", "explore": "Explore"}
"""Navigation tasks (`nav=`) by name, and what they are called in ids of environments."""


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
    text = _text(group, name)
    values: dict[str, Any] = parsed(text)
    chooses = dict(choice for line in values.pop("defaults", []) for choice in line.items())
    is_global = "# @package _global_" in text.splitlines()
    return Preset({key.removeprefix("override /"): str(choice) for key, choice in chooses.items()},
                  values if is_global or not values else {group: values})


def title(group: str, name: str) -> str:
    """What a preset is, in one sentence: the first comment of its file, or its name where there is none. It is all that
    `--help` needs of it."""
    said = [line[2:] for line in _text(group, name).splitlines() if line.startswith("# ") and "@package" not in line]
    return said[0] if said else f"{name.replace('_', ' ').capitalize()}."


def _text(group: str, name: str) -> str:
    return (CONFIGS / group / f"{name}.yaml").read_text(encoding="utf-8")


def has_nvidia_device() -> bool:
    """Whether an NVIDIA device is visible, on which the usual choices depend. Asked without importing torch."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return False
    return os.path.exists("/dev/nvidia0") or os.path.exists("/proc/driver/nvidia/version")

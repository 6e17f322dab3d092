"""An action from its parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rearrange.home.action_layout import ACTION_SIZES

if TYPE_CHECKING:
    from skills.skill import Skill


def assemble(skill: Skill, command: Mapping[str, Any]) -> np.ndarray:
    """The action that commands these parts, in the order of the skill; parts that it does not own are left out."""
    parts = [np.atleast_1d(command[name]) for name in ACTION_SIZES if name in skill.action_parts]
    return np.clip(np.concatenate(parts), -1.0, 1.0).astype(np.float32)

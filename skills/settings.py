"""Settings that skills share. Light to import: `--help` reads the settings of every skill."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from rearrange.home.action_layout import ACTION_PARTS
from rearrange.home.errors import UserError
from rearrange.home.settings.setting_fields import block, check, setting

_PARTS = {"arm": "arm joints", "grip": "hand", "base": "driving", "stop": "stop"}


class SkillConfig:
    """Base of the settings of every skill, which checks them. Reward scales that are not given keep their defaults."""

    skill: ClassVar[str]
    reward_scales: Mapping[str, float]

    def __post_init__(self) -> None:
        defaults = type(self).__dataclass_fields__["reward_scales"].default_factory()
        object.__setattr__(self, "reward_scales", merge_scales(f"skill {self.skill}", defaults, self.reward_scales))
        check(self, "skill.")


def merge_scales(what: str, defaults: Mapping[str, float], changes: Mapping[str, float]) -> dict[str, float]:
    """Reward scales with some of them changed; a name that is not a term raises UserError."""
    unknown = sorted(set(changes) - set(defaults))
    if unknown:
        raise UserError(f"{what} has no reward term {unknown[0]!r}; its terms are {', '.join(defaults)}.")
    return {**defaults, **{name: float(value) for name, value in changes.items()}}


def action_parts(*parts: str, text: str = "what the policy commands") -> Any:
    """What the policy commands."""
    return setting(parts, text, choices=ACTION_PARTS)


def observation_keys(*keys: str) -> Any:
    """What the policy sees: names of `rearrange.home.simulation.observations.OBSERVATIONS`."""
    return setting(keys, "for the policy")


def initial_std(*parts: str, **given: tuple[float, str]) -> Any:
    """Exploration noise of each part when training starts, in units of the action; None = as policy.log_std_init says.

    `given`: of some parts a number and why.
    """
    return _by_part(parts, given, {"above": 0})


def initial_mean(*parts: str, **given: tuple[float, str]) -> Any:
    """Mean action of each part when training starts, like `initial_std`; None = as policy.mean_init says."""
    return _by_part(parts, given, {})


def _by_part(parts: tuple[str, ...], given: Mapping[str, tuple[float, str]], bounds: dict[str, Any]) -> Any:
    made = {}
    for part in parts:
        value, why = given.get(part, (None, ""))
        made[part] = setting(value, _PARTS[part] + (f"; {why}" if why else ""), **bounds)
    return block(**made)


SLOW_BASE = (0.3, "less than 1 keeps a fast base from shaking")  # for initial_std

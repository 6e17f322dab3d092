"""Skills: one file each. `SKILLS` lists them; `make_env` turns a name and settings into a Gymnasium environment."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rearrange.settings import keys
from rearrange.errors import UserError
from skills.close_cabinet import CloseCabinet, CloseCabinetConfig
from skills.close_fridge import CloseFridge, CloseFridgeConfig
from skills.navigate import Navigate, NavigateConfig
from skills.open_cabinet import OpenCabinet, OpenCabinetConfig
from skills.open_fridge import OpenFridge, OpenFridgeConfig
from skills.pick import Pick, PickConfig
from skills.place import Place, PlaceConfig
from skills.skill import Skill

if TYPE_CHECKING:
    from rearrange.env import RearrangeEnv
    from rearrange.settings.keys import Rule

__all__ = ["SKILLS", "SKILL_CONFIGS", "Skill", "make_env"]

SKILLS: dict[str, type[Skill]] = {
    "navigate": Navigate,
    "pick": Pick,
    "place": Place,
    "open_cabinet": OpenCabinet,
    "close_cabinet": CloseCabinet,
    "open_fridge": OpenFridge,
    "close_fridge": CloseFridge,
}
SKILL_CONFIGS: dict[str, type] = {
    "navigate": NavigateConfig,
    "pick": PickConfig,
    "place": PlaceConfig,
    "open_cabinet": OpenCabinetConfig,
    "close_cabinet": CloseCabinetConfig,
    "open_fridge": OpenFridgeConfig,
    "close_fridge": CloseFridgeConfig,
}


def make_env(skill: str = "pick", **settings: Any) -> RearrangeEnv:
    """A Gymnasium environment for a skill. `settings` are fields of the skill's config or of `rearrange.env.HomeSettings`,
    `episodes_share` (of RearrangeEnv), and `expert_action`: observations also say what an expert would do, an action and the weight
    of this advice. They may be what they may be on the command line: UserError else.
    """
    from rearrange.env import HomeSettings, RearrangeEnv  # imports the simulator

    if skill not in SKILLS:
        choices = ", ".join(SKILLS)
        raise UserError(f"there is no skill called {skill!r}{_suggestion(skill, SKILLS)}; skills are {choices}.")
    settings = checked_settings("skill", skill, setting_names(skill), settings)
    of_skill, others = _fields(SKILL_CONFIGS[skill]), {"episodes_share"}
    config = SKILL_CONFIGS[skill](**{k: _as_tuple(v) for k, v in settings.items() if k in of_skill})
    home = HomeSettings(**{k: v for k, v in settings.items() if k not in {*of_skill, *others, "expert_action"}})
    adviser = _adviser_of(skill) if settings.get("expert_action") else None
    return RearrangeEnv(SKILLS[skill](config), home, adviser=adviser, **{k: v for k, v in settings.items() if k in others})


def setting_names(skill: str) -> list[str]:
    """What can be set in the environment of a skill: fields of the skill's config, then of its home, then the others."""
    from rearrange.env import HomeSettings

    return [*_fields(SKILL_CONFIGS[skill]), *_fields(HomeSettings), "expert_action", "episodes_share"]


def _fields(config: type) -> list[str]:
    return [field.name for field in dataclasses.fields(config)]


def _adviser_of(skill: str) -> type:
    """What makes the expert of a skill that can be asked anywhere. UserError where there is none."""
    from skills.experts import ADVISERS

    if skill not in ADVISERS:
        raise UserError(f"skill {skill} has no expert that can be asked in every state (ppo.imitation_coef, expert_action); "
                        f"there is one for {', '.join(ADVISERS)}.")
    return ADVISERS[skill]


def checked_settings(group: str, name: str, known: Sequence[str], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the environment of a skill (`group` skill) or scenario (hab) in the type of their rules; UserError for the
    first that is not `known` or that its rule refuses.
    """
    for setting in settings:
        if setting not in known:
            what = f"{'scenario' if group == 'hab' else group} {name}"
            raise UserError(f"{what} has no setting {setting!r}{_suggestion(setting, known)}; settings are {', '.join(known)}.")
    rules = _rules(group, name)
    return {setting: _checked_scales(rules, given) if setting == "reward_scales" else _converted(rules.get(setting), setting, given)
            for setting, given in settings.items()}


@functools.cache
def _rules(group: str, name: str) -> dict[str, Rule]:
    """What the settings of an environment may be: the rules of configs/, by their last word, and those of the others."""
    files = [keys.choice_file("sim", sim) for sim in keys.choices("sim")] + [keys.choice_file(group, name)]
    ruled = {key.name.partition(".")[2]: key.rule for file in files for key in file.keys if key.rule and not key.rule.is_fixed}
    return ruled | {"depth_size": keys.Rule.parse("int 0..1024"), "split": keys.Rule.parse("train | val | test"),
                    "expert_action": keys.Rule.parse("bool")}


def _checked_scales(rules: dict[str, Rule], given: Any) -> Mapping[str, float]:
    if not isinstance(given, Mapping):
        raise UserError(f"reward_scales={given!r} is not allowed: it must be a mapping from names of reward terms to numbers.")
    return {name: _converted(rules.get(f"reward_scales.{name}"), f"reward_scales.{name}", value) for name, value in given.items()}


def _converted(rule: Rule | None, name: str, given: Any) -> Any:
    """A setting of Python as its rule wants it: a number of numpy is a number, a tuple a list, a path a text."""
    if rule is None:
        return given
    value = given.item() if isinstance(given, np.generic) else given.tolist() if isinstance(given, np.ndarray) else given
    value = list(value) if isinstance(value, tuple) else os.fspath(value) if isinstance(value, os.PathLike) else value
    if isinstance(value, list):
        value = [item.item() if isinstance(item, np.generic) else item for item in value]
    try:
        return rule.convert(value)
    except keys.NotAllowed:
        shown = repr(given) if isinstance(given, str) and not rule.words() else value  # "4" is not 4
        raise UserError(keys.not_allowed(name, shown, rule)) from None


def _as_tuple(value: Any) -> Any:
    """Lists of a YAML file as the tuples of a frozen config."""
    return tuple(value) if isinstance(value, list) else value


def _suggestion(name: str, known: Any) -> str:
    close = difflib.get_close_matches(name, list(known), 1)
    return f" (did you mean {close[0]!r}?)" if close else ""

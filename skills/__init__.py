"""Skills: one file each. `SKILLS` lists them; `make_env` turns a name and settings into a Gymnasium environment."""

from __future__ import annotations

import dataclasses
import difflib
import inspect
from typing import TYPE_CHECKING, Any

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
    """A Gymnasium environment for a skill. `settings` are fields of the skill's config or arguments of RearrangeEnv."""
    from rearrange.env import RearrangeEnv  # imports the simulator

    if skill not in SKILLS:
        choices = ", ".join(SKILLS)
        raise UserError(f"there is no skill called {skill!r}{_suggestion(skill, SKILLS)}; skills are {choices}.")
    of_env = [name for name in inspect.signature(RearrangeEnv).parameters if name != "skill"]
    of_skill = [field.name for field in dataclasses.fields(SKILL_CONFIGS[skill])]
    for name in settings:
        if name not in of_env and name not in of_skill:
            known = [*of_skill, *of_env]
            near = _suggestion(name, known)
            raise UserError(f"skill {skill} has no setting {name!r}{near}; settings are {', '.join(known)}.")
    config = SKILL_CONFIGS[skill](**{k: _as_tuple(v) for k, v in settings.items() if k in of_skill})
    return RearrangeEnv(SKILLS[skill](config), **{k: v for k, v in settings.items() if k in of_env})


def _as_tuple(value: Any) -> Any:
    """Lists of a YAML file as the tuples of a frozen config."""
    return tuple(value) if isinstance(value, list) else value


def _suggestion(name: str, known: Any) -> str:
    close = difflib.get_close_matches(name, list(known), 1)
    return f" (did you mean {close[0]!r}?)" if close else ""

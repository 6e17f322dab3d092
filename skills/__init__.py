"""Skills: one file each. `SKILLS` lists them; `make_env` turns a name and settings into a Gymnasium environment."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rearrange.home.errors import UserError
from rearrange.home.settings import environment

if TYPE_CHECKING:
    from rearrange.env.skill_env import RearrangeEnv
    from skills.settings import SkillConfig
    from skills.skill import Skill

__all__ = ["SKILLS", "config_class", "make_env", "make_skill", "skill_class"]

SKILLS = {
    "navigate": "Navigate",
    "pick": "Pick",
    "place": "Place",
    "open_cabinet": "OpenCabinet",
    "close_cabinet": "CloseCabinet",
    "open_fridge": "OpenFridge",
    "close_fridge": "CloseFridge",
}
"""Name of a skill, which is that of its file -> its class there; its settings are the dataclass of that name with `Config` behind."""

OF_TRAINING = ("initial_std", "initial_mean")  # settings of a skill that a policy begins with, and no environment knows


def skill_class(name: str) -> type[Skill]:
    """The class of a skill. UserError if there is none."""
    return _of_file(name, "")


def config_class(name: str) -> type[SkillConfig]:
    """The settings of a skill, a dataclass. UserError if there is no such skill."""
    return _of_file(name, "Config")


def make_skill(name: str, **settings: Any) -> Skill:
    """A skill. `settings`: fields of its config."""
    return skill_class(name)(config_class(name)(**{key: _as_tuple(value) for key, value in settings.items()}))


def title(name: str) -> str:
    """What a skill is about in one sentence: the first of its file, which is not imported for it."""
    first = next(iter(_file(name).read_text(encoding="utf-8").splitlines()), "").strip('"')
    said = first.partition(": ")[2]
    if not said:
        raise UserError(f"skills/{name}.py should begin with its name and what it is about, as \"\"\"Pick: take an object ...")
    return said[0].upper() + said[1:]


def make_env(skill: str = "pick", **settings: Any) -> RearrangeEnv:
    """A Gymnasium environment for a skill. `settings` are fields of the skill's config or of `rearrange.env.skill_env.HomeSettings`,
    `episodes_share` (of RearrangeEnv), and `expert_action`: observations also say what an expert would do, an action and the weight
    of this advice. They may be what they may be on the command line: UserError else.
    """
    from rearrange.env.skill_env import RearrangeEnv  # imports the simulator

    settings = checked_settings(skill, settings)
    of_home = [field.name for field in dataclasses.fields(environment.HomeSettings)]
    home = environment.HomeSettings(**{key: value for key, value in settings.items() if key in of_home})
    adviser = _adviser_of(skill) if settings.pop("expert_action", False) else None
    share = settings.pop("episodes_share", 1.0)
    made = make_skill(skill, **{key: value for key, value in settings.items() if key not in of_home})
    return RearrangeEnv(made, home, share, adviser)


def checked_settings(skill: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of the environment of a skill in the type of their rules. UserError for the first that there is not, or that its rule
    refuses.
    """
    config: Any = config_class(skill)
    known = [field.name for part in (config, environment.HomeSettings) for field in dataclasses.fields(part)]
    known = [name for name in known if name not in OF_TRAINING] + ["expert_action", "episodes_share"]
    return environment.checked_settings(f"skill {skill}", known, config, settings)


def _adviser_of(skill: str) -> type:
    """What makes the expert of a skill that can be asked anywhere. UserError where there is none."""
    from skills.experts import ADVISERS

    if skill not in ADVISERS:
        raise UserError(f"skill {skill} has no expert that can be asked in every state (ppo.imitation_coef, expert_action); "
                        f"there is one for {', '.join(ADVISERS)}.")
    return ADVISERS[skill]


def _of_file(name: str, ending: str) -> Any:
    file, wanted = _file(name), SKILLS[name] + ending
    found = getattr(import_module(f"skills.{name}"), wanted, None)
    if found is None:
        raise UserError(f"{file} has no class {wanted}, which the line {name!r} of SKILLS in skills/__init__.py asks for.")
    return found


def _file(name: str) -> Path:
    """The file of a skill. UserError where it or its line in SKILLS is missing."""
    if name in SKILLS:
        spec = find_spec(f"skills.{name}")
        if spec is None:
            raise UserError(f"SKILLS in skills/__init__.py has a line {name!r}, and there is no skills/{name}.py.")
        return Path(spec.origin)
    raise UserError(without_entry(name) or f"there is no skill called {name!r}{environment.suggestion(name, SKILLS)}; skills are "
                    f"{', '.join(SKILLS)}.")


def without_entry(name: str) -> str | None:
    """A sentence for the name of a file of this folder that defines a skill and has no line in SKILLS yet."""
    file = Path(__file__).with_name(f"{name}.py")
    if not (name.isidentifier() and name not in SKILLS and file.is_file() and f'skill = "{name}"' in file.read_text("utf-8")):
        return None
    return (f"skills/{name}.py is not a skill yet: add a line {name!r}: {name.title().replace('_', '')!r} to SKILLS in "
            "skills/__init__.py.")


def _as_tuple(value: Any) -> Any:
    """Lists of a YAML file as the tuples of a frozen config."""
    return tuple(value) if isinstance(value, list) else value

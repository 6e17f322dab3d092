"""Skills: one file each. `SKILLS` lists them; `make_env` turns a name and settings into a Gymnasium environment.

A skill of somebody else has the name of an entry point `rearrange.skills` of an installed package, or is written
`package.module:Name`: a class derived from `skills.skill.Skill`, with the dataclass `<Name>Config` beside it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rearrange.home.errors import UserError
from rearrange.home.settings import environment
from rearrange.home.settings.environment import HOME_SETTINGS
from rearrange.home.settings.installed_parts import SKILLS as OFFERED
from skills import own_skills

if TYPE_CHECKING:
    from rearrange.env.skill_env import RearrangeEnv
    from skills.settings import SkillConfig
    from skills.skill import Skill

__all__ = ["SKILLS", "config_class", "make_env", "make_skill", "names", "skill_class"]

SKILLS = {
    "navigate": "Navigate",
    "pick": "Pick",
    "place": "Place",
    "open_cabinet": "OpenCabinet",
    "close_cabinet": "CloseCabinet",
    "open_fridge": "OpenFridge",
    "close_fridge": "CloseFridge",
}
"""Name of a skill and of its file -> its class there. Its settings are the dataclass `<class>Config` beside it."""

OF_TRAINING = ("initial_std", "initial_mean")  # settings of a skill that only training knows: how a policy begins


def names() -> tuple[str, ...]:
    """The skills that there are by name: ours, then those of installed packages, which are not imported."""
    return (*SKILLS, *sorted(set(OFFERED.installed()) - set(SKILLS)))


def is_skill(word: str) -> bool:
    """Whether a word may be that of a skill."""
    return word in SKILLS or OFFERED.is_own(word)


def skill_class(name: str) -> type[Skill]:
    """The class of a skill. UserError if there is none."""
    return own_skills.load(name)[0] if _is_elsewhere(name) else _of_file(name, "")


def config_class(name: str) -> type[SkillConfig]:
    """The settings of a skill, a dataclass. UserError if there is no such skill."""
    return own_skills.load(name)[1] if _is_elsewhere(name) else _of_file(name, "Config")


def _is_elsewhere(name: str) -> bool:
    """Whether a skill is in an installed package, or in code of the user's own."""
    return name not in SKILLS and OFFERED.is_own(name)


def make_skill(name: str, **settings: Any) -> Skill:
    """A skill. `settings`: fields of its config."""
    given = {key: tuple(value) if isinstance(value, list) else value for key, value in settings.items()}  # as in YAML
    return skill_class(name)(config_class(name)(**given))


def title(name: str) -> str:
    """What a skill is about: the first sentence of its file, which is read without an import."""
    first = next(iter(_file(name).read_text(encoding="utf-8").splitlines()), "").strip('"')
    said = first.partition(": ")[2]
    if not said:
        raise UserError(f"skills/{name}.py should begin with its name and what it is about, "
                        'as """Pick: take an object ...')
    return said[0].upper() + said[1:]


def make_env(skill: str = "pick", **settings: Any) -> RearrangeEnv:
    """A Gymnasium environment for a skill.

    Args:
        settings: fields of the skill's config or of `rearrange.env.skill_env.HomeSettings`. With `expert_action=True`
            the observations also hold the action of an expert and the weight of this advice.

    Raises:
        UserError: a setting that does not exist, or has a value that the command line refuses, too.
    """
    from rearrange.env.skill_env import RearrangeEnv  # imports the simulator

    settings = checked_settings(skill, settings)
    home = environment.HomeSettings(**{key: value for key, value in settings.items() if key in HOME_SETTINGS})
    adviser = _adviser_of(skill) if settings.pop("expert_action", False) else None
    made = make_skill(skill, **{key: value for key, value in settings.items() if key not in HOME_SETTINGS})
    return RearrangeEnv(made, home, adviser=adviser)


def checked_settings(skill: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a skill's environment in the types of their rules. UserError for the first one that is refused."""
    config: Any = config_class(skill)
    own = [field.name for field in dataclasses.fields(config) if field.name not in OF_TRAINING]
    known = [*own, *HOME_SETTINGS, "expert_action"]
    return environment.checked_settings(f"skill {skill}", known, config, settings)


def _adviser_of(skill: str) -> type:
    """The class of the expert of a skill that can be asked in every state. UserError where there is none."""
    from skills.experts import ADVISERS

    if skill not in ADVISERS:
        raise UserError(f"skill {skill} has no expert that can be asked in every state (ppo.imitation_coef, "
                        f"expert_action); there is one for {', '.join(ADVISERS)}.")
    return ADVISERS[skill]


def _of_file(name: str, ending: str) -> Any:
    file, wanted = _file(name), SKILLS[name] + ending
    found = getattr(import_module(f"skills.{name}"), wanted, None)
    if found is None:
        raise UserError(f"{file} has no class {wanted}, which the line {name!r} of SKILLS in skills/__init__.py asks "
                        "for.")
    return found


def _file(name: str) -> Path:
    """The file of a skill. UserError where it or its line in SKILLS is missing."""
    if name in SKILLS:
        spec = find_spec(f"skills.{name}")
        if spec is None:
            raise UserError(f"SKILLS in skills/__init__.py has a line {name!r}, and there is no skills/{name}.py.")
        return Path(spec.origin)
    near = environment.suggestion(name, names())
    raise UserError(without_entry(name) or f"there is no skill called {name!r}{near}; skills are "
                    f"{', '.join(names())}, or one of your own: package.module:Name.")


def without_entry(name: str) -> str | None:
    """A sentence for the name of a file of this folder that defines a skill and has no line in SKILLS yet."""
    file = Path(__file__).with_name(f"{name}.py")
    if name in SKILLS or not name.isidentifier() or not file.is_file():
        return None
    if f'skill = "{name}"' not in file.read_text("utf-8"):
        return None
    return (f"skills/{name}.py is not a skill yet: add a line {name!r}: {name.title().replace('_', '')!r} to SKILLS in "
            "skills/__init__.py.")

"""Skills of installed packages and of the user's own: what their code has to hold, and what is said if it does not."""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from typing import TYPE_CHECKING, Any

from rearrange.home.errors import UserError
from rearrange.home.settings.installed_parts import SKILLS as OFFERED
from rearrange.home.settings.installed_parts import is_importable

if TYPE_CHECKING:
    from skills.settings import SkillConfig
    from skills.skill import Skill

_NAME = re.compile(r"[a-z][a-z0-9_]*")


def load(word: str) -> tuple[type[Skill], type[SkillConfig]]:
    """The class of a skill and that of its settings. UserError if they cannot be imported or used."""
    return _checked(word, OFFERED.load(word, "skill"))


def _checked(word: str, found: Any) -> tuple[type[Skill], type[SkillConfig]]:
    from skills.settings import SkillConfig
    from skills.skill import Skill

    said = f"skill={word}"
    if not (isinstance(found, type) and issubclass(found, Skill)):
        what = f"the class {found.__name__}" if isinstance(found, type) else f"of type {type(found).__name__}"
        raise UserError(f"{said} is no skill, but {what}: give a class derived from skills.skill.Skill.")
    if missing := sorted(getattr(found, "__abstractmethods__", ())):
        raise UserError(f"{said} is not complete: {found.__name__} has no {', '.join(missing)}; skills.skill.Skill "
                        "says what each is for.")
    settings = getattr(sys.modules[found.__module__], f"{found.__name__}Config", None)
    if not (inspect.isclass(settings) and issubclass(settings, SkillConfig) and dataclasses.is_dataclass(settings)):
        raise UserError(f"{said} has no settings: beside {found.__name__} there has to be a dataclass "
                        f"{found.__name__}Config, derived from skills.settings.SkillConfig.")
    name, failures = getattr(found, "name", None), getattr(found, "failures", None)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UserError(f"{said} has name={name!r}: {found.__name__}.name has to be letters a to z, digits and '_'.")
    if not isinstance(failures, tuple):
        raise UserError(f"{said} has no failures: {found.__name__}.failures has to be a tuple of what its failure() "
                        "can say.")
    if not is_importable(word) and name != word:
        raise UserError(f"{said} is called {name!r} by itself: its entry point and {found.__name__}.name have to be "
                        "the same.")
    _check_settings(said, settings)
    return found, settings


def _check_settings(said: str, settings: type) -> None:
    """UserError unless the defaults can be used, and hold what the environment asks for."""
    from rearrange.home.settings.setting_fields import keys_of

    fields = {field.name for field in dataclasses.fields(settings)}
    needed = ("action_parts", "observation_keys", "max_steps", "reward_scales")
    if missing := [name for name in needed if name not in fields]:
        raise UserError(f"{said}: {settings.__name__} has no field {', '.join(missing)}.")
    if not isinstance(getattr(settings, "skill", None), str):
        raise UserError(f"{said}: {settings.__name__} has no skill, the name of the skill.")
    try:
        settings()
        keys_of(settings)
    except UserError:
        raise
    except Exception as error:  # of a dataclass that somebody else wrote
        raise UserError(f"{said}: {settings.__name__} cannot be made with its defaults "
                        f"({type(error).__name__}: {error}).") from error

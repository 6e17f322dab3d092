"""The scenarios that there are: configs/hab/*.yaml, those of installed packages, and any YAML file of the same keys."""

from __future__ import annotations

import difflib
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any

from planner.scenario import problem_file
from planner.scenario_settings import ScenarioSettings
from rearrange.command_line.runs.names import checked_name
from rearrange.env.scenario_episodes import Scenario
from rearrange.home.errors import UserError
from rearrange.home.settings import presets
from rearrange.home.settings.installed_parts import SCENARIOS, file_of
from rearrange.home.settings.setting_fields import NotAllowed, keys_of
from rearrange.home.settings.yaml_files import plain_yaml

__all__ = ["ScenarioConfig", "load_scenario", "make_scenario", "scenarios"]


@dataclass(frozen=True)
class ScenarioConfig:
    """A scenario: what its episodes are like, which problem is planned, and how long an episode may take."""

    scenario: Scenario
    problem: Path
    max_steps: int

    @property
    def name(self) -> str:
        return self.scenario.name


def scenarios() -> list[str]:
    """Names of the scenarios that come with the package."""
    return presets.names("hab")


def load_scenario(which: str | Path) -> ScenarioConfig:
    """A scenario by its name, or from a YAML file, a path or `package.module:file.yaml`; a `problem` that is a path is
    relative to that file."""
    path, word = Path(which), str(which)
    installed = word in SCENARIOS.installed()
    if word in scenarios():
        path = presets.CONFIGS / "hab" / f"{which}.yaml"
    elif not path.is_file() and SCENARIOS.is_own(word):
        SCENARIOS.refuse_two(word, "hab")
        path = file_of(word, "hab", SCENARIOS.installed().get(word, word))
    elif not path.is_file():
        known = [*scenarios(), *sorted(SCENARIOS.installed())]
        near = difflib.get_close_matches(word, known, 1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise UserError(f"there is no scenario {word!r}{hint}: it should be one of {', '.join(known)}, or the path of "
                        "a YAML file.")
    try:
        values = plain_yaml(path)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error).rstrip(".")
        raise UserError(f"cannot read the scenario {path}: {why}.") from None
    if not isinstance(values, dict):
        raise UserError(f"the scenario {path} should hold lines of the form 'key: value'.")
    made = make_scenario(values, str(path), path.parent)
    if installed and word not in (made.name, *scenarios()):
        raise UserError(f"hab={word} is called {made.name!r} by itself: its entry point and the key 'name' of {path} "
                        "have to be the same.")
    return made


def make_scenario(values: dict, source: str, folder: Path = Path()) -> ScenarioConfig:
    """A scenario from its name and ScenarioSettings.

    Args:
        values: the settings, without those that keep their defaults.
        source: names them in messages.
        folder: of a `problem` that is a path.
    """
    known = {key.name: key for key in keys_of(ScenarioSettings)}
    for name in values:
        if name not in ("name", *known):
            near = difflib.get_close_matches(str(name), known, 1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise UserError(f"{source}: there is no key {name!r}{hint}; there are name, {', '.join(known)}.")
    if "name" not in values:
        raise UserError(f"{source}: the key 'name' is missing: scenario.")
    checked: dict[str, Any] = {"name": str(values["name"])}
    for name, key in known.items():
        value = values.get(name, key.default)
        if value is MISSING:
            raise UserError(f"{source}: the key {name!r} is missing: {key.text}.")
        try:
            checked[name] = key.rule.convert(value)
        except NotAllowed:
            raise UserError(f"{source}: {name}={value} is not allowed: it must be {key.rule}.") from None
    try:
        checked_name(str(values["name"] or ""))
    except UserError:
        raise UserError(f"{source}: name={values['name']} is not allowed: it names the directory of results, so use "
                        "letters, digits, '-', '_' and '.', and begin with one of the first two.") from None
    problem, max_steps = checked.pop("problem"), checked.pop("max_steps")
    beside = folder / problem
    path = beside if beside.is_file() else problem_file(problem)
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in checked.items()}
    return ScenarioConfig(Scenario(**fields), path, max_steps)

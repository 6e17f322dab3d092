"""The environments as Gymnasium knows them: `gymnasium.make("rearrange/Pick-v0")`,
`gymnasium.make("rearrange/TidyHouse-v0")`.

`import rearrange` registers them, and so does the entry point `gymnasium.envs`, which `trainer.train` loads. In a
process that does neither, `gymnasium.make("rearrange:rearrange/Pick-v0")` imports the package first.

A skill or scenario of somebody else has no id of its own: gymnasium.make("rearrange/Skill-v0", skill="push_chair"),
gymnasium.make("rearrange/Scenario-v0", scenario="package.module:file.yaml").

Skills, scenarios and navigation tasks stand above this file: it names their packages, as Gymnasium's registry does,
and loads them when an environment is made. """

from __future__ import annotations

import ast
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rearrange.home import own_packages
from rearrange.home.errors import UserError
from rearrange.home.settings import presets
from rearrange.home.settings.presets import NAVIGATION

if TYPE_CHECKING:
    from planner.scenario_env import ScenarioEnv
    from rearrange.env.skill_env import RearrangeEnv
    from rearrange.env.vector_env import VectorOfHomes
    from rearrange.navigation.env import NavigationEnv

__all__ = ["environment_id", "make_navigation", "make_scenario", "make_skill", "make_vector", "register_envs"]


def environment_id(name: str) -> str:
    """The id of one of our skills, scenarios or navigation tasks: `open_cabinet` is `rearrange/OpenCabinet-v0`."""
    return f"rearrange/{NAVIGATION.get(name) or name.title().replace('_', '')}-v0"


def register_envs() -> None:
    """Register every skill, scenario and navigation task that is not registered yet. Episodes end by the step limit
    of each itself. """
    from gymnasium.envs.registration import register, registry

    for names, make in (([*_skill_names(), "skill"], "make_skill"), (NAVIGATION, "make_navigation"),
                        ([*presets.names("hab"), "scenario"], "make_scenario")):
        for name in names:
            if environment_id(name) not in registry:
                register(id=environment_id(name), entry_point=f"rearrange.env.registration:{make}",
                         vector_entry_point="rearrange.env.registration:make_vector", kwargs={"name_of_id": name})


def _skill_names() -> list[str]:
    """The names in `skills.SKILLS`, read and not imported: something else may be called `skills`, which `make_skill`
    tells."""
    tree = ast.parse((own_packages.ROOT / "skills" / "__init__.py").read_text(encoding="utf-8"))
    return list(next(ast.literal_eval(node.value) for node in tree.body
                     if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "SKILLS"))


def make_skill(name_of_id: str, **settings: Any) -> RearrangeEnv:
    """The environment of one skill; settings as in `skills.make_env`."""
    name = _chosen("skill", name_of_id, settings)
    return own_packages.load("skills").make_env(name, **settings)


def make_navigation(name_of_id: str, **settings: Any) -> NavigationEnv:
    """The environment of a navigation task; settings as in `rearrange.navigation.make_env`."""
    return import_module("rearrange.navigation").make_env(name_of_id, **settings)


def make_vector(name_of_id: str, num_envs: int = 1, autoreset_mode: str = "NextStep", **settings: Any) -> VectorOfHomes:
    """Several environments of a skill, scenario or navigation task in one vector, each with these settings."""
    from rearrange.env.vector_env import VectorOfHomes

    make = make_scenario if name_of_id in (*presets.names("hab"), "scenario") else (
        make_navigation if name_of_id in NAVIGATION else make_skill)
    return VectorOfHomes(lambda: make(name_of_id, **settings), num_envs, autoreset_mode)


def make_scenario(name_of_id: str, **settings: Any) -> ScenarioEnv:
    """The environment of a whole scenario, for one policy; settings as in `planner.make_env`."""
    own_packages.claim("skills")
    name = _chosen("scenario", name_of_id, settings) if name_of_id == "scenario" else name_of_id
    return own_packages.load("planner").make_env(name, **settings)


def _chosen(kind: str, name_of_id: str, settings: dict[str, Any]) -> str:
    """The skill or scenario of an id, or the one that is given to the id for all; taken out of the settings."""
    given = settings.pop(kind, None if name_of_id == kind else name_of_id)
    if name_of_id != kind and given != name_of_id:
        raise UserError(f"{kind}={given!r} cannot be given here: this id is of {kind} {name_of_id!r}. Choose the id of "
                        f"the other {kind}.")
    if not isinstance(given, str):
        raise UserError(f"{environment_id(kind)} needs {kind}=, as in gymnasium.make({environment_id(kind)!r}, "
                        f"{kind}='package.module:Name').")
    return given

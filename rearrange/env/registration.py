"""The environments as Gymnasium knows them: `gymnasium.make("rearrange/Pick-v0")`,
`gymnasium.make("rearrange/TidyHouse-v0")`.

`import rearrange` registers them, and so does the entry point `gymnasium.envs`, which `trainer.train` loads. In a
process that does neither, `gymnasium.make("rearrange:rearrange/Pick-v0")` imports the package first.

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
    """The id of a skill, scenario or navigation task: `open_cabinet` is `rearrange/OpenCabinet-v0`."""
    return f"rearrange/{NAVIGATION.get(name) or name.title().replace('_', '')}-v0"


def register_envs() -> None:
    """Register every skill, scenario and navigation task that is not registered yet. Episodes end by the step limit
    of each itself. """
    from gymnasium.envs.registration import register, registry

    for names, make in ((_skill_names(), "make_skill"), (presets.names("hab"), "make_scenario"),
                        (NAVIGATION, "make_navigation")):
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
    if (skill := settings.pop("skill", name_of_id)) != name_of_id:
        raise UserError(f"skill={skill!r} cannot be given here: this id is of skill {name_of_id!r}. Choose the id of "
                        "the other skill.")
    return own_packages.load("skills").make_env(name_of_id, **settings)


def make_navigation(name_of_id: str, **settings: Any) -> NavigationEnv:
    """The environment of a navigation task; settings as in `rearrange.navigation.make_env`."""
    return import_module("rearrange.navigation").make_env(name_of_id, **settings)


def make_vector(name_of_id: str, num_envs: int = 1, autoreset_mode: str = "NextStep", **settings: Any) -> VectorOfHomes:
    """Several environments of a skill, scenario or navigation task in one vector, each with these settings."""
    from rearrange.env.vector_env import VectorOfHomes

    make = make_scenario if name_of_id in presets.names("hab") else (
        make_navigation if name_of_id in NAVIGATION else make_skill)
    return VectorOfHomes(lambda: make(name_of_id, **settings), num_envs, autoreset_mode)


def make_scenario(name_of_id: str, **settings: Any) -> ScenarioEnv:
    """The environment of a whole scenario, for one policy; settings as in `planner.make_env`."""
    own_packages.check("skills")
    return own_packages.load("planner").make_env(name_of_id, **settings)

"""Registers the environments with Gymnasium: `import rearrange; gymnasium.make("rearrange/Pick-v0")`.

Gymnasium 1.0 and newer have no plug-in discovery, so `rearrange/__init__.py` calls this; without that import,
`gymnasium.make("rearrange:rearrange/Pick-v0")` does it in one go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rearrange.errors import UserError

if TYPE_CHECKING:
    from rearrange.env import RearrangeEnv

NAMESPACE = "rearrange"
ENVIRONMENTS = {  # id -> skill
    "Navigate-v0": "navigate",
    "Pick-v0": "pick",
    "Place-v0": "place",
    "OpenCabinet-v0": "open_cabinet",
    "CloseCabinet-v0": "close_cabinet",
    "OpenFridge-v0": "open_fridge",
    "CloseFridge-v0": "close_fridge",
}


def register_envs() -> None:
    """Register every environment of `ENVIRONMENTS` that is not registered yet. Episodes end by the skill's own step
    limit.
    """
    from gymnasium.envs.registration import register, registry

    for name, skill in ENVIRONMENTS.items():
        if f"{NAMESPACE}/{name}" not in registry:
            register(id=f"{NAMESPACE}/{name}", entry_point="rearrange.registration:make", kwargs={"skill_of_id": skill})


def make(skill_of_id: str, **settings: Any) -> RearrangeEnv:
    """The environment of an id, which says which skill it is."""
    from skills import make_env

    if (skill := settings.pop("skill", skill_of_id)) != skill_of_id:
        raise UserError(f"skill={skill!r} cannot be given here: this id is of skill {skill_of_id!r}. Choose the id of the other "
                        "skill.")
    return make_env(skill_of_id, **settings)
